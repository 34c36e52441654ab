#!/bin/bash
# Frames of every version of CPython, installed or not: of programs that have its symbols and records at its offsets.
. "$(dirname "$0")/lib.sh"

. "$SRC/tests/cli/attach.sh"
MADE=$TARGETS/made

# right TITLE STACK [REPORT]: all of profile p.pb.gz has that stack, and its lines are 12, 22 and 32. On a busy machine attach may read
# the functions of a stack too late, in particular without a right to real-time priority: these are counted in its report.
right() {
	missing=$([ -z "${3-}" ] || sed -n 's/.*Python functions are missing in \([0-9]*\) of .*/\1/p' "$3")
	countersink export -f folded -e samples p.pb.gz >folded
	is "$(awk -v stack=";made_python;$2" -v missing="${missing:-0}" '/made_python/ { all += $NF } index($0, stack) { with += $NF }
		END { print (with && with + missing > .9 * all ? "right" : with + 0 " of " all + 0 ", missing " missing) }' folded)" right \
		"$1: the functions are in the places of the evaluator's calls"
	is "$(countersink report --all --by line p.pb.gz 2>&1 | grep -oE 'made\.py:[0-9]+ [a-z]+$' | sort | tr '\n' ' ')" \
		"made.py:12 first made.py:22 second made.py:32 third " "$1: they have their file and lines"
}
inlined='first;through_c;second;third'
called='first;through_c;second;through_c;third'
for minor in 6 7 8 9 10 11 12 13 14; do
	stack=$called
	[ $minor -lt 11 ] || stack=$inlined
	countersink -q -F 2000 -o p.pb.gz -- "$MADE/python_$minor" 300 >out 2>&1
	is "$?:$(cat out)" "3:" "CPython 3.$minor: the program runs as without countersink"
	right "CPython 3.$minor" "$stack"
done
countersink -q -F 2000 -o p.pb.gz -- "$TARGETS/made_python" 300 >out 2>&1
is "$?:$(cat out)" "3:" "CPython 3.14, a shared library: the program runs as without countersink"
right "CPython 3.14, a shared library" "$inlined"
for how in frame-pointers initial-exec; do
	LD_LIBRARY_PATH=$MADE/$how countersink -q -F 2000 -o p.pb.gz -- "$TARGETS/made_python" 300 >out 2>&1
	is "$?:$(cat out)" "3:" "CPython 3.14, a shared library with $how: the program runs as without countersink"
	right "CPython 3.14, a shared library with $how" "$inlined"
done

not_read() { # VARIANT REASON TITLE
	countersink -F 2000 -o p.pb.gz -- "$MADE/python_$1" 50 >out 2>err
	is "$?:$(cat out)" "3:" "$3: the program runs as without countersink"
	is "$(grep -c "$2" err)" 1 "$3: the report has one line with the reason"
}
not_read free_13 "Python frames are not read: free-threaded builds are not supported" "a free-threaded CPython 3.13"
not_read free_14 "Python frames are not read: free-threaded builds are not supported" "a free-threaded CPython 3.14"
unknown="Python frames are not read: this CPython 3\.14 does not keep them as its releases do"
not_read cookie_14 "$unknown" "a CPython 3.14 without a cookie"
not_read offset_14 "$unknown" "a CPython 3.14 with an offset out of bounds"
not_read type_14 "$unknown" "a CPython 3.14 with other objects"

# ---- from outside

from_outside() { # TITLE STACK PROGRAM
	"$3" 1500 >target.out 2>&1 &
	target=$!
	targets="$targets $target"
	wait_until 30 has_run "$target" 100
	attach_for 300 "$target" countersink attach -F 997 -p "$target" -o p.pb.gz >out
	is $? 0 "$1, from outside: status 0"
	right "$1, from outside" "$2" err
	wait "$target"
	is "$?:$(cat target.out)" "3:" "$1, from outside: status and output of the target are as without countersink"
}
for minor in 8 12 14; do # test_python_stack has the others
	stack=$called
	[ $minor -lt 11 ] || stack=$inlined
	from_outside "CPython 3.$minor" "$stack" "$MADE/python_$minor"
done
from_outside "CPython 3.14, a shared library" "$inlined" "$TARGETS/made_python"
start "$MADE/python_offset_14" 60000
attach -p "$target" -d 0.3 >out 2>err
is "$?:$(grep -c "$unknown" err)" 0:1 "a CPython 3.14 with an offset out of bounds, from outside: the report has one line with the reason"
end "$target"
done_testing
