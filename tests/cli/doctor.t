#!/bin/sh
# countersink doctor: three kinds of user, three different and true answers, and a status for scripts.
. "$(dirname "$0")/lib.sh"

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null)

"$COUNTERSINK" doctor >own 2>err
status=$?
is "$(cat err)" "" "doctor prints nothing on stderr"
like "$(cat own)" '^ok +kernel +Linux .* with perf events' "the kernel comes first"
like "$(cat own)" '^Here .*\.$' "the verdict comes last"
if [ "$(id -u)" = 0 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status && [ ! -e /sys/bus/event_source/devices/cpu ]; then
	is $status 1 "without a PMU the status is 1"
	like "$(cat own)" '^warn +pmu +.*no hardware counters' "without a PMU the pmu line warns"
	like "$(cat own)" '^ok +engine +sigtrap' "the engine is named"
	like "$(cat own)" "kernel's side included" "root's verdict includes the kernel's side"
fi

unprivileged "$COUNTERSINK" doctor >user
status=$?
if [ "$paranoid" = 2 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	is $status 4 "an unprivileged user at paranoid 2: status 4"
	like "$(cat user)" '^warn +paranoid +kernel.perf_event_paranoid is 2' "an unprivileged user's paranoid line warns"
	like "$(cat user)" '-> sysctl kernel.perf_event_paranoid=1' "an unprivileged user's paranoid line has a remedy"
	like "$(cat user)" 'of user space only' "an unprivileged user's verdict is user space only"
	like "$(cat user)" 'locked memory +[0-9]+ KiB' "the limit of locked memory is reported"
fi

"$TARGETS/deny_perf" "$COUNTERSINK" doctor >denied
is $? 3 "under a filter the status is 3"
like "$(cat denied)" '^FAIL +seccomp +a seccomp filter refuses perf_event_open' "the seccomp filter is reported"
like "$(cat denied)" '-> .*CAP|-> .*cap-add' "the seccomp filter is reported with a remedy"
like "$(cat denied)" '^warn +engine +timer' "under a filter the engine is the timer"
unlike "$(cat denied)" 'task-clock' "under a filter no event is promised"

if [ "$(id -u)" != 0 ] || have setpriv; then
	if unprivileged unshare -Ur true 2>/dev/null && [ "$paranoid" = 2 ]; then
		unprivileged unshare -Ur "$COUNTERSINK" doctor >inside
		is $? 4 "root of a user namespace does not see the kernel"
		like "$(cat inside)" '^warn +capabilities .*user namespace only' "root of a user namespace: the capabilities line warns"
		like "$(cat inside)" '^warn +paranoid .*CAP_PERFMON of a user namespace does not override it' "root of a user namespace: the paranoid line warns"
	else
		skip "root of a user namespace" "user namespaces are refused here"
	fi
fi

if [ "$(id -u)" = 0 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	(
		# shellcheck disable=SC3045 # the shells that these tests run in have it
		ulimit -n 5
		exec "$COUNTERSINK" doctor
	) >few
	is $? 1 "few file descriptors: status 1"
	like "$(cat few)" '^warn +fds +5 file descriptors' "few file descriptors are reported"
fi

# A process with an event open is reported to a user who may inspect it.
if have perf && ! grep -q '^Seccomp:.*[12]' /proc/self/status && perf stat -e task-clock:u true 2>/dev/null; then
	mkfifo gate
	# Those with the most events are named; other programs on this machine may have some, too.
	perf stat -e "$(printf 'task-clock:u,%.0s' $(seq 99))task-clock:u" -o /dev/null cat gate &
	exec 3>gate
	wait_until 30 sh -c '"$0" doctor | grep -q "holders.*perf ("' "$COUNTERSINK"
	is $? 0 "perf is named while it has events open"
	exec 3>&-
	wait
else
	skip "perf is named while it has events open" "there is no perf that works"
fi

if have python3; then
	"$COUNTERSINK" doctor --json >json
	status=$?
	ok "--json prints valid JSON with the same status" python3 -c 'import json, sys
d = json.load(open("json"))
assert d["status"] == int(sys.argv[1]), d["status"]
assert [f["check"] for f in d["findings"]][:2] == ["kernel", "paranoid"], d
assert d["engine"] in ("sigtrap", "signal", "timer")' $status
	"$TARGETS/deny_perf" "$COUNTERSINK" doctor --json >json
	ok "--json under a filter prints valid JSON" python3 -c 'import json
d = json.load(open("json"))
assert d["status"] == 3 and not d["perf_event_open"] and d["engine"] == "timer", d'
else
	skip "--json prints valid JSON" "there is no python3 to read it"
fi
# Exit statuses are the same in the manual page and --help.
"$COUNTERSINK" help doctor | tr -s '\n ' '  ' >help.txt
sed -n '/^.SH EXIT STATUS/,/^.SH SEE/p' "$SRC/launcher/man/countersink-doctor.1" | grep -A1 '^\.TP' | grep '^[0-9]' | tr '\n' ' ' >man.txt
is "$(cat man.txt)" "0 1 2 3 4 125 " "the manual page lists each exit status"
like "$(cat help.txt)" '\(0 all, 1 something is missing, 3 refused, 4 user space only\)' "--help lists the exit statuses"
# status_text N: what the manual page says of it.
status_text() {
	sed -n '/^.SH EXIT STATUS/,/^.PP/p' "$SRC/launcher/man/countersink-doctor.1" | awk -v status="$1" '
		/^\.TP/ { is_tag = 1; next }
		is_tag { shown = $0 == status; is_tag = 0; next }
		shown'
}
for status in '0 All is well' '1 something is missing' '3 refused' '4 user space only'; do
	like "$(status_text "${status%% *}" | tr '\n' ' ')" "${status#* }" "the manual page says of status ${status%% *}: ${status#* }, as --help does"
done

# In a chroot without /proc and /sys: unknown facts are reported as unknown; what can be tried is tried.
in_chroot() {
	chroot "$@" /bin/countersink doctor
}
if [ "$(id -u)" = 0 ] && [ "$paranoid" = 2 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	mkdir -p bare/bin
	cp "$COUNTERSINK" bare/bin/
	ldd "$COUNTERSINK" | grep -o '/[^ ]*' | while IFS= read -r object; do
		mkdir -p "bare$(dirname "$object")" && cp -L "$object" "bare$object"
	done
	in_chroot bare >root
	status=$?
	[ -e /sys/bus/event_source/devices/cpu ] || is $status 1 "root in a chroot without /proc sees the kernel"
	like "$(cat root)" '^note +paranoid +kernel.perf_event_paranoid cannot be read: /proc is not mounted; events of the kernel.s side open$' \
		"in a chroot the paranoid value is unknown; the kernel's side is tried"
	like "$(cat root)" '^ok +capabilities +uid 0, with CAP_PERFMON' "in a chroot the capabilities are known"
	like "$(cat root)" '^note +holders +other processes with open events are not known' "in a chroot the other processes are unknown"
	like "$(cat root)" '^ok +seccomp +not known' "in a chroot seccomp filters are unknown"
	like "$(cat root)" '^Here commands are counted, and not profiled: .*/proc' "in a chroot the verdict is counting without profiling"
	in_chroot --userspec=65534:65534 bare >user
	is $? 4 "an unprivileged user in a chroot: status 4"
	like "$(cat user)" 'do not open: samples come from user space only$' "an unprivileged user in a chroot: the kernel's side is tried"
	unlike "$(cat user)" 'paranoid is' "an unprivileged user in a chroot: no paranoid value is invented"
else
	skip "a chroot without /proc" "needs root at perf_event_paranoid 2"
fi

"$COUNTERSINK" doctor who 2>err
is $? 2 "an operand is refused"
"$COUNTERSINK" doctor --jason 2>err
is $? 2 "an unknown option is refused"
like "$(cat err)" "'--json'" "an unknown option gets a suggestion"
done_testing
