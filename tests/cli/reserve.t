#!/bin/bash
# countersink reserve, and the reservation of run, without a PCP agent: locks, exit statuses, signals, hooks, --status.
# tests/reserve tests it with PCP's own agent.
. "$(dirname "$0")/lib.sh"

unset PMCD_PORT
export PMCD_SOCKET=$TMP/no-such-socket PMCD_PORT=1 PCP_PMDAS_DIR=$TMP/pmdas COUNTERSINK_RESERVE_HOOKS=$TMP/hooks
lock=$PCP_PMDAS_DIR/perfevent/perflock
hold="$TARGETS/hold_lock"
mkdir -p "${lock%/*}"
: >"$lock"
chmod 744 "$lock"
set -m # background jobs with signals as a login shell leaves them

is_locked() {
	"$hold" "$lock" test
}
is_free() {
	! is_locked
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}
# start_holder read|write|wait: another process holds (or waits for) the lock until end_holder.
start_holder() {
	rm -f gate
	mkfifo gate
	"$hold" "$lock" "$1" <gate >held &
	holder=$!
	exec 8>gate
	[ "$1" = wait ] || wait_until 20 grep -q locked held
}
end_holder() {
	exec 8>&-
	wait "$holder"
}

# ---- what perfalloc(1) promises
is "$(countersink reserve -h | head -1)" "Usage: countersink reserve [OPTION]... [COMMAND [ARGUMENT]...]" "-h is help"
like "$(countersink reserve -v)" '^countersink [0-9]' "-v is the version"
countersink reserve -x >out 2>err
is "$? $(wc -c <out)" "1 0" "a wrong option: status 1"
countersink reserve -f "$TMP/missing" 2>err
is $? 1 "a missing lock file: status 1"
like "$(cat err)" 'there is no lock file .*missing' "a missing lock file is reported on stderr"
countersink reserve -d -f "$TMP/missing" 2>err
is $? 1 "-d with a missing lock file: status 1"
like "$(cat err)" 'there is no lock file .*missing' "-d reports a missing lock file on stderr"
start_holder write
countersink reserve 2>err
is $? 1 "a write lock: status 1"
like "$(cat err)" 'another process holds a write lock' "a write lock of another process is reported on stderr"
end_holder
countersink reserve ./nothing 2>err
is $? 1 "a command that is not there: status 1"
like "$(cat err)" 'cannot run ./nothing: No such file' "a command that cannot be executed is reported on stderr"
if [ "$(id -u)" != 0 ] || have setpriv; then
	chmod 700 "$lock"
	if [ "$(id -u)" = 0 ]; then
		unprivileged countersink reserve 2>err
		is $? 1 "a lock file that this user cannot read: status 1"
		like "$(cat err)" 'may not read the lock file .*chmod a\+r' "an unreadable lock file is reported with its remedy"
		unprivileged countersink reserve sh -c 'echo ran' >out 2>err
		is "$? $(cat out)" "0 ran" "an unreadable lock file: the command runs unreserved"
		like "$(cat err)" 'not reserved: .*may not read' "an unreadable lock file: the missing reservation is reported"
	else
		skip "a lock file that this user cannot read" "needs root to make one"
	fi
	chmod 744 "$lock"
else
	skip "a lock file that this user cannot read" "there is no setpriv"
fi
for signal in INT HUP TERM QUIT; do
	countersink reserve 2>err &
	pid=$!
	wait_until 20 is_locked
	is $? 0 "$signal: the lock is held before it"
	kill -$signal $pid
	wait $pid 2>/dev/null
	status=$?
	case $signal in
	INT | HUP) want=0 ;;
	*) want=$((128 + $(kill -l $signal))) ;;
	esac
	is $status $want "$signal: status $want"
	ok "$signal: the lock is released" is_free
