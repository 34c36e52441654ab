#!/bin/sh
# An arm64 machine without a PMU.
. "$(dirname "$0")/lib.sh"

"$COUNTERSINK" doctor >doctor
like "$(cat doctor)" '^warn +pmu .*no hardware counters' "the doctor says that there is none"
like "$(cat doctor)" 'sigtrap, the best one, on task-clock' "and that time can be sampled all the same"
"$COUNTERSINK" events >events
like "$(cat events)" '^  no \[[0-9]+\] +cycles' "cycles does not open"
like "$(cat events)" 'ENOENT: this machine exposes no PMU' "the reason is told"
like "$(cat events)" 'arm_[a-z0-9_]+::|armv8' "libpfm4 still knows the names" || diag "$(cat events)"

"$COUNTERSINK" -- "$TARGETS/shares" 2>report
is $? 0 "a profile is made"
like "$(cat report)" '^  event +task-clock every .*: this machine exposes no PMU; using task-clock' "by task-clock, and why"
like "$(cat report)" ' share_60$' "with functions"
"$COUNTERSINK" -e cycles -- "$TARGETS/shares" 2>report
is $? 0 "cycles that cannot be had do not keep the command from running"
like "$(cat report)" 'could not be counted: cycles' "which is said"
like "$(cat report)" '^  event +task-clock every' "with what was sampled instead"

countersink stat -o counts -e cycles,task-clock true
is $? 0 "counting goes on without them"
like "$(cat counts)" '^ +<not supported> +cycles +\[1\]$' "which is no zero"
like "$(cat counts)" '^\[1\] ENOENT: this machine exposes no PMU' "but explained"
done_testing
