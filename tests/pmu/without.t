#!/bin/sh
# The same machine without counters: what is said then, and what works all the same.
exec "$(dirname "$0")/boot" without cortex-a57,pmu=off bare.sh test_event_generic test_record