done
(trap '' INT HUP && exec countersink reserve -q 2>err) &
pid=$!
wait_until 20 is_locked
kill -INT $pid
wait $pid
is $? 0 "INT ends reserve even if it was ignored, as in perfalloc"
countersink reserve -q 2>err &
pid=$!
wait_until 20 is_locked
kill -KILL $pid
wait $pid 2>/dev/null
ok "KILL releases the lock" is_free

# ---- in the background
countersink reserve -d 2>err
is $? 0 "-d returns 0"
pid=$(sed -n 's/.*process \([0-9]*\) holds the reservation.*/\1/p' err)
ok "-d prints the PID of the background process" test -n "$pid"
ok "-d: the background process holds the lock" is_locked
is "$(readlink "/proc/$pid/cwd")" / "-d: the background process works in /"
is "$(readlink "/proc/$pid/fd/1")" /dev/null "-d: the background process has stdout on /dev/null"
isnt "$(ps -o sid= -p "$pid" | tr -d ' ')" "$(ps -o sid= -p $$ | tr -d ' ')" "-d: the background process has its own session"
kill -TERM "$pid"
ok "TERM ends the background process" wait_until 20 has_ended "$pid"
ok "TERM of the background process releases the lock" is_free
(cd "${lock%/*}" && countersink reserve -d -f perflock 2>"$TMP/err")
is $? 0 "-d accepts a relative lock file"
ok "-d locks a relative lock file" is_locked
kill -INT "$(sed -n 's/.*process \([0-9]*\) holds the reservation.*/\1/p' err)"
ok "INT of the background process releases the lock" wait_until 20 is_free
countersink reserve -d -D 2>err &
pid=$!
wait_until 20 is_locked
ok "-d -D stays in the foreground" kill -0 $pid
kill -INT $pid
wait $pid
is $? 0 "-d -D ends with status 0 on INT"
countersink reserve -Dd -q 2>err
is "$? $(cat err)" "0 " "-Dd goes to the background, and -q prints nothing"
pid=$(countersink reserve -s | sed -n 's/^holders *countersink (\([0-9]*\))$/\1/p')
kill -TERM "$pid"
ok "--status prints the PID of the background process" wait_until 20 is_free

# ---- with a command
is "$(countersink reserve -q sh -c '"$1" "$2" test; echo $?' sh "$hold" "$lock" 2>err)" 0 "the lock is held while the command runs"
ok "the lock is released after the command" is_free
like "$(countersink reserve true 2>&1)" 'reserved, without confirmation: no process listens' "a reservation without confirmation is reported"
for status in 0 1 7 125; do
	countersink reserve -q sh -c "exit $status" 2>err
	is $? $status "the command's exit status $status is returned"
done
countersink reserve -q sh -c 'kill -TERM $$' 2>err
is $? 143 "the command's signal is returned as 128 + number"
is "$(countersink reserve -q sh -c 'echo -d "$@"' sh -D -v)" "-d -D -v" "options end at the command"
is "$(countersink reserve -q sh -c 'read -r children </proc/$$/task/$$/children; echo "[$children]"')" "[]" \
	"the command gets no child process that it did not start"
is "$(countersink reserve -q sh -c 'ls -l /proc/$$/fd | grep -c perflock')" 0 "the command does not inherit the lock file"
countersink reserve -q -- sh -c 'echo started >started; exec sleep 60' &
pid=$!
wait_until 20 test -s started
child=$(cat "/proc/$pid/task/$pid/children")
kill -TERM $pid
wait $pid
is $? 143 "TERM while a command runs: status 143"
ok "TERM is forwarded to the command" has_ended "${child%% *}"
rm -f started
countersink reserve -q -- sh -c 'echo started >started; exec sleep 60' &
pid=$!
wait_until 20 test -s started
child=$(cat "/proc/$pid/task/$pid/children")
kill -KILL $pid
wait $pid 2>/dev/null
ok "KILL of countersink releases the lock although the command still runs" is_free
ok "KILL of countersink leaves the command running" kill -0 "${child%% *}"
kill -KILL "${child%% *}"
countersink reserve --require touch was_run 2>err
is $? 1 "--require without an agent: status 1"
ok "--require without an agent does not run the command" test ! -e was_run
countersink reserve -f "$TMP/missing" sh -c 'echo ran' >out 2>err
is "$? $(cat out)" "0 ran" "without --require the command runs unreserved"
like "$(cat err)" 'not reserved: there is no lock file' "without --require the reason of the failed reservation is reported"

