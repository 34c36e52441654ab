#!/bin/sh
# Nothing is left: no memory to lock, since others of this user's processes have it all, or no file descriptors. The program
# runs on, what can still be had is had, and one line says what is missing and what to do.
. "$(dirname "$0")/lib.sh"

"$TARGETS/deny_perf" true || skip_all "this kernel has no seccomp filters"
grep -q '^Seccomp:.*[12]' /proc/self/status && skip_all "perf_event_open may be refused here"
if [ "$(id -u)" = 0 ]; then
	have setpriv || skip_all "root is not limited, and there is no setpriv"
	# The account is the user's: one that no other test is.
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
	like "$(cat err)" "^  engine      timer: sigtrap, signal: $remedy\$" "its samples come by timers, and a line says why"
	like "$(cat err)" ' [1-9][0-9]* samples by task-clock$' "there are some"
	is "$(grep -c 'EPERM' err)" 0 "nothing else is blamed"
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
like "$(cat err)" '^  engine      sigtrap$' "the first ones are sampled as ever"
like "$(cat err)" "^  warning     some threads are sampled by the timer engine, on $tick: $remedy\$" "the others by timers, which is said"

# ---- locked memory: stat, attach, persist

exhausted "$COUNTERSINK" stat -e task-clock,page-faults:u -- "$TARGETS/burn" 50 >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "stat needs no ring"
like "$(cat err)" '^ +[0-9]+ +page-faults:u' "and counts"
exhausted "$COUNTERSINK" stat --per-thread -e task-clock -- "$TARGETS/burn" 50 >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "stat --per-thread runs the command without"
like "$(cat err)" "^note: threads are not told apart: $remedy\$" "and says why threads are not told apart"
like "$(cat err)" '^ +[0-9.]+ ms  task-clock' "but counts"
exhausted -k 32 "$COUNTERSINK" stat --per-thread -e task-clock -- "$TARGETS/burn" 50 >out 2>err
unlike "$(cat err)" 'no memory' "with a few pages it tells them apart"

exhausted "$COUNTERSINK" attach -- "$TARGETS/burn" 100 >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "what attach starts runs on"
like "$(cat err)" "^countersink: no samples, the counts alone: $remedy\$" "with the counts alone, which is said"
like "$(cat err)" '^  counted     task-clock [0-9.]+ m?s in the whole tree$' "and they are there"
exhausted -k 32 "$COUNTERSINK" attach -- "$TARGETS/burn" 100 >out 2>err
like "$(cat err)" "^countersink: stacks are walked by frame pointers, since [0-9]+ KiB for each CPU are too little for copies of them: $remedy\$" \
	"with a few pages stacks come by frame pointers"
like "$(cat err)" ' [1-9][0-9]* samples by task-clock$' "and samples come"

mkfifo up
as_user sh -c 'echo $$ >pid; exec cat' <up &
exec 3>up
wait_until 10 test -s pid
target=$(cat pid)
exhausted "$COUNTERSINK" attach -d 0.2 -p "$target" >out 2>err
is $? 0 "a process that runs already is counted"
like "$(cat err)" "^countersink: no samples, the counts alone: $remedy\$" "and nothing else, which is said"
exhausted "$COUNTERSINK" persist detach --persist-dir=. -p "$target" -m 4 -e page-faults:u >out 2>err
is $? 1 "an event with a ring cannot be kept"
like "$(cat err)" "^countersink: page-faults.* cannot be made persistent: $remedy" "and the cause is named"
exhausted "$COUNTERSINK" persist detach --persist-dir=. -p "$target" -e page-faults:u >out 2>err
is $? 0 "one without can"
as_user "$COUNTERSINK" persist attach --persist-dir=. "$(cat out)"
is $? 0 "and ends when it is attached"
exec 3>&-
wait

exhausted "$COUNTERSINK" doctor >out
like "$(cat out)" '^warn +engine +timer: .* are over what this user may lock' "the doctor names the limit"
like "$(cat out)" '^ +-> .*ulimit -l' "and what to do"

# ---- file descriptors

with_fds() {
	# shellcheck disable=SC3045 # the shells that these tests run in have it
	(ulimit -n "$1" && shift && exec "$@")
}
for fds in 5 6 7 8 9 10 12 14 16; do
	with_fds $fds "$COUNTERSINK" -- "$TARGETS/burn" 20 >out 2>err
	is "$?:$(grep -c '^burn ' out)" "0:1" "with $fds file descriptors the command runs"
	with_fds $fds "$COUNTERSINK" stat -e task-clock -- "$TARGETS/burn" 20 >out 2>err
	is "$?:$(grep -c '^burn ' out)" "0:1" "under stat, too"
done
with_fds 5 "$COUNTERSINK" -- sh -c 'echo "$LD_PRELOAD"; exit 9' >out 2>err
is "$?:$(cat out)" "9:" "where there are too few to start it, it takes the launcher's place"
is "$(cat err)" "countersink: Too many open files: sh runs without being measured; raise ulimit -n: about 16 more will do" \
	"after one line"
done_testing
