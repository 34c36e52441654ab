#!/bin/bash
# Exact totals from outside: for every process of the tree, and the report where the kernel refuses.
. "$(dirname "$0")/lib.sh"

mkdir place
chmod 777 place
cd place || exit 1

# counted EVENT: the number in the line of what was counted from outside, in nanoseconds where it is a time.
counted() {
	tr -d ',' <err | awk -v event="$1" '
		$1 == "counted" && ($2 == event || $2 == event ":u") {
			printf "%.0f\n", $3 * ($4 == "s" ? 1e9 : $4 == "ms" ? 1e6 : $4 == "us" ? 1e3 : 1)
		}'
}

# What the kernel accounts to the same processes, the measuring program included. A clock event also runs while the host
# or an interrupt has the CPU, which the kernel accounts to no process: what the host took, of all CPUs, is known; and one try
# in quiet is enough.
accounted() { # COUNTED ACCOUNTED STOLEN: within 2 %, and what was stolen
	awk -v a="$1" -v b="$2" -v stolen="$3" 'BEGIN { exit !(b > 0 && a > 0.98 * b && a < 1.02 * b + stolen) }'
}
spin="$TARGETS/static_spin"
tree_is_accounted() { # AS_WHOM...
	for try in 1 2 3 4 5; do
		rm -f "cpu$try"
		stolen_before=$(steal_counter)
		"$@" countersink -o t.pb.gz -- "$TARGETS/rusage" "cpu$try" sh -c '"$0" 0.3 & "$0" 0.2; wait' "$spin" 2>err || return 1
		stolen=$(stolen_since "$stolen_before")
		accounted "$(counted task-clock)" "$(cat "cpu$try")" $stolen && return
		echo "counted $(counted task-clock), accounted $(cat "cpu$try"), stolen $stolen"
	done
	return 1
}
ok "task-clock of a tree of static and other programs is what the kernel accounts to it" tree_is_accounted
rm -f t.pb.gz* cpu*
ok "unprivileged: task-clock of a tree is what the kernel accounts to it" tree_is_accounted unprivileged

# Requested events, each by its name; for an unprivileged user in user space only.
countersink -e task-clock,page-faults,context-switches -o e.pb.gz -- sh -c 'for i in 1 2 3 4 5; do /bin/true; done' 2>err
ok "task-clock was counted" test "$(counted task-clock)" -gt 0 || diag "$(cat err)"
ok "page-faults were counted" test "$(counted page-faults)" -gt 0 || diag "$(cat err)"
if grep -q 'context-switches was not counted' err; then
	like "$(cat err)" 'context-switches was not counted .*paranoid' "uncounted context switches are reported with the reason"
	unlike "$(cat err)" 'counted +context-switches' "uncounted context switches have no number"
else
	ok "context switches were counted" test "$(counted context-switches)" -gt 0 || diag "$(cat err)"
	mkdir theirs
	chmod 777 theirs
	(cd theirs && unprivileged countersink -e context-switches -o c.pb.gz -- true 2>&1) >err
	like "$(cat err)" '(counted +no events.*paranoid|context-switches +[1-9][0-9]* in)' "an unprivileged user's uncounted context switches are reported"
fi
countersink -e page-faults -c 1000 -o e.pb.gz -- true 2>err
few=$(counted page-faults)
countersink -e page-faults -c 1000 -o e.pb.gz -- sh -c 'true; /bin/true; /bin/true; /bin/true; /bin/true' 2>err
ok "more processes have more page faults" test "$(counted page-faults)" -gt $((few * 3)) || diag "$few, $(cat err)"

# A hundred short processes: none is lost.
countersink -o h.pb.gz -- sh -c 'i=0; while [ $i -lt 100 ]; do "$0" 0; i=$((i + 1)); done' "$spin" 2>err
unlike "$(cat err)" 'lost' "a hundred static processes: no record is lost"
like "$(cat err)" 'outside .*static_spin \(100 times\)' "a hundred static processes are named"

# The launcher's own children do not count as the command's.
for _ in 1 2 3 4 5 6 7 8; do
	countersink -o w.pb.gz -- sleep 0.02
