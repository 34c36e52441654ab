// Work for V8 in compiled code that is no function of JavaScript: regular expressions, and WebAssembly.
'use strict';

// export function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
const compiled = new WebAssembly.Module(Uint8Array.from([
	0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3,
	102, 105, 98, 0, 0, 10, 30, 1, 28, 0, 32, 0, 65, 2, 72, 4, 127, 32, 0, 5, 32, 0, 65, 1,
	107, 16, 0, 32, 0, 65, 2, 107, 16, 0, 106, 11, 11,
]));
const instance = new WebAssembly.Instance(compiled);
const text = 'abcabcabx'.repeat(1000);

function matching() {
	const pattern = /(a|b|c)+x|[a-z]*y|(\w+)\1z/g;
	let n = 0;
	for (let found; (found = pattern.exec(text));)
		n += found[0].length;
	return n + text.replace(/b[^d]/g, '..').length;
}

function counting() { return instance.exports.fib(22); }

let sum = 0;
for (let i = 0; i < Number(process.argv[2]); i++)
	sum += matching() + counting();
console.log(sum > 0 ? 1000 : 0);
