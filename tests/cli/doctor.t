#!/bin/sh
# countersink doctor: three kinds of user, three different and true answers, and a status for scripts.
. "$(dirname "$0")/lib.sh"

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null)

"$COUNTERSINK" doctor >own 2>err
status=$?
is "$(cat err)" "" "nothing goes to stderr"
like "$(cat own)" '^ok +kernel +Linux .* with perf events' "the kernel comes first"
like "$(cat own)" '^Here .*\.$' "the verdict last"
if [ "$(id -u)" = 0 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status && [ ! -e /sys/bus/event_source/devices/cpu ]; then
	is $status 1 "without a PMU the status says that something is missing"
	like "$(cat own)" '^warn +pmu +.*no hardware counters' "and the line what"
	like "$(cat own)" '^ok +engine +sigtrap' "the engine is named"
	like "$(cat own)" "kernel's side included" "root sees the kernel's side"
fi

unprivileged "$COUNTERSINK" doctor >user
status=$?
if [ "$paranoid" = 2 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	is $status 4 "an unprivileged user at paranoid 2 has a status of its own"
	like "$(cat user)" '^warn +paranoid +kernel.perf_event_paranoid is 2' "which is the kernel's side"
	like "$(cat user)" '-> sysctl kernel.perf_event_paranoid=1' "with its remedy"
	like "$(cat user)" 'of user space only' "and the verdict says so"
	like "$(cat user)" 'locked memory +[0-9]+ KiB' "its locked memory is counted"
fi

"$TARGETS/deny_perf" "$COUNTERSINK" doctor >denied
is $? 3 "under a filter the status is 3"
like "$(cat denied)" '^FAIL +seccomp +a seccomp filter refuses perf_event_open' "the filter is named"
like "$(cat denied)" '-> .*CAP|-> .*cap-add' "with its remedy"
like "$(cat denied)" '^warn +engine +timer' "the engine is the timer"
unlike "$(cat denied)" 'task-clock' "and no event is promised"

if [ "$(id -u)" != 0 ] || have setpriv; then
	if unprivileged unshare -Ur true 2>/dev/null && [ "$paranoid" = 2 ]; then
		unprivileged unshare -Ur "$COUNTERSINK" doctor >inside
		is $? 4 "root of a user namespace does not see the kernel"
		like "$(cat inside)" '^warn +capabilities .*user namespace only' "and is told what it is worth"
		like "$(cat inside)" '^warn +paranoid .*CAP_PERFMON of a user namespace does not overrule it' "by each line alike"
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
	is $? 1 "few file descriptors are something that is missing"
	like "$(cat few)" '^warn +fds +5 file descriptors' "which is said"
fi

# Somebody with an event open is seen by those who may look.
if have perf && ! grep -q '^Seccomp:.*[12]' /proc/self/status && perf stat -e task-clock:u true 2>/dev/null; then
	mkfifo gate
	perf stat -e task-clock:u -o /dev/null cat gate &
	exec 3>gate
	wait_until 10 sh -c '"$0" doctor | grep -q "holders.*perf ("' "$COUNTERSINK"
	is $? 0 "perf is named while it has events open"
	exec 3>&-
	wait
else
	skip "perf is named while it has events open" "there is no perf that works"
fi

if have python3; then
	"$COUNTERSINK" doctor --json >json
	status=$?
	ok "JSON is JSON, and agrees with the status" python3 -c 'import json, sys
d = json.load(open("json"))
assert d["status"] == int(sys.argv[1]), d["status"]
assert [f["check"] for f in d["findings"]][:2] == ["kernel", "paranoid"], d
assert d["engine"] in ("sigtrap", "signal", "timer")' $status
	"$TARGETS/deny_perf" "$COUNTERSINK" doctor --json >json
	ok "and under a filter" python3 -c 'import json
d = json.load(open("json"))
assert d["status"] == 3 and not d["perf_event_open"] and d["engine"] == "timer", d'
else
	skip "JSON is JSON" "there is no python3 to read it"
fi
# Its statuses, alike wherever they are told.
"$COUNTERSINK" help doctor | tr -s '\n ' '  ' >help.txt
tr '\n' ' ' <"$SRC/README.md" | grep -o 'its exit status: [^)]*' >readme.txt
sed -n '/^.SH EXIT STATUS/,/^.SH SEE/p' "$SRC/launcher/man/countersink-doctor.1" | grep -A1 '^\.TP' | grep '^[0-9]' | tr '\n' ' ' >man.txt
is "$(cat man.txt)" "0 1 2 3 4 125 " "the man page tells of each status"
is "$(grep -oE '[0-9] [a-z_ ]+' readme.txt | cut -c1 | tr '\n' ' ')" "0 1 2 3 4 " "so does README"
like "$(cat help.txt)" '\(0 all, 1 something is missing, 3 refused, 4 user space only\)' "and --help of those that are no error"
for said in '1 something is missing' '4 user space only'; do
	like "$(cat readme.txt)" "$said" "README says '$said', as --help does"
done

# In a chroot without /proc and /sys: what cannot be known is said, what can be tried is.
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
		"which is tried, not read"
	like "$(cat root)" '^ok +capabilities +uid 0, with CAP_PERFMON' "its capabilities are known"
	like "$(cat root)" '^note +holders +who else has events open is not known' "the other processes are not"
	like "$(cat root)" '^ok +seccomp +not known' "nor are filters"
	like "$(cat root)" '^Here commands are counted, and not profiled: .*/proc' "and the verdict says what it comes to"
	in_chroot --userspec=65534:65534 bare >user
	is $? 4 "an unprivileged user there does not"
	like "$(cat user)" 'do not open: samples come from user space only$' "which is tried as well"
	unlike "$(cat user)" 'paranoid is' "and no value is made up"
else
	skip "a chroot without /proc" "it takes root at perf_event_paranoid 2"
fi

"$COUNTERSINK" doctor who 2>err
is $? 2 "an operand is refused"
"$COUNTERSINK" doctor --jason 2>err
is $? 2 "and so is an unknown option"
like "$(cat err)" "'--json'" "with the near one named"
done_testing
