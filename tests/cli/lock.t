#!/bin/bash
# Waits for locks (-e lock): how long each function waited, for which lock, and who held it meanwhile. The program logs its
# own holds and waits; parts are compared, and no time of the machine's.
. "$(dirname "$0")/lib.sh"

export T=$TARGETS/locks
run() { # [OPTION]... -- COMMAND...
	timeout 120 "$COUNTERSINK" -q -o x.pb.gz "$@" >out 2>err
}
# The profile's waits beside the program's own: the sum, and the parts of waiter and holder.
compare() { # FILE
	"$COUNTERSINK" report -a "$1" >report
	"$SRC/tests/cli/lock_truth" report out
}

for mode in processes mutex recursive errorcheck adaptive robust inherit shared mtx timed rwlock; do
	# A machine that takes the CPU from a thread between its wait and its log does not do so thrice.
	for _ in 1 2 3; do
		run -e lock -- "$T" $mode 60
		status=$?
		read -r share contentions waits wrong lock < <(compare x.pb.gz)
		! awk -v s="$share" 'BEGIN { exit !(s > 0.98 && s < 1.02) }' || break
	done
	is "$status $(cat err)" '0 ' "$mode: the program runs"
	ok "$mode: the time of all waits is there ($share)" awk -v s="$share" 'BEGIN { exit !(s > 0.98 && s < 1.02) }'
	ok "$mode: and their number ($contentions of $waits)" test $((contentions * 100)) -gt $((waits * 95)) -a "$contentions" -lt $((waits + waits / 4 + 20))
	case $mode in
	rwlock) want=the_rwlock ;;
	mtx) want=the_mtx ;;
	*) want=the_lock ;;
	esac
	ok "$mode: holders have their parts of each waiter's time ($wrong wrong)" awk -v w="$wrong" 'BEGIN { exit !(w < 0.08) }'
	if test $mode = processes; then
		like "$(cat report)" ' hold_long .* \[another process\]$' 'another process is a holder'
	else
		is "$lock" "$want" "$mode: the lock has its name"
	fi
done
like "$(cat report)" '^Waits for locks, [0-9.]+ m?s of all threads together in [0-9]+ waits:$' 'the report has a table of waits'
like "$(cat report)" '^ +delay % +delay contentions  lock +waiter +holder$' 'with waiter, lock and holder'
like "$(cat report)" '\[free: the waiter was not running yet\]' 'and the time in which it was free'
is "$("$COUNTERSINK" report --json x.pb.gz | python3 -c 'import json, sys; print(*sorted(k for k in json.load(sys.stdin)["rows"][0]["values"] if k in ("delay", "contentions")))')" \
	'contentions delay' 'sample types have the names that pprof gives them'
like "$("$COUNTERSINK" report x.pb.gz | sed -n '/self %/{n;p;}' | head -1)" ' take_lock$' 'the first table has who waited'

# ---- the program's own view
"$T" values >plain
run -e lock -- "$T" values
is "$(cat out)" "$(cat plain)" 'each function returns what it returns otherwise'
run -e lock -- "$T" fork 300
is "$? $(cat err)" '0 ' '300 forks of a program whose threads contend for a lock: no child hangs or fails'
run -e lock -- "$T" condition 300
is "$?" 0 'threads that wait for conditions'
unlike "$("$COUNTERSINK" report -a x.pb.gz)" 'pthread_cond' 'waits for a condition are no waits for a lock'
run -e lock -- "$T" nested 30
like "$("$COUNTERSINK" report -a x.pb.gz)" ' hold_outer .* hold_outer ' 'a recursive lock is held by who has it first'
unlike "$("$COUNTERSINK" report -a x.pb.gz | sed -n '/^Waits/,$p')" 'hold_inner' 'and not released by who has it again'
for mode in no_clock no_stacks; do
	"$T" $mode 30 >plain 2>&1
	plain=$?
	run -e lock,alloc:period=64 -- "$T" $mode 30
	is "$? $(cat out err)" "$plain $(cat plain)" "$mode: the program ends as it does otherwise"
done
run -e lock -- "$T" free 100000
unlike "$("$COUNTERSINK" report x.pb.gz)" 'Waits for locks' 'uncontended locks leave nothing'
run -e lock,alloc -- "$T" mutex 20
is "$?" 0 'lock and alloc together'
like "$("$COUNTERSINK" report x.pb.gz)" '^  allocated ' 'both are there'
run -e task-clock -- cat /proc/self/maps
is "$(grep -c libcountersink-lock out)" 0 'without -e lock its object is not loaded'
run -e lock -- env -i "$T" mutex 20
like "$("$COUNTERSINK" report x.pb.gz)" 'Waits for locks' 'a program that is started with an empty environment is measured'
if command -v python3 >/dev/null; then
	run -e lock -- python3 -c 'import threading, time
