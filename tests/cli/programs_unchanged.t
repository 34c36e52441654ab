#!/bin/sh
# Programs that look closely at their surroundings print the same with us as without us, and end the same.
. "$(dirname "$0")/lib.sh"

# same NAME COMMAND...
same() {
	same_name=$1
	shift
	"$@" >plain.out 2>plain.err 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
	same_status=$?
	"$COUNTERSINK" -q -o same.pb.gz -- "$@" >ours.out 2>ours.err 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
	is $? $same_status "$same_name: same status"
	ok "$same_name: same output" diff plain.out ours.out
	# The shell says how plain.err's command died; countersink's own parent says it, not countersink.
	sed -i '/^\(Aborted\|Killed\)/d' plain.err
	ok "$same_name: same words on stderr" diff plain.err ours.err
}

same "signals of its own" "$TARGETS/own_signals"
same "file descriptors" "$TARGETS/fdcheck"
same "signal masks" "$TARGETS/sigmask"
same "signal masks under nohup" nohup "$TARGETS/sigmask"
same "processes" "$TARGETS/forks" 20
same "exec chain" "$TARGETS/exec_chain" 50 500
same "short threads" "$TARGETS/shortthreads" 400 50
same "sleep" "$TARGETS/sleepy" 100
same "system calls" "$TARGETS/raw_syscalls" 50
same "threads" "$TARGETS/threads8" 20
same "C++" "$TARGETS/throwcc" 30
same "Rust" "$TARGETS/rusty" 30
for way in return exit _exit exit_group quick_exit thread_exit abort kill; do
	same "$way" "$TARGETS/exits" $way 20
done
# shellcheck disable=SC2016 # the inner shell expands it
same "a pipeline in a shell" sh -c 'seq 20000 | sort -rn | head -n 3; echo $?'
same "an environment without anything" env -i "$TARGETS/burn" 20
done_testing
