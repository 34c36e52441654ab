#!/bin/bash
# The gate: regressions found, reported and refused, and every output format.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/gate.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
WORK=$TARGETS/gate_work

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >out.tap 2>err
}

# Thresholds above the default of 5 % are far below the planted changes, and far above what a busy machine does to the
# functions that did not change. A planted change is so large that no other function has half as much time to lose: else a
# machine that favours that one on one side makes it look as if its cost had moved.

# ---- two commands: a function that takes five times as long
gate --runs 16 --seed 1 --threshold 25% --junit out.xml --json out.json --markdown out.md --html out.html --verdict out.verdict --badge out.badge --html-link https://example.org/gate.html --github \
	--vs "$WORK alpha 40 beta 10 gamma 20" -- "$WORK" alpha 40 beta 50 gamma 20
is $? 3 "a slower function: status 3"
like "$(cat out.tap)" '^not ok [0-9]+ - beta in gate_work regressed: \+[0-9.]+ % \(95 % CI \+' "the slower function is named, with its confidence interval"
unlike "$(cat out.tap)" '^not ok [0-9]+ - (alpha|gamma_ray) in' "the unchanged functions do not fail"
like "$(cat out.tap)" '^# where the time went: \+[0-9.]+ ms in all functions: beta in gate_work \+[0-9.]+ ms \(95 % CI \+' \
	"TAP reports where the command's time went"
like "$(cat out.xml)" 'in all functions: beta in gate_work \+' "JUnit XML reports where the command's time went"
unlike "$(cat out.tap err)" 'what the command prints' "the command's own output is not shown"
is "$(head -1 out.tap)" "TAP version 13" "the output is TAP 13"
like "$(tail -1 out.tap)" '^1\.\.[0-9]+$' "the TAP plan comes last"
like "$(cat out.tap)" '^# detection floor: of a function with 10 % of the time, a change of [0-9.]+ %' "TAP reports the detection floor"
like "$(cat out.tap)" '^# runs: 16 and 16, in pairs in .* seed 1$' "TAP reports runs and seed"
prove -e cat out.tap >prove.out 2>&1
isnt $? 0 "prove fails on a regression"
like "$(cat prove.out)" 'Failed test' "prove reports a failed test"
unlike "$(cat prove.out)" 'Parse errors' "prove finds no syntax error in the TAP"
if have xmllint; then
	ok "JUnit XML follows the schema" xmllint --noout --schema "$SRC/tests/gate/junit.xsd" out.xml
else
	skip "JUnit XML follows the schema" "no xmllint here"
fi
like "$(cat out.xml)" '<failure type="regressed" message="regressed: \+' "JUnit XML has a failure for the regression"
like "$(cat out.xml)" 'gate_work.c:[0-9]+: regressed' "JUnit XML has the source line of the regression"
python3 - <<'PY' >json.out 2>&1
import json
gate = json.load(open("out.json"))
row = [row for row in gate["rows"] if row.get("function") == "beta"][0]
assert gate["status"] == 3 and gate["runs"] == [16, 16] and len(gate["measured"]) == 32, gate
assert row["verdict"] == "regressed" and row["low"] > 1.05 and row["q"] <= 0.01, row
assert gate["where"]["functions"][0]["function"] == "beta" and gate["where"]["functions"][0]["low"] > 0, gate["where"]
assert row["file"].endswith("gate_work.c") and row["line"] > 0, row
for nr, runs in enumerate(zip(gate["measured"][::2], gate["measured"][1::2])):
    assert {run["side"] for run in runs} == {"old", "new"} and {run["pair"] for run in runs} == {nr + 1}, runs
    assert runs[0]["pin"] == runs[1]["pin"] and (runs[0]["pin"] is None) == (gate["pin"] == "no"), (runs, gate["pin"])
