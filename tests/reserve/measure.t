#!/bin/bash
# How long a confirmation takes, and how often it is false, compared with what the agent does with its events.
. "$(dirname "$0")/reserve_lib.sh"

figures=$BUILD/tests/reserve/reserve_figures
export IOCTL_LOG=$TMP/ioctl.log PERFALLOC=$PCP/usr/lib/pcp/pmdas/perfevent/perfalloc
export AGENT_PRELOAD=$BUILD/tests/reserve/ioctl_log.so AGENT_ENV="IOCTL_LOG=$IOCTL_LOG"
start_agent "$STATE"

is "$(od -An -td4 "$IOCTL_LOG" | tr -d ' ')" "$(active)" "the agent has enabled as many events as it reports"
is "$(countersink reserve -q --require od -An -td4 "$IOCTL_LOG" | tr -d ' ')" 0 "the agent has enabled no event while they are reserved"
latency=$(timeout -s KILL 300 "$figures" latency 25)
like "$latency" '^25 runs: ' "25 reservations are confirmed"
diag "$latency"
ours=$(timeout -s KILL 300 "$figures" ours 100)
is "$ours" "0 of 100 confirmations false" "none of 100 confirmations is false"
perfalloc=$(timeout -s KILL 300 "$figures" perfalloc 100)
like "$perfalloc" '^[0-9]+ of 100 confirmations false' "perfalloc and the first 0 of perfevent.active"
diag "perfalloc and the first 0: $perfalloc"
done_testing
