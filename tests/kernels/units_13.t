#!/bin/sh
# The build's unit tests that ask the kernel (UNITS), by the kernel of Debian 13.
# shellcheck disable=SC2086 # a list of paths
exec "$(dirname "$0")/boot" units_13 trixie build $UNITS
