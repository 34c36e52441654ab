#!/bin/bash
# Many threads: alive at once, and one after another. All are counted, their time adds up, and no memory grows without end.
. "$(dirname "$0")/lib.sh"
alive=${MANYTHREADS_ALIVE:-2000}
sequence=${MANYTHREADS_SEQUENCE:-5000}

check() { # NAME ALIVE SEQUENCE
	timeout -s KILL 300 countersink -o m.pb.gz -- "$TARGETS/manythreads" "$2" "$3" >out 2>err
	is "$? $(cat out)" "0 alive at once $2, one after another $3" "$1: the threads run"
	like "$(head -n 1 err)" " $(($2 + $3 + 1)) threads" "$1: all are in the report"
	unlike "$(cat err)" 'could not be sampled' "$1: every one was sampled"
	unlike "$(cat err)" 'no room left' "$1: the recording has room for them"
	like "$("$SRC/tests/cli/profile_facts" m.pb.gz)" "cum [0-9]{7,} (alive|sequence)" \
		"$1: what they were started for has their time"
}
check "alive at once" "$alive" 0
check "one after another" 0 "$sequence"

# RLIMIT_NOFILE leaves no room for an fd for each thread: none is needed.
(ulimit -n 64 && exec timeout -s KILL 100 countersink -o f.pb.gz -- "$TARGETS/manythreads" 300 0) >out 2>err
is "$? $(cat out)" "0 alive at once 300, one after another 0" "300 threads with 64 fds run"
unlike "$(cat err)" 'could not be sampled' "300 threads with 64 fds are all sampled"

# The CPU time of a thread that lives when the process ends is known, also where it leaves nothing to add to its samples.
left() { # NAME MS OPTION...
	name=$1 ms=$2
	shift 2
	countersink -o l.pb.gz "$@" -- "$TARGETS/left_thread" "$ms" >out 2>err
	is "$?:$(cat out)" "0:" "$name: the program runs"
	unlike "$(cat err)" 'that pthread_create did not make' "$name: its thread is one that pthread_create made"
}
left "no engine" 1200 --engine=none
left "no sample for more than a second" 1200 -e task-clock -c 5000000000
left "samples" 200

# On a slow machine, what the library needs to start is no thread's that is unknown.
LD_PRELOAD="$TARGETS/slow_malloc.so $LIB" COUNTERSINK_REPORT=1 COUNTERSINK_OUTPUT=slow.pb.gz "$TARGETS/burn" 30 >out 2>err
is "$?:$(grep -c '^burn ' out)" 0:1 "a program runs in which the library starts slowly"
like "$(cat err)" '^([5-9][0-9]|[0-9]{3,})\.[0-9]* ms of CPU time|^[0-9.]+ s of CPU time' "the start takes longer than the program, which needs less than 50 ms"
unlike "$(cat err)" 'that pthread_create did not make' "a slow start is not taken for a thread that pthread_create did not make"
done_testing
