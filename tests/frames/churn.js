// Work for node that is hard to sample: functions that are evaluated and thrown away, code that becomes invalid, deep stacks
// among collections, and worker threads that start, stop and are terminated.
//
// usage: churn.js SECONDS      of CPU time; prints: done
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');

const seconds = Number(isMainThread ? process.argv[2] : workerData);
let sum = 0;

function evaluates(k) {
	const f = eval(`(function same(x) { let s = ${k}; for (let i = 0; i < 200 + x; i++) s = (s * 31 + i) | 0; return s; })`);
	for (let i = 0; i < 20; i++)
		sum += f(i) & 1;
	return new Function('x', `return function made_${k}(y) { return x + y + ${k}; }`)(k)(1);
}

function adds(o) { return o.a + o.b; }

function allocates() {
	const all = [];
	for (let i = 0; i < 3000; i++)
		all.push({ i, s: 'x' + i, n: [i] });
	return all.filter(x => x.i % 3).map(x => x.s).join('').length;
}

function recurse(n) { return n ? 1 + recurse(n - 1) : allocates(); }

function churn() {
	const end = process.cpuUsage().user + seconds * 1e6;
	for (let k = 0; process.cpuUsage().user < end; k++) {
		evaluates(k);
		recurse(k * 7919 % 200);
		for (let i = 0; i < 2000; i++)
			adds(i % 97 ? { a: i, b: 2 } : { b: 'x', a: i, c: 3 });
		[...Array(500).keys()].sort((a, b) => (a * 7 % 13) - (b * 7 % 13));
		'abcabcabc'.repeat(50).replace(/[ab]+/g, m => m.length);
		JSON.parse(JSON.stringify({ a: [1, 2, { b: k }] }), (key, value) => value);
	}
}

churn();
if (isMainThread) {
	let started = 0;
	const start = () => {
		if (started++ >= 8)
			return;
		const worker = new Worker(__filename, { workerData: seconds / 10 });
		worker.on('exit', start);
		if (started % 3 === 0)
			setTimeout(() => worker.terminate(), 150);
	};
	start();
	start();
	process.on('exit', () => console.log('done'));
}
