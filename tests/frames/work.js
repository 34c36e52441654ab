// Work of a second or so in builtin functions (sort, JSON, regular expressions), and in compiled and interpreted ones.
'use strict';
let sum = 0;

function compare(x, y) { return x - y; }

function sorting() {
	for (let i = 0; i < 10; i++)
		sum += Array.from({ length: 2000 }, (_, k) => (k * 7919) % 2003).sort(compare)[1];
}

function parsing() {
	for (let i = 0; i < 100; i++)
		sum += JSON.parse(JSON.stringify({ a: [1, 2, 3], b: 'xx'.repeat(50) })).a.length;
}

function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

function work(rounds) {
	for (let i = 0; i < rounds; i++) {
		sorting();
		parsing();
		sum += fib(20);
	}
}

work(Number(process.argv[2]));
console.log(sum > 0 ? 1000 : 0);
