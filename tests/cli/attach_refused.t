#!/bin/bash
# Targets that attach refuses or can profile only in part, with the errno's name; and difficult targets that it can profile.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/attach.sh"

# ---- refusals
(exit 0) &
dead=$!
wait $dead
refuse 125 "ESRCH: there is no process $dead" "no such process" -p $dead
refuse 125 "EINVAL: 'x1' is no process number" "an invalid PID" -p x1
refuse 125 "ESRCH: no process has a name that matches 'no_such_name'.*put -- before" "an unknown name" no_such_name
refuse 125 "EINVAL: '\(' is no extended regular expression" "an invalid regular expression" '('
refuse 125 'give exactly one target' "no target" -d 1
refuse 125 'give exactly one target' "two kinds of target" -p $$ -t $$
refuse 125 'options --frequency and --period exclude each other' "both rates" -p $$ -F 5 -c 5
refuse 125 "no such control group" "a missing control group" --cgroup /not/there
refuse 125 "EINVAL: $TMP is a directory, but no control group" "a directory that is no control group" --cgroup "$TMP"
start "$TARGETS/threads8" 100000
# shellcheck disable=SC2154 # start sets it
wait_until 30 sh -c 'test "$(ls /proc/$1/task | wc -l)" -gt 1' sh "$target"
thread=$(ls "/proc/$target/task" | tail -1)
refuse 125 "ESRCH: $thread is no process but a thread of $target: use -t $thread, or -p $target" "a TID with -p" -p "$thread"
end "$target"
start sh -c 'true & exec sleep 600'
wait_until 30 sh -c 'grep -q "^State:.Z" "/proc/$(pgrep -P "$1")/status"' sh "$target"
refuse 125 "ESRCH: process [0-9]+ .* has ended, and its parent has not waited" "a zombie process" -p "$(pgrep -P "$target")"
end "$target"
if have perl && [ "$(uname -m)" = x86_64 ]; then
	start_unprivileged perl -e 'syscall(157, 4, 0); while (1) { $i++ }' # prctl(PR_SET_DUMPABLE, 0)
	wait_until 30 has_run "$target" 20
	unprivileged countersink attach -o /dev/null -d 1 -p "$target" 2>err
	is $? 125 "a process that is not dumpable: status 125"
	like "$(cat err)" "cannot attach to process $target .*: EACCES: .*; " "a process that is not dumpable: EACCES and the remedy are reported"
	end "$target"
else
	skip "a process that is not dumpable" "no perl here, or not the system call's number"
fi
unprivileged countersink attach -o /dev/null -d 1 -p 1 2>err
is $? 125 "another user's process: status 125"
like "$(cat err)" "cannot attach to process 1 .*EACCES: .*; .*(root|CAP_)" "another user's process: EACCES and the remedy are reported"
"$TARGETS/deny_perf" countersink attach -o /dev/null -d 1 -p $$ 2>err
is $? 125 "perf_event_open refused: status 125"
like "$(cat err)" 'seccomp' "perf_event_open refused: the seccomp filter is reported"

# ---- a command runs without being measured, as with run and stat
mkdir -m 777 without
without() { # NAME PREFIX...: attach -- COMMAND where nothing can be counted
	local name=$1
	shift
	"$@" countersink attach -o without/a.pb.gz -- sh -c 'echo ran; echo "$LD_PRELOAD"; exit 3' >out 2>err
	is "$?:$(cat out)" "3:ran" "$name: the command runs, with its own status"
	like "$(cat err)" '^countersink: task-clock: E[A-Z]*: .*; .*: sh runs without being measured$' "$name: the reason and the remedy are reported"
	is "$(wc -l <err)" 1 "$name: the report is one line"
	is "$(ls without)" "" "$name: no profile"
}
without "a filter's EPERM" "$TARGETS/deny_perf"
without "a filter's ENOSYS" "$TARGETS/deny_perf" -e 38
without "EACCES, to a user" unprivileged "$TARGETS/deny_perf" -e 13
"$TARGETS/deny_perf" countersink attach -q -- not_there 2>err
is $? 127 "perf_event_open refused and a missing command: status 127"
if [ ! -e /sys/bus/event_source/devices/cpu ]; then
	countersink attach -e cycles -o without/a.pb.gz -- sh -c 'exit 5' 2>err
	is $? 5 "an event that is not here: the command runs"
	like "$(cat err)" '^countersink: cycles: ENOENT: .*: sh runs without being measured$' "an event that is not here is reported"
else
	skip "an event that is not here" "this machine has a PMU"
fi
if is_root && have unshare && unshare --pid --fork true 2>/dev/null; then
	unshare --pid --fork "$TARGETS/burn" 100000 >/dev/null &
	pid=$!
	targets="$targets $pid"
	wait_until 30 sh -c 'pgrep -P "$1"' sh $pid
	inner=$(pgrep -P $pid)
	targets="$targets $inner"
	free=$(awk '/^NSpid:/ { print $3 }' "/proc/$inner/status")
	attach_for 200 "$inner" countersink attach -p "$inner" -o ns.pb.gz
	like "$(cat err)" 'burn_60$' "a process in another PID namespace is attached to by its PID here"
	is "$free" 1 "the process in another PID namespace has another PID there"
	kill -9 "$inner" 2>/dev/null
	wait $pid 2>/dev/null
	# A PID there that no process has here.
	number=50
	while [ -e "/proc/$number" ]; do number=$((number + 1)); done
	unshare --pid --fork sh -c 'echo $(($0 - 1)) >/proc/sys/kernel/ns_last_pid; "$1" 100000 & wait' $number "$TARGETS/burn" \
		>/dev/null &
	outer=$!
	wait_until 30 sh -c 'pgrep -P "$(pgrep -P "$1")" burn' sh $outer
	inner=$(pgrep -P "$(pgrep -P $outer)" burn)
	targets="$targets $outer $(pgrep -P $outer) $inner"
	is "$(awk '/^NSpid:/ { print $NF }' "/proc/$inner/status")" "$number" "the process in another PID namespace has the PID $number there"
	refuse 125 "ESRCH: there is no process $number here; .* our process $inner: use -p $inner" "a PID of another PID namespace" -p "$number"
	kill -9 "$inner" "$(pgrep -P $outer)" 2>/dev/null
	wait $outer 2>/dev/null
