#!/bin/sh
# countersink events: the list, its marks, and the reasons.
. "$(dirname "$0")/lib.sh"

"$COUNTERSINK" events >all 2>err
is $? 0 "events are listed" || diag "$(cat err)"
is "$(cat err)" "" "events prints nothing on stderr"
if grep -q '^Seccomp:.*[12]' /proc/self/status; then
	skip "task-clock opens here" "a seccomp filter is in force"
else
	like "$(cat all)" '^  (yes|user \[[0-9]+\]) +task-clock +CPU time' "task-clock opens here"
fi
like "$(cat all)" '^generic:$' "sources are headings"
like "$(cat all)" '^[0-9]+ of [0-9]+ events open here' "the last line counts the events"

"$COUNTERSINK" events 'page-FAULTS' >some
is "$(grep -c page-faults some)" 1 "a part of a name, in any case, is a pattern"
unlike "$(cat some)" 'task-clock' "a pattern leaves out other events"
"$COUNTERSINK" events '*-faults' >some
is "$(grep -c -e '-faults' some)" 5 "a shell pattern selects events"
"$COUNTERSINK" events --usable >usable
unlike "$(cat usable)" '^  no ' "--usable leaves out events that do not open"
if [ ! -e /sys/bus/event_source/devices/cpu ]; then
	like "$(cat all)" '^  no \[[0-9]\] +cycles' "cycles does not open without a PMU"
	like "$(cat all)" '^\[[0-9]\] ENOENT: this machine exposes no PMU' "the reason why cycles does not open is given below"
	is "$(grep -c 'exposes no PMU' all)" 1 "a shared reason is given once"
fi

LIBPFM_FORCE_PMU=skl "$COUNTERSINK" events '*INST_RETIRED:ANY_P' >pfm
like "$(cat pfm)" 'skl::INST_RETIRED:ANY_P' "libpfm4's names are listed, with their unit masks"
LIBPFM_FORCE_PMU=skl "$COUNTERSINK" events >pfm
like "$(cat pfm)" 'skl::MEM_LOAD_RETIRED' "without a pattern libpfm4's events are listed alone"
like "$(cat pfm)" 'and [0-9]+ unit masks' "without a pattern the number of unit masks is given"

"$COUNTERSINK" events page-faults:u >asked
like "$?:$(cat asked)" '^0:as asked:' "an event with modifiers is tried as asked"
like "$(cat asked)" '^  (yes|no \[1\]) +page-faults:u' "an event with modifiers is marked"
"$COUNTERSINK" events page-faults:G >asked
like "$(cat asked)" '^  no \[1\] +page-faults:G' "an event that the kernel would count wrongly is marked no"
like "$(cat asked)" "^\\[1\\] EOPNOTSUPP: .*it would ignore ':G'" "an event that the kernel would count wrongly has a reason"
"$COUNTERSINK" events nosuchevent >out 2>err
is $? 1 "no match is a failure"
like "$(cat err)" "no event matches 'nosuchevent'" "no match is reported"
"$COUNTERSINK" events a b 2>err
is $? 2 "two patterns are too many"
"$COUNTERSINK" events --jsn 2>err
is $? 2 "an unknown option is refused"
like "$(cat err)" '--json' "an unknown option gets a suggestion"

unprivileged "$COUNTERSINK" events >user
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ]; then
	like "$(cat user)" '^  user \[[0-9]\] +task-clock' "an unprivileged user has task-clock without the kernel"
	like "$(cat user)" 'perf_event_paranoid is 2' "an unprivileged user's list has perf_event_paranoid as the reason"
	like "$(cat user)" '^  no \[[0-9]\] +context-switches' "an unprivileged user's list marks an event of the kernel only as no"
fi

if have python3; then
	"$COUNTERSINK" events --json >json
	ok "--json prints valid JSON" python3 -c 'import json, sys
events = {e["name"]: e for e in json.load(open("json"))}
assert events["task-clock"]["opens"] in ("yes", "user-only", "no"), events["task-clock"]
assert all(e["reason"] for e in events.values() if e["opens"] == "no")'
else
	skip "--json prints valid JSON" "there is no python3 to read it"
fi
done_testing
