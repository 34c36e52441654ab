// As truth.py, for JavaScript: before each page fault that it causes on purpose, it writes down its own stack.
//
// usage: truth.js FILE      writes the stacks, JSON: [[function, file, line], innermost first]
// The line is 0 where no file has the source: V8 has places in that alone.
// Async callers are no frames, and builtin functions are frames of V8's that some of its versions have and others lack.
// A name that was computed at run time is a property of the function object alone: the profile has the name that V8
// inferred from the source, or (anonymous). Likewise for initializers of classes, from node 22 on.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const stacks = [];
const pages = new Uint8Array(4096 * 4096);
let next = 0;

const inferred = { '[Symbol.toPrimitive]': 'table' };
if (parseInt(process.versions.node) >= 22)
	Object.assign(inferred, { '<instance_members_initializer>': 'Derived', '<static_initializer>': 'Initialized' });

function nameOf(site, name) {
	if (inferred[name])
		return inferred[name];
	return !name || (name === 'eval' && site.isEval()) || /^\[.*\]$|^computed$/.test(name) ? '(anonymous)' : name;
}

function format(error, sites) {
	return sites.filter(site => !site.isAsync()).map(site => {
		const name = site.getFunctionName();
		let file = site.getFileName();
		if (typeof file !== 'string')
			file = site.isEval() ? '[eval]' : '[builtin]';
		if (file.startsWith('file:'))
			file = require('url').fileURLToPath(file);
		return [nameOf(site, name), file, file.startsWith('/') ? site.getLineNumber() : 0];
	}).filter(place => place[1] !== '[builtin]');
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

// In one line: V8 itself causes page faults when a function returns.
function here() { pages[note()] = 1; return 1; }

function recurse(n) { return n ? 1 + recurse(n - 1) : here(); }

class Base {
	constructor() { here(); }
	method() { return here(); }
	get value() { return here(); }
	set value(to) { here(); }
	static of() { return here(); }
	#hidden() { return here(); }
	callHidden() { return this.#hidden(); }
	['com' + 'puted']() { return here(); }
}

class Derived extends Base {
	field = here();
	method() { return super.method() + here(); }
}

function* generate(n) {
	for (let i = 0; i < n; i++) {
		here();
		yield i;
	}
}

function* delegate(n) {
	yield* generate(n);
	here();
}

async function waits(n) {
	here();
	await null;
	here();
	for await (const i of streams(n))
		here();
	return here();
}

async function* streams(n) {
	for (let i = 0; i < n; i++) {
		await null;
		here();
		yield i;
	}
}

const proxy = new Proxy({}, {
	get(target, key) { return here(); },
	has(target, key) { return here() > 0; },
	apply() { return here(); },
});

const callable = new Proxy(function called() { return here(); }, { apply(f, self, args) { here(); return f(...args); } });

function throwsFrom(n) {
	try {
		if (n)
			throwsFrom(n - 1);
		throw new Error('x');
	} catch (e) {
		here();
	} finally {
		here();
	}
}

function tagged(strings, ...values) { return here(); }

const table = {
	plain() { return here(); },
	arrow: () => here(),
	expression: function () { return here(); },
	'not a name'() { return here(); },
	ünï() { return here(); },
	名前() { return here(); },
	[Symbol.toPrimitive]() { return here(); },
	toJSON() { return here(); },
};

function callbacks() {
	[3, 1, 2].sort((a, b) => { here(); return a - b; });
	[3, 1, 2].map(function mapped(x) { return here(); });
	[1, 2].reduce((a, b) => here());
	[1].forEach(here);
	Array.from({ length: 2 }, () => here());
	new Map([[1, 2]]).forEach(() => here());
	JSON.parse('{"a": [1, {"b": 2}]}', function reviver(key, value) { here(); return value; });
	JSON.stringify({ a: table }, (key, value) => { here(); return value; });
	'abc'.replace(/[a-c]/g, c => { here(); return c; });
	Reflect.apply(here, null, []);
	Reflect.construct(Base, []);
	here.call(null);
	here.apply(null, []);
	here.bind(null, 1)();
	table.plain.bind(table)();
	new (Derived.bind(null))();
	proxy.anything;
	'x' in proxy;
	callable(1);
	+table;
	tagged`a${1}b`;
	[...generate(2)];
	[...delegate(2)];
	for (const x of delegate(1))
		here();
	const { a = here() } = {};
	(function () { here(); })();
	(() => here())();
	setter.value = 1;
}

const setter = new Derived();

function classes() {
	const d = new Derived();
	d.method();
	d.value;
	d.value = 2;
	d.callHidden();
	d.computed();
	Base.of();
	new (class { constructor() { here(); } })();
	new (class Initialized { static made = here(); static { here(); } m() { here(); } })().m();
	for (const key of Object.keys(table))
		if (key !== 'toJSON')
			table[key]();
}

function evaluated() {
	eval('here()');
	eval('(function inEval() { return here(); })()');
	(0, eval)('globalThis.fromEval = function fromEval(f) { return f(); }');
	globalThis.fromEval(here);
	new Function('f', 'return f()')(here);
	vm.runInThisContext('(function inVm(f) { return f(); })', { filename: 'evalmachine.js' })(here);
	vm.runInNewContext('(function inContext(f) { return f(); })')(here);
	for (let i = 0; i < 60; i++)
		eval(`(function same() { /* ${'x'.repeat(i)} */ return here(); })`)();
	for (let i = 0; i < 60; i++)
		eval(`(function made_${i}() { return here(); })`)();
}

async function everything() {
	callbacks();
	classes();
	evaluated();
	throwsFrom(3);
	for (let n = 0; n < 200; n++)
		recurse(n % 40);
	for (let n = 0; n < 150; n++)
		callbacks.length + classes.length + recurse(n % 5) + setter.method() + table.arrow();
	await waits(2);
	await Promise.all([waits(1), waits(1)]);
	await new Promise(resolve => setTimeout(function timer() { here(); resolve(); }, 1));
	await new Promise(resolve => setImmediate(() => { here(); resolve(); }));
	await new Promise(resolve => process.nextTick(resolve)).then(function then() { return here(); });
	queueMicrotask(() => here());
	await new Promise(resolve => fs.stat(__filename, function stat() { here(); resolve(); }));
	await (await import('./truth.mjs')).default(here);
	return stacks;
}

async function main() {
	await everything();
	if (!isMainThread) {
		parentPort.postMessage(stacks);
		return;
	}
	const worker = new Worker(__filename, { workerData: 1 });
	const theirs = await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject));
	fs.writeFileSync(process.argv[2], JSON.stringify(stacks.concat(theirs)));
}

main();
