#!/bin/bash
# gate --suite: cases are listed, chosen, run and judged one by one, at one rate of errors.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
BENCH=$TARGETS/made_bench
mkdir own

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >out.tap 2>err
}

# ---- what would be run
XDG_RUNTIME_DIR=$TMP/own gate --suite --list-cases --vs "$BENCH 0 old" -- "$BENCH" 20 new
is $? 0 "--list-cases: status 0"
is "$(grep -c '^[A-Z]' out.tap)" 9 "--list-cases: cases of both sides are listed" || diag "$(cat out.tap err)"
like "$(cat out.tap)" "new: [^ ]*made_bench 20 new '--benchmark_filter=\^BM_Both<int, char>/a b\\\\\[0\]\\\\\{1\}\\\$' --benchmark_min_time=1x " \
	"--list-cases: a command has the name as a quoted regular expression, and one word"
gate --suite=gbench --list-cases --cases 'Sum|Both' --vs "$BENCH 0 old" -- "$BENCH" 20 new
is "$(grep '^[A-Z]' out.tap | tr '\n' ';')" 'BM_Both<int, char>/a b[0]{1};BM_Sum/1;BM_Sum/10;' "--cases chooses by a regular expression"

# ---- a function that is slower in two cases, and the cases that err
gate --suite --seed 5 --threshold 25% --screen 10 --confirm 20 --run-time 15ms --max-time 60 --json out.json --markdown out.md --verdict out.verdict --badge out.badge --html out.html --html-link https://example.org/1/gate.html \
	--github --vs "$BENCH 0 old" -- "$BENCH" 60 new
is $? 3 "a slower function: status 3" || diag "$(cat out.tap err)"
is "$(sed -n 1p out.tap)" "TAP version 13" "the output is TAP 13"
like "$(sed -n 2p out.tap)" '^# 2 of 9 cases slower: hash_of \+[0-9.]+ % to \+[0-9.]+ % in 2 cases: BM_Hash, BM_Both<int, char>/a b\[0\]\{1\}; 5 in error$' \
	"the first line names a function that is slower in two cases once"
like "$(cat out.tap)" '^not ok 1 - BM_Hash: hash_of in made_bench regressed: \+[0-9.]+ % \(95 % CI \+' "a point a case, with the function and its interval"
like "$(cat out.tap)" '^not ok 2 - BM_Both<int, char>/a b\[0\]\{1\}: hash_of in made_bench regressed: \+' "a name with blanks and brackets is run"
like "$(cat out.tap)" '^ok 3 - BM_Sum/1: ' "a case that did not change passes"
like "$(cat out.tap)" '^ok 4 - BM_Sum/10: ' "a name that begins like another one is a case of its own"
like "$(cat out.tap)" '^not ok 5 - XM_Crash: error: the new side: signal 11 \(Segmentation fault\)' "a crash is an error of its case"
like "$(cat out.tap)" '^not ok 6 - XM_Hang: error: the new side: it did not end within [0-9]+ s, and was killed' "a case that does not end is an error of that case"
like "$(cat out.tap)" '^not ok 7 - XM_Garbage: error: the old side: its report \(--benchmark_out\) is no JSON' "a report that is no JSON is an error of its case"
like "$(cat out.tap)" '^not ok 8 - XM_Nothing: error: the old side ran no case of that name, and ended with status 0' "status 0 without a run is an error of its case"
like "$(cat out.tap)" '^not ok 9 - XM_Fails: error: the old side: the benchmark reports an error: it broke' "an error that the harness reports is an error of its case"
like "$(cat out.tap)" '^# note: only the old side has 1 case, which is not judged: OLD_Alone$' "a case of the old side alone is named"
like "$(cat out.tap)" '^# note: only the new side has 1 case, which is not judged: NEW_Alone$' "a case of the new side alone is named"
is "$(tail -n 1 out.tap)" 1..9 "the TAP plan comes last"
prove -e cat out.tap >prove.out 2>&1
isnt $? 0 "prove fails"
unlike "$(cat prove.out)" 'Parse errors' "prove finds no syntax error in the TAP"
python3 - <<'PY' >json.out 2>&1
import json
gate = json.load(open("out.json"))
by_name = {case["case"]: case for case in gate["cases"]}
slow = by_name["BM_Hash"]
assert gate["status"] == 3 and gate["suite"] == "gbench" and gate["headline"].startswith("2 of 9"), gate
assert slow["verdict"] == "regressed" and slow["confirmed_pairs"] >= 20 and slow["iterations"] > 1, slow
assert [row for row in slow["rows"] if row.get("function") == "hash_of"][0]["low"] > 1.1, slow
assert by_name["XM_Crash"]["verdict"] == "error" and "signal 11" in by_name["XM_Crash"]["error"], by_name
PY
is $? 0 "JSON has the same verdicts" || diag "$(cat json.out)"
python3 - <<'PY' >json.out 2>&1
import json, math, statistics
cases = {case["case"]: case for case in json.load(open("out.json"))["cases"]}

