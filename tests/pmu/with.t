#!/bin/sh
# The emulated machine with its counters.
exec "$(dirname "$0")/boot" with cortex-a57 test_counts test_pmc_counters test_sampling test_walker stat.sh gate.sh suite.sh \
	test_cfi test_event_generic test_record test_recording test_recording_collect test_recording_outside test_safe_load
