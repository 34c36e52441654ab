#!/bin/bash
# On Linux 5.10, as tests/targets/old_kernel has its perf_event_open(2): what came with 5.13 is done without or named.
. "$(dirname "$0")/lib.sh"

old() {
	"$TARGETS/old_kernel" "$@"
}

is "$(old uname -r)" 5.10.0-46-cloud-amd64 "a command runs on a kernel that is older"
if ! "$COUNTERSINK" stat -x -e page-faults:u true 2>&1 | grep -q ',counted,'; then
	skip "countersink on an older kernel" "perf_event_open is refused here"
	done_testing
	exit
fi

# ---- the engine
old "$COUNTERSINK" -o old.pb.gz -- "$TARGETS/burn" 100 >out 2>err
is "$?:$(grep -c '^burn ' out)" 0:1 "a program runs on the older kernel" || diag "$(cat err)"
like "$(cat err)" '^  engine +signal: sigtrap: needs Linux 5\.13$' "the reason for the engine is the kernel's version"
like "$(cat err)" ' burn_60' "its functions are named"
old "$COUNTERSINK" doctor >doctor 2>&1
like "$(cat doctor)" '^warn +engine +signal, on [a-z:-]+; sigtrap: needs Linux 5\.13$' "doctor has the same reason"
old "$COUNTERSINK" --engine=sigtrap -o none.pb.gz -- "$TARGETS/burn" 100 >out 2>err
is "$?:$(grep -c '^burn ' out)" 0:1 "with an engine that the kernel lacks the program runs" || diag "$(cat err)"
like "$(cat err)" '^  engine +none: sigtrap: needs Linux 5\.13; --engine=auto takes the best one that works here$' \
	"an engine that the kernel lacks is reported with the reason and the remedy"

# ---- the C API
for test in pmc pmc_errors pmc_self explain explain_target; do
	old "$BUILT/tests/unit/test_$test" >points 2>&1
	is "$?:$(grep -c '^ok' points):$(grep '^not ok' points)" "0:$(sed -n 's/^1\.\.//p' points):" "test_$test passes on the older kernel" ||
		diag "$(cat points)"
done
old "$BUILT/tests/unit/test_explain" >points 2>&1
like "$(cat points)" '^# EINVAL: inherit_thread needs Linux 5\.13 \(inherit_thread\); leave it out' \
	"inherit_thread with inherit is refused for the kernel's version, not for a lack of inherit"
like "$(cat points)" '^# EINVAL: remove_on_exec needs Linux 5\.13 \(remove_on_exec\); leave it out' "so is remove_on_exec"
like "$(old "$BUILT/tests/unit/test_pmc" 2>/dev/null)" '^ok .* before Linux 5\.13 a thread started later is not counted' \
	"a PMC there has one event for each thread"
done_testing