def pairs_of(part):
    """The pairs of runs, which are on one CPU each; a pair's runs are neighbours."""
    runs = part["measured"]
    for old, new in zip(runs[::2], runs[1::2]):
        assert {old["side"], new["side"]} == {"old", "new"} and old["pin"] == new["pin"], (old, new)
    assert [run["pair"] for run in runs] == [i // 2 + 1 for i in range(len(runs))], runs
    return [{run["side"]: run for run in runs[i:i + 2]} for i in range(0, len(runs), 2)]

def close(left, right):
    assert math.isclose(left, right, rel_tol=1e-8), (left, right)

# Confirmed: the verdict follows from the runs.
slow = cases["BM_Hash"]
pairs = pairs_of(slow)
assert len(pairs) == slow["confirmed_pairs"] == slow["runs"][0] >= 20, slow
assert slow["pin"] != "no" or all(pair["old"]["pin"] is None for pair in pairs), slow
logs = [math.log(pair["new"]["cpu"] / pair["old"]["cpu"]) for pair in pairs]
row = [row for row in slow["rows"] if row.get("metric") == "cpu"][0]
close(row["ratio"], math.exp(statistics.median((logs[i] + logs[k]) / 2 for i in range(len(logs)) for k in range(i + 1))))
if min(logs) > 0:
    close(row["p_greater"], 2 ** -len(logs))
for row in slow["rows"]:
    if "metric" in row:
        assert (row["verdict"] == "regressed") == (row["q"] <= slow["level"] and row["low"] > 1.25), (row, slow["level"])
functions = [row["function"] for row in slow["rows"] if "function" in row]
weights = {side: [pair[side]["functions"][functions.index("hash_of")] for pair in pairs] for side in ("old", "new")}
row = [row for row in slow["rows"] if row.get("function") == "hash_of"][0]
for side, mean in zip(("old", "new"), row["means"]):
    close(statistics.mean(weights[side]), mean)

# Screened: so does that a case was not confirmed.
for name in "BM_Hash", "BM_Sum/1", "BM_Sum/10":
    case = cases[name]
    screening = case["screening"]
    assert len(pairs_of(screening)) == case["screened_pairs"] in (5, 10), case
    p = sorted(row["p_greater"] for row in screening["rows"])
    close(case["screen_p"], min(1, min(p[i] * len(p) / (i + 1) for i in range(len(p)))))
    if not case["confirmed_pairs"]:
        assert case["rows"] == [] and case["measured"] == [], case
# A case that was never run with a profile has no runs.
assert cases["XM_Crash"]["measured"] == [] and "screening" not in cases["XM_Crash"], cases["XM_Crash"]
PY
is $? 0 "JSON has each case's pairs of runs, screened and confirmed, from which the verdict follows" || diag "$(cat json.out)"
is "$(sed -n 1p out.verdict)" regressed "the first line of the verdict file is the verdict"
like "$(sed -n 2p out.verdict)" '^\{"verdict":"regressed","status":3,"headline":"2 of 9 cases slower' "the second line of the verdict file has the headline"
like "$(cat out.md)" '^\| &#10060; regressed \| BM\\_Hash \| \+[0-9.]+ % \| \+[0-9.]+ to \+[0-9.]+ \| hash\\_of in made\\_bench \| \+[0-9.]+ % \| \+[0-9.]+ to \+[0-9.]+ \|$' \
	"Markdown has a slower case with its interval, and the function with its own"
is "$(sed '/^<details>/,$d' out.md | grep -c '^| [&a-z#0-9;]* *[a-z]')" 8 "without folding, Markdown shows what needs attention: a head and seven rows" || diag "$(cat out.md)"
ok "what is seen at once fits on a screen" test "$(sed '/^<details>/,/^<.details>/d' out.md | wc -l)" -le 24
like "$(cat out.md)" '^\[Differential flame graph\]\(https://example.org/1/gate.html\)$' "Markdown has the link to the page"
like "$(cat out.html)" 'hash_of' "the page has the functions"
unlike "$(cat out.html)" 'XM_Crash' "and the runs that confirmed alone"
is "$(python3 -c 'import json; b = json.load(open("out.badge")); print(b["schemaVersion"], b["label"], b["message"], b["color"])')" \
	"1 performance 2 of 9 cases slower red" "the badge has the number of slower cases"
like "$(cat err)" '^::error title=countersink gate::BM_Hash: hash_of in made_bench regressed' "an annotation names case and function"

# ---- nothing slower, and an error alone
gate --suite --self-check --seed 2 --threshold 30% --screen 5 --confirm 5 --run-time 5ms --max-time 5 --cases 'BM_S' -- "$BENCH" 0 old
is $? 0 "a suite against itself: status 0" || diag "$(cat out.tap err)"
like "$(sed -n 2p out.tap)" '^# no case of 2 ' "the first line has the number of cases"
XDG_RUNTIME_DIR=$TMP/own gate --suite --screen 5 --confirm 5 --run-time 5ms --cases 'XM_Crash' --verdict out.verdict --vs "$BENCH 0 old" -- "$BENCH" 9 new
is $? 1 "a case in error, and none slower: status 1" || diag "$(cat out.tap err)"
is "$(sed -n 1p out.verdict)" error "the verdict is an error"
gate --suite --self-check --html-link 'javascript:alert(1)' -- "$BENCH" 0 old
is $? 2 "--html-link that is no http URL: status 2"
gate --suite --self-check --html-link 'https://a/b)c' -- "$BENCH" 0 old
is $? 2 "--html-link that would end the link: status 2"

gate --suite -o /dev/full --screen 2 --confirm 2 --run-time 5ms --max-time 3 --cases BM_Sum --self-check -- "$BENCH" 0 old
is $? 1 "an output that cannot be written: status 1"
like "$(cat err)" 'the output is incomplete; the verdict: no case of 2 ' "the verdict is reported all the same"
like "$("$COUNTERSINK" gate --help)" '4 no cases' "--help names the status of a suite without cases"

# ---- a history: a line with each case, and the confirmation of one
for commit in 1 2; do
	gate --suite --history perf.jsonl --anchor v1 --commit $commit --confirm 3 --threshold 60% --run-time 5ms --max-time 8 --cases 'BM_' --junit out.xml \
		--vs "$BENCH 0 old" -- env -C . "$BENCH" 0 new
done
python3 - "$BENCH" <<'PY' >line.out 2>&1
import json, sys
lines = [json.loads(line) for line in open("perf.jsonl")]
assert len(lines) == 2, lines
for line in lines:
    assert sorted(line["cases"]) == ["BM_Both<int, char>/a b[0]{1}", "BM_Hash", "BM_Sum/1", "BM_Sum/10"], line
    for case in line["cases"].values():
        assert case["suite"] == "gbench" and case["command"] == [sys.argv[1], "0", "new"] and case["pairs"] >= 3, case
        ratio, low, high = case["figures"]["cpu"][:3]
        assert 0 < low <= ratio <= high and case["functions"], case
PY
is $? 0 "a line of a history has the ratios of each case" || diag "$(cat line.out perf.jsonl err)"
"$COUNTERSINK" history perf.jsonl >out 2>err
is "$(grep -c '^BM_.*: 2 against v1$' out)" 4 "history: a table for each case" || diag "$(cat out err)"
is "$("$COUNTERSINK" history -f bmf perf.jsonl | python3 -c 'import json, sys; print(sum("BM_" in name for name in json.load(sys.stdin)) >= 4)')" True \
	"history: an export has each case"
is "$(grep -c '<testcase name="BM_' out.xml)" 4 "JUnit has each case"
ok "JUnit follows the schema" xmllint --noout --schema "$SRC/tests/gate/junit.xsd" out.xml
python3 - <<'PY' >made.jsonl
import json
for i in range(40):
    ratio = (1 if i < 20 else 1.5) * (1 + 0.001 * (i * 7 % 5))
    cases = {name: {"figures": {"cpu": [value, value * 0.995, value * 1.005, 1e6, "nanoseconds"]}, "functions": {}, "pairs": 20, "suite": "lines",
                    "list": "echo 'a.b' c", "command": ["./run", "{case}"]} for name, value in (("a.b $(c)", ratio), ("c", 1 + 0.001 * (i * 3 % 5)))}
    print(json.dumps({"v": 1, "commit": "c%d" % i, "committed": "2026-01-%02dT%02d:00:00Z" % (i // 2 + 1, i % 2), "anchor": "v1", "cases": cases}))
PY
"$COUNTERSINK" history made.jsonl >out 2>err
is "$(grep -c 'confirm it:' out)" 1 "history: the case that changed has one confirmation" || diag "$(cat out err)"
cat >perf-gate.sh <<-'SH'
	#!/bin/sh
	eval "set -- $PERF_GATE_OPTIONS \"\$@\""
	printf '%s\n' "$@" >asked
SH
chmod +x perf-gate.sh
PATH=.:$PATH sh -c "$(sed -n 's/^   confirm it: git checkout --detach c[0-9]* && //p' out)"
is "$(tr '\n' ';' <asked)" '--suite=lines;--screen=0;--cases=^a\.b \$\(c\)$;'"--list=echo 'a.b' c;$(grep -o 'perf-gate.sh c[0-9]*' out | cut -d' ' -f2);--;./run;{case};" \
	"it judges that case alone, as scripts/perf-gate.sh reads it"
like "$(cat out)" "^   if it is confirmed, find the commit: git bisect start c[0-9]+ c[0-9]+ && PERF_GATE_OPTIONS='--suite=lines .*' git bisect run perf-bisect.sh c[0-9]+ -- ./run '\{case\}'$" \
	"the command that finds the commit is printed, for that case" || diag "$(cat out)"
sed 's/"suite": "lines"/"suite": "l; rm x"/' made.jsonl >hostile.jsonl
"$COUNTERSINK" history hostile.jsonl >out 2>err
like "$(cat out)" '^   confirm it: git checkout --detach c[0-9]+ && perf-gate.sh c[0-9]+ -- COMMAND$' "a kind of harness that is none is not printed"

# ---- no cases, no harness
gate --suite=gbench --verdict out.verdict --vs "$BENCH 0 old" -- "$BENCH" 0 none
is $? 4 "sides without a common case: status 4"
like "$(cat err)" 'the two sides have no case in common' "the reason is reported"
gate --suite=gbench --vs "$BENCH 0 none" -- "$BENCH" 0 none
is $? 4 "a suite that lists nothing: status 4"
like "$(cat out.tap err)" '^Bail out!  the suite lists no case' "the reason is reported"
gate --suite --cases 'NoSuch' --vs "$BENCH 0 old" -- "$BENCH" 0 new
is $? 4 "--cases that match nothing: status 4"
gate --suite --vs "$BENCH 0 old" -- echo
is $? 1 "a command that is no harness: status 1"
like "$(cat err)" 'echo answers like no harness that is known' "the reason is reported"
gate --suite --github --vs ./no_such_bench -- ./no_such_bench
is $? 1 "a command that is not there: status 1"
like "$(cat err)" '^countersink: \./no_such_bench cannot be executed: No such file' "the reason is reported"
like "$(cat err)" '^::error title=countersink gate::\./no_such_bench cannot be executed: No such file' "an annotation has the reason, too"

# ---- lines, and another directory
mkdir old new
for side in old new; do
	cat >$side/work <<-'SH'
		#!/bin/sh
		test "$1" = 'a "b" $(c);*' || exit 9
		exec "$WORK" "$(cat percent)" old --benchmark_filter='^BM_Hash$' --benchmark_min_time="$2"x
	SH
	chmod +x $side/work
done
echo 0 >old/percent
echo 60 >new/percent
echo 'a "b" $(c);*' >names
WORK=$BENCH
export WORK
cd new || exit 1
gate --suite=lines --list "cat $TMP/names" --threshold 25% --screen 0 --confirm 20 --run-time 15ms --vs-dir ../old -- ./work '{case}' '{n}'
is $? 3 "--suite=lines, --vs-dir: status 3" || diag "$(cat out.tap err)"
like "$(sed -n 2p out.tap)" '^# 1 of 1 case slower: a "b" \$\(c\);\* \(hash_of \+' "a name goes to the command as it is, without a shell"
cd ..

# ---- a figure of which more is better
cat >rate <<-'SH'
	#!/bin/sh
	echo "rate $1$(($$ % 10)) requests/s more" >"$COUNTERSINK_FIGURES"
SH
chmod +x rate
gate --suite=lines --list 'echo one' --threshold 10% --screen 7 --confirm 14 --max-time 30 --vs './rate 20' -- ./rate 10
is $? 3 "a case whose rate is lower: status 3" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^not ok 1 - one: rate regressed: -' "the lower rate is screened, confirmed and named"
gate --suite=lines --list 'echo one' --threshold 10% --screen 7 --confirm 14 --vs './rate 10' -- ./rate 20
unlike "$(cat out.tap)" 'rate regressed' "a higher rate is no regression"

# ---- memory, page faults and system calls are figures of a case
cat >memory <<-'SH'
	#!/bin/sh
	exec python3 -S -c "x = b'x' * ($1 << 20)
	for i in range($2): open('/dev/null').close()"
SH
sed -i "s/^\tfor/for/" memory
chmod +x memory
gate --suite=lines --list 'echo one' --threshold 10% --screen 0 --confirm 14 --max-time 60 --json out.json --vs './memory 64 10' -- ./memory 96 10
is "$(python3 -c 'import json
rows = {row.get("metric"): row["verdict"] for row in json.load(open("out.json"))["cases"][0]["rows"]}
print(rows["max-rss"], rows["page-faults"])')" "regressed regressed" "a case that uses more memory: max RSS and page faults regressed" || diag "$(cat out.tap err)"
if "$COUNTERSINK" stat -e raw_syscalls:sys_enter -- true >/dev/null 2>&1; then
	gate --suite=lines --list 'echo one' -e task-clock,raw_syscalls:sys_enter --threshold 10% --screen 0 --confirm 14 --max-time 60 --json out.json \
		--vs './memory 1 10' -- ./memory 1 1000
	is "$(python3 -c 'import json
rows = {row.get("metric"): row["verdict"] for row in json.load(open("out.json"))["cases"][0]["rows"]}
print(rows["raw_syscalls:sys_enter"])')" regressed "a case that makes more system calls: their number regressed" || diag "$(cat out.tap err)"
else
	skip "a case that makes more system calls: their number regressed" "the kernel lets no tracepoint be counted here"
fi

# ---- so few pairs can show nothing: there is time for more
gate --suite=lines --list 'echo one' --threshold 10% --screen 0 --confirm 5 --max-time 30 --vs './rate 20' -- ./rate 10
is $? 3 "a case that is open after --confirm pairs goes on until it is settled" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^  pairs: (1[4-9]|[2-9][0-9]|[0-9]{3,})$' "it has more pairs than --confirm"
gate --suite=lines --list 'echo one' --self-check -- yes '{case}'
like "$(cat out.tap)" '^not ok 1 - one: error: the old side: it printed more than 64 MiB, and was killed$' "a case that prints without end is an error"

# ---- the time limit: from its run HANGS on, the harness waits for what never comes. It is shorter than what ends a run by itself (10 s,
# 5 s for the first one).
cat >waits <<-'SH'
	#!/bin/bash
	echo "$1" >>started
	[ "$(wc -l <started)" -lt "$HANGS" ] || read -r _ <>fifo
SH
chmod +x waits
mkfifo fifo
HANGS=11 gate --suite=lines --list 'printf "%s\n" one two three' --screen 2 --max-time 9 --self-check --verdict out.verdict -- ./waits '{case}'
is "$(wc -l <started)" 11 "behind the end of --max-time, no run is begun" || diag "$(cat started out.tap err)"
is "$(grep -c '^ok [123] - .*: inconclusive: not run, since no time was left' out.tap)" 3 "cases without runs are inconclusive, with the reason" || diag "$(cat out.tap)"
like "$(cat out.tap)" '^# note: not run, since no time was left \(--max-time\): 3 of 3 cases: one, two, three$' "a note names what was not run"
is "$(sed -n 1p out.verdict)" inconclusive "the verdict is inconclusive"
rm started
HANGS=1 gate --suite=lines --list 'printf "%s\n" one two' --max-time 4 --self-check -- ./waits '{case}'
is "$?:$(wc -l <started)" 1:1 "a first run that does not end within --max-time: status 1, and no other run is begun" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^not ok 2 - two: error: not run: no time was left to try it' "a case that was not tried is an error"

# ---- programs that answer like other harnesses: what is listed
cat >package.test <<-'SH'
	#!/bin/sh
	case $* in
	-test.list*) printf 'TestA\nBenchmarkA\n' ;;
	*-test.bench=.*) printf 'goos: linux\nBenchmarkA/x_y   \t1\t 5 ns/op\nPASS\n' ;;
	*) exit 2 ;;
	esac
SH
cat >ctest <<-'SH'
	#!/bin/sh
	test "$1" = --show-only=json-v1 && cat <<-JSON
	{"tests": [{"name": "a[1]", "command": ["/bin/echo", "x y"], "properties":
	  [{"name": "ENVIRONMENT", "value": ["MADE=1 2"]}, {"name": "WORKING_DIRECTORY", "value": "/"}]},
	 {"name": "set", "command": ["/usr/bin/touch", "was_set"], "properties": [{"name": "FIXTURES_SETUP", "value": ["f"]}]},
	 {"name": "unbuilt", "properties": []}, {"name": "none", "command": [], "properties": []},
	 {"name": "a[1]", "command": ["/bin/echo", "z"], "properties": []}]}
	JSON
SH
cat >pytest <<-'SH'
	#!/bin/sh
	for word; do
		case $word in
		--benchmark-json=*) echo '{"benchmarks": [{"fullname": "f.py::t[a b]", "stats": {}}]}' >"${word#*=}" ;;
		--benchmark-storage=*) mkdir "${word#*=}/kept" ;;
		esac
	done
