#!/bin/sh
# An arm64 machine without a PMU.
. "$(dirname "$0")/lib.sh"

"$COUNTERSINK" doctor >doctor
like "$(cat doctor)" '^warn +pmu .*no hardware counters' "doctor reports no hardware counters"
like "$(cat doctor)" 'sigtrap, the best one, on task-clock' "doctor reports that time can be sampled by sigtrap"
"$COUNTERSINK" events >events
like "$(cat events)" '^  no \[[0-9]+\] +cycles' "cycles does not open"
like "$(cat events)" 'ENOENT: this machine exposes no PMU' "the reason why cycles does not open is reported"
like "$(cat events)" 'arm_[a-z0-9_]+::|armv8' "libpfm4's names are listed without a PMU" || diag "$(cat events)"

"$COUNTERSINK" -- "$TARGETS/shares" 2>report
is $? 0 "a profile is made"
like "$(cat report)" '^  event +task-clock every .*: this machine exposes no PMU; using task-clock' "the event is task-clock, with the reason"
like "$(cat report)" ' share_60$' "the report has functions"
"$COUNTERSINK" -e cycles -- "$TARGETS/shares" 2>report
is $? 0 "an unsupported cycles event does not stop the command"
like "$(cat report)" 'could not be counted: cycles' "an unsupported cycles event is reported"
like "$(cat report)" '^  event +task-clock every' "an unsupported cycles event is replaced by task-clock"

countersink stat -o counts -e cycles,task-clock true
is $? 0 "stat counts without hardware counters"
like "$(cat counts)" '^ +<not supported> +cycles +\[1\]$' "cycles is shown as not supported, not 0"
like "$(cat counts)" '^\[1\] ENOENT: this machine exposes no PMU' "the unsupported cycles event is explained"
done_testing
