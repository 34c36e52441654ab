#!/bin/bash
# gate --suite --deterministic: each case's own instructions are counted, and its functions named.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
BENCH=$TARGETS/made_bench
WORK=$TARGETS/gate_work
QEMU=qemu-$(uname -m)
have "$QEMU" || skip_all "no $QEMU here (scripts/install-deps check)"
have valgrind || skip_all "no valgrind here"

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate --suite "$@" >out.tap 2>err
}

# check TITLE <SCRIPT: of Python, about out.json.
check() {
	python3 - >check.out 2>&1
	is $? 0 "$1" || diag "$(cat check.out out.tap err)"
}

# ---- google-benchmark's protocol: a function with 2 % more instructions, and the cases that err
gate --deterministic=qemu -T 1% --run-time 2ms --max-time 100 --cases 'BM_|OLD|NEW|Crash|Fails' --json out.json --markdown out.md --verdict out.verdict --junit out.xml --badge out.badge \
	--vs "$BENCH 0 old" -- "$BENCH" 2 new
is $? 3 "2 % more instructions in a function: status 3" || diag "$(cat out.tap err)"
is "$(sed -n 2p out.tap)" '# 2 of 6 cases slower: hash_of +2.0 % instructions in 2 cases: BM_Hash, BM_Both<int, char>/a b[0]{1}; 2 in error' \
	"the first line has the function, and that instructions were counted"
like "$(cat out.tap)" '^not ok 1 - BM_Hash: hash_of in made_bench regressed: \+2\.0 % \(\+2\.0 to \+2\.0 in all runs\), [0-9.]+ M instead of' \
	"a point has the function with the instructions of both sides"
like "$(cat out.tap)" '^ok 3 - BM_Sum/1: unchanged; instructions unchanged: \+0\.0 % \(\+0\.0 to \+0\.0 in all runs\)' "a case that did not change passes"
like "$(cat out.tap)" '^not ok 5 - XM_Crash: error: the new side: signal 11' "a crash is an error of its case"
like "$(cat out.tap)" '^not ok 6 - XM_Fails: error: the old side: the benchmark reports an error' "an error that the harness reports is one of its case"
like "$(cat out.tap)" '^# note: only the old side has 1 case, which is not judged: OLD_Alone$' "a case of the old side alone is named"
like "$(cat out.tap)" '^# note: only the new side has 1 case, which is not judged: NEW_Alone$' "a case of the new side alone is named"
like "$(cat out.tap)" "^# event: instructions, counted by qemu-user \\($QEMU version [0-9.]+\\)\$" "the tool and its version are reported"
like "$(cat out.tap)" '^# note: counts of equal runs do not differ in any case$' "equal runs that do not differ are reported"
like "$(cat out.tap)" '^# runs: 4 cases counted, at least 2 times on each side, in ' "so is how often cases are counted"
is "$(sed -n 1p out.verdict)" regressed "the file of the verdict has it"
like "$(cat out.md)" '^\| &#10060; regressed \| BM\\_Hash \| \+1\.5 % \| \+1\.5 to \+1\.5 \| hash\\_of in made\\_bench \| \+2\.0 % \|' "Markdown has the case's instructions and the function's"
like "$(cat out.xml)" 'type="regressed" message="hash_of in made_bench regressed: \+2\.0 %' "so has JUnit XML"
check "the work that is judged is the iterations' alone, exactly, and what the process and its harness do besides is left out" <<'PY'
import json
gate = json.load(open("out.json"))
cases = {case["case"]: case for case in gate["cases"]}
assert gate["status"] == 3 and gate["headline"].startswith("2 of 6 cases slower: hash_of +2.0 % instructions"), gate["headline"]
one = cases["BM_Hash"]
assert one["exact"] and one["counted_by"] == "qemu" and one["counted"] == "iterations" and one["spread"] == 0, one
rows = {row.get("function") or row["metric"]: row for row in one["rows"]}
# hash_of() makes 60,000 rounds an iteration, and sum_of() 20,000: each round has as many instructions.
n = one["iterations"]
per = rows["hash_of"]["means"][0] / n / 60000
assert n > 1 and 2 < per < 20, (n, per)
for name, rounds in ("hash_of", (60000, 61200)), ("sum_of", (20000, 20000)):
    for mean, r in zip(rows[name]["means"], rounds):
        assert abs(mean / n - per * r) < 0.002 * mean / n, (name, mean / n, per * r)
