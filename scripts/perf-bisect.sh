#!/bin/sh
# Finds the commit that made something slower, with git:
#
#     git bisect start BAD GOOD
#     git bisect run perf-bisect.sh GOOD ./bench ARGUMENT...
#
# Each commit is built and compared with GOOD, which is built once. Its answers are those that git bisect asks for: 0 as
# fast as GOOD, 1 slower, 125 cannot be built, 128 and above something is wrong, stop.
#
# PERF_GATE_BUILD     how a commit is built, a shell command (make)
# PERF_GATE_OPTIONS   more options of countersink gate (--max-time=120)
# PERF_GATE_FUNCTION  look at this function alone; else anything that got slower is found
# COUNTERSINK         the program (countersink)
set -eu
if [ $# -lt 2 ]; then
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 128
fi
good=$1
shift
[ "$1" != -- ] || shift
top=$(git rev-parse --show-toplevel)
. "$(dirname "$0")/lib/perf-gate.sh"
folder=$(git rev-parse --absolute-git-dir)/perf-bisect
id=$(git rev-parse --verify "$good^{commit}") || exit 128
if [ ! -e "$folder/$id.built" ]; then
	rm -rf "$folder"
	mkdir -p "$folder/tree"
	git -C "$top" archive "$id" | tar -x -C "$folder/tree"
	build_in "$folder/tree" "$folder/log" || {
		echo "perf-bisect: $good does not build" >&2
		exit 128
	}
	: >"$folder/$id.built"
fi
build_in "$top" "$folder/log" 2>/dev/null || exit 125
status=0
compare "$folder/tree" "--quiet --tap $(quoted "$folder/gate.tap")" "$@" || status=$?
grep '^not ok' "$folder/gate.tap" || :
case $status in
0) exit 0 ;;
3)
	[ -n "${PERF_GATE_FUNCTION:-}" ] || exit 1
	! grep '^not ok' "$folder/gate.tap" | grep -qF -- " - $PERF_GATE_FUNCTION in " || exit 1
	exit 0
	;;
*) exit 128 ;;
esac