lock = threading.Lock()
def work():
    for i in range(100):
        with lock: time.sleep(0.001)
threads = [threading.Thread(target=work) for i in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]; print("done")'
	is "$? $(cat out)" '0 done' 'threads of Python'
	cat >made.py <<'PY'
import threading, time
class Cache:
    def __init__(self):
        self.lock = threading.Lock()
def work(cache):
    for i in range(30):
        with cache.lock: time.sleep(0.001)
def main():
    cache = Cache()
    threads = [threading.Thread(target=work, args=(cache,)) for i in range(3)]
    [t.start() for t in threads]; [t.join() for t in threads]
main()
PY
	run -e lock -- python3 made.py
	like "$("$COUNTERSINK" report -a x.pb.gz)" ' \[made in (Cache\.)?__init__, made\.py:4 < main < <module>\] ' 'a lock that Python made is named by the line that made it'
fi

if command -v g++ >/dev/null; then
	cat >guard.cc <<'CC'
#include <mutex>
#include <unistd.h>
#include <pthread.h>
static std::mutex lock;
__attribute__((noinline)) void take_guarded() { std::lock_guard<std::mutex> guard(lock); usleep(1000); }
static void *work(void *arg) { for (int i = 0; i < 50; i++) take_guarded(); return arg; }
int main() {
	pthread_t one, other;
	pthread_create(&one, nullptr, work, nullptr); pthread_create(&other, nullptr, work, nullptr);
	return pthread_join(one, nullptr) | pthread_join(other, nullptr);
}
CC
	for level in 0 1; do
		g++ -g -O$level -o guard guard.cc -lpthread
		run -e lock -- ./guard
		like "$("$COUNTERSINK" report -a x.pb.gz)" '  lock  +take_guarded < work < start_thread +take_guarded < work < start_thread$' \
			"C++, -O$level: waiter and holder are the program's functions, not the library's"
	done
fi

# ---- waits that no holder ends
W=$TARGETS/plain_waits
"$W" values >plain
run -e lock -- "$W" values
is "$? $(cat out)" "0 $(cat plain)" 'semaphores, ends of threads, barriers and futexes: each function returns what it returns otherwise'
"$W" cancel >plain
run -e lock -- "$W" cancel
is "$? $(cat out)" "0 $(cat plain)" 'a wait that is cancelled ends, and is unwound'
"$W" calls >plain
run -e lock -- "$W" calls
is "$? $(cat out)" "0 $(cat plain)" 'syscall(2) does what it does otherwise: six arguments, errno, vfork, clone, in a handler'
row_of() { # LOCK: "MICROSECONDS CONTENTIONS" of the row of main's waits for it
	"$COUNTERSINK" report -a x.pb.gz | awk -v lock="$1" '
		BEGIN { unit["s"] = 1e6; unit["ms"] = 1e3; unit["us"] = 1; unit["ns"] = 1e-3 }
		index($0, "  " lock "  ") && / wait_once < wait_often < main +\[none\]$/ { print $2 * unit[$3], $4 }'
}
for mode in semaphore semaphore_timed semaphore_clock barrier join futex futexes; do
	if [ $mode = futexes ] && ! "$W" has_futexes; then
		skip "$mode" 'the kernel has no futex_waitv(2)'
		continue
	fi
	run -e lock -- "$W" $mode 60
	read -r waits ns <out
	case $mode in
	semaphore*) lock=the_semaphore ;;
	join) lock='[join]' ;;
	barrier) lock='[barrier the_barrier]' ;;
	futex*) lock='[futex the_word]' ;;
	esac
	read -r us contentions < <(row_of "$lock")
	ok "$mode: a row of its own without a holder, with the time ($us of $((ns / 1000)) us)" awk -v s="${us:-0}" -v ns="$ns" 'BEGIN { exit !(s * 1000 > 0.95 * ns && s * 1000 < 1.05 * ns) }'
	ok "$mode: and the number of waits ($contentions of $waits)" test "${contentions:-0}" -ge $((waits * 9 / 10)) -a "${contentions:-0}" -le $((waits * 3 / 2))
done
run -e lock -- "$W" free 10000
unlike "$("$COUNTERSINK" report x.pb.gz)" 'Waits for locks' 'semaphores that are free, and futexes that have another value, leave nothing'

# ---- locks that are no variables
run -e lock -- "$W" pool
"$COUNTERSINK" report -a x.pb.gz >report
for made in 'pthread_mutex_init(&pool->lock' 'sem_init(&pool->ready'; do
	line=$(grep -nF "$made" "$SRC/tests/targets/plain_waits.c")
	for by in 'use_pools < main' 'other_pool < use_pools'; do
		is "$(grep -cF "[made in pool_create, plain_waits.c:${line%%:*} < $by]" report | sed 's/[1-9].*/some/')" some \
			"$made: named by where it was initialised, and by whom ($by)"
	done
