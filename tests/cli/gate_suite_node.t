#!/bin/bash
# gate --suite of tinybench and vitest, with both. NPM: a directory with them (tests/gate/suites/package.json).
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY NODE_OPTIONS
NPM=${NPM:-$BUILT/npm-suites}
test -d "$NPM/node_modules/tinybench" || skip_all "tinybench and vitest are not installed here (make check-suites installs them)"
mkdir own old new
export TMPDIR=$TMP/own
for side in old new; do
	ln -s "$NPM/node_modules" $side/node_modules
done

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >"$TMP/out.tap" 2>"$TMP/err"
}

# names: the cases that --list-cases printed, in one line.
names() {
	grep -v "^$(printf '\t')" ../out.tap | tr '\n' ';'
}

# V8 puts no function of that size into its caller.
step=$(printf 'h = (Math.imul(h, 31) + i) | 0\n%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40)
cat >old/work.mjs <<JS
import { existsSync } from 'node:fs'

/* More work in the directory that has such a file. */
export const more = existsSync('more') ? 1.6 : 1

export function hashOf(n) {
	let h = 1
	for (let i = 0; i < n; i++) {
		$step
	}
	return h
}

export function sumOf(n) {
	let h = 1
	for (let i = 0; i < n; i++) {
		$(echo "$step" | sed "s/31/33/")
	}
	return h
}
JS
cat >old/tasks.mjs <<'JS'
import { Bench } from 'tinybench'
import { hashOf, more, sumOf } from './work.mjs'

const first = new Bench({ time: 100 }), second = new Bench({ name: 'a, [b]' })
globalThis.kept = 0
first
	.add('hash "x"', () => { kept += hashOf(500 * more) })
	.add('sum', () => { kept += sumOf(500) })
	.add('same', () => { kept++ })
	.add('async', async () => { await null; kept += hashOf(50) })
	.add('throws', () => { if (kept !== undefined) throw new Error('it broke') })
	.add('hangs', () => { while (process.env.COUNTERSINK_CASES) kept++ })
	.add('crashes', () => { if (process.env.COUNTERSINK_CASES) process.abort() })
second.add('of $(it)*', () => { kept += sumOf(3) }).add('same', () => { kept++ })
const third = new Bench().add('same', () => { kept++ })
await first.run()
second.runSync()
await third.run()
console.table(first.table())
JS
cat >old/work.bench.js <<'JS'
import { bench, describe } from 'vitest'
import { hashOf, more, sumOf } from './work.mjs'

globalThis.kept = 0
describe('one > [x]', () => {
	bench('hash (a/b), "c" $1', () => { kept += hashOf(500 * more) })
	bench('sum', () => { kept += sumOf(500) })
})
bench('sum', () => { kept += sumOf(5) }, { time: 1 })
describe('twice', () => {
	bench('b', () => { kept += sumOf(5) })
	bench('b', () => { kept += sumOf(8) })
})
JS
cat >old/other.bench.js <<'JS'
import { bench } from 'vitest'
import { hashOf, more } from './work.mjs'

globalThis.kept = 0
bench('sum', () => { kept += hashOf(300 * more) })
JS
cp old/*.mjs old/*.js new/
: >new/more
cd new || exit 1

# ---- tinybench
gate --suite --list-cases --vs-dir ../old -- node tasks.mjs
is "$(names)" 'hash "x";sum;same;async;throws;hangs;crashes;a, [b]/of $(it)*;a, [b]/same;same #2;' \
	"tinybench is found by asking; the tasks of all benches are listed" || diag "$(cat ../out.tap ../err)"
like "$(cat ../out.tap)" "new: .*COUNTERSINK_CASES=[^ ]*/case-7-1 .* node tasks.mjs$" "a case is in a file: its name goes through no shell"
gate --suite --process=suite --seed 5 --threshold 10% --screen 0 --confirm 9 --run-time 50ms --max-time 120 --cases '^(hash|sum)' --vs-dir ../old -- node tasks.mjs
is $? 3 "tinybench, a slower function: status 3" || diag "$(cat ../out.tap ../err)"
like "$(cat ../out.tap)" '^# note: one process runs 2 cases ' "one process runs both tasks"
like "$(sed -n 2p ../out.tap)" '^# 1 of 2 cases slower: hash "x" \(hashOf \+[0-9.]+ %\)(; 1 inconclusive)?$' "the case is named, with its function" || diag "$(cat ../out.tap)"
like "$(cat ../out.tap)" '^ok 2 - sum: ' "a task that did not change passes"
change=$(sed -n 's/^not ok 1.*hashOf at work.mjs:[0-9]* regressed: +\([0-9]*\).*/\1/p' ../out.tap)
ok "the same number of iterations costs 60 % more (+$change %)" test "${change:-0}" -ge 45 -a "${change:-0}" -le 75
for process in case suite; do
	gate --suite --process=$process --screen 0 --confirm 2 --threshold 90% --alpha 90% --max-time 60 --self-check --cases '^(async|throws|hangs|crashes|a, |same #2)' --json ../out.json -- node tasks.mjs
	is $? 1 "$process: tasks in error, and none slower: status 1" || diag "$(cat ../out.tap ../err)"
	like "$(cat ../out.tap)" '^not ok [0-9] - throws: error: the old side: the benchmark fails: it broke$' "$process: what a task throws is an error of its case"
	like "$(cat ../out.tap)" '^not ok [0-9] - hangs: error: the old side: it did not end within [0-9]+ s, and was killed$' "$process: a task that does not end is an error of its case"
	like "$(cat ../out.tap)" '^not ok [0-9] - crashes: error: the old side: signal 6' "$process: a crash is an error of its case"
	like "$(cat ../out.tap)" '^ok [0-9] - async: ' "$process: an asynchronous task is judged"
	like "$(cat ../out.tap)" '^ok [0-9] - a, \[b\]/of \$\(it\)\*: ' "$process: a name with commas, brackets and signs of a shell is run"
	like "$(cat ../out.tap)" '^ok [0-9] - same \\#2: ' "$process: of two tasks with one name, the second one is run"
done
is "$(python3 -c 'import json
print(*sorted(case["case"] + ":" + case["process"] for case in json.load(open("../out.json"))["cases"] if case["verdict"] != "error" and case["confirmed_pairs"] > 0), sep=";")')" \
	'a, [b]/of $(it)*:suite;a, [b]/same:suite;async:case;same #2:suite' "an asynchronous task has a process of its own, the others share one" || diag "$(cat ../out.tap ../err)"
cat >quits.mjs <<'JS'
import { Bench } from 'tinybench'

globalThis.kept = 0
const work = () => { for (let i = 0; i < 1e4; i++) kept += i }
await new Bench({ time: 20 })
	.add('a', work)
	.add('quits', () => { if (process.env.COUNTERSINK_CASES) process.exit(0) })
	.add('b', work)
	.run()
JS
gate --suite --process=suite --screen 0 --confirm 2 --threshold 90% --alpha 90% --max-time 60 --self-check -- node quits.mjs
like "$(cat ../out.tap)" '^not ok [0-9] - quits: error: the old side: its process ended in it, with status 0$' "a task that ends the process of all with status 0 is an error of its case" ||
	diag "$(cat ../err)"
like "$(cat ../out.tap)" '^ok [0-9] - a: ' "the task before it is judged"
like "$(cat ../out.tap)" '^ok [0-9] - b: ' "the task behind it is judged"
cat >two.mjs <<'JS'
import { Bench } from 'tinybench'

globalThis.kept = 0
const work = () => { for (let i = 0; i < 1e4; i++) kept += i }
const lists = new Bench({ time: 20 }).add('insert', work), sets = new Bench({ time: 20 }).add('insert', work)
await (process.argv[2] === 'sets' ? sets : lists).run()
JS
gate --suite --screen 0 --confirm 2 --threshold 90% --alpha 90% --max-time 60 --self-check -- node two.mjs sets
like "$(cat ../out.tap)" '^ok 1 - insert \\#2: ' "of two benches with a task of one name, only the second is run: it is the second in a list, too" || diag "$(cat ../out.tap ../err)"
echo "console.log('no task')" >none.mjs
gate --suite=tinybench --self-check -- node none.mjs
is $? 4 "a program without tasks: status 4" || diag "$(cat ../out.tap ../err)"
gate --suite=tinybench --self-check -- node no_such.mjs
is $? 1 "a program that is not there: status 1"
like "$(cat ../err)" "ERR_MODULE_NOT_FOUND" "the reason is reported"

# ---- vitest
set -- ./node_modules/.bin/vitest bench
gate --suite --list-cases --vs-dir ../old -- "$@"
is "$(names | tr ';' '\n' | sort | tr '\n' ';')" \
	'other.bench.js > sum;work.bench.js > one > [x] > hash (a/b), "c" $1;work.bench.js > one > [x] > sum;work.bench.js > sum;work.bench.js > twice > b;' \
	"vitest: its benchmarks are listed" || diag "$(cat ../out.tap ../err)"
gate --suite --seed 5 --threshold 10% --screen 0 --confirm 8 --max-time 900 --cases 'hash|sum' --json ../out.json --vs-dir ../old -- "$@"
is $? 3 "vitest, a slower function: status 3" || diag "$(cat ../out.tap ../err)"
like "$(sed -n 2p ../out.tap)" '^# 2 of 4 cases slower: hashOf \+[0-9.]+ % to \+[0-9.]+ % in 2 cases: ' "the function is named, with the cases that it is slower in" || diag "$(cat ../out.tap)"
like "$(cat ../out.tap)" '^not ok [0-9] - work.bench.js > one > \[x\] > hash \(a/b\), "c" \$1: hashOf in work.mjs regressed: ' "a case is named, with its file and its suites"
like "$(cat ../out.tap)" '^# note: one process runs 4 cases \(to start it takes [0-9]+ ms of CPU time\)' "vitest takes longer to start than its cases: one process runs them"
is "$(python3 -c 'import json
for case in json.load(open("../out.json"))["cases"]:
	names = {row["function"] for row in case["rows"] if "function" in row}
	print(case["case"], "hashOf" in names, "sumOf" in names)' | sort)" \
	"$(printf 'other.bench.js > sum True False\nwork.bench.js > one > [x] > %s\nwork.bench.js > one > [x] > sum False True\nwork.bench.js > sum False True\n' 'hash (a/b), "c" $1 True False')" \
	"each benchmark has its own function: those of one name, in files and in suites, are distinguished" || diag "$(cat ../out.tap)"
gate --suite --process=case --screen 0 --confirm 2 --threshold 90% --alpha 90% --max-time 300 --self-check --cases 'twice|work.bench.js > sum' --json ../out.json -- "$@"
like "$(cat ../out.tap)" '^ok 1 - work.bench.js > sum: ' "a benchmark without a suite is run alone, beside one of its name in a suite"
is "$(python3 -c 'import json
print(*(case["process"] for case in json.load(open("../out.json"))["cases"] if case["verdict"] != "error"))')" case "--process=case: in a process of its own"
like "$(cat ../out.tap)" '^not ok 2 - work.bench.js > twice > b: error: the old side has several benchmarks of that name$' "two benchmarks of one name are an error"
mkdir empty && cd empty || exit 1
gate --suite --self-check -- ../node_modules/.bin/vitest bench
isnt $? 0 "vitest without benchmarks is no success"
is "$(ls ../../own)" "" "no directory is left"

done_testing
