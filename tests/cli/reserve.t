#!/bin/bash
# countersink reserve, and the reservation of run, where no agent answers: locks, statuses, signals, hooks, status. With
# PCP's own agent it is tested by tests/reserve.
. "$(dirname "$0")/lib.sh"

unset PMCD_PORT
export PMCD_SOCKET=$TMP/nobody PMCD_PORT=1 PCP_PMDAS_DIR=$TMP/pmdas COUNTERSINK_RESERVE_HOOKS=$TMP/hooks
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
# start_holder read|write|wait: somebody else's lock, until end_holder.
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
like "$(cat err)" 'there is no lock file .*missing' "and said"
countersink reserve -d -f "$TMP/missing" 2>err
is $? 1 "in the background, too"
like "$(cat err)" 'there is no lock file .*missing' "and said"
start_holder write
countersink reserve 2>err
is $? 1 "a write lock: status 1"
like "$(cat err)" 'another process holds a write lock' "and said"
end_holder
countersink reserve ./nothing 2>err
is $? 1 "a command that is not there: status 1"
like "$(cat err)" 'cannot run ./nothing: No such file' "and said"
if [ "$(id -u)" != 0 ] || have setpriv; then
	chmod 700 "$lock"
	if [ "$(id -u)" = 0 ]; then
		unprivileged countersink reserve 2>err
		is $? 1 "a lock file that is not for this user: status 1"
		like "$(cat err)" 'may not read the lock file .*chmod a\+r' "and said, with its remedy"
		unprivileged countersink reserve sh -c 'echo ran' >out 2>err
		is "$? $(cat out)" "0 ran" "a command is run all the same"
		like "$(cat err)" 'not reserved: .*may not read' "which is said"
	else
		skip "a lock file that is not for this user" "needs root to make one"
	fi
	chmod 744 "$lock"
else
	skip "a lock file that is not for this user" "there is no setpriv"
fi
for signal in INT HUP TERM QUIT; do
	countersink reserve 2>err &
	pid=$!
	wait_until 20 is_locked
	is $? 0 "it holds the lock"
	kill -$signal $pid
	wait $pid 2>/dev/null
	status=$?
	case $signal in
	INT | HUP) want=0 ;;
	*) want=$((128 + $(kill -l $signal))) ;;
	esac
	is $status $want "$signal: status $want"
	ok "$signal: and the lock is gone" is_free
done
(trap '' INT HUP && exec countersink reserve -q 2>err) &
pid=$!
wait_until 20 is_locked
kill -INT $pid
wait $pid
is $? 0 "INT ends it also where it was ignored, as perfalloc has it"
countersink reserve -q 2>err &
pid=$!
wait_until 20 is_locked
kill -KILL $pid
wait $pid 2>/dev/null
ok "KILL leaves no lock" is_free

# ---- in the background
countersink reserve -d 2>err
is $? 0 "-d returns 0"
pid=$(sed -n 's/.*process \([0-9]*\) holds it.*/\1/p' err)
ok "and names the process" test -n "$pid"
ok "which holds the lock" is_locked
is "$(readlink "/proc/$pid/cwd")" / "and keeps no folder"
is "$(readlink "/proc/$pid/fd/1")" /dev/null "nor streams"
isnt "$(ps -o sid= -p "$pid" | tr -d ' ')" "$(ps -o sid= -p $$ | tr -d ' ')" "in a session of its own"
kill -TERM "$pid"
ok "TERM ends it" wait_until 20 has_ended "$pid"
ok "and frees the lock" is_free
(cd "${lock%/*}" && countersink reserve -d -f perflock 2>"$TMP/err")
is $? 0 "a relative lock file is found"
ok "and locked" is_locked
kill -INT "$(sed -n 's/.*process \([0-9]*\) holds it.*/\1/p' err)"
ok "until INT" wait_until 20 is_free
countersink reserve -d -D 2>err &
pid=$!
wait_until 20 is_locked
ok "-d -D is the foreground" kill -0 $pid
kill -INT $pid
wait $pid
is $? 0 "to its end"
countersink reserve -Dd -q 2>err
is "$? $(cat err)" "0 " "-Dd is the background, and -q says nothing"
pid=$(countersink reserve -s | sed -n 's/^holders *countersink (\([0-9]*\))$/\1/p')
kill -TERM "$pid"
ok "which status finds" wait_until 20 is_free

