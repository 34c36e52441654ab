#!/bin/bash
# Under a seccomp filter that was there before, and that kills for what we call: the command never dies of us.
. "$(dirname "$0")/lib.sh"

caged() { # calls command...
	"$TARGETS/static_cage" kill "$@"
}

"$TARGETS/guest_memory" work >plain
for call in prctl fcntl ftruncate getdents64 perf_event_open,timer_create; do
	caged $call countersink -o p.pb.gz -- "$TARGETS/guest_memory" work >out 2>err
	is $? 5 "where $call is deadly, the command ends as ever"
	is "$(cat out)" "$(cat plain)" "having done its work"
	like "$(cat err)" '^countersink: a seccomp filter kills for '"${call%%,*}"', which profiling takes: .* runs without being profiled' \
		"and the reason why it is not profiled is said"
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=p2.pb.gz caged $call "$TARGETS/guest_memory" work >out 2>err
	is $? 5 "so without a launcher"
	is "$(cat out)" "$(cat plain)" "which does its work"
	is "$(cat err)" "countersink: the program runs without being profiled: it runs under a seccomp filter that kills for ${call%%,*}" \
		"and says so"
done
is "$(find . -name '*.pb.gz*')" "" "no profile is made"

# Filters that the program installs itself, one for each call. Some of what it does is punished alone as well.
"$TARGETS/confined_calls" >plain
"$TARGETS/confined_calls" bus >plain_bus
for engine in sigtrap signal timer; do
	countersink --engine=$engine -q -o c.pb.gz -- "$TARGETS/confined_calls" >out 2>err
	is "$(diff plain out)" "" "engine $engine: whatever call a filter kills for, it kills no more than without us"
done
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=c2.pb.gz "$TARGETS/confined_calls" >out 2>err
is "$(diff plain out)" "" "so without a launcher"
countersink -q -o c.pb.gz -- "$TARGETS/confined_calls" bus >out 2>err
is "$(diff plain_bus out)" "" "and SIGBUS ends the program as ever"
rm -f c.pb.gz* c2.pb.gz*

caged prctl countersink -- ./nothing 2>err
is $? 127 "a command that is not there is told as ever"
like "$(cat err)" './nothing: No such file' "with its name"

caged perf_event_open countersink -o p.pb.gz -- "$TARGETS/guest_memory" work >out 2>err
is $? 5 "where perf_event_open is deadly, the command ends as ever"
like "$(cat err)" 'engine +timer.*kills for perf_event_open' "sampled by timers"
like "$(cat err)" 'warning +a seccomp filter .* kills for perf_event_open: not called' "which is said"
like "$(countersink report p.pb.gz)" ' spin' "and has its profile"

# A process that was not there before, nobody may learn of.
caged perf_event_open env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=p3.pb.gz sh -c 'wait; echo none; (exit 3); echo $?' >out
is "$(cat out)" "none
3" "the children that try are nobody's"

done_testing