# Not even a thousand instructions an iteration beside them: starting a process takes 100,000.
rest = rows["instructions"]["means"][0] - rows["hash_of"]["means"][0] - rows["sum_of"]["means"][0]
assert 0 <= rest < 1000 * n and rest < 50000, (rest, n)
assert [run["side"] for run in one["measured"]] == ["old", "new"] * 2, one["measured"]
assert cases["XM_Crash"]["verdict"] == "error" and cases["XM_Crash"]["spread"] is None, cases["XM_Crash"]
PY
gate --deterministic -T 0.1% --run-time 2ms --cases BM_ --vs "$BENCH 0 old" -- "$BENCH" 0 new
is "$?:$(sed -n 2p out.tap)" "0:# no case of 4 is slower" "equal programs: nothing is slower, at a threshold of 0.1 %" || diag "$(cat out.tap err)"
gate --deterministic=callgrind -T 1% --run-time 1ms --cases 'BM_Hash' --json out.json --vs "$BENCH 0 old" -- "$BENCH" 2 new
is "$?:$(sed -n 2p out.tap)" "3:# 1 of 1 case slower: BM_Hash (hash_of +2.0 % instructions)" "callgrind counts the same" || diag "$(cat out.tap err)"
gate --deterministic=qemu --runs 3 --run-time 1ms --cases 'BM_Sum/10' --json out.json --self-check -- "$BENCH" 0 old
is "$(python3 -c 'import json; print(json.load(open("out.json"))["cases"][0]["confirmed_pairs"])')" 3 "--runs has a case counted as often on each side"

# ---- lines: with a number of iterations, and without
printf 'alpha\nbeta\n' >names
gate=(--suite=lines --list 'cat names' --run-time 3ms)
gate "${gate[@]}" --deterministic=qemu -T 1% --self-check -- "$WORK" '{case}' '{n}'
is "$?:$(grep -c 'cannot be set' out.tap)" "0:0" "lines with {n}: its iterations are counted" || diag "$(cat out.tap err)"
gate "${gate[@]}" --deterministic -T 1% --json out.json --vs "$WORK {case} 4 beta 10" -- "$WORK" '{case}' 4 beta 11
is $? 3 "lines without {n}: more instructions are found"
like "$(cat out.tap)" '^# note: the iterations of 2 of 2 cases cannot be set: whole processes are judged, their start included: alpha, beta$' \
	"that the whole process is judged is reported"
is "$(python3 -c 'import json; print(*(c["counted"] for c in json.load(open("out.json"))["cases"]))')" "process process" "JSON has it, too"

# ---- hyperfine: commands that execute others are callgrind's, of which each is named
if have hyperfine; then
	gate --deterministic -T 1% --json out.json --vs "hyperfine -n direct '$WORK alpha 40' -n piped 'seq 100 | sort -rn'" -- \
		hyperfine -n direct "$WORK alpha 41" -n piped 'seq 100 | sort -rn'
	is "$?:$(sed -n 2p out.tap)" "3:# 1 of 2 cases slower: direct (alpha +2.5 % instructions)" "hyperfine: the slower command and its function" || diag "$(cat out.tap err)"
	like "$(cat out.tap)" "^# note: of 1 of 2 cases, instructions, counted by valgrind's callgrind .*, since .*it executes other programs .*: piped\$" \
		"what qemu-user cannot count, callgrind does, case by case"
	is "$(python3 -c 'import json; print(*(c["counted_by"] for c in json.load(open("out.json"))["cases"]))')" "qemu callgrind" "JSON has the tool of each case"
