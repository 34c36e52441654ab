#!/bin/sh
# Real programs, profiled by a user without privileges. Where perf_event_paranoid is 2 the kernel's share is hidden from
# that user's events, and the sums must hold all the same.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/programs.sh"

run_as() {
	unprivileged env HOME="$TMP/run" "$@"
}

programs 0
endings
done_testing
