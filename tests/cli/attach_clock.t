#!/bin/bash
# Profiles of attach have the CPU time that the kernel accounts, also of threads that switch all the time, and of threads and
# processes that are shorter than a period: at least what a target uses while it is attached to, and no more than what it uses
# from before attach starts until after it has ended, or than what events counted. Of children /proc has ticks.
. "$(dirname "$0")/lib.sh"

. "$SRC/tests/cli/attach.sh"
needs_events

mkfifo asks answers
ticks=$((2 * 1000000000 / $(getconf CLK_TCK))) # of user and of system time
ask() { # WORD: what the target has used, in ns
	echo "$1" >&3
	read -r -t 300 own children thread <&4
}
start_target() { # [COMMAND...]: which executes it
	"$@" "$TARGETS/switches" <asks >answers 2>/dev/null &
	target=$!
	targets="$targets $target"
	exec 3>asks 4<answers
	ask look
}
end_target() {
	exec 3>&- 4<&-
	wait $target 2>/dev/null
}
# Of what ask has had.
all_ns() { echo $((own + children)); }
thread_ns() { echo "$thread"; }
# work READ ARGUMENT...: attach to the target while it works; command READ prints what the kernel has accounted. What it
# should have is in $least and $most.
work() {
	local read=$1
	shift
	ask look
	most=$("$read")
	[ "$read" != all_ns ] || most=$((most - ticks))
	: >err
	countersink attach -j "$@" >json 2>err &
	attach=$!
	targets="$targets $attach"
	wait_until 60 sh -c 'grep -q "Ctrl-C ends it" err || ! kill -0 "$1"' sh $attach
	ask look
	own_before=$own children_before=$children thread_before=$thread
	ask work
	used=$((own - own_before + children - children_before - ticks))
	[ "$used" -ge $((own - own_before)) ] || used=$((own - own_before))
	[ "$read" != thread_ns ] || used=$((thread - thread_before))
}
end_attach() {
	kill -TERM $attach 2>/dev/null
	wait $attach
	status=$?
}
# has_it PROFILE NAME: a profile has the CPU time.
has_it() {
	local sum counted
	sum=$(sum_of task-clock "$1") counted=$(count_of task-clock <json)
	[ "$most" -ge "$counted" ] || most=$counted
	ok "$2: $sum ns are at least $used, and at most $most" test "$sum" -ge "$used" -a "$sum" -le "$most" || diag "counted: $counted, $(cat err)"
}

start_target
work all_ns -o one.pb.gz -e '{task-clock,page-faults}' -p "$target"
end_attach
ask look
most=$(($(all_ns) - most))
is $status 0 "a process: status 0"
has_it one.pb.gz "a process"
like "$(countersink report one.pb.gz 2>&1)" '\[(kernel: exits and switches|not counted)\]' "a process: what no event counts has a row"
faults_are_whole() { # PROFILE NAME
	local faults counted
	faults=$(sum_of page-faults "$1") counted=$(count_of page-faults <json)
	ok "$2: rows have all page faults that were counted: $faults of $counted" test "$faults" -gt 0 -a "$faults" = "$counted"
}
faults_are_whole one.pb.gz "a process"

work all_ns -o slices.pb.gz --rotate=0.1 --keep=0 -e '{task-clock,page-faults}' -p "$target"
end_attach
ask look
most=$(($(all_ns) - most))
is $status 0 "slices: status 0"
countersink merge -q -o slices_all.pb.gz slices.*.pb.gz
has_it slices_all.pb.gz "slices"
faults_are_whole slices_all.pb.gz "slices"
gap_slices() {
	local slice nr=0
	for slice in slices.*.pb.gz; do
		! countersink report "$slice" 2>&1 | grep -Eq '\[(kernel: exits and switches|not counted)\]' || nr=$((nr + 1))
	done
	echo $nr
}
ok "each slice has its own part of what no event counts" test "$(gap_slices)" -ge 2

work thread_ns -o thread.pb.gz -e task-clock -t "$target"
end_attach
ask look
most=$((thread - most))
is $status 0 "a thread: status 0"
if [ "$(cut -d' ' -f1 "/proc/$target/schedstat" 2>/dev/null || echo 0)" != 0 ]; then
	has_it thread.pb.gz "a thread"
else
	skip "a thread" "this kernel has no /proc/TID/schedstat"
fi

