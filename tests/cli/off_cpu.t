#!/bin/bash
# Time off the CPU: each thread's wall time less its CPU time, in the functions that blocked, and without
# interrupting any call. And the timeline: the same totals, each sample with its time.
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
	countersink -q --off-cpu -o u.pb.gz -- true
	like "$(countersink report u.pb.gz)" 'off-cpu is not counted: .*perf_event_paranoid <= 1' \
		"without permission for kernel events the report gives the requirement"
	done_testing
	exit
fi

# A thread's own clocks start a little after ours and stop a little before. On a busy machine it may wait for a CPU there, for
# as long as its program, which sees it begin and end, knows: so the time is in between.
between() { # GOT LEAST MOST SHARE-PERCENT NAME
	ok "$5 ($1 of $2 to $3)" awk -v a="$1" -v least="$2" -v most="$3" -v p="$4" \
		'BEGIN { exit !(least > 0 && a >= least * (1 - p / 100) - 1e7 && a <= most * (1 + p / 100) + 1e7) }'
}

check_blocked() { # NAME
	while read -r thread _ wall _ cpu _ interrupted _ most; do
		is "$interrupted" 0 "$1: no call of $thread was interrupted"
		between "$(awk -v t="thread=$thread" '$1 == "label" && $3 == t { print $2 }' facts)" $((wall - cpu)) $((most - cpu)) 1 \
			"$1: off-CPU time of $thread is wall less CPU time"
	done <out
	for name in block_sleeping block_on_mutex block_reading; do
		like "$(cat facts)" "cum [0-9]{6,} $name" "$1: $name has time"
	done
}

countersink -q --off-cpu -o o.pb.gz -- "$TARGETS/blocked" 400 >out 2>err
is "$? $(wc -l <out)" "0 3" "blocking threads run under countersink"
"$SRC/tests/cli/profile_facts" o.pb.gz off-cpu >facts
check_blocked aggregated

countersink -q --off-cpu --timeline -o t.pb.gz -- "$TARGETS/blocked" 400 >out 2>err
"$SRC/tests/cli/profile_facts" t.pb.gz off-cpu >facts
check_blocked "blocked with --timeline"
ok "--timeline gives samples their time" awk '/timestamp=1[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]/ { n++ } END { exit !(n > 300) }' facts

like "$(countersink report o.pb.gz)" 'Off the CPU, ' "the report has a table of time off the CPU"
countersink -q --off-cpu --engine=timer -o e.pb.gz -- true
like "$(countersink report e.pb.gz)" 'off-cpu is not counted: only the sigtrap engine' \
	"off-CPU time with an engine that would interrupt calls is reported as not counted"
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
	mkdir -m 777 user && cd user || exit 1
	setpriv --reuid=65534 --regid=65534 --clear-groups "$COUNTERSINK" -q --off-cpu -o u.pb.gz -- true
	like "$(countersink report u.pb.gz)" 'off-cpu is not counted: .*perf_event_paranoid <= 1' \
		"without permission for kernel events the report gives the requirement"
fi
done_testing
