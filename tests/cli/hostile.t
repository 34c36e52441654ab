#!/bin/bash
# Files that somebody made to cost their reader time or memory: each of them is read, or refused, within limits. The
# limits are the kernel's (ulimit), far above what is used and far below what was used before there were any.
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

# The key of the hash is another one in each process: what is printed must not follow it.
COUNTERSINK_FREQUENCY=500 countersink -q -o p.pb.gz -- "$TARGETS/inlines" 200 >out
for form in folded pprof callgrind firefox speedscope html; do
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

done_testing
