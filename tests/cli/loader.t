#!/bin/bash
# Objects that come and go while samples are taken: no deadlock, no crash, and samples keep the names of objects that
# were closed since, or that another one has taken the place of.
. "$(dirname "$0")/lib.sh"
seconds=${DLSTORM_SECONDS:-2}

for walker in dwarf libunwind fp; do
	timeout -s KILL $((seconds + 60)) countersink -F 10000 --unwind=$walker -o s.pb.gz -- \
		"$TARGETS/dlstorm" "$seconds" 2>err >out
	is "$? $(cat out)" "0 opened some: yes, called some: yes" "$walker: two threads open and close objects at 10 kHz"
	like "$(countersink report --all s.pb.gz)" 'libz\.so\S* +crc32' "$walker: a closed object keeps its names"
done

# What is in crc32 at all is nearly all in its inner loop; another name there would be another object's.
share=$(countersink report --all s.pb.gz | awk '$7 ~ /^libz/ { all += $1 } $7 ~ /^libz/ && /crc32_z$/ { loop += $1 }
	END { print (all > 0 && loop / all > 0.8) ? "yes" : "no: " loop " of " all }')
is "$share" yes "objects at one address at different times are kept apart"

# Who stands behind us keeps its place, though it has no table of names but the old one.
LD_PRELOAD=$LIB:$TARGETS/old_names.so COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=n.pb.gz "$TARGETS/threads8" 20 2>err >out
is "$? $(cat err)" "0 8 threads" "a library of an old linker, behind ours, sees each thread"
like "$(countersink report --by thread n.pb.gz)" 'worker-7' "and so do we"

# A program that refers to _r_debug has a copy of it, which was made before the loader was done.
cat >lists.c <<'END'
#include <link.h>
__attribute__((noinline)) static void spin(void) { for (volatile long i = 0; i < 60000000; i++); }
int main(void) { spin(); return !_r_debug.r_map; }
END
for pie in -pie -no-pie; do
	cc -O1 -fPIE $pie -o lists lists.c
	countersink -q -o l.pb.gz ./lists
	like "$(countersink report l.pb.gz)" ' lists +spin' "a program that has the loader's list of objects itself ($pie)"
done
done_testing
