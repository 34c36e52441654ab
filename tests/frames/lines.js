// Work that three lines share equally, and the loop around them has little of.
//
// usage: lines.js ROUNDS      prints: 1000
'use strict';
function three(n) {
	let a = 1, b = 2, c = 3;
	for (let i = 0; i < n; i++) {
		a = (a * 31 + i) | 0; a = (a * 31 + i) | 0; a = (a * 31 + i) | 0; a = (a * 31 + i) | 0; // first
		b = (b * 31 + i) | 0; b = (b * 31 + i) | 0; b = (b * 31 + i) | 0; b = (b * 31 + i) | 0; // second
		c = (c * 31 + i) | 0; c = (c * 31 + i) | 0; c = (c * 31 + i) | 0; c = (c * 31 + i) | 0; // third
	}
	return a + b + c;
}

let sum = 0;
for (let k = Number(process.argv[2]); k > 0; k--)
	sum += three(100000);
console.log(sum ? 1000 : 0);
