#!/bin/sh
# Resources are exhausted: no lockable memory, since other processes of this user use all of it, or no file descriptors. The
# program runs on, with what is still available, and one line reports what is missing and what to do.
. "$(dirname "$0")/lib.sh"

"$TARGETS/deny_perf" true || skip_all "this kernel has no seccomp filters"
grep -q '^Seccomp:.*[12]' /proc/self/status && skip_all "perf_event_open may be refused here"
if [ "$(id -u)" = 0 ]; then
	have setpriv || skip_all "root is not limited, and there is no setpriv"
	# Locked memory is accounted by user: use one that no other test uses.
	# Of root's own programs (in its home) this user sees nothing.
	PATH=$BUILD/bin:/usr/local/bin:/usr/bin:/bin
	as_user() {
		setpriv --reuid=64173 --regid=64173 --clear-groups "$@"
	}
	mkdir own && chown 64173:64173 own && cd own || exit 1
else
	as_user() {
		"$@"
	}
fi
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 0 ] || skip_all "locked memory is not limited at paranoid -1"

exhausted() {
	as_user "$TARGETS/hold_rings" "$@"
}
remedy='no memory may be locked any more for rings: raise ulimit -l, or sysctl kernel.perf_event_mlock_kb'
tick='the kernel.s tick only'

exhausted true 2>err || skip_all "locked memory is not limited: $(cat err)"

# ---- locked memory: run

try_run() { # NAME OUTPUT COMMAND...
	try_name=$1 try_output=$2
	shift 2
	exhausted "$COUNTERSINK" -- "$@" >out 2>err
	is "$?:$(cat out)" "0:$try_output" "$try_name runs on without a page to lock"
	like "$(cat err)" "^  engine      timer: sigtrap, signal: $remedy\$" "$try_name without lockable memory: the report names the timer engine and why"
	like "$(cat err)" ' [1-9][0-9]* samples by task-clock$' "$try_name without lockable memory: there are samples"
	is "$(grep -c 'EPERM' err)" 0 "$try_name without lockable memory: EPERM is not reported"
}
try_run burn "$(as_user "$TARGETS/burn" 200)" "$TARGETS/burn" 200
if as_user python3 -c pass 2>/dev/null; then
	try_run python3 2999998 python3 -c 's = 0
for i in range(1000000): s += i * i % 7
print(s + 1000000)'
else
	skip "python3 runs on" "there is none"
fi
if as_user sqlite3 :memory: 'select 1' >/dev/null 2>&1; then
	try_run sqlite3 320000400000 sqlite3 :memory: \
		'with recursive c(x) as (select 1 union all select x + 1 from c where x < 800000) select sum(x) from c'
else
	skip "sqlite3 runs on" "there is none"
fi

# Some threads have a ring, the others have timers.
exhausted -k 64 "$COUNTERSINK" -- "$TARGETS/threads8" >out 2>err
is "$?:$(grep -c '^worker' out)" "0:8" "threads run on with little memory to lock"
like "$(cat err)" '^  engine      sigtrap$' "with little lockable memory the first threads are sampled by sigtrap"
like "$(cat err)" "^  warning     some threads are sampled by the timer engine, on $tick: $remedy\$" "with little lockable memory the warning reports threads sampled by timers"

# The threads that have no ring begin at the same time: they agree on one signal for their timers.
for _ in $(seq 10); do
	exhausted -k 32 "$COUNTERSINK" -- "$TARGETS/threads8" 20 2>err || echo "status $?"
done >out
is "$(grep -c '^worker' out):$(grep '^status' out)" "80:" "no process ends of the timers' signal where several threads have no ring"

# ---- locked memory: stat, attach, persist

exhausted "$COUNTERSINK" stat -e task-clock,page-faults:u -- "$TARGETS/burn" 50 >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "stat without lockable memory runs the command"
like "$(cat err)" '^ +[0-9]+ +page-faults:u' "stat without lockable memory counts"
exhausted "$COUNTERSINK" stat --per-thread -e task-clock -- "$TARGETS/burn" 50 >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "stat --per-thread without lockable memory runs the command"
like "$(cat err)" "^note: threads are not counted separately: $remedy\$" "stat --per-thread without lockable memory reports why threads are not separate"
like "$(cat err)" '^ +[0-9.]+ ms  task-clock' "stat --per-thread without lockable memory counts the whole"
exhausted -k 32 "$COUNTERSINK" stat --per-thread -e task-clock -- "$TARGETS/burn" 50 >out 2>err
unlike "$(cat err)" 'no memory' "stat --per-thread with a few lockable pages counts by thread"

