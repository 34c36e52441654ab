#!/bin/bash
# The reservation against PCP's own pmcd and pmdaperfevent: held, shared, lost, refused, and every way in which nobody
# answers.
. "$(dirname "$0")/lib.sh"

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

# ---- while it lasts
ok "the agent counts" is_active
start_hold one --require
confirmed "$(cat one.err)" "reserved and confirmed"
is "$(for _ in 1 2 3 4 5 6 7 8 9 10; do active; done | sort -u)" 0 "the agent counts nothing while the command runs"
is "$(countersink reserve -s | sed -n 's/^holders *//p')" "countersink ($holder)" "status names the holder"
like "$(countersink reserve -s)" "^agent +process $(agent_pid), running; has this lock file open$" "and the agent"
like "$(countersink reserve -s)" "^counting +0 events" "which counts nothing"
end_hold one "$holder"
is $? 7 "the command's own status"
comes_back "after the command"
like "$(countersink reserve -s)" "^counting +6 events|^counting +[1-9][0-9]* events" "status says so"
like "$(countersink reserve -s)" "^events .*pmdaperfevent \($(agent_pid)\), [1-9][0-9]* events \(the agent\)" "and who has events"

# Every answer that the command gets is 0, from its very first moment.
countersink reserve -t 20 -q --require sh -c 'for i in 1 2 3 4 5 6 7 8; do pmprobe -v perfevent.active; done' >out 2>err
is "$(sort -u out)" "perfevent.active 1 0" "confirmed before the command starts"
comes_back "again"

countersink -q -o run.pb.gz -e cycles --reserve=require -- sh -c 'pmprobe -v perfevent.active' >out 2>err
is "$? $(cat out)" "0 perfevent.active 1 0" "run reserves for hardware events"
comes_back "after run"
countersink -o run.pb.gz -e cycles true 2>err
confirmed "$(cat err)" "and its report says that it was confirmed"
like "$(cat err)" "; and still at the end" "at the end as well"
comes_back "again"
countersink stat -e cycles --reserve=require sh -c 'pmprobe -v perfevent.active' >out 2>err
is "$? $(cat out)" "0 perfevent.active 1 0" "stat reserves in the same way"
confirmed "$(cat err)" "and says that it was confirmed"
like "$(cat err)" "; and still at the end" "at the end as well"
comes_back "after stat"

# Attached to what runs already, until it is told to end.
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
confirmed "$(cat err)" "and its report says that it was confirmed"
like "$(cat err)" "; and still at the end" "at the end as well"
comes_back "after attach"
countersink attach -e cycles --reserve=require -o attach.pb.gz -p $burn -d 0.1 2>err
[ $? = 0 ] || like "$(cat err)" "^countersink: cycles: " "whose events are refused: says so"
comes_back "then, too"
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
like "$(cat err)" "did not stay reserved to the end: .*still counts" "or that it was lost on the way"
exec 9>&-
countersink -q -o run.pb.gz -e task-clock --reserve=require -- sh -c 'pmprobe -v perfevent.active' >out 2>err
like "$(cat out)" '^perfevent.active 1 [1-9]' "it does not for software events"
countersink -q -o run.pb.gz -e cycles --reserve=no -- sh -c 'pmprobe -v perfevent.active' >out 2>err
like "$(cat out)" '^perfevent.active 1 [1-9]' "nor with --reserve=no"

if [ "$(id -u)" != 0 ] || have setpriv; then
	unprivileged countersink reserve -t 20 --require sh -c 'pmprobe -v perfevent.active' >out 2>err
	is "$? $(cat out)" "0 perfevent.active 1 0" "an unprivileged user can do it"
	confirmed "$(cat err)" "with a confirmation"
	comes_back "after him"
	if [ "$(id -u)" = 0 ]; then
		like "$(unprivileged countersink reserve -s)" \
			"^agent +process [0-9]+, running; which of its files are open is not to be seen by this user" \
			"he is told what he cannot see"
		like "$(unprivileged countersink reserve -s)" "^unseen +[1-9][0-9]* of" "and how much of it"
	fi
else
	skip "an unprivileged user can do it" "there is no setpriv"
fi

# ---- several
start_hold first --require
one=$holder
start_hold second --require
two=$holder
like "$(cat second.err)" "with another holder before us: confirmed" "a second holder is told of the first"
end_hold first "$one"
is "$(for _ in 1 2 3 4 5 6 7 8; do active; done | sort -u)" 0 "when the first one ends the agent stays off"
"$PCP/usr/lib/pcp/pmdas/perfevent/perfalloc" &
other=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "^holders .*perfalloc ($0)"' $other
is $? 0 "perfalloc can share it, and status names it"
end_hold second "$two"
is "$(active)" 0 "and the agent stays off for it"
kill -INT $other
wait $other
comes_back "after the last"

