#!/bin/sh
# `countersink export -f wire` and `-f otlp`: profiles as Pyroscope, Parca and receivers of OTLP take them, by their rules
# (tests/send/pprof_rules.py, otlp_rules.py) and on profiles of real programs. The servers themselves are not run.
. "$(dirname "$0")/lib.sh"

RULES=$SRC/tests/send/pprof_rules.py
OTLP=$SRC/tests/send/otlp_rules.py

# The rules can refuse: each one has a profile that breaks it.
python3 "$RULES" --table >table
python3 "$OTLP" --table >>table
while read -r line; do
	ok "the rules: ${line#*ok }" test "${line%% *}" = ok
done <table
ok 'there is a table of rules' test "$(wc -l <table)" -ge 70

# totals FILE: of the types, by name; one that is 0 as well.
totals() {
	python3 "$RULES" --show "$1" | sed '/^period/,$d' | sort
}

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
	"$COUNTERSINK" export -f otlp -o wired.otlp "$2" 2>err
	is "$? $(cat err)" '0 ' "$1: OTLP is written without a message"
	is "$(python3 "$OTLP" wired.otlp)" accepted "$1: the strict reader accepts it"
	is "$(python3 "$OTLP" --show wired.otlp | grep -vE '^(service|time|attributes)' | sort)" "$(totals wired.pb.gz)" "$1: OTLP has all weights"
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
if countersink report off.pb.gz 2>&1 | grep -q 'off-cpu is not counted'; then
	skip 'a name with a dash has an underscore' 'switches cannot be sampled here'
else
	like "$(python3 "$RULES" --show wired.pb.gz)" '^off_cpu/nanoseconds ' 'a name with a dash has an underscore'
fi
"$COUNTERSINK" gate --runs=2 --baseline=gate.pb.gz --update-baseline -- "$TARGETS/burn" 20 >/dev/null 2>&1
judge "a gate's baseline" gate.pb.gz
"$COUNTERSINK" merge -o sum.pb.gz python.pb.gz threads.pb.gz 2>/dev/null
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

# ---- OTLP ----
"$COUNTERSINK" export -f otlp python.pb.gz >now.otlp
"$COUNTERSINK" export -o again.otlp python.pb.gz
ok 'the same profile is the same message, with the same ids' cmp now.otlp again.otlp
like "$(python3 "$OTLP" --show now.otlp | sed -n 2p)" '^cpu/nanoseconds ' 'the event that sampled comes first'
like "$(python3 "$OTLP" --show now.otlp)" '^attributes process.executable.build_id.gnu$' 'mappings have build-ids; samples have no attribute'
"$COUNTERSINK" export -f otlp --labels=all --service='a b' threads.pb.gz >all.otlp
is "$(python3 "$OTLP" all.otlp)" accepted 'with all labels it is accepted'
like "$(python3 "$OTLP" --show all.otlp)" '^service.name a b$' '--service names the service'
like "$(python3 "$OTLP" --show all.otlp)" '^attributes pid process process.executable.build_id.gnu pseudo thread tid$' 'labels are attributes'
"$COUNTERSINK" export -f otlp --otlp=1.9 python.pb.gz >old.otlp
is "$(python3 "$OTLP" old.otlp)" 'a sample has not one value' "today's reader refuses the numbers of 1.9"
is "$(python3 "$OTLP" --1.9 old.otlp)" accepted 'by the numbers of 1.9 it is accepted'
isnt "$(python3 "$OTLP" --1.9 now.otlp)" accepted "a reader of 1.9 refuses today's numbers"
"$COUNTERSINK" export -f otlp --service="$(printf 'caf\351')" python.pb.gz >stdout 2>err
is "$? $(wc -c <stdout) $(cat err)" '2 0 countersink: --service: the name is not UTF-8' 'a service whose name is not UTF-8 is refused'
for option in --service=x --otlp=1.9; do
	"$COUNTERSINK" export -f wire $option python.pb.gz >stdout 2>err
	is "$? $(cat stdout err)" '2 countersink: --service and --otlp are for OTLP: give --format otlp' "$option is refused for other formats"
done

# ---- identity, and the service's name ----
PYTHONPATH=$SRC/tests/browser python3 -c '
from make_profile import Profile
def made(name, file, command, **labels):
    p = Profile([("cpu", "nanoseconds")])
    p.sample((p.function("f", file),), [1], **labels)
    if command:
        p.comment("command: " + command)
    p.write(name)
long = "x" * 300
made("start.pb.gz", "/bin/made", None, phase="start")
made("stop.pb.gz", "/bin/made", None, phase="stop")
made("blank.pb.gz", "/home/me/my prog", "/home/me/my prog")
made("arguments.pb.gz", "/home/me/my prog", "./my prog 7")
made("directory.pb.gz", "/home/my files/prog", "/home/my files/prog 7")
made("script.pb.gz", "/usr/bin/dash", "sh /tmp/my/dash 7")
made("long.pb.gz", "/bin/" + long, None)'
id_of() { # FILE
	"$COUNTERSINK" export -f otlp "$1" >one.otlp
	python3 "$OTLP" --show one.otlp | sed -n 's/^time.* id //p'
}
isnt "$(id_of start.pb.gz)" "$(id_of stop.pb.gz)" 'profiles that differ in a label alone have other ids'
service_of() { # FILE
	"$COUNTERSINK" export -f otlp "$1" >one.otlp
	python3 "$OTLP" --show one.otlp | sed -n 's/^service.name //p'
}
is "$(service_of blank.pb.gz), $(service_of arguments.pb.gz), $(service_of directory.pb.gz), $(service_of script.pb.gz)" \
	'my prog, my prog, prog, sh' "the program's name may have blanks, and so may its directories"
is "$(service_of long.pb.gz)" "$(printf '%0300d' 0 | tr 0 x)" "a long name is not cut"

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

# Empty entries: frames without a place, functions and mappings without a name, samples that count for nothing.
PYTHONPATH=$SRC/tests/guests python3 -B -c '
from protobuf import encode
out = encode(1, encode(1, 1) + encode(2, 2))
for stack, value in ((1, 2, 3, 4), 5), ((4, 3, 2), 6), ((), 7), ((1,), 0), ((5,), 0):
    out += encode(2, encode(1, bytes(stack)) + encode(2, bytes([value])))
out += encode(3, encode(1, 1)) + encode(3, encode(1, 2) + encode(5, 3)) + encode(3, encode(1, 3) + encode(5, 3) + encode(7, 1))
out += encode(4, encode(1, 1)) + encode(4, encode(1, 2) + encode(2, 1)) + encode(4, encode(1, 3) + encode(4, encode(1, 1)))
out += encode(4, encode(1, 4) + encode(2, 2) + encode(3, 7)) + encode(4, encode(1, 5) + encode(2, 3) + encode(3, 7))
out += encode(5, encode(1, 1))
open("nothing.pb", "wb").write(out + b"".join(encode(6, t) for t in (b"", b"cpu", b"nanoseconds", b"/bin/made")))'
judge 'a profile of empty entries' nothing.pb
is "$(python3 "$RULES" --show wired.pb.gz | sed -n 1p)" 'cpu/nanoseconds 18' 'frames that say nothing keep their time'
done_testing