else
	skip "a process in another PID namespace" "PID namespaces need root"
fi

# ---- rights that change
if is_root && have setpriv; then
	cp "$TARGETS/static_spin" spin_suid
	chmod 4755 spin_suid
	for way in p t; do
		: >go
		start_unprivileged sh -c 'while [ ! -s go ]; do sleep 0.05; done; exec ./spin_suid 0.3'
		countersink attach -$way "$target" -o suid.pb.gz 2>err &
		pid=$!
		wait_until 30 grep -q 'Ctrl-C ends it' err
		echo x >go
		wait $pid
		is $? 0 "attach -$way, a set-user-id program: status 0"
		like "$(cat err)" "spin_suid \([0-9]+\) changed its credentials by exec" "attach -$way, a set-user-id program: the end of its counting is reported"
		unlike "$(cat err)" 'kernel: exits and switches' "attach -$way, a set-user-id program: what it used since is not called exits and switches"
	done
else
	skip "a set-user-id program: the end of its counting is reported" "needs root"
fi


# ---- tracing refused, as Yama's ptrace_scope or a container does
start "$TARGETS/burn" 1000000
wait_until 30 has_run "$target" 50
attach_for 100 "$target" "$TARGETS/deny_perf" -t countersink attach -o /dev/null -p "$target"
is $? 0 "ptrace refused: attach succeeds"
like "$(cat err)" 'could not all be stopped \(EPERM: no right to trace them; Yama.*\): threads and processes that they started meanwhile may be missing' "ptrace refused: the missing stop is reported"
like "$(cat err)" 'burn_60$' "ptrace refused: the report has the functions"
end "$target"

# ---- another mount namespace, where paths mean other files
if is_root && unshare --mount true 2>/dev/null; then
	mkdir inner
	start unshare --mount sh -c 'mount -t tmpfs none inner && cp "$0" inner/burn_there && exec inner/burn_there 1000000' "$TARGETS/burn"
	wait_until 30 sh -c 'grep -q burn_there "/proc/$1/comm" && test "$(ls /proc/$1/root/'"$PWD"'/inner)" = burn_there' sh "$target"
	wait_until 30 has_run "$target" 20
	is "$(ls inner)" "" "another mount namespace: its file is missing in ours"
	attach_for 200 "$target" countersink attach -o mount.pb.gz -p "$target"
	like "$(cat err)" 'burn_there +burn_60$' "another mount namespace: functions are named by the file under the process's root"
	end "$target"
else
	skip "a program in another mount namespace" "mount namespaces need root"
fi

# ---- another root directory, whose owner may change its files
if is_root && have chroot && chroot / true 2>/dev/null; then
	mkdir -p jail/bin "jail$PWD"
	cp "$TARGETS/static_spin" jail/bin/spin_there
	cp "$TARGETS/static_spin" "jail$PWD/other"
	cp "$TARGETS/burn" other
	start chroot jail /bin/spin_there 1000
	wait_until 30 has_run "$target" 20
	attach_for 200 "$target" countersink attach -o jail.pb.gz -p "$target"
	like "$(cat err)" 'spin_there +(main|spin)$' "a program in a chroot has names"
	countersink attach -o jail.pb.gz -p "$target" 2>err &
	pid=$!
	wait_until 30 grep -q 'Ctrl-C ends it' err
	ln -sf "$PWD/other" jail/bin/spin_there
	wait_until 60 has_run "$target" $(($(ran_ms "$target") + 300))
	kill -TERM $pid
	wait $pid
	like "$(cat err)" 'spin_there +(main|spin)$' "a link in a chroot is resolved below that root"
	like "$(gzip -dc jail.pb.gz | tr -c '[:print:]' '\n')" '^/bin/spin_there' "a program in a chroot is named by its path there"
	unlike "$(gzip -dc jail.pb.gz | tr -c '[:print:]' '\n')" "/proc/self|$PWD/jail" "a program in a chroot is not named by the path it was reached by"
	end "$target"
else
	skip "a program in a chroot" "needs root"
fi

# ---- targets that end during attach
wrong=0
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"$TARGETS/lineages" 4 0.05 1 >/dev/null &
	pid=$!
	attach -o /dev/null -p "$pid" 2>err
	status=$?
	[ $status = 0 ] || { [ $status = 125 ] && [ "$(wc -l <err)" = 1 ] && grep -qE 'ESRCH: .*(process '$pid'|it has ended)' err; } ||
		{ wrong=$((wrong + 1)); diag "$(cat err)"; }
	wait $pid
done
is $wrong 0 "a target that ends during attach: a profile, or ESRCH in one line"

# ---- blocking calls continue
mkfifo to_waits
"$TARGETS/blocking_calls" <to_waits >waits_said &
waits=$!
targets="$targets $waits"
exec 7>to_waits
wait_until 60 grep -q ready waits_said
for _ in 1 2 3; do attach -q -d 0.1 -o /dev/null -p "$waits"; done
exec 7>&-
wait $waits
is $? 0 "attach makes no blocking call fail with EINTR"
is "$(cat waits_said)" ready "no blocking call of the target reported an error"

done_testing
