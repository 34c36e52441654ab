#!/bin/sh
# Threads that start, end, change signals and load objects at the same moment: a program ends as it does without the library.
. "$(dirname "$0")/lib.sh"

# run_races NAME WHAT TIMES [OPTION...]: nothing differs from the program alone.
run_races() {
	races_name=$1 races_what=$2 races_times=$3
	shift 3
	timeout 100 "$COUNTERSINK" --quiet -o p.pb.gz "$@" -- "$TARGETS/races" "$races_what" "$races_times" >out 2>err
	is "$?:$(cat out)" "0:done" "$races_name" || diag "$(cat err)"
}

run_races "a process exits while its threads end" ends 200
for races_engine in auto signal timer; do
	run_races "a process that blocks all signals gets them while its threads start (--engine=$races_engine)" \
		starts 20000 --engine=$races_engine -F 5000
done
run_races "a forked child gets a signal that is sent to it at once" children 200 --engine=signal -F 5000
run_races "threads that block all signals have none of the library's pending" traps 8
run_races "handlers stay as they are set while a thread changes its engine" actions 100
for races_engine in auto signal timer; do
	run_races "a signal that is let in by sigsuspend or the like ends that call (--engine=$races_engine)" \
		waits 20000 --engine=$races_engine -F 10000
	run_races "a system call that a sample interrupts together with a signal ends as the signal's SA_RESTART says (--engine=$races_engine)" \
		calls 2000 --engine=$races_engine -F 10000
done
run_races "threads that install seccomp filters at once are not killed" filters 200

# Where no signal can be queued the kernel sends SIGIO instead.
if have prlimit; then
	timeout 100 prlimit --sigpending=0 "$COUNTERSINK" --quiet -o p.pb.gz -- "$TARGETS/races" traps >out 2>err
	is "$?:$(cat out)" "0:done" "threads whose signals cannot be queued run on"
else
	skip "threads whose signals cannot be queued run on" "there is no prlimit"
fi

done_testing