done
unlike "$(sed -n '/^Waits/,$p' report)" ' of process ' 'and not by its address'

# ---- more sums than are kept apart
run -e lock -- "$W" many 20000
is "$?" 0 'waits for 20,000 locks'
"$COUNTERSINK" report -a x.pb.gz >report
like "$(cat report)" 'note +a plain_waits process has 32768 pairs of who waits for whom: of others, the holder is \[unknown\], and the lock \[other locks\]' \
	'a note has how many are kept apart'
like "$(cat report)" ' \[other locks\] +take_each < main .* \[unknown\]$' 'the others are one row'
unlike "$(cat report)" '[1-9] +[0-9]+ +\[not sampled\]$' 'and no wait is lost'

# ---- waits that have not ended
amount_of() { # REGEX: the microseconds of all rows that match
	"$COUNTERSINK" report -a x.pb.gz | awk -v row="$1" '
		BEGIN { unit["s"] = 1e6; unit["ms"] = 1e3; unit["us"] = 1; unit["ns"] = 1e-3 }
		$0 ~ row { sum += $2 * unit[$3]; nr += $4 }
		END { print int(sum), nr + 0 }'
}
run -e lock -- "$W" deadlock
is "$?" 143 'a deadlock that SIGTERM ends'
read -r waits ns <out
read -r us contentions < <(amount_of '  (first|second)  +lock_both < wait_for_ever .* \\[not released until the end\\]$')
is "$contentions" "$waits" 'both waits are rows'
ok "with the time until the end ($us of $((2 * ns / 1000)) us and more)" test "$us" -ge $((2 * ns / 1000))
timeout 120 "$COUNTERSINK" run -q --rotate=0.1 --keep=0 -e lock -o slice.pb.gz -- "$W" deadlock 1500 >out 2>err
read -r waits ns <out
"$COUNTERSINK" merge -q -o x.pb.gz slice.*.pb.gz
read -r us contentions < <(amount_of '  (first|second)  +lock_both < wait_for_ever .* \\[not released until the end\\]$')
is "$contentions" "$waits" 'of slices, the last one has them'
ok "with the same time, but for the fifth digit ($us of $((2 * ns / 1000)) us and more)" test "$us" -ge $((2 * ns / 1001))
"$COUNTERSINK" -q -e lock -o x.pb.gz -- "$W" deadlock 60000 >out 2>err &
stuck() { # in the report of its directory
	"$COUNTERSINK" report -a "$XDG_RUNTIME_DIR"/countersink-* >live 2>&1
	grep -Eq ' [1-9][0-9.]* +[1-9][0-9.]* m?s +2? *.*\[not released until the end\]$' live
}
ok 'a report of a run that goes on has the time until now' wait_until 60 stuck
pkill -TERM -P $! -x plain_waits
wait $!
run -e lock -- "$W" exit
is "$?" 0 'a program that exits while threads wait'
read -r waits ns <out
read -r us contentions < <(amount_of '  the_semaphore  +wait_for_ever ')
is "$contentions" "$waits" 'its waits are there'
ok "with the time until the end ($us of $((2 * ns / 1000)) us and more)" test "$us" -ge $((2 * ns / 1000))
run -e lock -- "$W" jump
is "$?" 0 'a handler that leaves a wait by a jump'
unlike "$("$COUNTERSINK" report -a x.pb.gz)" 'not released until the end' 'that wait is not shown as one that goes on'
run -e lock -- "$W" kept
is "$?" 0 'a program that exits with a lock that it waited for'
read -r last ns _ <out
read -r us contentions < <(amount_of '  first  +take_first .* \\[unknown\\]$')
ok "that wait is there, its holder is not known ($us of $((ns / 1000)) us)" test "$us" -gt $((ns / 1050)) -a "$us" -lt $((ns / 950)) -a "$contentions" = 1
is "$(amount_of '  first  +take_first ')" "$us 1" 'and once'
run -e lock --timeline -- "$W" late
is "$?" 0 'a wait for a lock whose time is over'
read -r last ns _ <out
read -r us _ < <(amount_of '  first  +take_first .* \\[unknown\\]$')
read -r all _ < <(amount_of '  first  +take_first ')
read -r free _ < <(amount_of '  first  +take_first .* \\[free: ')
ok "has the time of all its parts ($all of $((ns / 1000)) us)" test "$all" -gt $((ns / 1050)) -a "$all" -lt $((ns / 950))
ok "who has the lock at its end is not known ($us us), and it is not free then ($free us)" test "$us" -gt $((last / 2000)) -a "$free" -lt "$us"
run -e lock -- "$W" again
is "$?" 0 'a thread that has a lock calls for it once more, and is refused'
read -r us _ < <(amount_of '  first  +take_first .* hold_first ')
read -r all _ < <(amount_of '  first  +take_first ')
ok "it has all of another thread's wait ($us of $all us)" test "$us" -gt $((all * 9 / 10))
run -e lock -- "$W" child
read -r last ns status <out
is "$? $status" '0 3' 'a handler that forks in a wait for a lock'
read -r us _ < <(amount_of '  first  +take_first ')
ok "the wait is the parent's alone ($us of $((ns / 1000)) us)" test "$us" -gt $((ns / 1050)) -a "$us" -lt $((ns / 950))

