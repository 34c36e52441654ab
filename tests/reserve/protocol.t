#!/bin/bash
# The reservation against PCP's own pmcd and pmdaperfevent: held, shared, lost, refused, and every case in which no agent
# answers.
. "$(dirname "$0")/reserve_lib.sh"

export COUNTERSINK_RESERVE_HOOKS=$TMP/hooks COUNTERSINK_RESERVE_TIMEOUT=20
hold=$TARGETS/hold_lock
set -m
start_agent "$STATE"

# confirmed LINE NAME
confirmed() {
	like "$1" "the hardware counters are reserved: PCP's perfevent agent counts nothing now, .*: confirmed [0-9.]+ ms after the lock" "$2"
}
is_idle() {
	[ "$(active)" = 0 ]
}
comes_back() {
	ok "$1: the agent counts again" wait_until 20 is_active
}
# start_hold NAME OPTION...: countersink reserve with a command that waits for end_hold.
start_hold() {
	hold_name=$1
	shift
	rm -f "$hold_name.gate" "$hold_name.up"
	mkfifo "$hold_name.gate"
	countersink reserve -t 20 "$@" sh -c "echo \$\$ >$hold_name.up; read -r line <$hold_name.gate; exit 7" 2>"$hold_name.err" &
	holder=$!
	wait_until 20 test -s "$hold_name.up" || diag "does not come up: $(cat "$hold_name.err")"
}
end_hold() { # NAME PID
	echo go >"$1.gate"
	wait "$2"
}

# ---- while the reservation lasts
ok "the agent counts" is_active
start_hold one --require
confirmed "$(cat one.err)" "--require: the reservation is confirmed"
is "$(for _ in 1 2 3 4 5 6 7 8 9 10; do active; done | sort -u)" 0 "the agent counts nothing while the command runs"
is "$(countersink reserve -s | sed -n 's/^holders *//p')" "countersink ($holder)" "status names the holder"
like "$(countersink reserve -s)" "^agent +process $(agent_pid), running; has this lock file open$" "status names the agent"
like "$(countersink reserve -s)" "^counting +0 events" "status reports that the agent counts nothing"
end_hold one "$holder"
is $? 7 "the command's status is returned"
comes_back "after the command"
like "$(countersink reserve -s)" "^counting +6 events|^counting +[1-9][0-9]* events" "status reports that the agent counts again"
like "$(countersink reserve -s)" "^events .*pmdaperfevent \($(agent_pid)\), [1-9][0-9]* events \(the agent\)" "status names the processes that have events"

# Every answer that the command gets is 0, from its start.
countersink reserve -t 20 -q --require sh -c 'for i in 1 2 3 4 5 6 7 8; do pmprobe -v perfevent.active; done' >out 2>err
is "$(sort -u out)" "perfevent.active 1 0" "the reservation is confirmed before the command starts"
comes_back "after a confirmed command"

countersink -q -o run.pb.gz -e cycles --reserve=require -- sh -c 'pmprobe -v perfevent.active' >out 2>err
is "$? $(cat out)" "0 perfevent.active 1 0" "run reserves for hardware events"
comes_back "after run"
countersink -o run.pb.gz -e cycles true 2>err
confirmed "$(cat err)" "run's report has the confirmation"
like "$(cat err)" "; and still at the end" "run's report has the confirmation at the end"
comes_back "after a second run"
countersink stat -e cycles --reserve=require sh -c 'pmprobe -v perfevent.active' >out 2>err
is "$? $(cat out)" "0 perfevent.active 1 0" "stat reserves in the same way"
confirmed "$(cat err)" "stat reports the confirmation"
like "$(cat err)" "; and still at the end" "stat reports the confirmation at the end"
comes_back "after stat"