# It is killed, after a slice that began when it had worked.
work all_ns -o killed.pb.gz --rotate=0.1 --keep=0 -e task-clock -p "$target"
killed_slices() { find . -name 'killed.*.pb.gz' | wc -l; }
more_slices() { [ "$(killed_slices)" -gt "$1" ]; }
nr=$(($(killed_slices) + 1))
ok "a slice is written after the work" wait_until 60 more_slices $nr
ask look
most=$(($(all_ns) - most + ticks)) # until it is killed it waits
{
	kill -9 "$target"
	end_target
} 2>/dev/null
wait $attach
is $? 0 "a process that is killed: attach ends"
countersink merge -q -o killed_all.pb.gz killed.*.pb.gz
has_it killed_all.pb.gz "a process that is killed"

# ---- a control group
group=groups/countersink.$$
group_ns() { sed -n 's/^usage_usec \(.*\)/\1000/p' $group/cpu.stat; }
if is_root && mkdir groups && mount -t cgroup2 none groups 2>/dev/null && mkdir $group && grep -q usage_usec $group/cpu.stat; then
	# shellcheck disable=SC2016
	start_target sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' $group
	work group_ns -o group.pb.gz -e task-clock --cgroup $group
	end_attach
	if [ $status = 0 ]; then
		most=$(($(group_ns) - most + 1000))
		has_it group.pb.gz "a control group"
	else
		skip "a control group" "$(cat err)"
	fi
	end_target
	wait_until 30 rmdir $group
else
	skip "a control group" "control groups of version 2 cannot be mounted here"
fi
[ ! -d groups ] || umount groups 2>/dev/null

# ---- a control group of version 1, which has no clock: the samples of all its threads, which share the CPUs' events, add up
mkdir counted
if is_root && mount -t cgroup -o perf_event none counted 2>/dev/null && mkdir counted/countersink.$$; then
	# shellcheck disable=SC2016
	start_target sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' counted/countersink.$$
	work all_ns -o counted.pb.gz -e task-clock --cgroup counted/countersink.$$
	end_attach
	is $status 0 "a control group of version 1: status 0"
	is "$(sum_of task-clock counted.pb.gz)" "$(count_of task-clock <json)" \
		"a control group of version 1: the samples have what was counted"
	end_target
	wait_until 30 rmdir counted/countersink.$$
else
	skip "a control group of version 1" "the hierarchy of perf_event cannot be mounted here"
fi
umount counted 2>/dev/null

# ---- what was used before does not count
if command -v python3 >/dev/null; then
	cat >before.py <<-'END'
		import os, sys, time
		def burn(seconds):
		    while time.process_time() < seconds: pass
		if not os.fork():
		    burn(0.3)
		    os._exit(0)
		os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
		print("ended", flush=True)
		sys.stdin.readline()
		os.wait()
		print("waited", flush=True)
		sys.stdin.readline()
	END
	python3 before.py <asks >answers &
	target=$!
	targets="$targets $target"
	exec 3>asks 4<answers
	read -r -t 60 _ <&4
	: >err
	countersink attach -j -o zombie.pb.gz -e task-clock -p $target >json 2>err &
	attach=$!
	targets="$targets $attach"
	wait_until 60 sh -c 'grep -q "Ctrl-C ends it" err || ! kill -0 "$1"' sh $attach
	echo >&3
	read -r -t 60 answer <&4
	end_attach
	end_target
	sum=$(sum_of task-clock zombie.pb.gz)
	ok "a child that had ended, and is waited for later: $sum ns are less than the 300 ms that it had used" test "$answer" = waited -a "${sum:-0}" -lt 200000000
else
	skip "a child that had ended, and is waited for later" "python3 is not installed"
fi
start_target
countersink attach -q -o faults.pb.gz --rotate=0.1 --keep=0 -e page-faults -d 0.5 -p "$target" 2>err
countersink merge -q -o faults_all.pb.gz faults.*.pb.gz
end_target
unlike "$(countersink report faults_all.pb.gz 2>&1)" 'kernel: exits and switches' "slices without an event of CPU time have none"

# ---- a command, which attach waits for
printf 'work\nlook\n' | attach -o command.pb.gz -e task-clock -- sh -c '"$1"; exit 3' sh "$TARGETS/switches" >out 2>err
is $? 3 "a command: its status"
read -r own children thread <out
sum=$(sum_of task-clock command.pb.gz)
ok "a command: $sum ns are at least $((own + children))" test "$sum" -ge $((own + children))

done_testing