assert gate["level"] == 0.01, gate["level"]
PY
is $? 0 "JSON has the same verdict" || diag "$(cat json.out)"
is "$(head -n 1 out.verdict)" regressed "the first line of the verdict file is the verdict"
like "$(sed -n '2,$p' out.verdict)" '^\{"verdict":"regressed","status":3,"headline":".*beta in gate_work \+.*"\}$' \
	"the second line of the verdict is an object with the headline"
like "$(cat out.md)" '\| &#10060; regressed \| beta in gate\\_work \| \+' "Markdown has the same verdict"
like "$(cat out.md)" '^\[Differential flame graph\]\(https://example.org/gate.html\)$' "Markdown has the link to the page"
like "$(cat out.badge)" '^\{"schemaVersion":1,"label":"performance","message":"[0-9]+ regressed","color":"red"\}$' "the badge has the number of regressions"
line=$(grep -n '^WORKER(beta' "$SRC/tests/targets/gate_work.c" | cut -d: -f1)
like "$(cat err)" "^::error file=.*gate_work.c,line=$line,title=countersink gate::beta in gate_work regressed%3A? ?.*|^::error file=.*gate_work.c,line=$line,title=.*::beta" \
	"the GitHub annotation has the function's first line"
like "$(cat out.html)" '<html' "the HTML page with the flame graph is written"
like "$(cat out.html)" 'gate_work' "the HTML page shows these profiles"

# ---- the same work in two functions
gate --runs 16 --seed 1 --threshold 25% --vs "$WORK alpha 40 beta 20" -- "$WORK" alpha 40 halves 20
is $? 0 "a function split in two: status 0"
unlike "$(cat out.tap)" '^not ok' "a function split in two: no point fails"
like "$(cat out.tap)" 'note: "cost moved between functions: .*first_half.*beta faster; together' "a function split in two: a note reports that cost moved"
ok "a function split in two: prove passes" prove -e cat out.tap

# ---- nothing to find
gate --json same.json --vs "$WORK alpha 1" -- "$WORK" alpha 1
is $? 0 "the same program with the same arguments: status 0"
like "$(cat out.tap)" 'nothing can have changed, and no runs were made' "identical commands are recognised and reported, without runs"
ok "prove passes a gate without points" prove -e cat out.tap
like "$(cat out.tap)" 'detection floor: no functions were sampled$' "without runs, no detection floor is stated"
python3 - <<'PY' >json.out 2>&1
import json
gate = json.load(open("same.json"))
unknown = ("speed", "speed_low", "speed_high", "floor_function", "floor_command")
assert all(gate[key] is None for key in unknown), {key: gate[key] for key in unknown}
PY
is $? 0 "without runs, JSON has null for drift and floors" || diag "$(cat json.out)"
cp "$WORK" copy
gate --vs "$WORK alpha 1" -- ./copy alpha 1
like "$(cat out.tap)" 'nothing can have changed, and no runs were made' "a byte-identical copy is recognised, without runs"
cp "$WORK" slower_copy
echo >>slower_copy
gate --runs 2 --warmup 0 --vs "$WORK alpha 1" -- ./slower_copy alpha 1
unlike "$(cat out.tap)" 'nothing can have changed' "a program with other bytes is run"

# ---- placement: each run gets new pages for the program, where the file system can drop the cached ones
echo x >>copy
if [ "$(stat -f -c %T .)" != tmpfs ]; then
	gate --runs 2 --warmup 0 --vs "./slower_copy alpha 1" -- ./copy alpha 1
	unlike "$(cat out.tap)" 'had the same place in memory' "both programs are moved in memory between runs"
	./copy alpha 1000000 >/dev/null &
	gate --runs 2 --warmup 0 --vs "./slower_copy alpha 1" -- ./copy alpha 1
	like "$(cat out.tap)" 'note: ./copy had the same place in memory in all runs' "a program that is running cannot be moved: noted"
	gate --runs 2 --warmup 0 --placement=kept --vs "./slower_copy alpha 1" -- ./copy alpha 1
	unlike "$(cat out.tap)" 'a place in memory' "--placement=kept: no note about placement"
	kill $!
