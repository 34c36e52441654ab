#!/bin/sh
# An emulated machine with CPUs of two kinds.
HYBRID=1 exec "$(dirname "$0")/boot" hybrid cortex-a57 hybrid.sh