SH
chmod +x package.test ctest pytest
gate --suite --list-cases --self-check -- ./package.test
is "$(sed -n 1p out.tap)" 'BenchmarkA/x_y' "a Go test program is found by asking, and sub-benchmarks by running them" || diag "$(cat out.tap err)"
gate --suite --list-cases --self-check -- ./ctest
is "$(tr -d '\t' <out.tap)" "$(printf '%s\n' 'a[1]' "old: cd / && MADE='1 2' /bin/echo 'x y'" "new: cd / && MADE='1 2' /bin/echo 'x y'")" \
	"ctest: command, directory and environment of a test" || diag "$(cat err)"
ok "ctest: a test that sets a fixture up has run" test -e was_set
mkdir -p gone
sed '/"unbuilt"/s|^| {"name": "gone", "command": ["/bin/true"], "properties": [{"name": "FIXTURES_SETUP", "value": ["f"]}, {"name": "WORKING_DIRECTORY", "value": "/no/such"}]},\n|' ctest >gone/ctest
chmod +x gone/ctest
gate --suite --list-cases --self-check -- gone/ctest
like "$?:$(cat err)" '^1:countersink: the old side \(/bin/true\) cannot be run: No such file or directory$' \
	"ctest: a test whose directory is missing is named"
XDG_RUNTIME_DIR=$TMP/own gate --suite --list-cases --self-check -- ./pytest
is "$(sed -n 1p out.tap)" 'f.py::t[a b]' "pytest: the benchmarks of its report are the cases" || diag "$(cat out.tap err)"