# ---- waiting
start_holder write
countersink reserve -w -t 0.05 2>err
is $? 1 "--wait ends at its --timeout"
countersink reserve -w sh -c 'echo ran' >out 2>err 8>&- &
pid=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "waiters .*countersink ($0) (have it open"' $pid
is $? 0 "--status lists a process that waits for the lock"
is "$(cat out)" "" "the command does not start while reserve waits"
end_holder
wait $pid
is "$? $(cat out)" "0 ran" "the command runs when the lock is released"
start_holder write
countersink reserve -w touch was_run 2>err 8>&- &
pid=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "waiters .*countersink ($0)"' $pid
kill -TERM $pid
wait $pid 2>/dev/null
is $? 143 "TERM ends the waiting: status 143"
ok "TERM while waiting: the command does not run" test ! -e was_run
countersink reserve -w 2>err 8>&- &
pid=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "waiters .*countersink ($0)"' $pid
kill -HUP $pid
wait $pid
is $? 0 "HUP ends the waiting without a command: status 0"
end_holder

# ---- hooks: without -t all of them together have one second, which is short for a busy machine
export COUNTERSINK_RESERVE_TIMEOUT=20 # of run, stat and attach
mkdir hooks
cat >hook <<'END'
#!/bin/sh
echo "${0##*/} $1 $COUNTERSINK_RESERVE_PID" >>"$HOOK_LOG"
END
chmod 755 hook
cp hook hooks/10-first
cp hook hooks/20-second
cp hook hooks/30-last.disabled
cp hook hooks/40-plain
chmod 644 hooks/40-plain
export HOOK_LOG=$TMP/log
countersink reserve -t 20 -q sh -c 'echo "command $PPID" >>"$HOOK_LOG"' 2>err
pid=$(sed -n 's/^command //p' log)
is "$(cat log)" "10-first reserve $pid
20-second reserve $pid
command $pid
20-second release $pid
10-first release $pid" "hooks run before and after the command, with the holder's PID"
rm log
sleep 100 &
target=$!
for event in cycles task-clock cycles,instructions; do
	countersink attach -q -e $event -d 0.1 -o /dev/null -p $target 2>err