done 2>err
unlike "$(cat err)" 'unprofiled' "the launcher's own children are not named as unprofiled"

# Processes that still run when the command has ended.
mkfifo hold hold2 up
countersink -o d.pb.gz -- sh -c '(echo up >up; read -r line <hold) & read -r line <up' 2>err &
launcher=$!
wait "$launcher"
like "$(cat err)" 'note .*1 process still runs \(sh [0-9]+\)' "a process that outlives the command is named"
pid=$(sed -n 's/.*still runs ([a-z]* \([0-9]*\)).*/\1/p' err)
: >hold
ok "a process that outlives the command writes its own profile at its end" wait_until 20 test -s "d.pb.gz.$pid"

# covered NAME: the share that samples cover, of the report in err, is at most what they can cover.
covered() {
	share=$(sed -n 's/.*samples cover \([0-9]*\)\.[0-9]* %.*/\1/p' err)
	ok "$1: samples cover no more than what was accounted" test "${share:-999}" -le 101 || diag "$(cat err)"
}
rm -f hold up
mkfifo hold up
countersink -o b.pb.gz -- sh -c '("$0" 200 >burned; echo up >up; read -r line <hold) & read -r line <up' "$TARGETS/burn" 2>err &
wait $!
covered "a process that outlives the command"
like "$(cat err)" 'ms sys \+ [0-9.]+ m?s of processes that were not waited for' "a process that outlives the command has its part of the time"
: >hold
# Its parent ends before it does, and it before the command: no process of the run waits for it.
countersink -o b.pb.gz -- sh -c '(sh -c "echo \$\$ >up; exec \"\$0\" 200" "$0" >burned &); read -r pid <up
	while grep -qs "^State:[[:space:]]*[^XZ]" "/proc/$pid/status"; do sleep 0.02; done' "$TARGETS/burn" 2>err
covered "an orphan that ends before the command"
like "$(cat err)" 'of processes that were not waited for' "an orphan that ends before the command has its part of the time"
# It ends by itself, as the end of the command's pipe is what it waits for.
# On a machine with other work it may not get a turn in the 100 ms that it has: three tries.
rm -f up
mkfifo up
for _ in 1 2 3; do
	countersink -o b.pb.gz -- sh -c '(exec 3>&-; read -r line <up; "$0" 3 >burned) & exec 3>up; sleep 0.05' "$TARGETS/burn" 2>err
	grep -q 'still runs' err || break
done
unlike "$(cat err)" 'still runs' "a process that ends with the command does not count as running"
covered "a process that ends with the command"

# Without a launcher: a name that has the number already gets no other.
rm -f hold up
mkfifo hold up
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$PWD/l.%p.pb.gz COUNTERSINK_QUIET=1 sh -c 'sh -c "echo up >up; read -r line <hold; true" & read -r line <up; echo $! >pid'
: >hold
ok "the environment alone: a later profile has the PID once in its name" wait_until 20 test -s "l.$(cat pid).pb.gz"

# Refused.
for error in 1 13 38; do # EPERM, EACCES, ENOSYS
	"$TARGETS/deny_perf" -e $error countersink -o r.pb.gz -- sh -c 'echo out; exit 3' >out 2>err
	is "$? $(cat out)" "3 out" "perf_event_open refused with errno $error: the command runs"
	like "$(cat err)" 'no events from outside: a seccomp filter refuses perf_event_open' "perf_event_open refused with errno $error: the reason is reported"
	unlike "$(cat err)" 'task-clock 0' "perf_event_open refused with errno $error: no 0 is reported"
	like "$(cat err)" 'user \+ .* sys' "perf_event_open refused with errno $error: wait4's times are reported"
done
"$TARGETS/deny_perf" countersink -o r.pb.gz -- sh -c '(echo up >up; read -r line <hold2) & read -r line <up' 2>err
like "$(cat err)" 'note .*1 process still runs \([0-9]+\)' "without perf events a process that outlives the command is known by its recording"
pid=$(sed -n 's/.*still runs (\([0-9]*\)).*/\1/p' err)
: >hold2
ok "without perf events a process that outlives the command leaves its profile" wait_until 20 test -s "r.pb.gz.$pid"

done_testing