else
	skip "hyperfine" "no hyperfine here"
fi

# ---- ctest: the test's own command
cat >ctest <<SH
#!/bin/sh
cat <<'JSON'
{"tests": [{"name": "one", "command": ["$WORK", "alpha", "40"]}, {"name": "two", "command": ["$WORK", "beta", "MORE"]}]}
JSON
SH
mkdir old new && for side in old:40 new:41; do sed "s/MORE/${side#*:}/" ctest >"${side%:*}/ctest" && chmod +x "${side%:*}/ctest"; done
gate --suite=ctest --deterministic=qemu -T 1% --vs old/ctest -- new/ctest
is "$?:$(sed -n 2p out.tap)" "3:# 1 of 2 cases slower: two (beta +2.5 % instructions)" "ctest: the slower test and its function" || diag "$(cat out.tap err)"

# ---- counts that differ between equal runs
cat >wavers.py <<'PY'
import sys, random
random.seed()
n = 0
for i in range(int(sys.argv[1]) * random.randrange(300, 500)):
    n += i
PY
echo one >names
gate "${gate[@]}" --deterministic=qemu -T 1% --run-time 1ms --max-time 200 --json out.json --self-check -- /usr/bin/python3 -S wavers.py 50
is $? 0 "counts that differ by chance: nothing is slower" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# note: counts of equal runs differ in 1 of 1 cases, which are judged by the largest and the smallest: one by [0-9.]+ %$' "the case is named, with by how much they differ"
like "$(cat out.tap)" '^ok 1 - one: inconclusive; instructions inconclusive: .*; equal runs differ by up to [0-9.]+ %$' "the case is inconclusive, for that reason"
check "it is counted more often, and judged with that spread" <<'PY'
import json
case = json.load(open("out.json"))["cases"][0]
assert case["confirmed_pairs"] == 8 and case["spread"] > 0.01 and case["verdict"] == "inconclusive", case
row = [row for row in case["rows"] if row.get("metric") == "instructions"][0]
counts = {side: [run["instructions"] for run in case["measured"] if run["side"] == side] for side in ("old", "new")}
assert abs(row["low"] - min(counts["new"]) / max(counts["old"])) < 1e-6, (row, counts)
assert abs(row["high"] - max(counts["new"]) / min(counts["old"])) < 1e-6, (row, counts)
assert abs(case["spread"] - max(1 - min(c) / max(c) for c in counts.values())) < 1e-6, (case["spread"], counts)
PY

# ---- sides that do not do the same work, and work that does not depend on the number
gate "${gate[@]}" --deterministic=qemu --max-time 60 --self-check -- /bin/true '{n}'
like "$(cat out.tap)" '^not ok 1 - one: error: the old side executes no more instructions for twice as many iterations$' "a number that has no effect on the work is an error of the case"

cat >half.sh <<'SH'
if [ $1 = new ] && [ $3 -lt "$(cat most 2>/dev/null || echo 0)" ]; then exit 3; fi
echo $3 >most
i=0
while [ $i -lt $(($3 * 100)) ]; do i=$((i + 1)); done
SH
gate "${gate[@]}" --deterministic=qemu --run-time 1ms --json out.json --vs 'sh half.sh old {case} {n}' -- sh half.sh new '{case}' '{n}'
like "$(cat out.tap)" '^not ok 1 - one: error: the new side: .*status 3$' "a case may fail with N iterations that did not with 2 N"
is "$(python3 -c 'import json; print(json.load(open("out.json"))["cases"][0]["measured"])')" "[]" "a count that was to be subtracted from is not in JSON"

