#!/bin/sh
# Real programs where a seccomp filter refuses perf_event_open, as in most containers.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/programs.sh"

run_as() {
	"$TARGETS/deny_perf" "$@"
}

# Samples come at the kernel's tick there, a few hundred a second.
programs 8
endings
done_testing
