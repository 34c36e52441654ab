#!/bin/bash
# Allocations (-e alloc): totals are exact, functions are within what their margin says, and what is in use at the end is
# what was not freed. The program counts its own calls.
. "$(dirname "$0")/lib.sh"

export T=$TARGETS/allocates
run() { # [OPTION]... -- COMMAND...: the program's figures are in out
	"$COUNTERSINK" -q -o x.pb.gz "$@" >out 2>err
}
totals() { # FILE: bytes and objects of all
	"$COUNTERSINK" report --json "$1" | python3 -c '
import json, sys
report = json.load(sys.stdin)
print(*[sum(row["values"][name] for row in report["rows"]) for name in ("alloc_space", "alloc_objects")])'
}
self() { # FILE FUNCTION TYPE [OPTION]...
	"$COUNTERSINK" report --json "${@:4}" "$1" | python3 -c '
import json, sys
print(sum(row["values"][sys.argv[2]] for row in json.load(sys.stdin)["rows"] if row["name"] == sys.argv[1]))' "$2" "$3"
}
minus() { # "A B" "C D"
	set -- $1 $2
	echo "$(($1 - $3)) $(($2 - $4))"
}

# ---- exact totals: what libc allocates for itself is the same without the calls
for mode in "calls 3000" "threads 6 4000" "daemon 5000" "keep 4000" "handler 2000"; do
	set -- $mode
	case $mode in
	threads*) none="threads 6 0" ;;
	*) none="$1 0" ;;
	esac
	run -e alloc:period=16K -- "$T" $none
	base=$(minus "$(totals x.pb.gz)" "$(cat out)")
	run -e alloc:period=16K -- "$T" $mode
	is "$? $(cat err)" '0 ' "$mode: runs"
	is "$(minus "$(totals x.pb.gz)" "$(cat out)")" "$base" "$mode: bytes and objects are exact"
done
run -e alloc -- "$T" idle 30
ok 'threads that never had a sample, and are there at the end, are counted' \
	awk -v got="$(totals x.pb.gz)" 'END { split(got, g); exit !(g[2] >= $2 && g[2] < $2 + 200) }' out
run -e alloc -c 4K -- "$T" exec 500 "$T" calls 700
is "$(totals x.pb.gz)" "$(awk '{ b += $1; o += $2 } END { print b, o }' out)" 'before and after an exec, totals are exact'
run -e alloc -- env -i "$T" calls 800
ok 'a program that is started with an empty environment is counted' \
	awk -v got="$(totals x.pb.gz)" 'END { split(got, g); exit !(g[1] >= $1 && g[2] >= $2 && g[2] < $2 + 200) }' out
run -e alloc:period=64K -- "$T" fork 300
is "$?" 0 '300 forks of a program whose threads allocate: no child hangs or fails'

# ---- functions
for seed in 1 2 3; do
	run -e alloc:period=32K -- "$T" functions 400 $seed
	"$COUNTERSINK" report --json x.pb.gz >x.json
	ok "functions have their bytes within twice their margin (seed $seed)" python3 -c '
import json, math
rows = {row["name"]: row["values"] for row in json.load(open("x.json"))["rows"]}
whole = 400 << 20
for name, part in (("part_40", .4), ("part_30", .3), ("part_20", .2), ("part_10", .1)):
    margin = 2 * math.sqrt(32768 * part * whole)
    assert abs(rows[name]["alloc_space"] - part * whole) < 2 * margin + .02 * whole, (name, rows[name], margin)'
done
"$COUNTERSINK" report x.pb.gz >report
like "$(cat report)" '^  allocated +4[0-9]{2}\.[0-9]+ MiB in [0-9,]+ objects, counted; functions by a sample in 32\.000 KiB' \
	'the head has both totals and the period'
