// Phases named by an addon: loading() and parsing() run the same function, each in phases of its own.
//
// usage: phases.js ADDON MS     each of the three phases takes so many ms of CPU time
'use strict';
const addon = { exports: {} };
process.dlopen(addon, process.argv[2]);
const { begin, end } = addon.exports, ms = Number(process.argv[3]);

function spin() {
	const from = process.cpuUsage();
	let sum = 0, used;

	do {
		for (let i = 0; i < 100000; i++)
			sum = (sum * 31 + i) | 0;
		used = process.cpuUsage(from);
	} while (used.user + used.system < 1000 * ms);
	return sum;
}

function loading() {
	begin('load');
	const sum = spin();
	end();
	return sum;
}

function parsing() {
	begin('parse');
	begin('inner');
	let sum = spin();
	end();
	sum += spin();
	end();
	return sum;
}

console.log(loading() + parsing() === 1 ? 0 : 1000);
