#!/bin/sh
# Real programs, profiled by whoever runs the tests.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/programs.sh"

slack=0

run_as() {
	"$@"
}

programs
endings
done_testing