# Attached to a running program, until a signal ends attach.
"$TARGETS/burn" 1000000 >/dev/null 2>&1 &
burn=$!
countersink attach -e cycles,task-clock --reserve=require -o attach.pb.gz -p $burn 2>err &
attached=$!
wait_until 30 grep -q 'Ctrl-C ends it' err || diag "$(cat err)"
is "$(for _ in 1 2 3 4 5; do active; done | sort -u)" 0 "the agent counts nothing while attach does"
is "$(countersink reserve -s | sed -n 's/^holders *//p')" "countersink ($attached)" "status names attach as the holder"
kill -INT $attached
wait $attached
is $? 0 "attach reserves in the same way"
confirmed "$(cat err)" "attach's report has the confirmation"
like "$(cat err)" "; and still at the end" "attach's report has the confirmation at the end"
comes_back "after attach"
countersink attach -e cycles --reserve=require -o attach.pb.gz -p $burn -d 0.1 2>err
[ $? = 0 ] || like "$(cat err)" "^countersink: cycles: " "attach reports an event that it cannot open"
comes_back "after attach with a refused event"
countersink attach -e cycles,task-clock --reserve=require -q -o attach.pb.gz -p $burn 2>err &
attached=$!
wait_until 30 is_idle
kill -KILL $attached
wait $attached 2>/dev/null
comes_back "after attach was killed"
kill -KILL $burn
wait $burn 2>/dev/null

mkfifo gate
exec 9<>gate
countersink -o run.pb.gz -e cycles sh -c 'echo up >run.up; read -r line' <gate 2>err &
pid=$!
wait_until 20 test -s run.up
rm "$LOCK"
"$AGENT" stop "$STATE"
"$AGENT" restart "$STATE"
echo go >&9
wait $pid
like "$(cat err)" "did not stay reserved to the end: .*still counts" "a reservation lost during the run is reported"
exec 9>&-
countersink -q -o run.pb.gz -e task-clock --reserve=require -- sh -c 'pmprobe -v perfevent.active' >out 2>err
like "$(cat out)" '^perfevent.active 1 [1-9]' "software events are not reserved"
countersink -q -o run.pb.gz -e cycles --reserve=no -- sh -c 'pmprobe -v perfevent.active' >out 2>err
like "$(cat out)" '^perfevent.active 1 [1-9]' "--reserve=no reserves nothing"

if [ "$(id -u)" != 0 ] || have setpriv; then
	unprivileged countersink reserve -t 20 --require sh -c 'pmprobe -v perfevent.active' >out 2>err
	is "$? $(cat out)" "0 perfevent.active 1 0" "an unprivileged user can reserve"
	confirmed "$(cat err)" "an unprivileged user's reservation is confirmed"
	comes_back "after an unprivileged user"
	if [ "$(id -u)" = 0 ]; then
		like "$(unprivileged countersink reserve -s)" \
			"^agent +process [0-9]+, running; its open files are not visible to this user" \
			"status reports that an unprivileged user cannot see the agent's files"
		like "$(unprivileged countersink reserve -s)" "^unseen +[1-9][0-9]* of" "status reports the number of processes not inspected"
	fi
else
	skip "an unprivileged user can reserve" "there is no setpriv"
fi

# ---- several holders
start_hold first --require
one=$holder
start_hold second --require
two=$holder
like "$(cat second.err)" "with another holder before us: confirmed" "a second holder's report names the first"
end_hold first "$one"
is "$(for _ in 1 2 3 4 5 6 7 8; do active; done | sort -u)" 0 "the agent stays off when the first of two holders ends"
"$PCP/usr/lib/pcp/pmdas/perfevent/perfalloc" &
other=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "^holders .*perfalloc ($0)"' $other
is $? 0 "perfalloc can share the reservation, and status names it"
end_hold second "$two"
is "$(active)" 0 "the agent stays off while perfalloc holds the lock"
kill -INT $other
wait $other
comes_back "after the last holder"

# ---- every end of a reservation
for signal in INT HUP TERM KILL; do
	countersink reserve -t 20 2>"$signal.err" &
	pid=$!
	wait_until 20 grep -q confirmed "$signal.err"
	is "$(active)" 0 "$signal: reserved in the foreground"
	kill -$signal $pid
	wait $pid 2>/dev/null
	comes_back "$signal"
done
start_hold killed
kill -KILL "$holder"
wait "$holder" 2>/dev/null
comes_back "KILL of the launcher while the command runs"
ok "KILL of the launcher leaves the command running" kill -0 "$(cat killed.up)"
echo go >killed.gate
countersink reserve -t 20 -d --require 2>err
is "$? $(active)" "0 0" "-d: the reservation is confirmed in the background"
kill -TERM "$(sed -n 's/.*process \([0-9]*\) holds the reservation.*/\1/p' err)"
comes_back "TERM in the background"