# ---- what harnesses report of a case's memory
mkdir -p allocates
cat >allocates/go.test <<-'SH'
	#!/bin/sh
	case $* in
	-test.list*) printf 'BenchmarkMore\nBenchmarkSame\n' ;;
	*-test.bench=.*) printf 'BenchmarkMore \t1\t 5 ns/op\nBenchmarkSame \t1\t 5 ns/op\n' ;;
	*More*) printf 'BenchmarkMore \t1\t 5 ns/op\t %s B/op\t 1 allocs/op\n' "$(cat size)" ;;
	*) printf 'BenchmarkSame \t1\t 5 ns/op\t 16 B/op\t 0 allocs/op\n' ;;
	esac
SH
chmod +x allocates/go.test
cp -r allocates allocated
echo 64 >allocated/size
echo 96 >allocates/size
(cd allocates && "$COUNTERSINK" gate --suite=gotest --threshold 40% --min-share 90% --screen 0 --confirm 16 --max-time 100 --vs-dir ../allocated -- ./go.test >../out.tap 2>../err)
is $? 3 "a case that allocates more: status 3" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^not ok 1 - BenchmarkMore: allocated bytes regressed: \+50\.0 % .* 96 B/op instead of 64 B/op$' "go test: allocated bytes of an iteration are a figure of the case"
like "$(cat out.tap)" '^ok 2 - BenchmarkSame: ' "a case that allocates as much as before passes"