done
is "$(grep -c ' reserve ' log) $(grep -c ' release ' log)" "4 4" "attach reserves for hardware events, and releases also when they cannot be opened"
kill $target
rm log
countersink reserve -t 20 -q 2>err &
pid=$!
wait_until 20 is_locked
kill -TERM $pid
wait $pid 2>/dev/null
is "$(grep -c release log)" 2 "release hooks run when TERM ends reserve"
rm log
countersink reserve -t 20 -q nothing-of-this-name 2>err
is "$(grep -c release log)" 2 "release hooks run when the command cannot be executed"
rm log
countersink reserve -t 20 --require touch was_run 2>err
is "$?, $(grep -c release log)" "0, 2" "--require is met by hooks where there is no agent"
rm -f was_run
cat >hooks/15-bad <<'END'
#!/bin/sh
printf 'no \033[31mway\nsecond line\n' >&2
exit 3
END
chmod 755 hooks/15-bad
rm log
countersink reserve -t 20 true 2>err
is $? 0 "a failing hook does not stop reserve"
like "$(cat err)" 'hook 15-bad reserve failed with status 3: no \\x1b\[31mway$' "a failing hook is reported, with its first line of output"
like "$(cat err)" 'hook 15-bad release failed with status 3' "a hook failing on release is reported"
is "$(grep -c . log)" 4 "the other hooks run although one fails"
countersink reserve -t 20 --require touch was_run 2>err
is "$?" 1 "with --require a failing hook is an error: status 1"
ok "with --require and a failing hook the command does not run" test ! -e was_run
cat >hooks/15-bad <<'END'
#!/bin/sh
[ "$1" = release ] && exit
sleep 61 &
echo $! >>"$HOOK_LOG.sleep"
wait
END
countersink reserve -t 0.2 true 2>err
is $? 0 "a hook that hangs is not waited for"
like "$(cat err)" 'hook 15-bad reserve did not end in time, and was killed' "a hook that hangs is killed and reported"
ok "the children of a killed hook are killed" wait_until 20 has_ended "$(cat log.sleep)"
printf '#!/bin/sh\nsleep 0.3 &\necho $! >>"$HOOK_LOG.sleep"\n' >hooks/15-bad
rm log.sleep
countersink reserve -t 20 -q true 2>err
is "$? $(cat err)" "0 " "a hook that leaves a daemon with its output open counts as ended"
printf '#!/bin/sh\nexec countersink reserve -t 20 -q true\n' >hooks/15-bad
rm log
is "$(countersink reserve -t 20 -q true 2>&1)" "" "a hook may run countersink"
is "$(grep -c . log)" 4 "countersink inside a hook runs no hooks"
rm hooks/15-bad
cp hook hooks/50-open
chmod 777 hooks/50-open
like "$(countersink reserve -t 20 true 2>&1)" 'hook 50-open is not run: other users can write it' "a hook that others may write is not run"
rm hooks/50-open log
mkdir open && chmod 777 open && cp hook open/hook && cp hook plain
ln -s ../open/hook hooks/50-way
like "$(countersink reserve -t 20 true 2>&1)" "hook 50-way is not run: other users can write $TMP/open, or own it" "a hook linked through a directory that others may write is not run"
rm hooks/50-way log
ln -s "$TMP/hooks/../plain" hooks/50-way
countersink reserve -t 20 -q true 2>err
is "$(cat err; grep -c 50-way log)" 2 "a hook whose path no other user can change is run"
rm hooks/50-way
mkdir open/hooks && cp hook open/hooks/50-hidden
rm log
like "$(countersink reserve -t 20 --reserve-hooks="$TMP/open/hooks" true 2>&1)" \
	"hooks in $TMP/open/hooks are not run: other users can write $TMP/open, or own it" "hooks below a directory that others may write are not run"
ln -s open/hooks way
like "$(countersink reserve -t 20 --reserve-hooks=way true 2>&1)" "hooks in way are not run: other users can write $TMP/open," "hooks reached by a link through such a directory are not run"
ok "none of the refused hooks ran" test ! -e log
chmod 1777 open
countersink reserve -t 20 -q --reserve-hooks=way true 2>err
is "$(cat err; grep -c 50-hidden log)" 2 "hooks in a sticky directory are run: others cannot replace them"
rm -r open way log plain
chmod 777 hooks
like "$(countersink reserve -t 20 true 2>&1)" 'hooks in .*/hooks are not run: other users can write that directory' "hooks in a directory that others may write are not run"
ok "no hook of a directory that others may write ran" test ! -e log
chmod 755 hooks
is "$(countersink reserve -t 20 -q --reserve-hooks="$TMP/none" true 2>&1)" "" "a missing hook directory means no hooks"

# ---- run
rm -f log
is "$(countersink -q -e task-clock --reserve=require echo ran 2>err)" ran "software events need no reservation"
ok "software events run no hooks" test ! -e log
rm -rf hooks
is "$(countersink -q -e cycles echo ran 2>err)" ran "hardware events are reserved"
is "$(countersink -q -e cycles sh -c '"$1" "$2" test; echo $?' sh "$hold" "$lock" 2>err)" 0 "run holds the lock while the command runs"
ok "run releases the lock after the command" is_free
is "$(countersink -q --reserve=no -e cycles sh -c '"$1" "$2" test; echo $?' sh "$hold" "$lock" 2>err)" 1 "--reserve=no takes no lock"
rm "$lock"
countersink -e cycles true 2>err
unlike "$(cat err)" 'reserve' "run without an agent reports nothing about reservation"
countersink -e cycles --reserve=require touch was_run 2>err
status=$?
if grep -q "hardware counters are" err; then
	is $status 125 "--reserve=require without an agent, and without a PMU that has room: status 125"
	ok "--reserve=require without an agent or a free PMU: the command does not run" test ! -e was_run
	like "$(cat err)" "the command was not run" "--reserve=require: that the command was not run is reported"
