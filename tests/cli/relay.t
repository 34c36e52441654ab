#!/bin/bash
# Signals: each signal of the launcher reaches the command, once; stopping and continuing; job control on a terminal.
. "$(dirname "$0")/lib.sh"

set -m # each job in a group of its own, with signals as a login shell leaves them

# start_siglog NAME [OPTION...]: a command that logs its signals, under the launcher; sets launcher and command.
start_siglog() {
	local log=$1
	shift
	mkfifo "$log.in"
	countersink -q -o "$log.pb.gz" "$@" -- "$TARGETS/siglog" <"$log.in" >"$log" 2>"$log.err" &
	launcher=$!
	exec 9>"$log.in"
	wait_until 20 grep -q ready "$log" || diag "siglog does not start: $(cat "$log" "$log.err")"
	command=$(sed -n 's/^ready //p' "$log")
}

# stop_siglog NAME STATUS: let it end, and check its status.
stop_siglog() {
	echo "exit $2" >&9
	exec 9>&-
	wait "$launcher"
	is $? "$2" "$1: the command's own status is returned"
}

state_of() {
	sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status"
}
is_stopped() {
	[ "$(state_of "$1")" = T ]
}
is_awake() {
	[ "$(state_of "$1")" != T ]
}

# ---- each signal
start_siglog each
for name in INT TERM HUP QUIT USR1 USR2 WINCH CONT ALRM RTMIN; do
	log_name=$name
	[ $name = RTMIN ] && log_name=RT
	kill -$name "$launcher"
	wait_until 20 grep -q "^$log_name$" each
	tap_point $((! $?)) "$name is forwarded to the command"
done
is "$(sort each | uniq -d)" "" "each forwarded signal arrives once"
ok "the launcher survives forwarded signals" kill -0 "$launcher"
stop_siglog each 41
ok "the profile is written after forwarded signals" test -s each.pb.gz

# ---- stop and continue
start_siglog stop
kill -TSTP "$launcher"
ok "TSTP to the launcher stops the command" wait_until 20 is_stopped "$command"
ok "TSTP to the launcher stops the launcher, too" wait_until 20 is_stopped "$launcher"
kill -CONT "$launcher"
ok "CONT to the launcher wakes it" wait_until 20 is_awake "$launcher"
ok "CONT to the launcher wakes the command, too" wait_until 20 is_awake "$command"
ok "the command gets the CONT" wait_until 20 grep -q CONT stop
is "$(grep -c CONT stop)" 1 "the command gets one CONT"
stop_siglog stop 0

# ---- a whole group at once, as `kill %1` does it
start_siglog group
kill -TSTP -- "-$launcher"
ok "TSTP to the group stops the launcher" wait_until 20 is_stopped "$launcher"
ok "TSTP to the group stops the command" wait_until 20 is_stopped "$command"
kill -CONT -- "-$launcher"
ok "CONT to the group wakes the launcher" wait_until 20 is_awake "$launcher"
ok "CONT to the group wakes the command" wait_until 20 is_awake "$command"
stop_siglog group 0

# ---- signals that the command sends itself
setsid -w countersink -q -- sh -c 'trap "echo once" USR1; kill -USR1 0; exit 5' >own 2>/dev/null
is $? 5 "a signal that the command sends to its group does not end the launcher"
is "$(cat own)" once "a signal that the command sends to its group arrives once"
countersink -q -- sh -c 'kill -TERM $PPID; exit 6' 2>/dev/null
is $? 6 "a TERM that the command sends to the launcher is not forwarded"

# ---- commands ended by a signal
for name in TERM KILL INT HUP USR1 SEGV; do
	number=$(kill -l $name)
	countersink -q -- sh -c "kill -$name \$\$" 2>err
	is $? $((128 + number)) "a command that dies of $name gives 128 + $number"
done
countersink -q -o dead.pb.gz -- sh -c 'kill -KILL $$' 2>err
ok "a killed command leaves its profile" test -s dead.pb.gz

