#!/bin/bash
# Signals of a terminal and of a job: the hang-up, ^C, ^\, ^Z and fg, a new window size, a kill of the whole group. Each
# is compared with the command alone: which signals it gets, how often, and the status of the whole.
. "$(dirname "$0")/lib.sh"

set -m # each job in a group of its own, with signals as a login shell leaves them

nr_runs=0

# begin_on_terminal COMMAND...: on a terminal that it controls; sets log, what siglog writes, and terminal. Lines to fd 8
# are for the terminal, lines to fd 9 for siglog.
begin_on_terminal() {
	nr_runs=$((nr_runs + 1))
	log=log.$nr_runs
	mkfifo "$log.control" "$log.in"
	cat >"$log.sh" <<END
exec "$TARGETS/siglog" $SIGLOG_ARGUMENTS <"$PWD/$log.in" >"$PWD/$log"
END
	"$TARGETS/terminal" "$@" sh "$PWD/$log.sh" <"$log.control" >"$log.shown" 2>&1 &
	terminal=$!
	exec 8>"$log.control" 9>"$log.in"
	wait_until 20 grep -q ready "$log" || diag "siglog does not start: $(cat "$log" "$log.shown")"
}

# end_on_terminal: sets seen to the signals, in the order of their names, and the status of the whole.
end_on_terminal() {
	exec 8>&-
	(
		trap '' PIPE # it may have ended
		echo "exit 7" >&9
	) 2>/dev/null
	exec 9>&-
	wait "$terminal"
	seen="$? $(grep -v ready "$log" | sort | tr '\n' ' ')"
}

# ---- the terminal hangs up under the leader of its session

is_gone() { # or has ended, and waits for its parent
	case $(sed 's/.*) //' "/proc/$1/stat") in
	'' | Z*) ;;
	*) return 1 ;;
	esac
}
# hang_up COMMAND...: sets seen.
hang_up() {
	begin_on_terminal "$@"
	echo close >&8
	if [ "$SIGLOG_ARGUMENTS" = 1 ]; then
		wait_until 30 is_gone "$(sed -n 's/^ready //p' "$log")"
	else
		wait_until 30 grep -q CONT "$log"
	fi
	end_on_terminal
}

for SIGLOG_ARGUMENTS in "" 1; do
	what="a hang-up reaches a command that catches SIGHUP, once"
	[ "$SIGLOG_ARGUMENTS" = 1 ] && what="a hang-up ends a command that does not catch SIGHUP"
	hang_up env
	alone=$seen
	is "${alone%% *}" $((SIGLOG_ARGUMENTS == 1 ? 129 : 7)) "without us, $what: the status is as expected"
	for command in "-q -o hup.pb.gz --" "stat --" "attach --" "reserve --"; do
		hang_up countersink $command
		is "$seen" "$alone" "countersink $command, $what: signals and status are as without us"
	done
done
SIGLOG_ARGUMENTS=
ok "the profile is written after a hang-up" test -s hup.pb.gz
begin_on_terminal sh -c 'countersink -q -- "$@"; exit $?' sh
echo close >&8
wait_until 30 grep -q HUP "$log"
end_on_terminal
is "${seen#* }" "CONT HUP " "a launcher that does not lead the session forwards no second SIGHUP"

# ---- a timer that was armed before the launcher was executed
perl -e 'alarm 1; exec @ARGV' countersink -q -- sleep 100
is $? 142 "alarm, then exec: SIGALRM ends the command"
perl -e 'alarm 1000; exec @ARGV' countersink -q -- perl -e 'print alarm(0) > 900 ? "armed" : "not armed"' >out
is "$(cat out)" armed "the command finds the timer armed, and may cancel it"

# ---- a signal to the whole job
# signal_group COMMAND...: sets seen.
signal_group() {
	nr_runs=$((nr_runs + 1))
	log=log.$nr_runs
	mkfifo "$log.in"
	"$@" "$TARGETS/siglog" <"$log.in" >"$log" 2>"$log.err" &
	job=$!
	exec 9>"$log.in"
	wait_until 20 grep -q ready "$log"
	for i in 1 2 3 4 5; do
		kill -USR1 -- "-$job"
		wait_until 20 eval '[ "$(grep -c USR1 "$log")" -ge '$i' ]'
		kill -WINCH "$job" # to the one process: a USR1 that the launcher forwards comes first
		wait_until 20 eval '[ "$(grep -c WINCH "$log")" -ge '$i' ]'
	done
	echo "exit 7" >&9
	exec 9>&-
	wait "$job"
	seen="$? $(grep -v ready "$log" | sort | uniq -c | tr -s ' \n' ' ')"
}
signal_group env
alone=$seen
is "$alone" "7  5 USR1 5 WINCH " "without us, signals to a job and to its leader arrive"
for command in "-q --" "stat --"; do
	signal_group countersink $command
	is "$seen" "$alone" "countersink $command: signals to a job and to its leader arrive once each"
done

# ---- below an interactive shell
# in_shell COMMAND...: ^C, ^\, a new size, ^Z and fg; sets seen.
in_shell() {
	"$TARGETS/terminal" env PS1='prompt> ' bash --norc --noprofile -i >shown 2>&1 <<END
expect prompt>
send $* "$TARGETS/siglog"\n
expect ready
send \x03
expect INT
send \x1c
expect QUIT
size 50
expect WINCH
send \x1a
expect Stopped
expect prompt>
send fg\n
expect CONT
send exit 23\n
expect prompt>
send exit \$?\n
END
	seen="$? $(tr -d '\r' <shown | grep -oE '(INT|QUIT|WINCH|CONT)$' | sort | tr '\n' ' ')"
}
in_shell
alone=$seen
is "$alone" "23 CONT INT QUIT WINCH " "without us, keys in a shell arrive"
for command in "run -q --" "stat --" "attach --"; do
	in_shell countersink "$command"
	is "$seen" "$alone" "countersink $command: signals of keys in a shell arrive once each"
done

# timeout(1) calls setpgid(0, 0): without us it already leads the job, and stays in it.
"$TARGETS/terminal" env PS1='prompt> ' bash --norc --noprofile -i >shown 2>&1 <<END
expect prompt>
send countersink -q -- timeout 1000 sh -c 'echo go''ing; exec sleep 1000'\n
expect going
send \x03
expect prompt>
send echo status=\$?\n
expect status=130
send exit 0\n
END
is $? 0 "^C reaches a command that has left the launcher's group by setpgid(0, 0)" || diag "$(cat shown)"

done_testing