# ---- programs that are executed: by the iterations, and besides
cat >starts.sh <<'SH'
/bin/true
i=0
while [ $i -lt $(($1 * 100)) ]; do i=$((i + 1)); done
SH
cat >executes.sh <<'SH'
i=0
while [ $i -lt $1 ]; do /bin/true; i=$((i + 1)); done
SH
gate "${gate[@]}" --deterministic --json out.json --run-time 1ms --self-check -- sh starts.sh '{n}'
is "$?:$(python3 -c 'import json; print(json.load(open("out.json"))["cases"][0]["counted_by"])'):$(grep -c 'NOT counted' out.tap)" 0:qemu:0 \
	"a program that is executed before the iterations is no part of what is counted" || diag "$(cat out.tap err)"
gate "${gate[@]}" --deterministic=qemu -T 20% --run-time 1ms --self-check -- sh executes.sh '{n}'
like "$(cat out.tap)" '^# note: NOT counted: programs that 1 of 1 cases execute, since qemu-user simulates the command alone; --deterministic=callgrind counts them: one$' \
	"programs that the iterations execute are reported"
gate "${gate[@]}" --deterministic -T 20% --json out.json --run-time 1ms --self-check -- sh executes.sh '{n}'
is "$?:$(python3 -c 'import json; print(json.load(open("out.json"))["cases"][0]["counted_by"])')" 0:callgrind "auto has callgrind count them" || diag "$(cat out.tap err)"

gate "${gate[@]}" --deterministic -T 20% --json out.json --self-check -- sh executes.sh 3
is "$?:$(python3 -c 'import json; print(*(json.load(open("out.json"))["cases"][0][k] for k in ("counted", "counted_by")))'):$(grep -c 'NOT counted' out.tap)" \
	"0:process callgrind:0" "also where the whole process is judged, and none is reported as not counted" || diag "$(cat out.tap err)"

# ---- several reasons for callgrind
cat >reasons.sh <<'SH'
case $1 in
crash | crash_too) [ ! /proc/$$/exe -ef "$QEMU_PATH" ] || kill -SEGV $$ ;;
exit) [ ! /proc/$$/exe -ef "$QEMU_PATH" ] || exit 7 ;;
esac
i=0
while [ $i -lt $(($2 * 50)) ]; do i=$((i + 1)); done
SH
printf '%s\n' plain crash exit crash_too >names
QEMU_PATH=$(command -v "$QEMU") gate "${gate[@]}" --deterministic --json out.json --run-time 1ms --self-check -- sh reasons.sh '{case}' '{n}'
is "$?:$(python3 -c 'import json; print(*(c["counted_by"] for c in json.load(open("out.json"))["cases"]))')" "0:qemu callgrind callgrind callgrind" \
	"cases that fail under qemu-user are counted by callgrind" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# note: of 2 of 4 cases, .*callgrind.*, since .*: signal 11 .*: crash, crash_too$' "a reason is given for the cases that have it"
like "$(cat out.tap)" '^# note: of 1 of 4 cases, .*callgrind.*, since .*: status 7\): exit$' "and for no others"
echo one >names