mkfifo die.in
countersink -q -- "$TARGETS/siglog" 15 <die.in >die 2>&1 &
launcher=$!
exec 9>die.in
wait_until 20 grep -q ready die
kill -TERM "$launcher"
wait "$launcher"
is $? 143 "TERM to the launcher ends a command that does not catch it: 143"
exec 9>&-

# ---- inherited dispositions and masks
countersink -q -- grep '^SigIgn\|^SigBlk' /proc/self/status >with
grep '^SigIgn\|^SigBlk' /proc/self/status >without
is "$(cat with)" "$(cat without)" "ignored and blocked signals are as without us"
perl -e '$SIG{HUP} = $SIG{CHLD} = "IGNORE"; exec @ARGV' countersink -q -- grep '^SigIgn' /proc/self/status >with
perl -e '$SIG{HUP} = $SIG{CHLD} = "IGNORE"; exec @ARGV' grep '^SigIgn' /proc/self/status >without
is "$(cat with)" "$(cat without)" "ignored HUP and CHLD are kept"
perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' countersink -q -- sh -c 'exit 9'
is $? 9 "the status is returned although CHLD was ignored"
perl -MPOSIX -e 'sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGUSR1, SIGTERM)); exec @ARGV' \
	countersink -q -- grep '^SigBlk' /proc/self/status >with
perl -MPOSIX -e 'sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGUSR1, SIGTERM)); exec @ARGV' \
	grep '^SigBlk' /proc/self/status >without
is "$(cat with)" "$(cat without)" "a blocked signal stays blocked"
mkfifo nohup.in
nohup countersink -q -- "$TARGETS/siglog" 1 <nohup.in >hup.log 2>/dev/null &
launcher=$!
exec 9>nohup.in
wait_until 20 grep -q ready hup.log
kill -HUP "$launcher"
echo "exit 12" >&9
exec 9>&-
wait "$launcher"
is $? 12 "under nohup, HUP ends neither launcher nor command"

# ---- the command has ended, the profile is being made: signals act on the launcher itself
mkfifo stuck
countersink -q -o stuck -- sh -c 'echo "$COUNTERSINK_RUN_DIR" >run_directory' 2>/dev/null &
launcher=$!
collects() { # it waits for a reader of the FIFO, with a thread for signals
	[ "$(find "/proc/$launcher/task" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]
}
ok "the launcher makes the profile" wait_until 20 collects
ok "the run directory is there while the profile is made" test -d "$(cat run_directory)"
kill -TERM "$launcher"
wait "$launcher"
is $? 143 "TERM while the profile is made ends the launcher: 143"
ok "TERM while the profile is made removes the run directory" test ! -e "$(cat run_directory)"

# ---- on a terminal
"$TARGETS/terminal" countersink -q -- "$TARGETS/siglog" >shown <<'END'
expect ready
send \x03
expect INT
send \x1c
expect QUIT
size 50
expect WINCH
send exit 7\n
END
is $? 7 "on a terminal: the command reads its input and ends with its status"
tr -d '\r' <shown >shown.lines
is "$(grep -c 'INT$' shown.lines) $(grep -c 'QUIT$' shown.lines) $(grep -c WINCH shown.lines)" "1 1 1" \
	"^C, ^\\ and a new window size arrive once each"

"$TARGETS/terminal" countersink -q -- sh -c 'echo ready; exec sleep 1000' >shown <<'END'
expect ready
send \x03
END
is $? 130 "^C ends a command that does not catch it: 130"

"$TARGETS/terminal" env PS1='prompt> ' bash --norc -i >shown 2>&1 <<END
expect prompt>
send countersink -q -- "$TARGETS/siglog"\n
expect ready
send \x1a
expect Stopped
expect prompt>
send jobs; echo asked\n
expect Stopped
expect asked
send fg\n
expect CONT
send exit 23\n
expect prompt>
send echo status=\$?\n
expect status=23
send countersink -q -- sleep 1000 &\n
expect prompt>
send jobs\n
expect Running
send kill %1; wait %1; echo killed=\$?\n
expect killed=143
expect prompt>
send exit 0\n
END
is $? 0 "bash: ^Z stops the job, jobs shows it, fg brings it back, its status is seen" || diag "$(cat shown)"

done_testing