else
	skip "both programs are moved in memory between runs" "this directory is on tmpfs"
fi

# ---- a baseline
# The runs of a baseline and those compared with it are not interleaved, and the machine's speed changes between them: it
# makes no function half as slow again, while the slower one takes six times as long.
gate -b base.pb.gz --update-baseline --runs 10 -- "$WORK" alpha 40 beta 10 gamma 20
made=$?:$(grep -c '10 runs of gate_work are in base.pb.gz' err)
gate -b base.pb.gz --runs 10 --seed 2 --threshold 50% -- "$WORK" alpha 40 beta 60 gamma 20
status=$?
is "$made" 0:1 "a baseline is made, and stderr names it"
like "$("$COUNTERSINK" report base.pb.gz)" 'alpha' "the baseline is a profile that report reads"
is "$status" 3 "slower than the baseline: status 3"
like "$(cat out.tap)" '^not ok [0-9]+ - beta in gate_work regressed' "baseline: the slower function is named"
unlike "$(cat out.tap)" '^not ok [0-9]+ - (alpha|gamma_ray) in' "baseline: the unchanged functions do not fail"
like "$(cat out.tap)" "note: the baseline was made with another command line" "baseline: another command line is noted"

head -c 300 base.pb.gz >cut.pb.gz
echo nonsense >nonsense.pb.gz
"$COUNTERSINK" -q -o foreign.pb.gz -- "$WORK" alpha 1 >/dev/null
cp "$WORK" other_program
refused 1 'none.pb.gz: .*--update-baseline makes it' "a missing baseline" -b none.pb.gz -- "$WORK" alpha 1
refused 1 'cut.pb.gz: .*(truncated|unexpected end|gzip).*--update-baseline' "a truncated baseline" -b cut.pb.gz -- "$WORK" alpha 1
refused 1 'nonsense.pb.gz: .*--update-baseline' "a file that is no baseline" -b nonsense.pb.gz -- "$WORK" alpha 1
refused 1 'foreign.pb.gz: it is a profile, but has no single runs' "a profile of one run" -b foreign.pb.gz -- "$WORK" alpha 1
refused 1 "another event: 'task-clock.*', not 'page-faults" "a baseline of another event" -b base.pb.gz -e page-faults -- "$WORK" alpha 1
refused 1 "another program: 'gate_work', not 'other_program'" "a baseline of another program" -b base.pb.gz -- ./other_program alpha 1
refused 2 "option --threshold: 'fast' is no percentage" "a threshold that is no number" -T fast --self-check -- true
refused 2 "option --threshold: '-1' is no percentage" "a negative threshold" -T -1 --self-check -- true
refused 2 "option --threshold: 'nan' is no percentage" "a threshold that is NaN" -T nan --self-check -- true
refused 2 "option --runs: '0' is neither a number of runs" "no runs" -r 0 --self-check -- true
refused 2 "option --runs: '1' is too few" "one run" -r 1 --self-check -- true
refused 2 "option --runs: 'many' is neither" "runs that are no number" -r many --self-check -- true
refused 2 "option --warmup: 'x' is not a number" "a warm-up that is no number" -w x --self-check -- true
refused 2 "no comparison given" "no comparison asked for" -- true
refused 2 "exclude each other" "two comparisons asked for" --self-check -b x -- true
refused 2 "option --vs: .* its quotes do not match" "a command with an open quote" --vs "echo 'x" -- true
refused 2 "no command given" "no command" --self-check
refused 2 "option --update-baseline: name its file with --baseline=FILE" "--update-baseline without --baseline" --self-check --update-baseline -- true
refused 2 "option --events: .*'cylces'" "an unknown event" -e cylces --self-check -- true
refused 1 "a warm-up of the command .*\(./no_such_program\) cannot be executed: No such file" "a missing program" --self-check -- ./no_such_program
refused 1 '^countersink: /nowhere/x.json cannot be written: No such file' "a result file that cannot be created" --self-check -j /nowhere/x.json -- true
refused 1 '^countersink: option --baseline: /nowhere/x cannot be written' "a baseline file that cannot be created" -b /nowhere/x --update-baseline -- true

