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

# ---- kernel.perf_event_paranoid at 3, which Debian's kernels have, and where CAP_PERFMON does not override it
echo 3 >three
chmod 644 three
# debian CAPABILITY COMMAND...: as a user with that capability alone.
debian() {
	capability=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands it
	old -p unshare -m sh -c 'mount --bind three /proc/sys/kernel/perf_event_paranoid && exec "$@"' sh \
		setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+"$capability" --ambient-caps=-all,+"$capability" \
		--bounding-set=-all,+"$capability" "$@"
}
if [ "$(id -u)" = 0 ] && have setpriv && [ "$(debian perfmon cat /proc/sys/kernel/perf_event_paranoid 2>err)" = 3 ]; then
	for with in perfmon chown; do
		debian $with "$COUNTERSINK" doctor >doctor 2>&1
		like "$(cat doctor)" '^FAIL +paranoid +kernel\.perf_event_paranoid is 3: this distribution.s kernel refuses all events to users without CAP_SYS_ADMIN$' \
			"with the capability $with the level is the cause"
		like "$(cat doctor)" '-> sysctl kernel\.perf_event_paranoid=2 \(or lower\), or grant CAP_SYS_ADMIN' "with $with the remedy is one that works"
		unlike "$(cat doctor)" 'security module|CAP_PERFMON overrides' "with $with no security module is blamed"
	done
	for test in pmc_errors explain_denied persist_others; do
		old -p unshare -m sh -c 'mount --bind three /proc/sys/kernel/perf_event_paranoid && exec "$0"' "$BUILT/tests/unit/test_$test" >points 2>&1
		is "$?:$(grep '^not ok' points)" 0: "test_$test passes at level 3" || diag "$(cat points)"
		like "$(cat points)" 'perf_event_paranoid is 3' "test_$test is at level 3"
	done
	debian sys_admin "$COUNTERSINK" doctor >doctor 2>&1
	like "$(cat doctor)" '^warn +engine +signal' "with CAP_SYS_ADMIN events open"
	like "$(cat doctor)" '^ok +paranoid +kernel\.perf_event_paranoid is 3, which CAP_SYS_ADMIN overrides;' "doctor has the capability that overrides level 3"
else
	skip "kernel.perf_event_paranoid at 3" "it takes root and a mount namespace of its own: $(cat err)"
fi
done_testing
