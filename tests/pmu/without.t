#!/bin/sh
# The same machine without counters, and with a CPU that is offline: what is said then, and what works all the same.
OFFLINE=1 exec "$(dirname "$0")/boot" without cortex-a57,pmu=off bare.sh test_event_generic test_record test_offline