# ---- a command that fails in some runs
cat >flaky <<'END'
#!/bin/sh
n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) >count
echo "run $n" >&2
[ "$n" -lt 3 ] || { echo "the disk is full" >&2; exit 7; }
END
chmod +x flaky
echo ok >failed.verdict
gate --runs 10 --warmup 0 --junit failed.xml --verdict failed.verdict --self-check -- ./flaky
is $? 1 "a run fails: status 1, no verdict"
like "$(cat err)" 'run 2 of the command.* failed: status 7; its standard error: run 3' "the failed run's exit status is reported"
like "$(cat err)" 'the disk is full' "the failed run's stderr is reported"
like "$(cat out.tap)" '^Bail out!' "a failed run: TAP bails out"
like "$(tr '\n' ' ' <failed.verdict)" '^error \{"verdict":"error","status":1,"headline":"no verdict: run 2 of the command' \
	"a failed run: the verdict is an error, with its reason"
prove -e cat out.tap >/dev/null 2>&1
isnt $? 0 "a failed run: prove fails"
if have xmllint; then
	ok "JUnit XML of an error follows the schema" xmllint --noout --schema "$SRC/tests/gate/junit.xsd" failed.xml
else
	skip "JUnit XML of an error follows the schema" "no xmllint here"
fi
gate --runs 2 --warmup 0 --self-check -- sh -c 'kill -SEGV $$'
is $? 1 "a run dies: status 1"
like "$(cat err)" 'failed: signal 11' "the failed run's signal is reported"

# ---- --verdict where there is none, or nothing to show
gate --verdict verdict --vs true -- true
is "$? $(head -n 1 verdict)" "0 ok" "nothing to compare: the verdict is ok"
gate --runs 2 --warmup 0 --verdict verdict --self-check -- "$WORK" alpha 40
is "$? $(head -n 1 verdict)" "0 inconclusive" "too few runs to show a regression: the verdict is inconclusive"
echo ok >verdict
gate --runs none --verdict verdict --self-check -- true
is "$? $(head -n 1 verdict)" "2 error" "wrong settings leave no older verdict"
echo ok >verdict
gate --runs 2 --verdict verdict --tap /dev/full --vs true -- true
is "$? $(head -n 1 verdict)" "1 error" "an output that cannot be written makes the verdict an error"
echo ok >verdict
mkfifo started
"$COUNTERSINK" gate -q --warmup 0 --verdict verdict --self-check -- sh -c 'echo >started; exec sleep 1000' >/dev/null 2>&1 &
read -r _ <started
pkill -KILL -P $! sleep
kill -KILL $!
wait $! 2>/dev/null
like "$(head -n 1 verdict)" '^error$' "a gate that is killed leaves no older verdict"
gate --verdict /nowhere/x --self-check -- true
is $? 1 "a verdict that cannot be written: status 1, before any run"
like "$(cat err)" '^countersink: /nowhere/x cannot be written: No such file' "a verdict that cannot be written is reported"
gate --verdict verdict -b base --update-baseline -- true
is $? 2 "a verdict on a baseline is refused"

# ---- --prepare, --cleanup and --input
: >hooks
gate --runs 2 --warmup 1 --prepare 'echo prepare $COUNTERSINK_SIDE >>hooks' --cleanup 'echo cleanup >>hooks' \
	--input hooks.in --self-check -- true
