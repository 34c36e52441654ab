#!/bin/sh
# countersink stat: counts from outside, what they mean, and no zero for what was not counted.
. "$(dirname "$0")/lib.sh"

# value EVENT FILE: the mean of an event in a CSV file.
value() {
	awk -F, -v event="$1" '$1 == event && $3 == "counted" { print $4; exit }' "$2"
}

# Does perf_event_open work here at all?
value_of_perf() {
	countersink stat -x -e dummy:u true 2>&1 | grep -q ',counted,' && echo yes
}

countersink stat -e task-clock,page-faults -- "$TARGETS/burn" 100 >out 2>err
is $? 0 "a command is counted"
like "$(cat out)" '^burn [0-9a-f]+$' "the command's output is unchanged"
like "$(cat err)" '^ +[0-9,]+\.[0-9]+ ms  task-clock +[01]\.[0-9]+ CPUs utilised$' "CPU time is shown with CPUs utilised"
like "$(cat err)" '^ +[0-9,]+ +page-faults(:u)? +[0-9.]+ (k|M)?/s$' "a count is shown with its rate"
like "$(cat err)" '^ +[0-9]\.[0-9]+ s +elapsed$' "the elapsed time is shown"

# The whole tree, static programs included, compared with the kernel's own accounting.
countersink stat -x -o tree.csv -e task-clock -- sh -c "'$TARGETS/burn' 100; '$TARGETS/static_spin' 1 & wait" >/dev/null 2>&1
ok "the tree's CPU time is what the kernel accounted" awk -v clock="$(value task-clock tree.csv)" \
	-v user="$(value user tree.csv)" -v kernel="$(value system tree.csv)" \
	'BEGIN { exit !(clock > 0.9 * (user + kernel) && user + kernel > 5e7) }'

# Exit statuses.
countersink stat -e task-clock sh -c 'exit 7' 2>/dev/null
is $? 7 "stat returns the command's exit status"
countersink stat -e task-clock sh -c 'kill -TERM $$' 2>/dev/null
is $? 143 "stat returns 128 and the signal"
PATH=$BUILD/bin:/usr/bin:/bin countersink stat -e task-clock no-such-command-here 2>err
is $? 127 "a missing command: status 127"
like "$(cat err)" '^countersink: no-such-command-here: command not found$' "a missing command is reported"
unlike "$(cat err)" 'task-clock' "a missing command: no counts are printed"
countersink stat -e task-clock /etc/passwd 2>/dev/null
is $? 126 "a command that cannot be executed: status 126"
countersink stat 2>err
is $? 125 "no command: status 125"
countersink stat --no-such-option true 2>err
is $? 125 "an unknown option: status 125"

# Several runs.
countersink stat -r 4 -e task-clock,page-faults -- "$TARGETS/burn" 20 >/dev/null 2>err
like "$(cat err)" 'burn, 4 runs \(mean \+- 95 % confidence interval\)' "-r names the number of runs and the interval"
like "$(cat err)" 'task-clock +[01]\.[0-9]+ CPUs utilised +\+- [0-9.]+ %$' "-r gives each count a confidence interval"
countersink stat -x -r 4 -e page-faults -- true 2>runs.csv
is "$(awk -F, '$1 ~ /^page-faults/ { print $8 }' runs.csv)" 4 "CSV has the number of runs"
ok "CSV has the interval around the mean" awk -F, '$1 ~ /^page-faults/ { exit !($6 <= $4 && $4 <= $7 && $5 >= 0) }' runs.csv
echo 0 >count
countersink stat -r 5 -e task-clock -- sh -c 'n=$(cat count); echo $((n + 1)) >count; [ $n != 2 ] || kill -INT $$' 2>err
is "$?:$(cat count)" "130:3" "an interrupted run ends the series"
like "$(cat err)" 'interrupted: 3 of 5 runs were made' "an interrupted series is reported"
countersink stat -r 3 -e task-clock -- false 2>err
is $? 1 "failing runs are counted"
like "$(cat err)" '3 of 3 runs failed' "the number of failed runs is reported"

# Clocks count user space and the kernel; a modifier that asks for one of them gives a note.
countersink stat -e task-clock:u,task-clock,page-faults:u -- true 2>err
like "$(cat err)" '^note: task-clock:u counts all CPU time, of user space and the kernel: a clock leaves neither out$' "task-clock:u gives a note that it is all CPU time"
is "$(grep -c '^note: ' err)" 1 "only the clock with a modifier gives a note"

# An event that was not counted has no value, not 0.
if [ ! -e /sys/bus/event_source/devices/cpu ]; then
	countersink stat -e cycles,instructions,page-faults true 2>err
	is $? 0 "without hardware counters stat succeeds"
	like "$(cat err)" '^ +<not supported> +cycles(:u)? +\[1\]$' "cycles is shown as not supported"
	is "$(grep -c '^\[1\] ENOENT: this machine exposes no PMU' err)" 1 "the reason is given once for all unsupported events"
	countersink stat -j -e cycles true 2>json
	like "$(cat json)" '"value": null' "JSON has null for an unsupported event"
	like "$(cat json)" '"reason": "ENOENT: ' "JSON has the reason of an unsupported event"
	countersink stat -x -e cycles true 2>csv
	like "$(cat csv)" '^cycles,count,not supported,,,,,1,,,,,"?ENOENT' "CSV has the reason of an unsupported event"