# ---- with a command
is "$(countersink reserve -q sh -c '"$1" "$2" test; echo $?' sh "$hold" "$lock" 2>err)" 0 "the lock is held while it runs"
ok "and not after" is_free
like "$(countersink reserve true 2>&1)" 'reserved, without confirmation: nobody listens' "what is not confirmed is said"
for status in 0 1 7 125; do
	countersink reserve -q sh -c "exit $status" 2>err
	is $? $status "its status: $status"
done
countersink reserve -q sh -c 'kill -TERM $$' 2>err
is $? 143 "its signal"
is "$(countersink reserve -q sh -c 'echo -d "$@"' sh -D -v)" "-d -D -v" "options end at the command"
is "$(countersink reserve -q sh -c 'read -r children </proc/$$/task/$$/children; echo "[$children]"')" "[]" \
	"it gets no child that it did not start"
is "$(countersink reserve -q sh -c 'ls -l /proc/$$/fd | grep -c perflock')" 0 "and not the lock file"
countersink reserve -q -- sh -c 'echo started >started; exec sleep 60' &
pid=$!
wait_until 20 test -s started
child=$(cat "/proc/$pid/task/$pid/children")
kill -TERM $pid
wait $pid
is $? 143 "signals are handed on"
ok "to the command" has_ended "${child%% *}"
rm -f started
countersink reserve -q -- sh -c 'echo started >started; exec sleep 60' &
pid=$!
wait_until 20 test -s started
child=$(cat "/proc/$pid/task/$pid/children")
kill -KILL $pid
wait $pid 2>/dev/null
ok "KILL of countersink leaves no lock, though the command lives" is_free
ok "which it does" kill -0 "${child%% *}"
kill -KILL "${child%% *}"
countersink reserve --require touch was_run 2>err
is $? 1 "--require without an agent: status 1"
ok "and the command was not run" test ! -e was_run
countersink reserve -f "$TMP/missing" sh -c 'echo ran' >out 2>err
is "$? $(cat out)" "0 ran" "without --require it is"
like "$(cat err)" 'not reserved: there is no lock file' "and what failed is said"

# ---- waiting
start_holder write
countersink reserve -w -t 0.05 2>err
is $? 1 "--wait ends at its --timeout"
countersink reserve -w sh -c 'echo ran' >out 2>err 8>&- &
pid=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "waiters .*countersink ($0) (have it open"' $pid
is $? 0 "status sees who tries"
is "$(cat out)" "" "the command has to wait"
end_holder
wait $pid
is "$? $(cat out)" "0 ran" "and is run when the lock is free"
start_holder write
countersink reserve -w touch was_run 2>err 8>&- &
pid=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "waiters .*countersink ($0)"' $pid
kill -TERM $pid
wait $pid 2>/dev/null
is $? 143 "TERM ends the waiting"
ok "and nothing was run" test ! -e was_run
countersink reserve -w 2>err 8>&- &
pid=$!
wait_until 20 sh -c 'countersink reserve -s | grep -q "waiters .*countersink ($0)"' $pid
kill -HUP $pid
wait $pid
is $? 0 "HUP ends it well, without a command"
end_holder

# ---- hooks
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
countersink reserve -q sh -c 'echo "command $PPID" >>"$HOOK_LOG"' 2>err
pid=$(sed -n 's/^command //p' log)
is "$(cat log)" "10-first reserve $pid
20-second reserve $pid
command $pid
20-second release $pid
10-first release $pid" "hooks run before and after, with the holder's pid"
rm log
sleep 100 &
target=$!
for event in cycles task-clock cycles,instructions; do
	countersink attach -q -e $event -d 0.1 -o /dev/null -p $target 2>err