exhausted "$COUNTERSINK" attach -- "$TARGETS/burn" 100 >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "attach without lockable memory runs the command"
like "$(cat err)" "^countersink: no samples, the counts alone: $remedy\$" "attach without lockable memory reports that there are counts only"
like "$(cat err)" '^  counted     task-clock [0-9.]+ m?s in the whole tree$' "attach without lockable memory counts"
exhausted "$COUNTERSINK" attach -e page-faults -o counted.pb.gz -- "$TARGETS/burn" 10 >out 2>err
"$COUNTERSINK" report counted.pb.gz >out
like "$(cat out)" '^[1-9][0-9]* of page-faults in ' "attach without lockable memory: the profile has what was counted"
like "$(cat out)" ' 100[.]00 +([1-9][0-9]*) +100[.]00 +\1 +\[not sampled\]$' "attach without lockable memory: all of it is in a row of its own"
exhausted -k 32 "$COUNTERSINK" attach -- "$TARGETS/burn" 100 >out 2>err
like "$(cat err)" "^countersink: stacks are walked by frame pointers, since [0-9]+ KiB for each CPU are too little for copies of them: $remedy\$" \
	"attach with a few lockable pages walks by frame pointers"
like "$(cat err)" ' [1-9][0-9]* samples by task-clock$' "attach with a few lockable pages has samples"

mkfifo up
as_user sh -c 'echo $$ >pid; exec cat' <up &
exec 3>up
wait_until 30 test -s pid
target=$(cat pid)
exhausted "$COUNTERSINK" attach -d 0.2 -p "$target" >out 2>err
is $? 0 "attach -p without lockable memory: status 0"
like "$(cat err)" "^countersink: no samples, the counts alone: $remedy\$" "attach -p without lockable memory reports that there are counts only"
exhausted "$COUNTERSINK" persist detach --persist-dir=. -p "$target" -m 4 -e page-faults:u >out 2>err
is $? 1 "persist without lockable memory: an event with a ring is refused"
like "$(cat err)" "^countersink: page-faults.* cannot be made persistent: $remedy" "persist without lockable memory: the cause is reported"
exhausted "$COUNTERSINK" persist detach --persist-dir=. -p "$target" -e page-faults:u >out 2>err
is $? 0 "persist without lockable memory: an event without a ring is kept"
as_user "$COUNTERSINK" persist attach --persist-dir=. "$(cat out)"
is $? 0 "persist without lockable memory: an event without a ring can be attached"
exec 3>&-
wait

exhausted "$COUNTERSINK" doctor >out
like "$(cat out)" '^warn +engine +timer: .* are over what this user may lock' "the doctor names the limit"
like "$(cat out)" '^ +-> .*ulimit -l' "the doctor gives the remedy for locked memory"

# ---- file descriptors

with_fds() {
	# shellcheck disable=SC3045 # the shells that these tests run in have it
	(ulimit -n "$1" && shift && exec "$@")
}
for fds in 5 6 7 8 9 10 12 14 16; do
	with_fds $fds "$COUNTERSINK" -- "$TARGETS/burn" 20 >out 2>err
	is "$?:$(grep -c '^burn ' out)" "0:1" "with $fds file descriptors the command runs"
	with_fds $fds "$COUNTERSINK" stat -e task-clock -- "$TARGETS/burn" 20 >out 2>err
	is "$?:$(grep -c '^burn ' out)" "0:1" "with $fds file descriptors the command runs under stat"
done
with_fds 5 "$COUNTERSINK" -- sh -c 'echo "$LD_PRELOAD"; exit 9' >out 2>err
is "$?:$(cat out)" "9:" "with too few file descriptors to start it, the command replaces the launcher"
is "$(cat err)" "countersink: Too many open files: sh runs without being measured; raise ulimit -n: about 16 more will do" \
	"with too few file descriptors one line reports it"
done_testing
