#!/bin/bash
# Files made to cost their reader time or memory: each is read, or refused, within limits. The test's
# own limits are the kernel's (ulimit), far above the need and far below the use of a reader without limits.
. "$(dirname "$0")/lib.sh"

have python3 || skip_all "no python3 to make the files with"
MAKE="python3 $SRC/tests/cli/hostile_files"

# limited SECONDS MIB COMMAND...: of processor time and address space. A sanitizer's build reserves terabytes.
limited() (
	ulimit -t "$1"
	case $BUILD in *address* | *thread*) ;; *) ulimit -v $(($2 * 1024)) ;; esac
	shift 2
	exec timeout -s KILL 120 "$@"
)

# ---- tables ----
# Strings that shared one slot of the former, unkeyed hash: 120 s for these.
$MAKE colliding 250000 >colliding.pb
ok "250,000 strings prepared to collide cost seconds at most" limited 20 2048 countersink report colliding.pb

# Each character of such a name is looked at by a format's rule: 4 MB took minutes when each look went on to the end.
for name in "u'\\u00e9'" "'<&'"; do
	python3 -c "import sys; sys.stdout.buffer.write(('main ' + $name * 2000000 + ' 5\n').encode())" >long.folded
	for form in $(formats); do
		ok "a name of 2,000,000 times $name costs seconds at most as $form" \
			limited 20 2048 countersink export -f "$form" -o out long.folded
	done
done
rm -f out long.folded

# Series of a history: 60,000 functions of one case took 72 s when each was compared with the others, 60,000 cases 30 s.
python3 - <<'PY'
import json
function = {"f%d" % i: [1, 1, 1, .5] for i in range(60000)}
case = {"c%d" % i: {"figures": {"cpu": [1, 1, 1, .5]}} for i in range(60000)}
for name, cases in (("functions", {"c": {"functions": function}}), ("cases", case)):
    with open(name + ".jsonl", "w") as file:
        print(json.dumps({"v": 1, "commit": "a", "anchor": "b", "cases": cases}), file=file)
PY
for many in functions cases; do
	ok "a history with 60,000 $many costs seconds at most as a table and a page" \
		limited 15 2048 countersink history --all --html page.html "$many.jsonl"
	ok "a history with 60,000 $many costs seconds at most as CSV" limited 15 2048 countersink history -f csv "$many.jsonl"
done
rm -f functions.jsonl cases.jsonl page.html

# The key of the hash is another one in each process: what is printed must not follow it.
COUNTERSINK_FREQUENCY=500 countersink -q -o p.pb.gz -- "$TARGETS/inlines" 200 >out
for form in $(formats); do
	countersink export -f "$form" -o first p.pb.gz
	same=1
	for _ in 1 2 3; do
		countersink export -f "$form" -o again p.pb.gz
		cmp -s first again || same=0
		rm again
	done
	is "$same" 1 "one profile exported as $form four times: the same bytes"
	rm first
done

# ---- objects ----
# record DIRECTORY PROGRAM ARG...: without a launcher, so that the report alone is limited.
record() {
	mkdir -m 700 "$1"
	COUNTERSINK_FREQUENCY=500 COUNTERSINK_RUN_DIR=$TMP/$1 LD_PRELOAD=$LIB "${@:2}" >out
}

cat >named.c <<-'END'
	void bomb(void) __asm__(NAME);
	__attribute__((noinline)) void bomb(void) { for (volatile long i = 0; i < 60000000; i++); }
	__attribute__((noinline)) void other(void) { for (volatile long i = 0; i < 60000000; i++); }
	int main(void) { bomb(); other(); return 0; }
END

# 4 GiB of text by repetition; and a search that takes hours before it prints anything.
for bomb in mangled silent; do
	cc -O1 -DNAME="\"$($MAKE $bomb 28)\"" -o named named.c
	record $bomb ./named
	limited 20 1024 countersink report -o $bomb.pb.gz $bomb >$bomb.out 2>$bomb.err
	is $? 0 "a name that costs too much to demangle ($bomb) is left as it is"
	like "$(cat $bomb.out $bomb.err)" "named: names that take more than 64 KiB or 0.2 s to demangle are shown mangled" "a name too costly to demangle is reported ($bomb)"
	like "$(cat $bomb.out)" " named +other$" "other names are demangled ($bomb)"
	limited 20 1024 countersink export -f folded -o - $bomb.pb.gz >out
	is $? 0 "the profile with a costly name is read again within the same limits ($bomb)"