done
is "$(grep -c ' reserve ' log) $(grep -c ' release ' log)" "4 4" "attach reserves for hardware events, and releases where they are refused, too"
kill $target
rm log
countersink reserve -q 2>err &
pid=$!
wait_until 20 is_locked
kill -TERM $pid
wait $pid 2>/dev/null
is "$(grep -c release log)" 2 "also when TERM ends it"
rm log
countersink reserve -q nothing-of-this-name 2>err
is "$(grep -c release log)" 2 "and when the command cannot be run"
rm log
countersink reserve --require touch was_run 2>err
is "$?, $(grep -c release log)" "0, 2" "--require is met by hooks where there is no agent"
rm -f was_run
cat >hooks/15-bad <<'END'
#!/bin/sh
printf 'no \033[31mway\nsecond line\n' >&2
exit 3
END
chmod 755 hooks/15-bad
rm log
countersink reserve true 2>err
is $? 0 "a hook that fails is not fatal"
like "$(cat err)" 'hook 15-bad reserve failed with status 3: no \\x1b\[31mway$' "a hook that fails is reported, with its first line"
like "$(cat err)" 'hook 15-bad release failed with status 3' "for release as well"
is "$(grep -c . log)" 4 "the others run"
countersink reserve --require touch was_run 2>err
is "$?" 1 "it is with --require"
ok "then nothing is run" test ! -e was_run
cat >hooks/15-bad <<'END'
#!/bin/sh
[ "$1" = release ] && exit
sleep 61 &
echo $! >>"$HOOK_LOG.sleep"
wait
END
countersink reserve -t 0.2 true 2>err
is $? 0 "one that hangs is not waited for"
like "$(cat err)" 'hook 15-bad reserve did not end in time, and was killed' "but killed, and said"
ok "with what it started" wait_until 20 has_ended "$(cat log.sleep)"
printf '#!/bin/sh\nsleep 0.3 &\necho $! >>"$HOOK_LOG.sleep"\n' >hooks/15-bad
rm log.sleep
countersink reserve -q true 2>err
is "$? $(cat err)" "0 " "one that leaves a daemon behind with its output open has ended"
printf '#!/bin/sh\nexec countersink reserve -q true\n' >hooks/15-bad
rm log
is "$(countersink reserve -q true 2>&1)" "" "a hook may use countersink"
is "$(grep -c . log)" 4 "which runs no hooks then"
rm hooks/15-bad
cp hook hooks/50-open
chmod 777 hooks/50-open
like "$(countersink reserve true 2>&1)" 'hook 50-open is not run: others may write it' "a hook that others may write is not run"
rm hooks/50-open log
mkdir open && chmod 777 open && cp hook open/hook && cp hook plain
ln -s ../open/hook hooks/50-way
like "$(countersink reserve true 2>&1)" "hook 50-way is not run: others may write $TMP/open, or own it" "nor a link through a directory that others may write"
rm hooks/50-way log
ln -s "$TMP/hooks/../plain" hooks/50-way
countersink reserve -q true 2>err
is "$(cat err; grep -c 50-way log)" 2 "a hook whose path no other user can change is run"
rm hooks/50-way
mkdir open/hooks && cp hook open/hooks/50-hidden
rm log
like "$(countersink reserve --reserve-hooks="$TMP/open/hooks" true 2>&1)" \
	"hooks in $TMP/open/hooks are not run: others may write $TMP/open, or own it" "nor hooks below such a directory"
