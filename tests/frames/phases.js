// Phases named by an addon: loading() and parsing() run the same function, each in phases of its own.
//
// usage: phases.js ADDON MS     each of the three phases takes so many ms
'use strict';
const addon = { exports: {} };
process.dlopen(addon, process.argv[2]);
const { begin, end } = addon.exports, ms = Number(process.argv[3]);

function spin() {
	const until = process.hrtime.bigint() + BigInt(ms) * 1000000n;
	let sum = 0;

	while (process.hrtime.bigint() < until)
		for (let i = 0; i < 100000; i++)
			sum = (sum * 31 + i) | 0;
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