fi
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	unprivileged countersink stat -e page-faults,context-switches true 2>err
	like "$(cat err)" '^ +[0-9]+ +page-faults:u' "an unprivileged user's event is named with :u"
	like "$(cat err)" '^ +<not supported> +context-switches' "an event of the kernel only is not supported, not 0"
	like "$(cat err)" 'EACCES: .*perf_event_paranoid is 2.*it happens in the kernel only' "an event of the kernel only is explained"
	unprivileged countersink stat -e page-faults:uk true 2>err
	like "$(cat err)" '^ +[0-9]+ +page-faults:u$' "page-faults:uk of an unprivileged user is named :u"
	unprivileged countersink stat -e page-faults:k true 2>err
	like "$(cat err)" '^ +<not supported> +page-faults:k' "page-faults:k of an unprivileged user is not supported"
fi
countersink stat -o odd -e task-clock:u,task-clock:k,page-faults:h,page-faults:G,context-switches:u,page-faults true
is "$?:$(grep -c '<not supported>' odd)" 0:5 "modifiers that the kernel would ignore are not supported, not 0 or all"
is "$(grep -c '^\[[1-5]\] EOPNOTSUPP: .*leave out [ukhG]' odd)" 5 "unsupported modifiers are reported with what to leave out"
# shellcheck disable=SC3045 # the shells that these tests run in have it
(ulimit -n 10 && exec countersink stat -e task-clock,page-faults:u,dummy,cpu-clock,task-clock,cpu-clock,task-clock -- "$TARGETS/burn" 5) >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "with few file descriptors the command runs"
if [ "$(value_of_perf)" = yes ]; then
	like "$(cat err)" '^\[[0-9]\] EMFILE: all 10 file descriptors' "events not counted for lack of file descriptors report EMFILE"
fi
countersink stat -e nosuchevent true 2>err
is $? 125 "an unknown event is refused before anything runs"
countersink stat -e cycles:period=5 true 2>err
is $? 125 "a sampling period is refused"
like "$(cat err)" 'stat takes no samples' "a refused sampling period is explained"
countersink stat -r 2 -I 10 true 2>err
is $? 125 "series and intervals exclude each other"

# Intervals.
countersink stat -I 50 -x -o intervals.csv -e task-clock -- "$TARGETS/burn" 400 >/dev/null
rows=$(grep -c '^[0-9.]*,task-clock' intervals.csv)
ok "intervals are printed ($rows)" test "$rows" -ge 3
ok "the intervals add up to the total" awk -F, '
	$2 == "task-clock" { if ($1 == "total") total = $5; else sum += $5 }
	END { off = sum - total; exit !(total > 0 && (off < 0 ? -off : off) < total / 100) }' intervals.csv
countersink stat -I 50 -j -e task-clock -- "$TARGETS/burn" 200 >/dev/null 2>json
if have python3; then
	ok "--json with intervals is valid JSON" python3 -c 'import json
o = json.load(open("json"))
assert o["intervals"] and all(i["events"][0]["name"] == "task-clock" for i in o["intervals"]), o
assert o["events"][0]["value"]["mean"] > 0 and o["status"] == 0, o'
	countersink stat -j -r 3 -e task-clock,page-faults true 2>json
	ok "--json with a series is valid JSON" python3 -c 'import json
o = json.load(open("json"))
v = o["events"][1]["value"]
assert o["runs"] == 3 and v["ci95_low"] <= v["mean"] <= v["ci95_high"] and v["deviation"] >= 0, o'
else
	skip "--json with intervals is valid JSON" "there is no python3 to read it"
	skip "--json with a series is valid JSON" "there is no python3 to read it"
fi

# Threads.
countersink stat --per-thread -e task-clock,page-faults -- "$TARGETS/threads8" >/dev/null 2>err
if grep -q 'does not report their counts' err; then
	skip "each thread has its counts" "this kernel does not report counts by thread"
else
	is "$(grep -c '^ *[0-9]* *[0-9]* *worker-[0-7] .* ms ' err)" 8 "each thread has its counts"
	unlike "$(cat err)" 'scaled' "counts of threads are not scaled"
	# Threads that take turns on a CPU: the kernel swaps their events, and with them their enabled times.
	sums() {
		python3 -c 'import json, sys
for i in sys.argv[1:]:
    o = json.load(open("json." + i))
    of_all = o["events"][0]["value"]["mean"]
    of_each = sum(t.get("counts", {}).get(o["events"][0]["name"]) or 0 for t in o["threads"])
    assert all(t["ended"] for t in o["threads"]), i
    assert of_all == of_each and o["events"][0]["counted_share"] <= 1, (i, of_all, of_each, o["events"])' "$@"
	}
	if have python3; then
		for i in 1 2 3 4 5 6 7 8; do
			countersink stat --per-thread --json -e page-faults:u -- "$TARGETS/shortthreads" 40 >/dev/null 2>json.$i
		done
		ok "all threads' counts add up to the total" sums 1 2 3 4 5 6 7 8
		# Counts that two CPUs write at the same time must not be lost.
		for i in 1 2 3 4 5 6 7 8; do
			countersink stat --per-thread --json -e page-faults:u,task-clock -- "$TARGETS/ends_together" 100 >/dev/null 2>json.$i
		done
		ok "counts of threads that end at the same time add up to the total" sums 1 2 3 4 5 6 7 8
	else
		skip "all threads' counts add up to the total" "there is no python3 to add them"
		skip "counts of threads that end at the same time add up to the total" "there is no python3 to add them"
	fi
fi

done_testing
