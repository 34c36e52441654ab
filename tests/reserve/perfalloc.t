#!/bin/bash
# Comparison with PCP's own perfalloc(1): the same behaviour, without its defects.
. "$(dirname "$0")/reserve_lib.sh"

set -m
start_agent "$STATE"
# A copy, so that its processes are known from all others: its locker may outlive the command.
cp "$PCP/usr/lib/pcp/pmdas/perfevent/perfalloc" "$TMP/perfalloc"
perfalloc=$TMP/perfalloc
nr_left=0
hold=$TARGETS/hold_lock
export COUNTERSINK_RESERVE_HOOKS=$TMP/none
tap_tested=

trap 'clear_theirs; stop_agents; remove_tmp' EXIT
clear_theirs() {
	local pid
	for pid in $(pgrep -f "^$perfalloc"); do
		kill -KILL "$pid" 2>/dev/null && nr_left=$((nr_left + 1))
	done
}
run_theirs() {
	timeout -s KILL 20 "$perfalloc" "$@" >theirs.out 2>theirs.err </dev/null
	theirs=$?
	clear_theirs
	return "$theirs"
}
run_ours() {
	timeout -s KILL 20 countersink reserve "$@" >ours.out 2>ours.err </dev/null
}
# same NAME ARGUMENT...: both end with the same status.
same() {
	local name=$1 theirs ours
	shift
	run_theirs "$@"
	theirs=$?
	run_ours "$@"
	ours=$?
	tap_tested="$tap_tested$(printf '%-36s %6s %6s' "$name" $theirs $ours)
"
	is $ours $theirs "$name: status $theirs of both"
}
# better NAME THEIRS OURS ARGUMENT...: a defect of perfalloc that reserve must not have.
better() {
	local name=$1 want_theirs=$2 want_ours=$3 theirs ours
	shift 3
	run_theirs "$@"
	theirs=$?
	run_ours "$@"
	ours=$?
	tap_tested="$tap_tested$(printf '%-36s %6s %6s' "$name" $theirs $ours)
"
	is "$theirs $ours" "$want_theirs $want_ours" "$name: $want_theirs of perfalloc, $want_ours of reserve"
}

same "help" -h
same "version" -v
same "a wrong option" -x
same "-f without a file" -f
same "a missing lock file" -f "$TMP/missing"
same "a path through a file" -f "$LOCK/missing"
same "a command that succeeds" true
same "a command that fails" false
same "a command by its path" /bin/true
same "a missing command" ./nothing
same "a command that cannot be executed" "$LOCK"
same "a command after --" -- sh -c 'exit 5'
same "-D with a command" -D true
same "-d with a command" -d true
same "-f with a command" -f "$LOCK" true

mkfifo gate
"$hold" "$LOCK" write <gate >held &
holder=$!
exec 8>gate
wait_until 20 grep -q locked held
same "a write lock"
same "a write lock, in the foreground" -D
exec 8>&-
wait $holder
if [ "$(id -u)" = 0 ] && have setpriv; then
	chmod 700 "$LOCK"
	theirs=$(unprivileged "$perfalloc" >/dev/null 2>&1 || echo $?)
	ours=$(unprivileged countersink reserve >/dev/null 2>&1 || echo $?)
	is "$ours" "$theirs" "an unreadable lock file: status $theirs of both"
	chmod 744 "$LOCK"
else
	skip "an unreadable lock file" "needs root to make one"
fi

is_held() {
	"$hold" "$LOCK" test
}
is_free() {
	! is_held
}
# signalled SIGNAL COMMAND...: the status after that signal, once the lock is held.
signalled() {
	local signal=$1 pid status
	shift
	"$@" >/dev/null 2>&1 </dev/null 8>&- &
	pid=$!
	wait_until 20 is_held || echo not held
	kill -"$signal" $pid
	wait $pid 2>/dev/null
	status=$?
	clear_theirs
	wait_until 20 is_free || echo not free
	echo $status
}
for signal in INT HUP TERM QUIT KILL USR1 ALRM PIPE; do
	theirs=$(signalled $signal "$perfalloc" 2>/dev/null)
	ours=$(signalled $signal countersink reserve 2>/dev/null)
	tap_tested="$tap_tested$(printf '%-36s %6s %6s' "signal $signal" "$theirs" "$ours")
"
	is "$ours" "$theirs" "$signal: status $theirs of both"
done
theirs=$(signalled TERM "$perfalloc" sleep 60 2>/dev/null)
ours=$(signalled TERM countersink reserve sleep 60 2>/dev/null)
is "$ours" "$theirs" "TERM while a command runs: status $theirs of both"
ignoring() { # in a process of its own
	trap '' INT HUP
	exec "$@"
}
is "$(signalled HUP ignoring countersink reserve)" "$(signalled HUP ignoring "$perfalloc")" "HUP ignored before: the same status"

# Both in the background, both ended by a signal.
for program in "$perfalloc" "countersink reserve"; do
	$program -d 2>/dev/null
	is $? 0 "${program##*/} -d: status 0"
	wait_until 20 is_held
	is $? 0 "${program##*/} -d: holds the lock"
	countersink reserve -s >status
	pid=$(sed -n 's/^holders *[a-z]* (\([0-9]*\))$/\1/p' status)
	[ -n "$pid" ] || diag "$(cat status)"
	is "$(readlink "/proc/$pid/cwd") $(readlink "/proc/$pid/fd/0")" "/ /dev/null" "${program##*/} -d: works in / with stdin on /dev/null"
	kill -INT "$pid"
	ok "${program##*/} -d: INT releases the lock" wait_until 20 is_free
done

# ---- defects of perfalloc
better "options of the command" 1 7 sh -c 'exit 7'
better "-d, a missing lock file" 0 1 -d -f "$TMP/missing"
run_theirs -f "$TMP/missing" true
run_ours -f "$TMP/missing" true
is "$(wc -c <theirs.err)" 0 "perfalloc does not report a command without a reservation"
like "$(cat ours.err)" "not reserved: there is no lock file" "reserve reports a command without a reservation"
children='read -r children </proc/$$/task/$$/children; echo "[$children]"'
like "$("$perfalloc" -- sh -c "$children")" '^\[[0-9]+ ?\]$' "perfalloc gives the command a child that it did not start"
is "$(countersink reserve -q -- sh -c "$children")" "[]" "reserve gives the command no child"
clear_theirs

diag "$nr_left of its lockers outlived their command"
diag "status                               theirs   ours"
diag "$tap_tested"
done_testing
