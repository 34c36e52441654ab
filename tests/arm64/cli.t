#!/bin/sh
# Tests of the command line (CLI), in an emulated arm64 machine.
# shellcheck disable=SC2086 # a list of paths
exec "$(dirname "$0")/boot" cli build $CLI
