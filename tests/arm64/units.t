#!/bin/sh
# Unit tests (UNITS), in an emulated arm64 machine.
# shellcheck disable=SC2086 # a list of paths
exec "$(dirname "$0")/boot" units build $UNITS
