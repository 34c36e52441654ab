#!/bin/bash
# The gate: figures that a command reports of itself.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status. No functions: only figures are judged here.
gate() {
	"$COUNTERSINK" gate --runs 14 --seed 1 --warmup 0 -T 20% "$@" >out.tap 2>err
}

# report LINE...: a command that does nothing but report; @ is a number from 0 to 9 that differs between runs.
cat >report <<'END'
#!/bin/sh
for line; do echo "$line"; done | sed "s/@/$(($$ % 10))/" >"$COUNTERSINK_FIGURES"
END
chmod +x report

gate --vs './report "throughput 200@ requests/s more" "allocated 100@ bytes" "latency 0.5 s less"' --json out.json -- \
	./report 'throughput 100@ requests/s more' 'allocated 200@ bytes' 'latency 0.5 s less'
is $? 3 "figures that got worse: status 3"
like "$(cat out.tap)" '^not ok [0-9]+ - throughput regressed: -(49|50)\.[0-9] % \(95 % CI -(49|50)\.[0-9] to -(49|50)\.[0-9], q = [0-9.e-]+\), 100[0-9.]* requests/s instead of 200[0-9.]* requests/s$' \
	"less throughput is a regression"
is "$(python3 -c 'import json
r = [r for r in json.load(open("out.json"))["rows"] if r.get("metric") == "throughput"][0]
print(r["low"] <= r["ratio"] <= r["high"] < .51, r["p_less"] < .001, r["p_greater"] > .9)')" "True True True" "the interval and the p-values of throughput are those of the figure, not of its reciprocal"
like "$(cat out.tap)" '^not ok [0-9]+ - allocated regressed: \+(98|99|100)\.[0-9] % .* 200[0-9.]* bytes instead of 100[0-9.]* bytes' "more allocated bytes are a regression"
like "$(cat out.tap)" '^ok [0-9]+ - latency unchanged: \+0\.0 % \(the same in all runs\), 0\.5 s instead of 0\.5 s' "a figure below 1 is shown as such"
is "$(python3 -c 'import json
print(*sorted((r["metric"], r["more_is_better"]) for r in json.load(open("out.json"))["rows"] if r.get("metric") in ("throughput", "allocated")))')" \
	"('allocated', False) ('throughput', True)" "JSON has whether more is better"

gate --vs './report "throughput 100@ requests/s more" "allocated 200@ bytes"' -- \
	./report 'throughput 200@ requests/s more' 'allocated 100@ bytes'
like "$(cat out.tap)" '^ok [0-9]+ - throughput improved: \+(98|99|100)\.[0-9] %' "more throughput is an improvement"
like "$(cat out.tap)" '^ok [0-9]+ - allocated improved: -(49|50)\.[0-9] %' "fewer allocated bytes are an improvement"
unlike "$(cat out.tap)" '^not ok [0-9]+ - (throughput|allocated)' "neither improvement fails the gate"

gate --vs './report "throughput 100@ requests/s more"' -- ./report 'throughput 100@ requests/s more' ''
like "$(cat out.tap)" '^ok [0-9]+ - throughput unchanged: ' "the same throughput is unchanged"

gate --history rate.jsonl --anchor v1 --commit abc --vs './report "throughput 100@ requests/s more" "latency 1@ s"' -- \
	./report 'throughput 200@ requests/s more' 'latency 1@ s'
like "$(cat rate.jsonl)" '"throughput":\[[0-9.,]+,"requests/s","more"\]' "a history has what is better"
like "$(cat rate.jsonl)" '"latency":\[[0-9.,]+,"s"\]' "of other figures it has nothing of that"

# ---- what cannot be judged is no zero
gate --vs './report "zero 0 s more"' -- ./report 'zero 5 s more' 'throughput many' 'a/b 3' 'cpu 7' 'samples 4' 'x 1 s best' 'y -3' 'z 1 a-very-long-unit-name'
unlike "$(cat out.tap)" '^(not )?ok [0-9]+ - (zero|throughput|a/b|x|y|z) ' "what is not judged has no point"
for note in "0 of what is better when it is more has no ratio: 'zero 0 s more'" "its value is no number from 0 up: 'throughput many'" "its name is not of 1 to 39 letters, digits, _, - or .: 'a/b 3'" "a figure that is measured has this name: 'cpu 7'" "something else of each run has this name in JSON: 'samples 4'" \
	"its fourth word is neither more nor less: 'x 1 s best'" "its value is no number from 0 up: 'y -3'" "its unit is longer than 15 bytes: 'z 1 a-very"; do
	like "$(cat out.tap)" "^# note: a figure that the command reported is not judged: $note" "a note: $note"
done
gate --vs "./report 'one 1'" -- ./report
unlike "$(cat out.tap)" '^(not )?ok [0-9]+ - one ' "a figure of one side alone is not judged"

# ---- in a baseline
gate -b base.pb.gz --update-baseline -- ./report 'throughput 200@ requests/s more'
gate -b base.pb.gz -- ./report 'throughput 100@ requests/s more'
like "$(cat out.tap)" '^not ok [0-9]+ - throughput regressed: -(49|50)\.[0-9] % .* requests/s instead of 200' "a baseline keeps whether more is better"
is "$(env | grep -c COUNTERSINK_FIGURES)" 0 "no such variable is left here"
done_testing