# ---- JMH, as its documentation describes it
cat >jmh <<-'PY'
	#!/usr/bin/env python3
	import json, re, sys, time

	calls = {"org.x.Own.hash": float(sys.argv[1]), "org.x.Own.sum": 1, "org.x.Own.throws": 1, "org.x.Own$In.hash": 1}
	words = iter(sys.argv[2:])
	options, patterns = {}, []
	for word in words:
	    if word == "-l":
	        print("Benchmarks: ", *calls, sep="\n")
	        sys.exit()
	    if word.startswith("-"):
	        options[word] = next(words)
	    else:
	        patterns.append(word)
	batch, warm = int(options["-bs"]), int(options["-wbs"])
	assert (options["-bm"], options["-f"], options["-i"], options["-wi"], options["-rf"], options["-foe"]) == ("ss", "0", "1", "1", "json", "true")
	rows = []
	for name, cost in calls.items():
	    if not any(re.search(pattern, name) for pattern in patterns):
	        continue
	    if name.endswith("throws"):
	        sys.exit("Benchmark had encountered error, and fail on error was requested")
	    for many in warm, batch:
	        start = time.perf_counter()
	        sum(range(int(many * 1000 * cost)))
	        end = time.perf_counter()
	    rows.append({"jmhVersion": "1.37", "benchmark": name, "mode": "ss", "threads": 1, "forks": 0, "warmupIterations": 1, "warmupBatchSize": warm,
	        "measurementIterations": 1, "measurementBatchSize": batch, "primaryMetric": {"score": (end - start) * 1e3, "scoreError": "NaN",
	        "scoreUnit": "ms/op", "rawData": [[(end - start) * 1e3]]}, "secondaryMetrics": {}})
	with open(options["-rff"], "w") as file:
	    json.dump(rows, file)
