/*
 * Loaded into node before the program of a suite (gate --suite=tinybench, --suite=vitest), which makes as many iterations of
 * a task as a clock allows, and cannot be given one task alone. With this, each task, or the one that
 * COUNTERSINK_TASKS_NAME names, makes COUNTERSINK_TASKS_NUMBER iterations and one more, without a warm-up, and adds a line
 * of JSON to the file COUNTERSINK_TASKS_REPORT. Works with tinybench 2.9 to 6, whichever the program or vitest imports.
 */
import { appendFileSync, existsSync, readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const { COUNTERSINK_TASKS_NAME: chosen, COUNTERSINK_TASKS_REPORT: report } = process.env
const number = Number(process.env.COUNTERSINK_TASKS_NUMBER)

const added = new WeakMap() // of a task: its bench, function and options
const names = new WeakMap() // of a bench: what its tasks are called
const times = new Map() // that a name was given

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

/* What is judged are the samples below this function. A promise of the first iteration says that the others give one. */
function countersinkIterations(task, fn, { beforeEach, afterEach }) {
	for (let i = 0; i < number; i++) {
		beforeEach?.call(task)
		const value = fn.call(task)
		if (!i && typeof value?.then === 'function') return iterateAsync(value, task, fn, { beforeEach, afterEach })
		afterEach?.call(task)
	}
	return undefined
}

async function iterateAsync(first, task, fn, { beforeEach, afterEach }) {
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

function write(task, bench, more) {
	if (report) appendFileSync(report, JSON.stringify({ name: nameOf(bench, task.name), ...more }) + '\n')
}

/* Returns a promise where the task gives one. An error is the harness's to handle: it meets it again. */
function runTask(task) {
	const { bench, fn, options } = added.get(task) ?? { bench: task.bench, fn: task.fn, options: task.opts }
	const start = seconds()
	const end = (isAsync) => write(task, bench, { iterations: number, seconds: seconds() - start, async: isAsync })
	const fail = (error) => write(task, bench, { error: String(error?.message ?? error) })

	bench.time = 0
	bench.iterations = 1
	try {
		const promise = countersinkIterations(task, fn, options ?? {})
		if (promise) return promise.then(() => end(true), fail)
		end(false)
	} catch (error) {
		fail(error)
	}
	return undefined
}

function replace(prototype, name, make) {
	if (typeof prototype[name] === 'function') prototype[name] = make(prototype[name])
}

function patch({ Bench, Task }) {
	/* What is not chosen is never added: some versions call a function to see whether it is asynchronous. */
	replace(Bench.prototype, 'add', (add) => function (name, fn, options) {
		if (nameOf(this, name) !== chosen && chosen !== undefined) return this
		const result = add.call(this, name, fn, options)
		added.set(this.getTask(name), { bench: this, fn, options })
		return result
	})
	replace(Task.prototype, 'run', (run) => async function () {
		await added.get(this)?.options?.beforeAll?.call(this, 'run')
		await runTask(this)
		await added.get(this)?.options?.afterAll?.call(this, 'run')
		return run.call(this)
	})
	replace(Task.prototype, 'runSync', (run) => function () {
		runTask(this)
		return run.call(this)
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
