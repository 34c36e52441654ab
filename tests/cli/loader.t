#!/bin/bash
# Objects loaded and unloaded while samples are taken: no deadlock, no crash, and samples keep the names of objects that
# were closed since, or replaced by another object at the same address.
. "$(dirname "$0")/lib.sh"
seconds=${DLSTORM_SECONDS:-2}

for walker in dwarf fp; do
	timeout -s KILL $((seconds + 60)) countersink -F 10000 --unwind=$walker -o s.pb.gz -- \
		"$TARGETS/dlstorm" "$seconds" 2>err >out
	is "$? $(cat out)" "0 opened some: yes, called some: yes" "$walker: two threads open and close objects at 10 kHz"
	like "$(countersink report --all s.pb.gz)" 'libz\.so\S* +crc32' "$walker: a closed object keeps its names"
done

# Nearly all samples in crc32 are in its inner loop, and all of libz there and in what each object begins and ends with;
# another name there would come from another object.
share=$(countersink report --all s.pb.gz | awk '$7 ~ /^libz/ { all += $1 } $7 ~ /^libz/ && $8 ~ /^(crc32(_z)?(@plt)?|_init|_fini)$/ { own += $1 }
	$7 ~ /^libz/ && /crc32_z$/ { loop += $1 }
	END { print (all > 0 && loop / all > 0.8 && own / all > 0.95) ? "yes" : "no: " loop " and " own " of " all }')
is "$share" yes "objects at the same address at different times are distinguished"

# A preloaded library behind ours still gets its calls, although it has only the old hash table of symbols.
LD_PRELOAD=$LIB:$TARGETS/old_names.so COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=n.pb.gz "$TARGETS/threads8" 20 2>err >out
is "$? $(cat err)" "0 8 threads" "a library of an old linker, behind ours, sees each thread"
like "$(countersink report --by thread n.pb.gz)" 'worker-7' "threads are profiled although a library of an old linker is behind ours"

# A program that refers to _r_debug has a copy of it, made before the loader had finished.
cat >lists.c <<'END'
#include <link.h>
__attribute__((noinline)) static void spin(void) { for (volatile long i = 0; i < 60000000; i++); }
int main(void) { spin(); return !_r_debug.r_map; }
END
for pie in -pie -no-pie; do
	cc -O1 -fPIE $pie -o lists lists.c
	countersink -q -o l.pb.gz ./lists
	like "$(countersink report l.pb.gz)" ' lists +spin' "a program with its own copy of the loader's object list is profiled ($pie)"
done
done_testing
