#!/bin/bash
# The exit status: the command's own, 128 + signal, 125, 126, 127; as env(1) gives it.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:/usr/bin:/bin # no directory that this user cannot search: "not found" would be "not permitted"

for status in 0 1 2 7 124 125 126 127 128 255; do
	countersink -q -- sh -c "exit $status" 2>err
	is $? $status "exit $status"
done
for signal in HUP INT QUIT ILL ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM; do
	countersink -q -- sh -c "ulimit -c 0; kill -$signal \$\$" 2>/dev/null
	is $? $((128 + $(kill -l $signal))) "killed by $signal"
done

# like_env NAME COMMAND...: the status is env's for a command that does not start; one line says why.
like_env() {
	local name=$1
	shift
	rm -f countersink.pb.gz
	env "$@" >/dev/null 2>&1
	local want=$?
	countersink -q -- "$@" >out 2>err
	is $? $want "$name: status $want"
	is "$(wc -l <err)" 1 "$name: one line"
	like "$(cat err)" "^countersink: $1: " "$name: the line names the command"
	ok "$name: no profile" test ! -e countersink.pb.gz
}
mkdir directory bin1 bin2
printf 'not a program\n' >plain
printf '#!/nowhere/interpreter\n' >badscript
chmod +x badscript
printf '#!/bin/sh\nexit 33\n' >bin2/twice
chmod +x bin2/twice
printf 'x\n' >bin1/twice
printf 'x\n' >bin1/once
like_env "not found" no_such_command_anywhere
like_env "not found, by path" ./no_such_command
like_env "below a file that is no directory" ./plain/x
like_env "a directory" ./directory
like_env "not executable" ./plain
like_env "no interpreter" ./badscript
like "$(countersink -q -- no_such_command_anywhere 2>&1)" 'command not found' "not found: the message is 'command not found'"
PATH=$TMP/bin1:$PATH like_env "not executable on PATH" once
PATH=$TMP/bin1:$TMP/bin2:$PATH countersink -q -- twice
is $? 33 "a later executable of that name on PATH is taken"
printf 'exit 34\n' >nohead
chmod +x nohead
countersink -q -- ./nohead
is $? 34 "a script without #! is run by the shell, as execvp does"
unlike "$(PATH=/nonexistent "$COUNTERSINK" -q -- sh 2>&1)" 'no memory' "an empty PATH is no memory error"
(unset PATH && "$COUNTERSINK" -q -- sh -c 'exit 35')
is $? 35 "PATH unset: the system's default"
countersink -q -- '' 2>err
is $? 127 "an empty name: status 127"

# ---- an unwritten profile does not change the status
(cd directory && chmod 555 . && unprivileged countersink -q -- sh -c 'exit 36' 2>/dev/null)
is $? 36 "a directory that cannot be written: the status is the command's"
countersink -q -o /dev/full -- sh -c 'exit 37' 2>/dev/null
is $? 37 "a full device: the status is the command's"

# ---- as seen by a shell's pipeline and wait
set -o pipefail
countersink -q -- sh -c 'exit 3' | cat
is $? 3 "the status is the command's in a pipeline"
countersink -q -- sh -c 'exit 4' &
wait $!
is $? 4 "the status is the command's in the background"
is "$(unprivileged sh -c 'cd /tmp && countersink -q -o /dev/null -- sh -c "exit 9"; echo $?')" 9 "an unprivileged user gets the status of the command"
countersink -q -o crash.pb.gz -- sh -c 'ulimit -c 0; kill -SEGV $$' 2>/dev/null
ok "a crash leaves its profile" test -s crash.pb.gz

done_testing
