#!/bin/sh
# Guards the speed of what is built here: builds the commit to compare with beside the working tree, runs a command in
# both, in turn, and fails if a function of it, or the command as a whole, got slower (countersink gate; its exit status).
set -eu

usage()
{
	cat <<-END
	usage: perf-gate.sh COMMIT [--] COMMAND [ARGUMENT]...

	COMMAND is run in the working tree's top folder, and in that of COMMIT.

	PERF_GATE_BUILD    how each of the two is built, a shell command (make)
	PERF_GATE_OPTIONS  more options of countersink gate (--max-time=120)
	PERF_GATE_RESULTS  a folder for gate.tap, gate.xml, gate.json, gate.md and gate.html (perf-gate)
	COUNTERSINK        the program (countersink)
	END
}

case ${1:-} in
-h | --help) usage; exit 0 ;;
esac
if [ $# -lt 2 ]; then
	usage >&2
	exit 2
fi
commit=$1
shift
[ "$1" != -- ] || shift
top=$(git rev-parse --show-toplevel)
build=${PERF_GATE_BUILD:-make}
results=${PERF_GATE_RESULTS:-$top/perf-gate}
base=$(mktemp -d "${TMPDIR:-/tmp}/perf-gate.XXXXXX")
clean_up()
{
	git -C "$top" worktree remove --force "$base/tree" 2>/dev/null || :
	rm -rf "$base"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

git -C "$top" worktree add --quiet --detach "$base/tree" "$commit"
(cd "$base/tree" && sh -c "$build") >"$base/log" 2>&1 || {
	cat "$base/log" >&2
	echo "perf-gate: $commit does not build" >&2
	exit 1
}
(cd "$top" && sh -c "$build") >"$base/log" 2>&1 || {
	cat "$base/log" >&2
	echo "perf-gate: the working tree does not build" >&2
	exit 1
}
# A word as a shell reads it back.
quoted()
{
	printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}
vs="env -C $(quoted "$base/tree")"
for word; do
	vs="$vs $(quoted "$word")"
done
mkdir -p "$results"
rm -f "$results/gate.md"
status=0
# shellcheck disable=SC2086 # options
${COUNTERSINK:-countersink} gate ${PERF_GATE_OPTIONS:---max-time=120} --junit "$results/gate.xml" \
	--json "$results/gate.json" --markdown "$results/gate.md" --html "$results/gate.html" --tap "$results/gate.tap" \
	--vs "$vs" -- env -C "$top" "$@" || status=$?
cat "$results/gate.tap"
exit "$status"
