#!/bin/bash
# Counters that the program itself opened count the same as without us, whatever we do with ours; and an exec never
# meets a sample that is pending.
. "$(dirname "$0")/lib.sh"

"$TARGETS/own_events" >alone
grep -q "no counters" alone && skip_all "perf_event_open is refused here"
is "$(grep -c 'disabled none, enabled all' alone)" "$(wc -l <alone)" "without us disabled counters have none of the time, enabled ones all of it" ||
	diag "$(cat alone)"
for engine in sigtrap signal timer; do
	for period in 1000000 100000; do
		countersink -q --engine=$engine -c "$period" -- "$TARGETS/own_events" >with 2>err
		is "$(cat with)" "$(cat alone)" "the program's counters count the same under the $engine engine, a sample each $((period / 1000)) us"
	done
done
countersink -q --off-cpu -e task-clock,page-faults -- "$TARGETS/own_events" >with 2>err
is "$(cat with)" "$(cat alone)" "the program's counters count the same with more events and time off the CPU"

# ---- our own counters continue after a failed exec
for engine in sigtrap signal; do
	countersink --engine=$engine -e page-faults -c 50 -o faults.pb.gz -- \
		perl -e 'for (1 .. 200) { my $x = "a" x 400000; exec "/nonexistent" }' 2>err
	share=$(sed -n 's/.*counted  *page-faults.*samples have .*, \([0-9]*\)\..*/\1/p' err)
	ok "$engine: no fault is lost for 200 failed execs (${share:-0} % have samples)" test "${share:-0}" -ge 60 ||
		diag "$(cat err)"
	unlike "$(cat err)" 'lost|pthread_create' "$engine: no sample is lost and no thread is untracked"
done

# ---- no sample is pending after exec
for engine in sigtrap signal; do
	killed=0
	for _ in 1 2 3; do
		countersink -q -o x.pb.gz --engine=$engine -c 20000 -- "$TARGETS/exec_chain" 20 >/dev/null 2>err || killed=$((killed + 1))
	done
	is $killed 0 "$engine, a sample each 20 us: no image of 60 is killed"
done
countersink -q -o x.pb.gz --engine=signal -F 10000 -- "$TARGETS/exec_chain" 10 2000 shared >out 2>err
like "$?:$(cat out)" '^0:end of the chain' "signal: no image is killed while another process has the memory of the one before"
done_testing
