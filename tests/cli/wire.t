#!/bin/sh
# `countersink export -f wire`: profiles as Pyroscope and Parca take them, by their rules (tests/send/pprof_rules.py) and on
# profiles of real programs. The servers themselves are not run.
. "$(dirname "$0")/lib.sh"

RULES=$SRC/tests/send/pprof_rules.py

# The rules can refuse: each one has a profile that breaks it.
python3 "$RULES" --table >table
while read -r line; do
	ok "the rules: ${line#*ok }" test "${line%% *}" = ok
done <table
ok 'there is a table of rules' test "$(wc -l <table)" -ge 30

# same_sums NAME FILE WIRE: the totals of the types are as before, in their order.
same_sums() {
	is "$(python3 "$RULES" --show "$3" | sed '/^period/,$d; s/.* //')" "$(python3 "$RULES" --show "$2" | sed '/^period/,$d; s/.* //')" \
		"$1: no weight is lost"
}

# judge NAME FILE [PPROF]: what is in FILE is accepted in its wire form. PPROF: the same as pprof, if FILE is none.
judge() {
	"$COUNTERSINK" export -f wire -o wired.pb.gz "$2" 2>err
	is "$? $(cat err)" '0 ' "$1: the wire form is written without a message"
	is "$(python3 "$RULES" wired.pb.gz)" "$(printf '%s: accepted\n' PYROSCOPE PARCA)" "$1: both accept it"
	same_sums "$1" "${3:-$2}" wired.pb.gz
	is "$(python3 "$RULES" --show wired.pb.gz | grep -E '^(comments|samples twice)')" "$(printf '%s 0\n' 'samples twice' comments)" \
		"$1: no comment is sent, and no sample twice"
	ok "$1: countersink reads it" "$COUNTERSINK" report wired.pb.gz
}

"$COUNTERSINK" -q -o python.pb.gz -- python3 -c 'import json; [json.loads(json.dumps(list(range(20000)))) for i in range(9)]'
is "$(python3 "$RULES" python.pb.gz | sed 's/no selector.*/no selector/')" \
	"$(printf '%s\n' 'PYROSCOPE: sample type contains -' 'PARCA: no selector')" 'the profile as it is is refused by both'
judge 'python3' python.pb.gz
is "$(python3 "$RULES" --show wired.pb.gz | grep -E '^(cpu|period|labels|series)' | sed 's/^\(cpu.*\) .*/\1/')" \
	"$(printf '%s\n' cpu/nanoseconds 'period cpu/nanoseconds' 'labels ' 'series 1')" 'CPU time is cpu/nanoseconds, in one series'

"$COUNTERSINK" -q -o threads.pb.gz -- "$TARGETS/manythreads" 40 20 >/dev/null 2>&1
judge 'a program of many threads' threads.pb.gz
COUNTERSINK_TIMELINE=1 "$COUNTERSINK" -q --off-cpu -o off.pb.gz -- sh -c 'sleep 0.05; "$1" 60' sh "$TARGETS/burn" >/dev/null 2>&1
judge 'a run with --off-cpu and --timeline' off.pb.gz
like "$(python3 "$RULES" --show wired.pb.gz)" '^off_cpu/nanoseconds ' 'a name with a dash has an underscore'
"$COUNTERSINK" gate --runs=2 --baseline=gate.pb.gz --update-baseline -- "$TARGETS/burn" 20 >/dev/null 2>&1
judge "a gate's baseline" gate.pb.gz
"$COUNTERSINK" merge -o sum.pb.gz python.pb.gz threads.pb.gz
judge 'a merged profile' sum.pb.gz
printf 'main;work 3\nmain;other \377name 4\n' >stacks.folded
"$COUNTERSINK" export -f pprof -o folded.pb.gz stacks.folded
judge 'folded stacks, with bytes that are no UTF-8' stacks.folded folded.pb.gz

# ---- labels ----
"$COUNTERSINK" export -f wire --labels=process,tid python.pb.gz >kept.pb.gz
is "$(python3 "$RULES" --show kept.pb.gz | grep '^labels')" 'labels process tid' '--labels keeps those that it names'
"$COUNTERSINK" export -f wire -l all python.pb.gz >kept.pb.gz
is "$(python3 "$RULES" --show kept.pb.gz | grep '^labels')" 'labels pid process pseudo thread tid' '--labels=all keeps all'
is "$(python3 "$RULES" kept.pb.gz)" "$(printf '%s: accepted\n' PYROSCOPE PARCA)" 'with all labels both accept it, too'
same_sums 'with all labels' python.pb.gz kept.pb.gz
"$COUNTERSINK" export -f folded --labels=pid python.pb.gz >stdout 2>err
is "$? $(cat stdout)" '2 ' '--labels is refused for other formats'
like "$(cat err)" '^countersink: --labels is for what is sent' '--labels: the reason is reported'

# ---- hostile names, as another program may have written them ----
PYTHONPATH=$SRC/tests/browser python3 -c '
from make_profile import Profile
p = Profile([("a-b", "count"), ("a_b", "count"), ("2:x{}", "nano seconds"), ("", ""), ("cpu", "nanoseconds"), ("cpu-clock", "nanoseconds")])
p.sample((p.function("f"), p.function("g", b"/usr/lib/\xff.so")), [1, 2, 3, 4, 5, 6], **{"x-y": "1", "x_y": "2", "9": b"\xfe"})
p.sample((p.function("f"), p.function("g", b"/usr/lib/\xff.so")), [1, 2, 3, 4, 5, 6], **{"x-y": "1", "x_y": "3", "9": b"\xfe"})
p.write("made.pb.gz")'
judge 'a profile of hostile names' made.pb.gz
is "$(python3 "$RULES" --show wired.pb.gz | sed '/^labels/,$ { /^labels/!d }' | xargs)" \
	'a_b/count 2 a_b_2/count 4 _2_x__/nano_seconds 6 value/count 8 cpu/nanoseconds 10 cpu_2/nanoseconds 12 period cpu_2/nanoseconds labels _9 x_y' \
	'two names that became one are two again; samples that became one are added up'
done_testing
