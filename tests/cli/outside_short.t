#!/bin/bash
# Programs that are shorter than a sample's period, sampled from outside: where CPUs may be sampled they have functions, and
# the ends of processes are theirs. Expected are tens of samples of each: none at all means that they are not taken.
. "$(dirname "$0")/lib.sh"

needs_events

cp "$TARGETS/static_spin" brief
cp "$TARGETS/static_chain" static
chmod 777 .
cat >many <<'S'
i=0
while [ $i -lt 1000 ]; do ./brief 0; i=$((i + 1)); done
S

# shown PROFILE: what of its CPU time the rows do not have, in thousandths; then "row" for each of the rows that are expected.
shown() {
	countersink report -j -a --no-pager "$1" | python3 -c '
import json, sys
report = json.load(sys.stdin)
facts = dict(reversed([fact.split(": ", 1) for fact in report["facts"]]))
rows = report["rows"]
usage = int(facts["user_ns"]) + int(facts["sys_ns"])
print(abs(sum(row["self"] for row in rows) - usage) * 1000 // usage)
print(any(row["module"] == "brief" and not row["pseudo"] for row in rows) and "functions")
print(any(row["name"] == "[not sampled: brief]" for row in rows) and "bracket")
print(any(row["name"] == "do_exit" and row["module"] == "[kernel]" for row in rows) and "ends")
print(any(row["module"] == "[anon]" for row in rows) and "unknown code")' | paste -sd' '
}

# A quarter of a period, by what one of them takes here: where an exec is dear, that is longer than the default's.
hz=$(start_ns ./brief 0 | awk '{ hz = int(1e9 / 4 / $1); print (hz < 1 ? 1 : hz > 997 ? 997 : hz) }')

if [ "$(id -u)" = 0 ]; then
	countersink -F "$hz" -o c.pb.gz -- sh many 2>err
	is "$(shown c.pb.gz)" "0 functions False ends False" "root: their functions, execs and ends of processes by name, and all of the CPU time"
	like "$(cat err)" ', 1,?001 processes, 1,?001 threads' "root: all of them are counted"
	countersink -o x.pb.gz -- sh -c 'seq 300 | xargs -I {} ./brief 0' 2>forked
	like "$(cat forked)" ', 303 processes, 303 threads' "root: processes that the library recorded before they became brief are counted once"
	like "$(cat err)" 'note .*brief processes are shown by [0-9]+ of them' \
		"root: the report gives the reason"
	like "$(cat err)" 'outside .*: brief \([0-9]+ times\)' "root: the line outside has all of them"
	# Their own samples are all in the first of two equal phases; by chance a quarter is farther away than 5 sigma.
	countersink -o c.pb.gz -- sh -c 'i=0; while [ $i -lt 300 ]; do "$0" 800 800; i=$((i + 1)); done' "$TARGETS/static_phases" 2>err
	is "$(countersink export -f folded c.pb.gz | awk '
		/;first_phase/ { first += $NF } /;second_phase/ { second += $NF }
		END { share = first / (first + second); print (share > 0.25 && share < 0.75 ? "both" : share) }')" both \
		"root: programs that are longer than a period, and all alike, have all of their phases"
	countersink -o c.pb.gz -- sh -c 'i=0; while [ $i -lt 100 ]; do "$0" 0; i=$((i + 1)); done' "$TARGETS/burn" >out 2>err
	unlike "$(cat err)" 'do_exit|samples of the CPUs' "root, a tree that is injected: CPUs are not sampled"
	countersink -o c.pb.gz -- ./static 0.3 2>err
	unlike "$(cat err)" 'brief processes are' "root: a program with samples of its own is shown by these"
else
	skip "CPUs are sampled" "only root may"
fi
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ]; then
	unprivileged countersink -o c.pb.gz -- sh many 2>err
	like "$(shown c.pb.gz)" '^0 .* bracket False False$' "others than root: they are named, with all of the CPU time"
	like "$(cat err)" ', 1,?001 processes, 1,?001 threads' "others than root: all of them are counted"
	unlike "$(cat err)" 'brief processes are' "others than root: no samples of CPUs are reported"
else
	skip "CPUs may not be sampled" "perf_event_paranoid lets every user"
fi

done_testing
