#!/bin/sh
# The build's unit tests that ask the kernel (UNITS), by the kernel of Debian 11.
# shellcheck disable=SC2086 # a list of paths
exec "$(dirname "$0")/boot" units_11 bullseye build $UNITS