PY
chmod +x jmh
# At 5 %, seven pairs are enough: a machine on which a run takes a second, as was met, has time for them. The others are
# decided by the same pairs, for they are far from a threshold of 50 %: no time that is left is used.
gate --suite=jmh --min-share 90% --threshold 50% --alpha 5% --screen 0 --confirm 10 --max-time 100 --vs './jmh 1' -- ./jmh 8
is $? 3 "JMH: a slower benchmark: status 3" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^not ok 1 - org\.x\.Own\.hash: .* regressed: ' "JMH: it is named, by its class and method"
like "$(cat out.tap)" '^ok 2 - org\.x\.Own\.sum: ' "JMH: the others pass"
like "$(cat out.tap)" '^not ok 3 - org\.x\.Own\.throws: error: the old side: status 1; its standard error: Benchmark had encountered error' "JMH: one that throws is an error of its own"
like "$(cat out.tap)" '^ok 4 - org\.x\.Own\$In\.hash: ' "JMH: a name with a dollar sign is that of one benchmark"

# ---- numbers of iterations that were found are kept
cat >pytest <<-'PY'
	#!/usr/bin/env python3
	# Answers as pytest does with the gate's plugin. What test_quick takes is just enough at first, and a little less from then on.
	import json, os, sys, time

	if "COUNTERSINK_CASES" not in os.environ:
	    path = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--benchmark-json=")][0]
	    with open(path, "w") as file:
	        json.dump({"benchmarks": [{"fullname": "f.py::test_quick"}, {"fullname": "f.py::test_cheap"}]}, file)
	    sys.exit()

	def run():
	    end = time.process_time() + 0.03
	    while time.process_time() < end:
	        pass

	with open(os.environ["COUNTERSINK_CASES"]) as file:
	    cases = json.load(file)
	for case in cases:
	    scope = {}
	    exec(f"def {case['function']}(run):\n    run()", scope)
	    scope[case["function"]](run)
	    number = case["number"]
	    if "LD_PRELOAD" in os.environ:
	        seconds = 0.03
	    elif case["name"].endswith("cheap"):
	        seconds = number * 1e-6
	    else:
	        seconds = number * (0.0003 if os.path.exists("tried") else 0.00035)
	        if number > 1:
	            open("tried", "w").close()
	    with open(os.environ["COUNTERSINK_CASES_REPORT"], "a") as out:
	        out.write(json.dumps({"case": case["case"], "iterations": number, "seconds": seconds}) + "\n")