done

# 0.3 MB that unpack to 300 MB.
strip -g -o plain "$TARGETS/burn"
$MAKE packed 300 <plain >packed
chmod +x packed
record unpacked ./packed 200
limited 20 300 countersink report -o packed.pb.gz unpacked >out 2>err
is $? 0 "debug information that unpacks to a thousand times its size is not read"
like "$(cat out err)" "packed: its compressed debug information unpacks to more than 32 times its size" "debug information that unpacks to a thousand times its size is reported"
like "$(cat out)" " packed +burn_60$" "without such debug information names come from the symbol table"

# 5,000 units of which each reads 5,000 abbreviations: 1.4 GiB from 0.1 MB.
$MAKE units 5000 <plain >units
chmod +x units
record united ./units 200
limited 60 1024 countersink report -o units.pb.gz united >out 2>err
is $? 0 "debug information that repeats itself is read in part"
like "$(cat out err)" "units: its debug information takes more time or memory than its size allows" "debug information that repeats itself is reported"
like "$(cat out)" " units +burn_60$" "with repeated debug information names come from the symbol table"

# A file that split DWARF names and libdw opens: a FIFO, and a regular file.
cc -O1 -g -gsplit-dwarf -DNAME='"bomb"' -o named named.c
record split ./named
cp -r split again
mkdir away
mv ./*.dwo away/
for dwo in away/*; do mkfifo "${dwo#away/}"; done
timeout -s KILL 60 countersink report -o split.pb.gz split >out 2>err
is $? 0 "a FIFO where split debug information should be is not waited for"
like "$(cat out)" " named +other$" "with a FIFO for split debug information names come from the symbol table"
rm ./*.dwo
mv away/*.dwo .
countersink report --by line -o split.pb.gz again >out 2>err
like "$(cat out)" "named.c:3 other" "a regular file of split debug information is read"

# ---- endless inputs ----
$MAKE sourced /dev/zero >zero.pb
mkfifo fifo
$MAKE sourced "$TMP/fifo" >fifo.pb
for what in zero fifo; do
	limited 20 1024 countersink report --annotate main $what.pb >out 2>err
	is $? 0 "--annotate of a source file that is $what: nothing is waited for"
	like "$(cat out)" ": not a regular file" "--annotate of a source file that is $what: a line reports it"
done

$MAKE comments 100 >comments.pb.gz
limited 20 1024 countersink report comments.pb.gz >out 2>err
is $? 1 "a hundred million comments in 100 KB are refused"
like "$(cat err)" "comments.pb.gz: more than 65536 comments" "a hundred million comments are reported"
$MAKE comments 200 >comments.pb.gz
limited 20 1024 countersink report comments.pb.gz >out 2>err
like "$(cat err)" "comments.pb.gz: unpacked it is larger than 128 MiB, far more than a profile of its size" "a profile that unpacks to a thousand times its size is refused"
$MAKE locations 1100000 >locations.pb
(
	ulimit -v 85000
	exec countersink report locations.pb
) >out 2>err
case $BUILD in
*address* | *thread*) skip "a profile that takes half of the memory" "a sanitizer reserves terabytes" ;;
*) like "$(cat err)" "locations.pb: (it would take more than half of the memory there is|no memory)" "a profile that would take half of the memory is refused" ;;
esac
(cat p.pb.gz >fifo) &
limited 20 1024 countersink report fifo >out 2>err
is $? 0 "a FIFO that the user names is read"
wait
rm fifo

# ---- programs ----
# A hundred copies of 24 MiB took 2.4 GB. The program's own relocations come first.
$MAKE relocations "$TARGETS/burn" >overlapping
stub=$(objdump -d "$TARGETS/burn" | sed -n 's/^\([0-9a-f]*\) <printf@plt>:/\1/p')
cat >peak.py <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 600 << 10)
END
echo "$stub" | python3 peak.py "$BUILT/tests/symbols/resolve" overlapping >out
like "$(cat out)" 'printf@plt' "a program whose sections of relocations lie over one another has its names"
is "$(tail -n 1 out)" True "reading them takes less than 600 MiB" || diag "$(cat out)"

done_testing
