// Many short functions that are called in turn: samples often meet one where it begins.
// Prints where V8 writes its map of code, if it is asked for one.
'use strict';
const one = (a) => a + 1;
function two(a) { return one(a) + one(a); }
function three(a) { return two(a) + one(a); }
const functions = [];
for (let i = 0; i < 300; i++)
	functions.push(new Function('f', 'a', `return f(a) + ${i};`));
let sum = 0;
const end = process.cpuUsage().user + 1000 * process.argv[2];
while (process.cpuUsage().user < end)
	for (const f of functions)
		sum += f(three, 1);
console.log(`/tmp/perf-${process.pid}.map`);