run -e lock:conditions -- "$W" cancel
"$COUNTERSINK" report -a x.pb.gz >report
unlike "$(sed -n '/^Waits/,$p' report)" 'the_semaphore|the_word|the_condition|wait_to_be_cancelled' 'nor is one that was cancelled'

# ---- conditions, where they are asked for
run -e lock:conditions -- "$T" condition 100
is "$? $(cat err)" '0 ' 'threads that wait for conditions, with lock:conditions'
like "$("$COUNTERSINK" report -a x.pb.gz)" '^ +[0-9.]+ +[0-9.]+ [mu]?s +[0-9]+  \[condition changed\]  take_turns .* \[none\]$' 'have a row of their own'
run -e task-clock,lock:conditions -- "$T" condition 100
like "$("$COUNTERSINK" report -a x.pb.gz)" '  \[condition changed\]  ' 'and behind another event'
run -e lock -- "$T" condition 100
unlike "$("$COUNTERSINK" report -a x.pb.gz)" 'condition changed' 'without it they have none'
run -e lock:conditions -- "$W" cancel
"$W" cancel >plain
is "$? $(cat out)" "0 $(cat plain)" 'a wait for a condition that is cancelled takes the lock again, and is unwound'
for event in lock lock:conditions; do
	run -e $event -- "$TARGETS/old_condition"
	is "$? $(cat out)" '0 40 waits, nothing else written' "$event: a program that is bound to the conditions of glibc 2.2.5 has those"
done

# ---- what libc refuses for a lock that is free, and a child that is not profiled
cat >refused.c <<'E2'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *wait_a_little(void *arg)
{
	usleep(20000);
	return arg;
}

int main(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct timespec wrong = {.tv_nsec = 1000000000}, right = {.tv_sec = 1};
	int status;

	printf("%d %d %d\n", pthread_rwlock_timedrdlock(&lock, &wrong), pthread_rwlock_timedwrlock(&lock, &wrong),
	       pthread_mutex_timedlock(&mutex, &wrong));
	pthread_mutex_unlock(&mutex);
	printf("%d %d %d %d\n", pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &wrong),
	       pthread_rwlock_clockwrlock(&lock, CLOCK_BOOTTIME, &right), pthread_mutex_clocklock(&mutex, CLOCK_BOOTTIME, &right),
	       pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &right));
	fflush(stdout);
	if (!fork()) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_a_little, NULL);
		pthread_join(thread, NULL);
		_exit(3);
	}
	wait(&status);
	printf("%#x\n", status);
	return 0;
}
E2
if cc -o refused refused.c -pthread 2>cc.err; then
	./refused >plain
	for follow in all none; do
		run -e lock --follow=$follow -- ./refused
		is "$? $(cat out)" "0 $(cat plain)" "times and clocks that are refused, and a child, --follow=$follow: as without us"
	done
else
	skip 'times and clocks that are refused' "it is not compiled: $(head -n 1 cc.err)"
fi

if have valgrind; then
	run -e lock -- valgrind "$TARGETS/guest_memory" work
	is "$? $(grep -c 'switching stacks' err)" '5 0' 'valgrind sees no change of stacks'
else
	skip 'valgrind sees no change of stacks' 'no valgrind here'
fi
like "$("$COUNTERSINK" events lock)" 'lock:conditions' 'events lists it'
"$COUNTERSINK" -e '{lock:conditions,task-clock}' -o w.pb.gz -- true 2>err
like "$? $(cat err)" '^125 .*lock is measured from the start of a program on: by run and gate, outside of \{\}' 'it is refused in a group'
"$COUNTERSINK" -e '{lock,task-clock}' -o w.pb.gz -- true 2>err
is "$?" 125 'a group with lock is refused'
like "$(cat err)" 'lock is measured from the start of a program on: by run and gate, outside of \{\}' 'with the reason'
done_testing
