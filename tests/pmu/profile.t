#!/bin/sh
# The emulated machine with its counters: whole profiles, which take the most time.
exec "$(dirname "$0")/boot" run cortex-a57 run.sh