# ---- however it ends
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
comes_back "KILL of the launcher, though the command lives"
ok "which it does" kill -0 "$(cat killed.up)"
echo go >killed.gate
countersink reserve -t 20 -d --require 2>err
is "$? $(active)" "0 0" "in the background"
kill -TERM "$(sed -n 's/.*process \([0-9]*\) holds it.*/\1/p' err)"
comes_back "TERM in the background"

# ---- nobody complies
kill -STOP "$(agent_pid)"
countersink reserve -t 0.5 true 2>err
is $? 0 "a stopped agent: the command runs"
like "$(cat err)" "reserved, without confirmation: PCP's perfevent agent \(process $(agent_pid)\) is stopped.* kill -CONT" "and it is said"
countersink reserve -t 0.5 --require touch was_run 2>err
is $? 1 "not with --require"
like "$(countersink reserve -s -t 0.5)" "^agent +process $(agent_pid), stopped" "status sees it"
like "$(countersink reserve -s -t 0.5)" "^counting +not known: " "and makes no zero of silence"
countersink -o run.pb.gz -e cycles --reserve-timeout=0.5 true 2>err
is $? 0 "run: the command runs"
like "$(cat err)" "is stopped" "and its report says why nothing is confirmed"
kill -CONT "$(agent_pid)"
comes_back "CONT"

rm "$LOCK"
countersink reserve -t 20 true 2>err
like "$(cat err)" "not reserved: there is no lock file" "a lock file that was deleted"
: >"$LOCK"
chmod 744 "$LOCK"
countersink reserve -t 0.5 true 2>err
is $? 0 "and made again: the command runs"
if [ "$(id -u)" = 0 ]; then
	like "$(cat err)" "still counts [1-9][0-9]* events: it has another file open than .*; restart it" "and it is said why it is in vain"
	like "$(countersink reserve -s)" "^agent .*has another file open than this one: restart it" "status sees it"
else
	like "$(cat err)" "still counts [1-9][0-9]* events" "and it is said"
fi
countersink reserve -t 0.5 --require touch was_run 2>err
is $? 1 "not with --require"
ok "nothing was run" test ! -e was_run

# The agent is started again in the middle, and looks at the new file.
"$AGENT" stop "$STATE"
rm "$LOCK"
"$AGENT" restart "$STATE"
start_hold held --require
rm "$LOCK"
"$AGENT" stop "$STATE"
"$AGENT" restart "$STATE"
end_hold held "$holder"
is $? 7 "an agent that comes back with another lock file does no harm to the command"
like "$(cat held.err)" "did not stay reserved to the end: .*still counts" "but it is seen, and said"
comes_back "with a new agent"

"$hold" "$LOCK" write <held.gate 2>err >out &
pid=$!
exec 8>held.gate
wait_until 20 grep -q locked out
countersink reserve -t 20 true 2>err
like "$(cat err)" "not reserved: another process holds a write lock" "a write lock"
exec 8>&-
wait $pid
if [ "$(id -u)" = 0 ] && have setpriv; then
	chmod 700 "$LOCK"
	unprivileged countersink reserve -t 20 --require true 2>err
	is $? 1 "a lock file that is not for this user"
	like "$(cat err)" "may not read the lock file" "is said to be"
	chmod 744 "$LOCK"
else
	skip "a lock file that is not for this user" "needs root to make one"
fi
comes_back "after the write lock"

kill -KILL "$(agent_pid)"
countersink reserve -t 20 true 2>err
like "$(cat err)" "PCP's pmcd has no perfevent agent that answers" "a dead agent"
countersink -q -o run.pb.gz -e cycles true 2>err
is "$? $(cat err)" "0 " "is no matter for run"
"$AGENT" stop "$STATE"
countersink reserve -t 20 true 2>err
like "$(cat err)" "nobody listens where PCP's pmcd should" "no pmcd"
countersink -o run.pb.gz -e cycles true 2>err
unlike "$(cat err)" "reserve" "says nothing in run"

start_agent "$TMP/idle" none
countersink reserve -t 20 true 2>err
like "$(cat err)" "agent has no events to count" "an agent without events"
countersink reserve -t 20 --require true 2>err
is $? 1 "is no confirmation"
countersink -o run.pb.gz -e cycles true 2>err
unlike "$(cat err)" "reserve" "and no matter for run"
"$AGENT" stop "$TMP/idle"

# ---- and afterwards all is well again
use_agent "$STATE"
"$AGENT" restart "$STATE"
countersink reserve -t 20 --require true 2>err
is $? 0 "a new agent complies"
confirmed "$(cat err)" "and is heard"
done_testing