is $? 1 "a missing input is an error"
like "$(cat err)" 'hooks.in: No such file' "a missing --input file is reported"
echo 3 >hooks.in
: >hooks
gate --runs 2 --warmup 1 --prepare 'echo prepare $COUNTERSINK_SIDE >>hooks' --cleanup 'echo cleanup >>hooks' \
	--input hooks.in --self-check -- sh -c 'read x && echo "run $x" >>hooks'
is "$(grep -c '^prepare' hooks) $(grep -c '^run 3' hooks) $(grep -c '^cleanup' hooks)" "6 6 6" \
	"each run has its preparation, its input and its cleanup"
is "$(grep -c 'prepare old' hooks) $(grep -c 'prepare new' hooks)" "3 3" "--prepare gets COUNTERSINK_SIDE"
gate --runs 2 --prepare 'exit 9' --self-check -- true
is $? 1 "a failing --prepare command: status 1"
like "$(cat err)" 'the shell command of --prepare failed: status 9' "a failing --prepare command is reported"

# ---- too few runs to find anything
gate --runs 5 --warmup 0 --vs "$WORK alpha 5" -- "$WORK" alpha 10
is $? 0 "five pairs cannot fail: status 0"
like "$(cat err)" '^countersink: so few runs \(5 and 5\) cannot show a regression.*the smallest possible p is 0\.031, ' "too few runs are reported beforehand"
like "$(cat out.tap)" '^# note: so few runs cannot show a regression here, .*; that takes (9|1[0-9]) runs of each side' "the number of runs needed is noted"
gate --runs 10 --warmup 0 --vs "$WORK alpha 1" -- "$WORK" alpha 1 beta 1
is "$(cat err)" "" "ten pairs: no warning about too few runs"

# ---- long runs
gate --runs 3 --warmup 0 --vs "$WORK alpha 300" -- "$WORK" alpha 301
like "$(cat out.tap)" '^# note: a run takes [0-9]+ ms of CPU time, and 20 to 30 ms would do' "long runs that leave a question open: shorter ones are recommended"
gate --runs 3 --warmup 0 --vs "$WORK alpha 3" -- "$WORK" alpha 4
unlike "$(cat out.tap)" '20 to 30 ms would do' "short runs: no other length is recommended"

# ---- --runs=auto
gate --max-time 600 --seed 1 --vs "$WORK alpha 20 beta 10 gamma 20" -- "$WORK" alpha 20 beta 40 gamma 20
is $? 3 "--runs=auto: the regression is found"
like "$(cat out.tap)" '^# runs: (1[4-9]|[2-9][0-9]|[0-9]{3,}) and' "--runs=auto stops after the first look at the earliest"
like "$(cat out.tap)" '^not ok [0-9]+ - beta in gate_work regressed' "--runs=auto: the regression is named"
gate --max-time 0.01 --warmup 0 --self-check -- "$WORK" alpha 1
is $? 0 "--max-time spent: no regression is claimed"
like "$(cat out.tap)" '^# runs: 2 and 2' "--max-time spent: two pairs are made"
like "$(cat out.tap)" 'note: the time \(--max-time\) was spent before every question was settled' "--max-time spent: open questions are noted"
gate --max-time 0.01 --warmup 0 --strict --self-check -- "$WORK" alpha 1
is $? 3 "--strict: inconclusive points fail"
like "$(cat out.tap)" '^not ok .* inconclusive:' "--strict: the failed points are named inconclusive"

# ---- summary and annotations where GitHub runs it
GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$TMP/summary.md "$COUNTERSINK" gate --runs 16 --seed 3 \
	--vs "$WORK beta 10 alpha 20 gamma 20" -- "$WORK" beta 60 alpha 20 gamma 20 >out.tap 2>err
like "$(cat summary.md)" '^### countersink gate: .*beta in gate' "GitHub: the summary is written"
like "$(cat err)" '^::error file=.*beta' "GitHub: the annotations are written"