ln -s open/hooks way
like "$(countersink reserve --reserve-hooks=way true 2>&1)" "hooks in way are not run: others may write $TMP/open," "nor by a link"
ok "indeed" test ! -e log
chmod 1777 open
countersink reserve -q --reserve-hooks=way true 2>err
is "$(cat err; grep -c 50-hidden log)" 2 "in a sticky one others cannot change it"
rm -r open way log plain
chmod 777 hooks
like "$(countersink reserve true 2>&1)" 'hooks in .*/hooks are not run: others may write that folder' "nor any in such a folder"
ok "indeed" test ! -e log
chmod 755 hooks
is "$(countersink reserve -q --reserve-hooks="$TMP/none" true 2>&1)" "" "a folder that is not there has no hooks"

# ---- run
rm -f log
is "$(countersink -q -e task-clock --reserve=require echo ran 2>err)" ran "software events need no reservation"
ok "and no hooks" test ! -e log
rm -rf hooks
is "$(countersink -q -e cycles echo ran 2>err)" ran "hardware events ask for one"
is "$(countersink -q -e cycles sh -c '"$1" "$2" test; echo $?' sh "$hold" "$lock" 2>err)" 0 "which is held while the command runs"
ok "and not after" is_free
is "$(countersink -q --reserve=no -e cycles sh -c '"$1" "$2" test; echo $?' sh "$hold" "$lock" 2>err)" 1 "but with --reserve=no"
rm "$lock"
countersink -e cycles true 2>err
unlike "$(cat err)" 'reserve' "without an agent nothing is said"
countersink -e cycles --reserve=require touch was_run 2>err
status=$?
if grep -q "hardware counters are" err; then
	is $status 125 "--reserve=require without an agent, and without a PMU that has room: status 125"
	ok "and nothing was run" test ! -e was_run
	like "$(cat err)" "the command was not run" "which is said"
else
	is $status 0 "--reserve=require without an agent: the PMU has room"
fi
rm -f was_run
: >"$lock"
start_holder write
countersink -q -e cycles --reserve=require touch was_run 2>err
is $? 125 "--reserve=require and a write lock: status 125"
like "$(cat err)" 'write lock' "said"
ok "and nothing was run" test ! -e was_run
countersink -e cycles echo ran >out 2>err
is "$? $(cat out)" "0 ran" "--reserve=auto runs"
like "$(cat err)" 'not reserved: another process holds a write lock' "and the report says so"
end_holder
countersink --reserve-timeout=0 true 2>err
is $? 125 "a timeout of 0 is refused"
like "$(cat err)" "'0' is not a time in seconds above 0" "and said"
mkdir hooks
printf '#!/bin/sh\necho "$1" >>"$HOOK_LOG"\n' >hooks/only
chmod 755 hooks/only
countersink -q -e cycles true 2>err
is "$(tr '\n' ' ' <log)" "reserve release " "run has hooks, too"
printf '#!/bin/sh\necho "$1" >>"$HOOK_LOG"; [ $1 = release ] || sleep 60\n' >hooks/only
rm log
countersink -q -e cycles --reserve-timeout 30 touch was_run 2>err &
pid=$!
wait_until 20 test -s log
kill -TERM $pid
wait $pid 2>/dev/null
is $? 143 "TERM during the reservation ends run"
is "$(tr '\n' ' ' <log)" "reserve release " "with a release for the hook"
ok "and nothing was run" test ! -e was_run
# ---- stat, which makes the same one
rm -f log was_run
printf '#!/bin/sh\necho "$1" >>"$HOOK_LOG"\n' >hooks/only
countersink stat -e cycles sh -c '"$1" "$2" test; echo "locked $?" >>"$HOOK_LOG"' sh "$hold" "$lock" 2>err
is "$(tr '\n' ' ' <log)" "reserve locked 0 release " "stat: the lock is held while the command runs, between the hooks"
ok "and not after" is_free
like "$(cat err)" 'hardware counters are (free|reserved): .*nobody listens where' "it says what that rests on"
unlike "$(cat err)" 'free: .*does not open' "which is no event that does not open"
rm log
countersink stat -r 3 -e cycles true 2>err
is "$(tr '\n' ' ' <log)" "reserve release " "once for all runs of a series"
rm log
countersink stat -e task-clock --reserve=require true 2>err
is "$?" 0 "software events need none"
ok "and no hooks" test ! -e log
countersink stat -e cycles --reserve=no sh -c '"$1" "$2" test; echo "locked $?" >>"$HOOK_LOG"' sh "$hold" "$lock" 2>err
is "$(cat log)" "locked 1" "--reserve=no makes none"
printf '#!/bin/sh\necho in the way >&2; exit 3\n' >hooks/only
countersink stat -e cycles true 2>err
is $? 0 "a hook that fails is not fatal"
like "$(cat err)" 'hook only reserve failed with status 3: in the way' "but said"
countersink stat -e cycles --reserve=require touch was_run 2>err
is $? 125 "it is with --reserve=require: status 125"
like "$(cat err)" 'hook only reserve failed with status 3: in the way' "said, too"
ok "and nothing was run" test ! -e was_run
rm -rf hooks
start_holder write
countersink stat -e cycles --reserve=require touch was_run 2>err
is $? 125 "so is a write lock"
like "$(cat err)" 'write lock.*the command was not run' "which is said"
ok "and nothing was run" test ! -e was_run
end_holder
rm -f started
countersink stat -e cycles sh -c 'echo $$ >started; exec sleep 60' 2>err &
pid=$!
wait_until 20 test -s started
ok "stat is at work" is_locked
kill -KILL $pid
wait $pid 2>/dev/null
ok "KILL of stat leaves no lock" is_free
kill -KILL "$(cat started)"