# ---- the agent does not react
kill -STOP "$(agent_pid)"
countersink reserve -t 0.5 true 2>err
is $? 0 "a stopped agent: the command runs"
like "$(cat err)" "reserved, without confirmation: PCP's perfevent agent \(process $(agent_pid)\) is stopped.* kill -CONT" "a stopped agent is reported with its remedy"
countersink reserve -t 0.5 --require touch was_run 2>err
is $? 1 "a stopped agent with --require: status 1"
like "$(countersink reserve -s -t 0.5)" "^agent +process $(agent_pid), stopped" "status reports a stopped agent"
like "$(countersink reserve -s -t 0.5)" "^counting +not known: " "status reports an unknown count of a stopped agent, not 0"
countersink -o run.pb.gz -e cycles --reserve-timeout=0.5 true 2>err
is $? 0 "run with a stopped agent: the command runs"
like "$(cat err)" "is stopped" "run's report names the stopped agent"
kill -CONT "$(agent_pid)"
comes_back "CONT"

rm "$LOCK"
countersink reserve -t 20 true 2>err
like "$(cat err)" "not reserved: there is no lock file" "a deleted lock file is reported"
: >"$LOCK"
chmod 744 "$LOCK"
countersink reserve -t 0.5 true 2>err
is $? 0 "a lock file created again: the command runs"
if [ "$(id -u)" = 0 ]; then
	like "$(cat err)" "still counts [1-9][0-9]* events: it has a different file open than .*; restart it" "a lock file created again is reported with its remedy"
	like "$(countersink reserve -s)" "^agent .*has a different file open: restart it" "status reports that the agent has a different file open"
else
	like "$(cat err)" "still counts [1-9][0-9]* events" "a lock file created again: that the agent counts on is reported"
fi
countersink reserve -t 0.5 --require touch was_run 2>err
is $? 1 "a lock file created again with --require: status 1"
ok "a lock file created again with --require: the command does not run" test ! -e was_run

# The agent is restarted during the reservation, and uses the new file.
"$AGENT" stop "$STATE"
rm "$LOCK"
"$AGENT" restart "$STATE"
start_hold held --require
rm "$LOCK"
"$AGENT" stop "$STATE"
"$AGENT" restart "$STATE"
end_hold held "$holder"
is $? 7 "an agent restarted with another lock file: the command's status is returned"
like "$(cat held.err)" "did not stay reserved to the end: .*still counts" "an agent restarted with another lock file: the lost reservation is reported"
comes_back "with a new agent"

"$hold" "$LOCK" write <held.gate 2>err >out &
pid=$!
exec 8>held.gate
wait_until 20 grep -q locked out
countersink reserve -t 20 true 2>err
like "$(cat err)" "not reserved: another process holds a write lock" "a write lock is reported"
exec 8>&-
wait $pid
if [ "$(id -u)" = 0 ] && have setpriv; then
	chmod 700 "$LOCK"
	unprivileged countersink reserve -t 20 --require true 2>err
	is $? 1 "an unreadable lock file with --require: status 1"
	like "$(cat err)" "may not read the lock file" "an unreadable lock file is reported"
	chmod 744 "$LOCK"
else
	skip "an unreadable lock file" "needs root to make one"
fi
comes_back "after the write lock"

kill -KILL "$(agent_pid)"
countersink reserve -t 20 true 2>err
like "$(cat err)" "PCP's pmcd has no perfevent agent that answers" "a dead agent is reported"
countersink -q -o run.pb.gz -e cycles true 2>err
is "$? $(cat err)" "0 " "run with a dead agent prints nothing"
"$AGENT" stop "$STATE"
countersink reserve -t 20 true 2>err
like "$(cat err)" "no process listens where PCP's pmcd should" "a missing pmcd is reported"
countersink -o run.pb.gz -e cycles true 2>err
unlike "$(cat err)" "reserve" "run without pmcd reports nothing about reservation"

start_agent "$TMP/idle" none
countersink reserve -t 20 true 2>err
like "$(cat err)" "agent has no events to count" "an agent without events is reported"
countersink reserve -t 20 --require true 2>err
is $? 1 "an agent without events with --require: status 1"
countersink -o run.pb.gz -e cycles true 2>err
unlike "$(cat err)" "reserve" "run with an agent without events reports nothing about reservation"
"$AGENT" stop "$TMP/idle"

# ---- a new agent
use_agent "$STATE"
"$AGENT" restart "$STATE"
countersink reserve -t 20 --require true 2>err
is $? 0 "a new agent: the reservation succeeds"
confirmed "$(cat err)" "a new agent: the reservation is confirmed"
done_testing