# ---- TERM while the gate runs
"$COUNTERSINK" gate --runs 1000 --warmup 0 --prepare 'echo x >>begun' --cleanup 'echo x >>ended' --self-check -- \
	"$WORK" alpha 20 >out.tap 2>err &
pid=$!
ok "a long gate starts" wait_until 60 test -s begun
kill -TERM $pid
wait $pid
is $? 143 "TERM ends the gate: status 143"
ok "TERM: --cleanup runs for each --prepare" test "$(wc -l <ended)" -ge "$(wc -l <begun)"
unlike "$(cat out.tap)" '^1\.\.' "TERM: no verdict is printed"

# ---- TERM while --cleanup runs
"$COUNTERSINK" gate --runs 1000 --warmup 0 --cleanup 'echo x >cleaning; until [ -e go ]; do sleep 0.01; done; echo x >cleaned' \
	--self-check -- "$WORK" alpha 1 >out.tap 2>err &
pid=$!
ok "a gate with a long --cleanup starts" wait_until 60 test -s cleaning
kill -TERM $pid
wait_until 30 has_taken_term $pid
: >go
wait $pid
is $? 143 "TERM during --cleanup ends the gate: status 143"
ok "TERM during --cleanup: the cleanup is completed" test -s cleaned

# ---- without perf_event_open, without privileges
"$TARGETS/deny_perf" "$COUNTERSINK" gate --runs 16 --seed 1 --vs "$WORK alpha 100 beta 100" -- \
	"$WORK" alpha 100 beta 300 >out.tap 2>err
is $? 3 "perf_event_open refused: the regression is found"
like "$(cat out.tap)" '^not ok [0-9]+ - beta in gate_work regressed' "perf_event_open refused: the regression is named"
like "$(cat out.tap)" 'note: perf_event_open is refused here: samples come at the kernel' "perf_event_open refused: the cost is noted"
mkdir -m 777 private
(cd private && unprivileged "$COUNTERSINK" gate --runs 16 --seed 1 --vs "$WORK alpha 40 beta 20" -- \
	"$WORK" alpha 40 beta 100 >"$TMP/private/out.tap" 2>err)
is $? 3 "an unprivileged user: the regression is found"
like "$(cat private/out.tap)" '^not ok [0-9]+ - beta in gate_work regressed' "an unprivileged user: the regression is named"

# ---- exact counts
if have valgrind; then
	gate --deterministic=callgrind -T 1% --json exact.json --vs "$WORK alpha 2 beta 40" -- "$WORK" alpha 2 beta 41
	is $? 3 "exact counts: 2.5 % more is found"
	like "$(cat out.tap)" '^not ok [0-9]+ - beta in gate_work regressed: \+2\.5 % \(\+2\.5 to \+2\.5 in all runs\)' "exact counts: the 2.5 % regression is named"
	like "$(cat out.tap)" '^ok [0-9]+ - alpha in gate_work unchanged: \+0\.0 %' "exact counts: unchanged functions pass"
	gate --deterministic=callgrind -b exact.pb.gz --update-baseline -- "$WORK" alpha 2 beta 40
	gate --deterministic=callgrind -T 1% -b exact.pb.gz -- "$WORK" alpha 2 beta 41
	is $? 3 "exact counts: the regression is found against a baseline"
	gate --deterministic=callgrind -T 1% -b exact.pb.gz -- "$WORK" alpha 2 beta 40
	is $? 0 "exact counts: equal runs pass against a baseline"
	refused 1 "another kind of measurement: 'simulated', not 'measured'" "exact counts compared with measured ones" -b exact.pb.gz -- "$WORK" alpha 2
else
	skip "exact counts" "no valgrind here"
fi
env PATH=/nowhere "$COUNTERSINK" gate --deterministic=callgrind --self-check -- "$WORK" alpha 1 >out.tap 2>err
is $? 2 "no valgrind: status 2"
like "$(cat err)" 'there is no valgrind here' "a missing valgrind is reported"

done_testing
