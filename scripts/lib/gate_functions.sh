# shellcheck shell=sh
# What scripts/perf-gate.sh and scripts/perf-bisect.sh share; they source it, and set top: the working tree's directory.

# build_in DIRECTORY LOG: builds what is there as PERF_GATE_BUILD says; on failure the log is shown.
build_in()
{
	(cd "$1" && sh -c "${PERF_GATE_BUILD:-make}") >"$2" 2>&1 || {
		cat "$2" >&2
		return 1
	}
}

# A word as a shell reads it back.
quoted()
{
	printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}

# compare OLD NEW OPTIONS COMMAND [ARGUMENT]...: COMMAND in the directory NEW, against itself in the directory OLD. OPTIONS are
# one word, of which a shell makes several, as of PERF_GATE_OPTIONS, and override these.
compare()
{
	vs="env -C $(quoted "$1")"
	new=$2
	options="${PERF_GATE_OPTIONS:---max-time=120} $3"
	shift 3
	for word; do
		vs="$vs $(quoted "$word")"
	done
	eval "set -- $options --vs \"\$vs\" -- env -C \"\$new\" \"\$@\""
	"${COUNTERSINK:-countersink}" gate "$@"
}
