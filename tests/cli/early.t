#!/bin/bash
# What the constructors of a program's libraries do is sampled, and the threads and children that they start: they run
# before the library's own constructor.
. "$(dirname "$0")/lib.sh"

needs_events
export EARLY=kept

# rows FILE: of each of early's functions, the tenths of the whole that are in it.
cat >rows.py <<'P'
import collections, json, sys
tenths, whole = collections.Counter(), 0
for row in json.load(sys.stdin)['rows']:
    whole += row['self']
    if row['name'].startswith('early_'):
        tenths[row['name']] += 10 * row['total']
print(*(f'{name} {round(tenths[name] / whole)}' for name in sorted(tenths) if tenths[name] > whole), sep=', ')
P
rows() {
	countersink report --json --all "$1" | python3 rows.py
}
all='early_child 2, early_constructor 2, early_main 2, early_thread 4'

for engine in sigtrap signal timer; do
	countersink -q --engine=$engine -o $engine.pb.gz -- "$TARGETS/early" word >out 2>err
	is "$?:$(cat out err)" "7:word, kept, child 3" "$engine: the program runs as without us"
	is "$(rows $engine.pb.gz)" "$all" "$engine: what the constructor does is sampled, with its threads and its child"
done
like "$(countersink export -f folded sigtrap.pb.gz)" 'call_init;begin;early_constructor(;spin)? ' \
	"the loader is the constructor's caller"
LD_PRELOAD=$ENTRY COUNTERSINK_OUTPUT=$TMP/alone.pb.gz "$TARGETS/early" word >out 2>err
is "$?:$(cat out)" "7:word, kept, child 3" "by environment alone: the program runs as without us"
is "$(rows alone.pb.gz)" "$all" "by environment alone: the same is sampled"
LD_PRELOAD="$ENTRY $TARGETS/own_realloc.so" COUNTERSINK_OUTPUT=$TMP/realloc.pb.gz "$TARGETS/early" word >out 2>err
is "$?:$(cat out)" "7:word, kept, child 3" "an allocator that has not begun yet is not called"
is "$(rows realloc.pb.gz)" "$all" "beside such an allocator the same is sampled"
LD_PRELOAD=$ENTRY COUNTERSINK_OUTPUT=$TMP/exit.pb.gz "$TARGETS/early" exit >out 2>err
is "$?:$(cat out)" "5:" "a constructor ends the process"
like "$(rows exit.pb.gz)" '^early_constructor ([89]|10)$' "it leaves its profile"
if [ "$(id -u)" = 0 ]; then
	chmod 777 .
	setpriv --reuid=65534 --regid=65534 --clear-groups countersink -q -o other.pb.gz -- "$TARGETS/early" word >out 2>err
	is "$?:$(cat out err)" "7:word, kept, child 3" "another user than root: the program runs as without us"
	is "$(rows other.pb.gz)" "$all" "another user than root: the same is sampled"
else
	skip "another user than root" "only root can become one"
fi

# The runtimes of sanitizers begin before the library does: what they intercept works.
for sanitizer in asan lsan; do
	countersink -o $sanitizer.pb.gz -- "$TARGETS/early_$sanitizer" word >out 2>err
	is "$?:$(cat out)" "7:word, kept, child 3" "$sanitizer: the program runs as without us"
	unlike "$(cat err)" 'Warning: REAL|older than the library' "$sanitizer: no warning of the runtime, nor of older threads"
	like "$(rows $sanitizer.pb.gz)" 'early_constructor [12], early_main [12], early_thread [345]' "$sanitizer: the same is sampled"
done

# A runtime in the program starts a thread in each forked child, before our handler of fork(2) runs.
countersink -q -o tsan.pb.gz -- "$TARGETS/early_tsan" forks >out 2>err
is "$?:$(tail -n 1 out)" "7:0 of 20" "tsan: children of a program that has its runtime live"
like "$(rows tsan.pb.gz)" 'early_constructor [12], early_main [12], early_thread [345]' "tsan: the same is sampled"

# A program for gprof has a function by the same name of its own.
mkdir gprof
(cd gprof && countersink -o ../gprof.pb.gz -- "$TARGETS/early_gprof" word >../out 2>../err)
is "$?:$(cat out)" "7:word, kept, child 3" "a program for gprof runs as without us"
ok "a program for gprof writes its profile" test -s gprof/gmon.out
like "$(cat err)" '^ +[2-8][0-9]\.[0-9]+ .* \[start-up: exec and loader\]$' "a program for gprof: what constructors do is counted"
like "$(rows gprof.pb.gz)" 'early_main 2' "a program for gprof is sampled from its own functions on"
done_testing