# ---- status
is "$(countersink reserve -s | sed -n 's/^holders *//p')" none "nobody holds the lock"
start_holder read
like "$(countersink reserve -s)" "^holders +hold_lock \($holder\)$" "a holder is named"
exec 7>&8 # start_holder uses them again
reader=$holder
mkfifo gate2
"$hold" "$lock" wait <gate2 >held2 7>&- 8>&- &
waiter=$!
exec 6>gate2
wait_until 20 sh -c 'countersink reserve -s | grep -q "^waiters .*process $0"' $waiter
is $? 0 "and one who is blocked"
exec 6>&- 7>&- 8>&-
wait $reader $waiter
# A real one may run on this machine; then it is another lock file that it asks.
agent=$(pgrep -x pmdaperfevent | head -n 1)
if [ -z "$agent" ]; then
	like "$(countersink reserve -s)" '^agent +no process of it is to be seen' "no agent"
else
	like "$(countersink reserve -s)" "^agent .*$agent" "an agent that runs here is named"
fi
like "$(countersink reserve -s)" '^counting +not known: nobody listens' "is not a zero"
like "$(countersink reserve -s)" '^unseen +[0-9]+ of [0-9]+ other processes could not be inspected' "what was not seen is said"
if have python3; then
	start_holder read
	countersink reserve --status --json >json
	ok "JSON is JSON" python3 -c 'import json, sys
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
		ok "what this user may not know is null" python3 -c 'import json
d = json.load(open("json"))
assert d["locked"] is None and d["lock_file_error"] == "Permission denied", d
assert d["nr_not_inspected"] > 0, d'
		chmod 744 "$lock"
		start_holder read
		like "$(unprivileged countersink reserve -s)" '^holders +somebody, for reading; not to be seen' \
			"nor whose lock it is"
		end_holder
	else
		skip "what this user may not know is null" "needs root, to become somebody else"
	fi
else
	skip "JSON is JSON" "there is no python3 to read it"
fi
countersink reserve --json 2>err
is $? 1 "--json goes with --status only"
countersink reserve -s true 2>err
is $? 1 "--status takes no command"
countersink reserve -e nonsense true 2>err
is $? 1 "an event that is not there"
countersink reserve -e task-clock true 2>err
is $? 1 "an event that needs no reservation"
like "$(cat err)" "needs no reservation" "said"
done_testing
