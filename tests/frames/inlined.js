// As truth.js, for functions that optimizing compilers inline into their callers: they run often, and sometimes call here(), which
// is not inlined itself.
//
// usage: inlined.js FILE      writes the stacks, JSON: [[function, file, line], innermost first]
'use strict';
const fs = require('fs');

const stacks = [];
const pages = new Uint8Array(4096 * 8192);
let next = 0, sum = 0, nrCalls = 0;

function format(error, sites) {
	return sites.filter(site => typeof site.getFileName() === 'string').map(
		site => [site.getFunctionName() || '(anonymous)', site.getFileName(),
			site.getFileName().startsWith('/') ? site.getLineNumber() : 0]);
}

function note() {
	const before = [Error.prepareStackTrace, Error.stackTraceLimit];
	Error.prepareStackTrace = format;
	Error.stackTraceLimit = Infinity;
	const stack = new Error().stack;
	[Error.prepareStackTrace, Error.stackTraceLimit] = before;
	stacks.push(stack.slice(1));
	return next += 4096;
}

// In one line: see truth.js. The page fault is one of native code, so that this function, too, has called something.
function here() { return pages.fill(1, note(), next + 1).length & 1; }

function sometimes(n) {
	if ((++nrCalls & 255) === 0)
		here();
	return n & 1;
}

function two(n) { return sometimes(n) + 1; }

function three(n) {
	const a = two(n);
	return a +
		two(a);
}

class Point {
	constructor(x) {
		this.x = x + sometimes(x);
	}
	get twice() { return this.x + three(1); }
	plus(other) { return new Point(this.x + other.twice); }
}

class Named extends Point {
	constructor(x) {
		super(x);
		this.y = two(x);
	}
}

function more(a, b = 1, ...rest) { return a + b + rest.length + sometimes(a); }

function fewer() { return two(arguments.length); }

function catches(n) {
	try {
		return three(n);
	} finally {
		sum++;
	}
}

function closure(n) {
	const inner = x => x + two(n);
	return inner(1) + inner(2);
}

function loops(n) {
	let s = 0;
	for (let i = 0; i < 3; i++)
		s += two(i);
	return s + n;
}

function callbacks(list) {
	let s = 0;
	list.forEach(x => { s += two(x); });
	return s + list.map(function mapped(x) { return sometimes(x); }).length +
		list.reduce((a, x) => a + three(x), 0) + (list.some(x => two(x) > 100) ? 1 : 0);
}

function recurse(n) { return n > 0 ? recurse(n - 1) + sometimes(n) : 0; }

const calls = [
	n => three(n),
	n => new Point(n).plus(new Point(1)).twice,
	n => new Named(n).y,
	n => more(n) + more(n, 2) + more(n, 2, 3, 4),
	n => fewer() + fewer(n, n, n),
	n => catches(n),
	n => closure(n),
	n => loops(n),
	n => callbacks([1, 2, 3]),
	n => recurse(4),
	n => three.call(null, n) + three.apply(null, [n]) + Reflect.apply(two, null, [n]),
	n => three.bind(null, n)(),
];

// Its code is replaced while it runs, since it has a loop; most of its callees are compiled where they begin.
function run(call, nr) {
	for (let i = 0; i < nr; i++)
		sum += call(i);
}

for (const call of calls)
	for (let i = 0; i < 60; i++)
		run(call, 300);
for (const call of calls)
	run(call, 3000);
fs.writeFileSync(process.argv[2], JSON.stringify(stacks));
