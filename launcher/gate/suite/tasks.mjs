/*
 * Loaded into node before the program of a suite (gate --suite=tinybench, --suite=vitest), which makes as many iterations of
 * a task as a clock allows, and cannot be given some tasks alone. With this, the tasks that the file COUNTERSINK_CASES names
 * make exact numbers of iterations and one more, without a warm-up, each below a function of its own: the samples below it
 * are the task's. A line of JSON about each goes to the file COUNTERSINK_CASES_REPORT when it begins, has made its
 * iterations, fails, and has ended. Without COUNTERSINK_CASES, all tasks make one iteration, and are named.
 * Works with tinybench 2.9 to 6, whichever the program or vitest imports.
 */
import { appendFileSync, existsSync, readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import vm from 'node:vm'

const { COUNTERSINK_CASES: cases, COUNTERSINK_CASES_REPORT: report } = process.env
const chosen = cases && new Map(JSON.parse(readFileSync(cases, 'utf8')).map((one) => [one.name, one]))

const added = new WeakMap() // of a task: its bench, function and options
const names = new WeakMap() // of a bench: what its tasks are called
const times = new Map() // that a name was given
const runs = new Map() // of a file of vitest: how many tasks have run

/* Where node would find a package for a file in a directory; undefined: nowhere. */
function findPackage(name, directory) {
	for (let at = directory; ; at = path.dirname(at)) {
		const found = path.join(at, 'node_modules', name)
		if (existsSync(path.join(found, 'package.json'))) return realpathSync(found)
		if (path.dirname(at) === at) return undefined
	}
}

function entryOf(directory) {
	const { exports, module, main } = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8'))
	let entry = exports?.['.'] ?? exports
	while (entry && typeof entry === 'object') entry = entry.import ?? entry.node ?? entry.default
	return pathToFileURL(path.join(directory, entry ?? module ?? main)).href
}

/* Benches may share names of tasks: then the second one is "NAME #2". */
function nameOf(bench, task) {
	const own = names.get(bench) ?? new Map()
	names.set(bench, own)
	if (!own.has(task)) {
		const name = bench.name ? `${bench.name}/${task}` : String(task)
		const time = (times.get(name) ?? 0) + 1
		times.set(name, time)
		own.set(task, time > 1 ? `${name} #${time}` : name)
	}
	return own.get(task)
}

/* vitest adds no task to a bench, and gives it the last part of its name alone. A file's tasks run in the same order each time. */
function placeOf() {
	const file = globalThis.__vitest_worker__.filepath
	const run = (runs.get(file) ?? 0) + 1
	runs.set(file, run)
	return `${file}#${run}`
}

/* What is judged are the samples below a function of this name. */
function callBelow(name, run) {
	return vm.runInThisContext(`(function ${name}(run) { return run() })`)(run)
}

/* If the first iteration gives a promise, the others do, too. */
function countersinkIterate(number, task, fn, { beforeEach, afterEach }) {
	for (let i = 0; i < number; i++) {
		beforeEach?.call(task)
		const value = fn.call(task)
		if (!i && typeof value?.then === 'function') return iterateAsync(number, value, task, fn, { beforeEach, afterEach })
		afterEach?.call(task)
	}
	return undefined
}

async function iterateAsync(number, first, task, fn, { beforeEach, afterEach }) {
	await first
	await afterEach?.call(task)
	for (let i = 1; i < number; i++) {
		await beforeEach?.call(task)
		await fn.call(task)
		await afterEach?.call(task)
	}
}

function seconds() {
	const { user, system } = process.cpuUsage()
	return (user + system) / 1e6
}

function write(line) {
	if (report) appendFileSync(report, JSON.stringify(line) + '\n')
}

/* What a task is to do; undefined: nothing. */
function orderOf(task) {
	const isVitest = !added.has(task) && globalThis.__vitest_worker__
	const name = isVitest ? placeOf() : nameOf(added.get(task)?.bench ?? task.bench, task.name)
	if (chosen) return chosen.get(name)
	/* vitest's own report has what a result has. */
	if (isVitest) task.setResult?.({ countersinkPlace: name })
	return { name, function: 'countersink_case', number: 1 }
}

/* Returns a promise where the task gives one. An error is the harness's to handle: it meets it again. */
function runTask(task, order) {
	const { bench, fn, options } = added.get(task) ?? { bench: task.bench, fn: task.fn, options: task.opts }
	const start = seconds()
	const end = (isAsync) => write({ case: order.case, iterations: order.number, seconds: seconds() - start, async: isAsync })
	const fail = (error) => write({ case: order.case, error: String(error?.message ?? error) })

	bench.time = 0
	bench.iterations = 1
	try {
		const promise = callBelow(order.function, () => countersinkIterate(order.number, task, fn, options ?? {}))
		if (promise) return promise.then(() => end(true), fail)
		end(false)
	} catch (error) {
		fail(error)
	}
	return undefined
}

/* One that is not chosen, and that vitest runs all the same. */
function empty(task) {
	task.fn = () => {}
	task.opts = {}
	Object.assign(task.bench, { time: 0, iterations: 1, setup: () => {}, teardown: () => {} })
}

function begin(task) {
	const order = orderOf(task)
	if (order) write({ name: order.name, case: order.case, begins: true })
	else empty(task)
	return order
}

function replace(prototype, name, make) {
	if (typeof prototype[name] === 'function') prototype[name] = make(prototype[name])
}

function patch({ Bench, Task }) {
	/* What is not chosen is never added: some versions call a function to see whether it is asynchronous. */
	replace(Bench.prototype, 'add', (add) => function (name, fn, options) {
		const own = nameOf(this, name) /* numbered as they are added, when they are listed, too */
		const order = chosen?.get(own)
		if (chosen && !order) return this
		if (order) write({ case: order.case, begins: true })
		const result = add.call(this, name, fn, options)
		if (order) write({ case: order.case, ends: true })
		added.set(this.getTask(name), { bench: this, fn, options })
		return result
	})
	replace(Task.prototype, 'run', (run) => async function () {
		const order = begin(this)
		if (!order) return run.call(this)
		await added.get(this)?.options?.beforeAll?.call(this, 'run')
		await runTask(this, order)
		await added.get(this)?.options?.afterAll?.call(this, 'run')
		const result = await run.call(this)
		write({ case: order.case, ends: true })
		return result
	})
	replace(Task.prototype, 'runSync', (run) => function () {
		const order = begin(this)
		if (!order) return run.call(this)
		runTask(this, order)
		const result = run.call(this)
		write({ case: order.case, ends: true })
		return result
	})
	for (const { prototype } of [Bench, Task]) {
		replace(prototype, 'warmup', () => async () => {})
		replace(prototype, 'warmupSync', () => () => {})
	}
}

const entries = new Set()
const program = process.argv[1] && existsSync(process.argv[1]) ? realpathSync(process.argv[1]) : '.'
for (const from of [path.resolve(path.dirname(program)), process.cwd()]) {
	const vitest = findPackage('vitest', from)
	for (const found of [findPackage('tinybench', from), vitest && findPackage('tinybench', vitest)])
		if (found) entries.add(entryOf(found))
}
for (const entry of entries) patch(await import(entry))
