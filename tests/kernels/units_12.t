#!/bin/sh
# The build's unit tests that ask the kernel (UNITS), by the kernel of Debian 12.
# shellcheck disable=SC2086 # a list of paths
exec "$(dirname "$0")/boot" units_12 bookworm build $UNITS