# ---- a case with a number of its own, and a harness that prints how many it made
cat >own.sh <<'SH'
#!/bin/sh
list= name= out=/dev/null
for word; do
	case $word in
	--benchmark_list_tests=true) list=1 ;;
	--benchmark_filter=*) name=${word#*=} ;;
	--benchmark_out=*) out=${word#*=} ;;
	esac
done
test -z "$list" || exec echo BM_Own/iterations:450
i=0
while [ $i -lt 450 ]; do i=$((i + 1)); done
echo '{"benchmarks":[{"name":"BM_Own/iterations:450","iterations":450}]}' >"$out"
SH
chmod +x own.sh
gate --suite=gbench --deterministic=qemu --json out.json --self-check -- ./own.sh
is $? 0 "a case with a number of iterations of its own is counted" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# note: the iterations of 1 of 1 cases cannot be set: whole processes are judged, their start included: BM_Own/iterations:450$' "that its whole process is judged is reported"
cat >go.test <<'SH'
#!/bin/sh
n=1
for word; do
	case $word in
	-test.list*) exec echo BenchmarkLoop ;;
	-test.benchtime=*) n=${word#*=} n=${n%x} ;;
	esac
done
i=0
while [ $i -lt $((n * ${LOOPS:-100})) ]; do i=$((i + 1)); done
printf 'BenchmarkLoop \t%s\t 5 ns/op\n' $n
SH
chmod +x go.test
gate --suite=gotest --deterministic=qemu -T 1% --run-time 2ms --json out.json --vs 'env LOOPS=100 ./go.test' -- ./go.test
like "$(cat out.tap)" '^not ok 1 - BenchmarkLoop: error: the old side executes no more instructions for twice as many iterations, beside programs that qemu-user does not count \(go\.test\)$' "a command that another program executes is not counted, and that is an error"
gate --suite=gotest --deterministic=qemu -T 1% --run-time 2ms --json out.json --self-check -- ./go.test
is "$?:$(sed -n 2p out.tap)" "0:# no case of 1 is slower" "what a harness prints of a counted run is read" || diag "$(cat out.tap err)"
is "$(python3 -c 'import json; print(json.load(open("out.json"))["cases"][0]["counted"])')" iterations "and so its iterations are known"
gate --suite=gotest --deterministic --list-cases --self-check -- ./go.test
like "$(cat out.tap)" 'old: GOMAXPROCS=1 \./go\.test ' "Go programs are counted with one thread at a time"
GOMAXPROCS=2 gate --suite=gotest --deterministic --list-cases --self-check -- ./go.test
unlike "$(cat out.tap)" 'GOMAXPROCS' "unless the environment says how many"
gate --suite=gotest --list-cases --self-check -- ./go.test
unlike "$(cat out.tap)" 'GOMAXPROCS' "and measured with all"

# ---- what cannot be counted, and options that have no meaning here
if have g++ && echo '#include <catch2/catch.hpp>' | g++ -E -x c++ - >/dev/null 2>&1; then
	printf '#define CATCH_CONFIG_MAIN\n#define CATCH_CONFIG_ENABLE_BENCHMARKING\n#include <catch2/catch.hpp>\nTEST_CASE("a") { BENCHMARK("b") { return 1; }; }\n' >catch.cc
	g++ -O0 -o catch catch.cc
	gate --deterministic --verdict out.verdict --self-check -- ./catch
	is "$?:$(cat err)" "1:countersink: option --deterministic: catch2 chooses the iterations of its cases by a clock, and takes no number: the two sides would not do the same work" \
		"a harness that takes no number of iterations is refused, with the reason"
	is "$(sed -n 1p out.verdict)" error "and the verdict is an error"
else
	skip "a harness that takes no number of iterations" "no Catch2 here"
fi
for option in --screen=2 --confirm=2 --process=suite --printed --history=h --html=h; do
	gate --deterministic $option --self-check -- "$BENCH" 0 old
	is "$?:$(cat err)" "2:countersink: option ${option%=*}: not with --suite --deterministic (see countersink help gate)" "$option is refused"
done
gate --runs 3 --self-check -- "$BENCH" 0 old
is "$?:$(cat err)" "2:countersink: option --runs: with --suite, only of counted cases (--deterministic)" "--runs without counting is refused"
PATH=/nowhere gate --deterministic=qemu --self-check -- "$BENCH" 0 old
is "$?:$(cat err)" "2:countersink: option --deterministic: there is no $QEMU here (Debian's package: qemu-user)" "qemu without qemu-user is refused"

# ---- the end of the time
gate --deterministic=qemu --max-time 1 --run-time 500ms --cases BM_Sum --self-check -- "$BENCH" 0 old
is $? 1 "no time to count: status 1"
like "$(cat out.tap)" '^not ok 2 - BM_Sum/10: error: not run: no time was left to try it \(--max-time\)$' "the case is an error with the reason"
like "$(cat out.tap)" '^# note: not run, since no time was left \(--max-time\): ' "and named in a note"
done_testing