like "$(cat report)" '^ +self % +self +total % +total +\+- % alloc_objects +module +function$' 'the table has a margin'
like "$(cat report)" '^In use at the end, [0-9.]+ [KM]iB, estimated:$' 'what is in use at the end has a table of its own'
unlike "$(cat report)" 'task-clock every.*alloc|^.* alloc_space ' 'columns of CPU time are not mixed with allocations'
is "$("$COUNTERSINK" export --format=pprof -o - x.pb.gz 2>/dev/null | python3 -c '
import gzip, sys
data = gzip.decompress(sys.stdin.buffer.read())
print(*[name for name in ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space") if name.encode() in data])')" \
	'alloc_objects alloc_space inuse_objects inuse_space' 'sample types have the names that pprof gives them'
run -e task-clock,alloc -- "$T" functions 100 1
like "$("$COUNTERSINK" report x.pb.gz)" '^Allocated, [0-9.]+ MiB in all:$' 'behind another event, allocations have a table of their own'

# ---- what is in use
run -e alloc:period=4K -- "$T" keep 8000
ok 'blocks that another thread frees, or that realloc moves, are not in use; those that stay are' python3 -c '
import sys
grown, main = map(int, sys.argv[1:])
assert 0.8 * 8000 * 1024 < grown < 1.2 * 8000 * 1024, grown
assert main < 400 * 1024, main' "$(self x.pb.gz grow_kept inuse_space)" "$(self x.pb.gz keep inuse_space)"
run --leaks -c 16K -- "$T" leak 4000
is "$?" 0 'run --leaks'
lost=$(self x.pb.gz lose_blocks leak_space)
ok "--leaks has what is not freed ($lost)" awk -v n="$lost" 'BEGIN { exit !(n > 0.75 * 4096000 && n < 1.25 * 4096000) }'
is "$(self x.pb.gz lose_young leak_space) $(self x.pb.gz give_back leak_space)" '0 0' \
	'and neither what was freed nor what is younger than a tenth of the run'
like "$("$COUNTERSINK" report x.pb.gz)" '^ +100\.00 .* lose_blocks$' 'the report begins with what leaks'
run --leaks -- "$T" calls 10
like "$("$COUNTERSINK" report x.pb.gz)" '^ +nothing that was not freed has a sample; a smaller period, as -c 16K, finds smaller leaks$' \
	'a table without a leak is not empty'
COUNTERSINK_LEAKS=1 run -- "$T" leak 400
is "$("$COUNTERSINK" report --csv x.pb.gz | head -1 | grep -c leak_space)" 1 'COUNTERSINK_LEAKS=1 is --leaks'

rm out
"$COUNTERSINK" -q -e alloc -o k.pb.gz -- "$T" wait >out 2>err &
launcher=$!
deadline=$((SECONDS + 60))
until [ -s out ] || [ $SECONDS -gt $deadline ]; do :; done
pkill -KILL -P $launcher -x allocates
wait $launcher
like "$("$COUNTERSINK" report k.pb.gz)" 'what is in use at the end is not known of 1 of the processes' \
	'that a killed process shows nothing that is in use is reported'

# ---- interpreted frames
if command -v python3 >/dev/null; then
	cat >lines.py <<'PY'
kept = []
def grow():
    for i in range(2000):
        kept.append(bytearray(5000))
grow()
PY
	run -e alloc:period=16K -- python3 lines.py
	like "$("$COUNTERSINK" report --fold-native --by=line x.pb.gz | sed -n '/self %/,$p' | sed -n 2p)" 'lines\.py:4 grow$' \
		'the line of Python that allocates is named'
	like "$("$COUNTERSINK" report x.pb.gz)" "Python's objects of at most 512 bytes" \
		"that Python's small objects are not seen is reported"
fi

# ---- allocators of others
if command -v gcc >/dev/null; then
	cat >own.c <<'C'
#include <stddef.h>
#include <unistd.h>
static char heap[1 << 22];
static size_t used;
void *malloc(size_t n) { size_t at = used; used += (n + 15) & ~(size_t)15; return used < sizeof(heap) ? heap + at : NULL; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { char *q = malloc(n); for (size_t i = 0; p && q && i < n; i++) q[i] = ((char *)p)[i]; return q; }
void free(void *p) { (void)p; }
#ifdef NEW
void *_Znwm(size_t n) { return malloc(n); }
void _ZdlPv(void *p) { (void)p; }
#endif
#ifdef MAIN
int main(void) { for (int i = 0; i < 1000; i++) free(malloc(1000)); return write(1, "own\n", 4) != 4; }
#endif
C
	# Handlers of the program's while a sample is taken: on another stack, and left by a jump.
	cat >reentrant.c <<'C'
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
static _Atomic size_t used;
static char *_Atomic heap;
void *malloc(size_t n) {
	char *at = heap, *none = NULL;
	if (!at) {
		at = mmap(0, 1UL << 36, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (!atomic_compare_exchange_strong(&heap, &none, at)) at = heap;
	}
	return at + atomic_fetch_add(&used, (n + 31) & ~(size_t)15);
}
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { char *q = malloc(n); for (size_t i = 0; p && i < n; i++) q[i] = ((char *)p)[i]; return q; }
void free(void *p) { (void)p; }
C
	gcc -O1 -fno-builtin -shared -fPIC -o reentrant.so reentrant.c
	for mode in alternate jump; do
		for engine in auto timer; do
			LD_PRELOAD=$PWD/reentrant.so run --engine=$engine -e alloc:period=64 -- "$T" $mode 300000
			is "$? $(cat err)" '0 ' "$mode, $engine: handlers that interrupt samples do no harm"
			ok "$mode, $engine: and the thread is sampled on" test "$(totals x.pb.gz | cut -d' ' -f2)" -ge 300000
		done
	done
	printf '#include <stdlib.h>\nint main(void) { for (int i = 0; i < 10000; i++) { void *volatile p = calloc(10, 10); p = realloc(p, 300); free(p); } return 0; }\n' >once.c
	gcc -O1 -fno-builtin -o once once.c
	LD_PRELOAD=$PWD/reentrant.so run -e alloc -- ./once
	is "$(totals x.pb.gz | cut -d' ' -f2)" 20000 'calls of an allocator of its own functions are not counted once more'
	run -e alloc:period=16 -- "$T" alternate 30000
	is "$("$COUNTERSINK" report --csv -e alloc_space x.pb.gz | grep -c '^on_alarm,allocates,[1-9]')" 0 \
		'no sample is taken on an alternate stack, also of a thread that had none before'
	gcc -O1 -fno-builtin -DMAIN -o own own.c
	run -e alloc -- ./own
	is "$? $(cat out) $(cat err)" '0 own ' 'a program with a malloc of its own runs'
	like "$("$COUNTERSINK" report x.pb.gz)" 'allocations are not seen: the program has a malloc of its own' 'and that it has one is reported'
	is "$("$COUNTERSINK" report --csv x.pb.gz | head -1 | grep -c alloc_space)" 0 'no zero is shown for it'
	printf '#include <stdlib.h>\nint main(void) { free(malloc(5)); void *volatile p = malloc(77); p = 0; return !p && 0; }\n' >leaks.c
	if gcc -g -fsanitize=address -o leaks leaks.c 2>/dev/null; then
		env ASAN_OPTIONS=detect_leaks=1 ./leaks 2>plain
		env ASAN_OPTIONS=detect_leaks=1 "$COUNTERSINK" -q -e alloc -o x.pb.gz -- ./leaks 2>err
		is "$(grep -c csink err) $(grep -c 'in main' err)" "0 $(grep -c 'in main' plain)" "a sanitizer's report has no frame of ours"
		like "$("$COUNTERSINK" report x.pb.gz)" 'allocations are not seen: a program with a sanitizer is left alone' 'and a line reports that'
		# Were the stack pointer on another stack, by a sample, what earlier calls left on the thread's would count as pointers.
		for engine in sigtrap signal timer; do
			: >err
			for _ in 1 2 3 4 5 6 7 8 9 10; do
				env ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=log_threads=1 \
					"$COUNTERSINK" -q -F 20000 --engine=$engine -o x.pb.gz -- ./leaks 2>>err
			done
			is "$(sed -n 's/.*Stack at 0x\([0-9a-f]*\)-0x\([0-9a-f]*\) (SP = 0x\([0-9a-f]*\)).*/\1 \2 \3/p' err | while read -r low high sp; do
				echo $((16#$sp >= 16#$low && 16#$sp < 16#$high))
			done | paste -sd' ')" '1 1 1 1 1 1 1 1 1 1' "$engine at 20 kHz: LeakSanitizer sees each thread on its own stack"
		done
	fi
	gcc -O1 -fno-builtin -DNEW -shared -fPIC -o libown.so own.c
	LD_PRELOAD=$PWD/libown.so run -e alloc:period=1K -- "$T" handler 200
	like "$("$COUNTERSINK" report x.pb.gz)" 'what C\+\+ allocates by new is not seen: libown\.so has operators of its own' \
		"an allocator's own operator new is reported"
	ok 'an allocator that is preloaded is counted' test "$(totals x.pb.gz | cut -d' ' -f2)" -ge "$(cut -d' ' -f2 out)"
	echo 'int main(void) { return 0; }' >plain.c
	gcc -static -o static plain.c 2>/dev/null && run -e alloc -- ./static &&
		like "$("$COUNTERSINK" report x.pb.gz)" 'allocations of programs that cannot be injected are not seen' \
			'that a static program shows no allocations is reported'
fi
run -e alloc -- sh -c 'LD_PRELOAD= LD_SHOW_AUXV= "$T" calls 10; "$T" calls 20'
is "$? $(cat err)" '0 ' 'a program that empties LD_PRELOAD for another one is not disturbed'

# ---- system calls of a sample: signals are blocked only where a handler may come
if have strace; then
	for function in none ignored signal sigaction __sigaction bsd_signal ssignal sysv_signal sigset cancel fault; do
		timeout 60 "$COUNTERSINK" -q --engine=sigtrap -F 1 -e alloc:period=16 -o s.pb.gz -- \
			strace -f -o trace -e trace=rt_sigprocmask,sigaltstack "$T" handlers 20 $function >out 2>err
		read -r masks stacks <<<"$(awk '/rt_sigprocmask\(/ { m++ } /sigaltstack\(/ { s++ } END { print (m > 400) + 0, (s > 200) + 0 }' trace)"
		case $function in
		none | ignored) wanted='0 0' ;;
		fault) wanted='0 1' ;;
		*) wanted='1 0' ;;
		esac
		is "$masks $stacks" "$wanted" "handler by $function: samples block signals, and ask for the alternate stack, only where they must"
	done
	"$COUNTERSINK" -q --engine=timer -e task-clock,alloc:period=16 -o s.pb.gz -- \
		strace -f -o trace -e trace=rt_sigprocmask "$T" handlers 20 none >out 2>err
	ok "the timer's signal is not lost" test "$(grep -c 'rt_sigprocmask(' trace)" -gt 400
else
	skip 'system calls of a sample' 'no strace'
fi

# ---- the gate: totals have no noise, functions have samples
"$COUNTERSINK" gate -e alloc:period=16K -r 14 --min-share=5% -o gate.tap --vs "$T functions 60 1" -- "$T" functions 72 1 2>err
is "$?" 3 'the gate fails where a fifth more is allocated'
like "$(cat gate.tap)" '^not ok [0-9]+ - allocated bytes regressed: \+20\.0 % \(95 % CI \+20\.0 to \+20\.0' 'bytes are judged exactly'
like "$(cat gate.tap)" '^not ok [0-9]+ - allocated objects regressed: \+(19|20)\.[0-9] %' 'and objects'
like "$(cat gate.tap)" '^not ok [0-9]+ - part_40 in allocates regressed: \+(1[5-9]|2[0-5])\.[0-9] % .* MiB instead of 2[0-9]\.[0-9]+ MiB' 'functions are judged by their bytes'
like "$(cat gate.tap)" '^# event: alloc every 16\.000 KiB, engine [a-z]+$' 'the event is named, without a drift of the machine'
"$COUNTERSINK" gate -e alloc -r 12 -o gate.tap --self-check -- "$T" functions 20 1 2>err
like "$(cat gate.tap)" '^ok [0-9]+ - allocated bytes unchanged: \+0\.0 % \(the same in all runs\)' 'with equal figures'

mkdir -p of-alloc && cp -r "$BUILD/bin" "$BUILD/lib" of-alloc/
of-alloc/bin/countersink -q -e task-clock -o p.pb.gz -- env -i "$T" calls 100 >out 2>err
unlike "$("$COUNTERSINK" report p.pb.gz)" 'unprofiled' "a directory's name that ends like the object's does not matter"
rm of-alloc/lib/countersink/libcountersink-alloc.so
of-alloc/bin/countersink -q -e alloc -o p.pb.gz -- "$T" calls 100 >out 2>err
is "$? $(cat err)" '0 ' 'without its object the program runs, without a message of the loader'
like "$("$COUNTERSINK" report p.pb.gz)" 'alloc and lock are not measured: libcountersink-alloc\.so is not beside the library' 'and a line reports it'
of-alloc/bin/countersink gate -e alloc -r 2 -o gate.tap --self-check -- "$T" calls 100 2>err
like "$(cat gate.tap)" '^# note: functions are not known: libcountersink-alloc\.so is not beside the library' 'the gate, too'
mkfifo fifo
cp "$T" replaced
timeout 60 "$COUNTERSINK" -q -e alloc -o p.pb.gz -- sh -c './replaced calls 100; rm replaced; mv fifo replaced' >out 2>err
is "$?" 0 'a program whose file became a FIFO is reported without waiting for a writer'

# ---- what is not asked for is not there
"$COUNTERSINK" -q -o n.pb.gz -- cat /proc/self/maps >maps
is "$(grep -c libcountersink-alloc maps)" 0 'without -e alloc its object is not loaded'
"$COUNTERSINK" -q -e alloc -o n.pb.gz -- "$COUNTERSINK" -q -o m.pb.gz -- cat /proc/self/maps >maps
is "$(grep -c libcountersink-alloc maps)" 0 'nor in a run within a run'

# ---- wrong words
for wrong in alloc:period=0 alloc:period=x alloc:u alloc: alloc:period=3; do
	"$COUNTERSINK" -e "$wrong" -o w.pb.gz -- true 2>err
	is "$?" 125 "$wrong is refused"
	like "$(cat err)" 'write alloc, or alloc:period=BYTES, with a number from 16 to' "$wrong: with what to write"
done
done_testing
