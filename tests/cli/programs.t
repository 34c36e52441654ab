#!/bin/sh
# Real programs, profiled by whoever runs the tests.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/programs.sh"

run_as() {
	"$@"
}

programs 0
endings
done_testing