else
	is $status 0 "--reserve=require without an agent: the PMU has room"
fi
rm -f was_run
: >"$lock"
start_holder write
countersink -q -e cycles --reserve=require touch was_run 2>err
is $? 125 "--reserve=require and a write lock: status 125"
like "$(cat err)" 'write lock' "--reserve=require: a write lock is reported"
ok "--reserve=require and a write lock: the command does not run" test ! -e was_run
countersink -e cycles echo ran >out 2>err
is "$? $(cat out)" "0 ran" "--reserve=auto and a write lock: the command runs"
like "$(cat err)" 'not reserved: another process holds a write lock' "--reserve=auto: the report names the write lock"
end_holder
countersink --reserve-timeout=0 true 2>err
is $? 125 "--reserve-timeout=0 is refused"
like "$(cat err)" "'0' is not a time in seconds above 0" "--reserve-timeout=0 is reported on stderr"
mkdir hooks
printf '#!/bin/sh\necho "$1" >>"$HOOK_LOG"\n' >hooks/only
chmod 755 hooks/only
countersink -q -e cycles true 2>err
is "$(tr '\n' ' ' <log)" "reserve release " "run runs the hooks"
printf '#!/bin/sh\necho "$1" >>"$HOOK_LOG"; [ $1 = release ] || sleep 60\n' >hooks/only
rm log
countersink -q -e cycles --reserve-timeout 30 touch was_run 2>err &
pid=$!
wait_until 20 test -s log
kill -TERM $pid
wait $pid 2>/dev/null
is $? 143 "TERM during the reservation ends run"
is "$(tr '\n' ' ' <log)" "reserve release " "TERM during the reservation runs the release hook"
ok "TERM during the reservation: the command does not run" test ! -e was_run
# ---- stat makes the same reservation
rm -f log was_run
printf '#!/bin/sh\necho "$1" >>"$HOOK_LOG"\n' >hooks/only
countersink stat -e cycles sh -c '"$1" "$2" test; echo "locked $?" >>"$HOOK_LOG"' sh "$hold" "$lock" 2>err
is "$(tr '\n' ' ' <log)" "reserve locked 0 release " "stat: the lock is held while the command runs, between the hooks"
ok "stat: the lock is released after the command" is_free
like "$(cat err)" 'hardware counters are (free|reserved): .*no process listens where' "stat: what the free counters are concluded from is reported"
unlike "$(cat err)" 'free: .*does not open' "stat: an event that cannot be opened is not reported as a free counter"
rm log
countersink stat -r 3 -e cycles true 2>err
is "$(tr '\n' ' ' <log)" "reserve release " "stat: one reservation covers all runs of a series"
rm log
countersink stat -e task-clock --reserve=require true 2>err
is "$?" 0 "stat: software events need no reservation"
ok "stat: software events run no hooks" test ! -e log
countersink stat -e cycles --reserve=no sh -c '"$1" "$2" test; echo "locked $?" >>"$HOOK_LOG"' sh "$hold" "$lock" 2>err
is "$(cat log)" "locked 1" "stat: --reserve=no takes no lock"
printf '#!/bin/sh\necho in the way >&2; exit 3\n' >hooks/only
countersink stat -e cycles true 2>err
is $? 0 "stat: a failing hook does not stop stat"
like "$(cat err)" 'hook only reserve failed with status 3: in the way' "stat: a failing hook is reported"
countersink stat -e cycles --reserve=require touch was_run 2>err
is $? 125 "stat: with --reserve=require a failing hook is an error: status 125"
like "$(cat err)" 'hook only reserve failed with status 3: in the way' "stat: --reserve=require reports the failing hook"
ok "stat: --reserve=require and a failing hook: the command does not run" test ! -e was_run
rm -rf hooks
start_holder write
countersink stat -e cycles --reserve=require touch was_run 2>err
is $? 125 "stat: --reserve=require and a write lock: status 125"
like "$(cat err)" 'write lock.*the command was not run' "stat: --reserve=require reports the write lock"
ok "stat: --reserve=require and a write lock: the command does not run" test ! -e was_run
end_holder
rm -f started
countersink stat -e cycles sh -c 'echo $$ >started; exec sleep 60' 2>err &
pid=$!
wait_until 20 test -s started
ok "stat: the lock is held before KILL" is_locked
kill -KILL $pid
wait $pid 2>/dev/null
ok "KILL of stat releases the lock" is_free
kill -KILL "$(cat started)"

