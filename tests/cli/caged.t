#!/bin/bash
# Under an earlier seccomp filter that kills for calls of ours: the command is never killed because of us.
. "$(dirname "$0")/lib.sh"

caged() { # calls command...
	"$TARGETS/static_cage" kill "$@"
}

"$TARGETS/guest_memory" work >plain
for call in prctl fcntl ftruncate getdents64 perf_event_open,timer_create; do
	caged $call countersink -o p.pb.gz -- "$TARGETS/guest_memory" work >out 2>err
	is $? 5 "a filter that kills for $call: the command keeps its status"
	is "$(cat out)" "$(cat plain)" "a filter that kills for $call: the command does its work"
	like "$(cat err)" '^countersink: a seccomp filter kills processes that call '"${call%%,*}"', which profiling needs: .* runs without being profiled' \
		"a filter that kills for $call: the reason for not profiling is reported"
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=p2.pb.gz caged $call "$TARGETS/guest_memory" work >out 2>err
	is $? 5 "a filter that kills for $call, without a launcher: the program keeps its status"
	is "$(cat out)" "$(cat plain)" "a filter that kills for $call, without a launcher: the program does its work"
	is "$(cat err)" "countersink: the program runs without being profiled: a seccomp filter kills processes that call ${call%%,*}" \
		"a filter that kills for $call, without a launcher: the reason for not profiling is reported"
done
is "$(find . -name '*.pb.gz*')" "" "filters that kill for needed calls: no profile is made"

# Filters that the program installs itself, one for each call. Some of its own calls are killed without us as well.
"$TARGETS/confined_calls" >plain
"$TARGETS/confined_calls" bus >plain_bus
for engine in sigtrap signal timer; do
	countersink --engine=$engine -q -o c.pb.gz -- "$TARGETS/confined_calls" >out 2>err
	is "$(diff plain out)" "" "engine $engine: filters of the program kill no more calls than without us"
done
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=c2.pb.gz "$TARGETS/confined_calls" >out 2>err
is "$(diff plain out)" "" "without a launcher filters of the program kill no more calls than without us"
countersink -q -o c.pb.gz -- "$TARGETS/confined_calls" bus >out 2>err
is "$(diff plain_bus out)" "" "under countersink SIGBUS ends the confined program as without us"
"$TARGETS/confined_calls" masks >plain
countersink -q -o c.pb.gz -- "$TARGETS/confined_calls" masks >out 2>err
is "$(diff plain out)" "" "a filter installed before signals are masked kills no more calls than without us"
"$TARGETS/confined_calls" signals >plain
for engine in sigtrap signal timer; do
	countersink --engine=$engine -q -o c.pb.gz -- "$TARGETS/confined_calls" signals >out 2>err
	is "$(diff plain out)" "" "engine $engine: a filter installed before pending signals arrive kills no more calls than without us"
done
rm -f c.pb.gz* c2.pb.gz*

caged prctl countersink -- ./nothing 2>err
is $? 127 "a missing command under a filter that kills for prctl: status 127"
like "$(cat err)" './nothing: No such file' "a missing command under a filter that kills for prctl is named"

caged perf_event_open countersink -o p.pb.gz -- "$TARGETS/guest_memory" work >out 2>err
is $? 5 "a filter that kills for perf_event_open: the command keeps its status"
like "$(cat err)" 'engine +timer.*kills processes that call perf_event_open' "a filter that kills for perf_event_open: samples come by timers"
like "$(cat err)" 'warning +an? .*seccomp filter kills processes that call perf_event_open: not called' "a filter that kills for perf_event_open: the call left out is reported"
like "$(countersink report p.pb.gz)" ' spin' "a filter that kills for perf_event_open: the profile has samples"

# The program must not see the child processes that try a call.
caged perf_event_open env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=p3.pb.gz sh -c 'wait; echo none; (exit 3); echo $?' >out
is "$(cat out)" "none
3" "the program sees no child of ours that tries a call"

done_testing
