// Functions made by eval() that are freed one after the other, so that those of the next one come to lie where they were: each f123 is
// called by g123. Prints what they counted.
//
// usage: node --expose-gc evals.js NR
'use strict';
let calls = 0;

function spin(n) {
	let sum = 0;
	for (let i = 0; i < n; i++)
		sum = (sum * 31 + i) | 0;
	calls++;
	return sum;
}

for (let i = 100000; i < 100000 + Number(process.argv[2]); i++) {
	const g = (0, eval)(`(function g${i}(spin) { function f${i}() { return spin(5000) + 1; } return f${i}() + 1; })`);
	for (let k = 0; k < 4; k++)
		g(spin);
	if (i % 3 === 0)
		gc();
}
console.log(calls);