# ---- status
is "$(countersink reserve -s | sed -n 's/^holders *//p')" none "--status reports that no process holds the lock"
start_holder read
like "$(countersink reserve -s)" "^holders +hold_lock \($holder\)$" "--status names the holder"
exec 7>&8 # start_holder uses them again
reader=$holder
mkfifo gate2
"$hold" "$lock" wait <gate2 >held2 7>&- 8>&- &
waiter=$!
exec 6>gate2
wait_until 20 sh -c 'countersink reserve -s | grep -q "^waiters .*process $0"' $waiter
is $? 0 "--status names a waiting process"
exec 6>&- 7>&- 8>&-
wait $reader $waiter
# A real agent may run on this machine; it uses another lock file.
agent=$(pgrep -x pmdaperfevent | head -n 1)
if [ -z "$agent" ]; then
	like "$(countersink reserve -s)" '^agent +no process found' "--status reports that no agent runs"
else
	like "$(countersink reserve -s)" "^agent .*$agent" "--status names an agent that runs on this machine"
fi
like "$(countersink reserve -s)" '^counting +not known: no process listens' "--status reports an unknown counting state, not 0"
like "$(countersink reserve -s)" '^unseen +[0-9]+ of [0-9]+ other processes could not be inspected' "--status reports the number of processes not inspected"
if have python3; then
	start_holder read
	countersink reserve --status --json >json
	ok "--status --json prints valid JSON" python3 -c 'import json, sys
d = json.load(open("json"))
assert d["locked"] and not d["write_locked"], d
assert [p["pid"] for p in d["processes"] if p["holds"] == "read"] == [int(sys.argv[1])], d
assert d["agent"]["active"] is None, d
assert d["agent"]["pid"] is None or len(sys.argv) > 2, d
assert isinstance(d["nr_not_inspected"], int)' "$holder" $agent
	end_holder
	if [ "$(id -u)" = 0 ] && have setpriv; then
		chmod 700 "$lock"
		unprivileged countersink reserve --status --json >json
		ok "--status --json: unreadable values are null" python3 -c 'import json
d = json.load(open("json"))
assert d["locked"] is None and d["lock_file_error"] == "Permission denied", d
assert d["nr_not_inspected"] > 0, d'
		chmod 744 "$lock"
		start_holder read
		like "$(unprivileged countersink reserve -s)" '^holders +another process, for reading; not visible' \
			"--status does not name a holder that this user cannot see"
		end_holder
	else
		skip "--status --json: unreadable values are null" "needs root, to become another user"
	fi
else
	skip "--status --json prints valid JSON" "there is no python3 to read it"
fi
countersink reserve --json 2>err
is $? 1 "--json without --status is refused"
countersink reserve -s true 2>err
is $? 1 "--status with a command is refused"
countersink reserve -e nonsense true 2>err
is $? 1 "an unknown event is refused"
countersink reserve -e task-clock true 2>err
is $? 1 "an event that needs no reservation is refused"
like "$(cat err)" "needs no reservation" "the refused event that needs no reservation is reported"
done_testing
