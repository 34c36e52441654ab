#!/bin/sh
# Guards the speed of what is built here: builds the commit to compare with beside the working tree, runs a command in
# both, in turn, and fails if a function of it, or the command as a whole, got slower (countersink gate; its exit status).
set -eu

usage()
{
	cat <<-END
	usage: perf-gate.sh COMMIT [--] COMMAND [ARGUMENT]...

	COMMAND is run in the working tree's top directory, and in that of COMMIT.

	PERF_GATE_BUILD    how each of the two is built, a shell command (make)
	PERF_GATE_OPTIONS  more options of countersink gate (--max-time=120)
	PERF_GATE_RESULTS  a directory for gate.tap, gate.xml, gate.json, gate.badge.json, gate.md and gate.html (perf-gate)
	PERF_GATE_LINK     where gate.html will be found, a URL: gate.md has a link to it
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
. "$(dirname "$0")/lib/gate_functions.sh"
results=${PERF_GATE_RESULTS:-$top/perf-gate}
git rev-parse --quiet --verify "$commit^{commit}" >/dev/null || {
	echo "perf-gate: there is no commit $commit here (a shallow clone?)" >&2
	exit 1
}
# On the file system of the working tree, so that both sides are read alike.
base=$(mktemp -d "$(git rev-parse --absolute-git-dir)/perf-gate.XXXXXX")
clean_up()
{
	git -C "$top" worktree remove --force "$base/tree" 2>/dev/null || :
	rm -rf "$base"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

git -C "$top" worktree add --quiet --detach "$base/tree" "$commit"
build_in "$base/tree" "$base/log" || {
	echo "perf-gate: $commit does not build" >&2
	exit 1
}
build_in "$top" "$base/log" || {
	echo "perf-gate: the working tree does not build" >&2
	exit 1
}
mkdir -p "$results"
# Old results are no results; Markdown would be appended to.
rm -f "$results"/gate.*
out=$(quoted "$results")/gate
status=0
formats="--junit $out.xml --json $out.json --badge $out.badge.json --markdown $out.md --html $out.html --tap $out.tap"
[ -z "${PERF_GATE_LINK:-}" ] || formats="$formats --html-link $(quoted "$PERF_GATE_LINK")"
compare "$base/tree" "$top" "$formats" "$@" ||
	status=$?
[ ! -e "$results/gate.tap" ] || cat "$results/gate.tap"
exit "$status"