PY
chmod +x pytest
gate --suite --process=suite --run-time 100ms --min-share 90% --threshold 90% --alpha 90% --screen 0 --confirm 12 --max-time 100 --json out.json --self-check -- ./pytest
is "$(python3 -c 'import json
for case in json.load(open("out.json"))["cases"]:
	print(case["case"], case["process"], case["iterations"])')" "$(printf '%s\n' 'f.py::test_quick suite 333' 'f.py::test_cheap suite 100000')" \
	"a case that has enough iterations keeps them while others are asked for more" || diag "$(cat out.tap err)"

# ---- what does not go together
gate --screen 5 --vs "$BENCH" -- "$BENCH"
is $? 2 "--screen without --suite: status 2"
gate --suite --runs 5 --vs "$BENCH" -- "$BENCH"
is $? 2 "--runs with --suite: status 2"
gate --suite --history=history --anchor v1 --commit c --screen 5 --vs "$BENCH" -- "$BENCH"
is "$?:$(cat history 2>/dev/null)" "2:" "--history with --screen: status 2, and nothing is appended"
gate --suite --deterministic --screen 5 --vs "$BENCH" -- "$BENCH"
is "$?:$(cat err)" "2:countersink: option --screen: not with --suite --deterministic (see countersink help gate)" "--deterministic with --screen: status 2"
gate --suite=lines --vs "./old {case} | cat" -- ./new '{case}'
is $? 2 "a --vs that takes a shell: status 2"
like "$(cat err)" "takes a shell, and a suite's cases get none" "the reason is reported"
gate --suite=lines --vs ./old -- ./new
is $? 1 "--suite=lines without --list: status 1"
gate --suite --run-time 5 minutes
is $? 2 "a --run-time that is no time: status 2"
is "$(ls own)" "" "no directory is left"

done_testing
