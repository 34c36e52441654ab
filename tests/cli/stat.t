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
like "$(cat out)" '^burn [0-9a-f]+$' "its output is left alone"
like "$(cat err)" '^ +[0-9,]+\.[0-9]+ ms  task-clock +[01]\.[0-9]+ CPUs utilised$' "CPU time, and how many CPUs that is"
like "$(cat err)" '^ +[0-9,]+ +page-faults(:u)? +[0-9.]+ (k|M)?/s$' "a count, and how often"
like "$(cat err)" '^ +[0-9]\.[0-9]+ s +elapsed$' "the time that passed"

# The whole tree, static programs too: the kernel's own account is the measure.
countersink stat -x -o tree.csv -e task-clock -- sh -c "'$TARGETS/burn' 100; '$TARGETS/static_spin' 1 & wait" >/dev/null 2>&1
ok "the tree's CPU time is what the kernel accounted" awk -v clock="$(value task-clock tree.csv)" \
	-v user="$(value user tree.csv)" -v kernel="$(value system tree.csv)" \
	'BEGIN { exit !(clock > 0.9 * (user + kernel) && user + kernel > 5e7) }'

# Exit statuses.
countersink stat -e task-clock sh -c 'exit 7' 2>/dev/null
is $? 7 "the exit status is the command's"
countersink stat -e task-clock sh -c 'kill -TERM $$' 2>/dev/null
is $? 143 "or 128 and the signal"
PATH=$BUILD/bin:/usr/bin:/bin countersink stat -e task-clock no-such-command-here 2>err
is $? 127 "or 127 where there is none"
like "$(cat err)" '^countersink: no-such-command-here: command not found$' "which is said"
unlike "$(cat err)" 'task-clock' "and nothing is made of it"
countersink stat -e task-clock /etc/passwd 2>/dev/null
is $? 126 "126 for what cannot be executed"
countersink stat 2>err
is $? 125 "125 without a command"
countersink stat --no-such-option true 2>err
is $? 125 "125 for an unknown option"

# Several runs.
countersink stat -r 4 -e task-clock,page-faults -- "$TARGETS/burn" 20 >/dev/null 2>err
like "$(cat err)" 'burn, 4 runs \(mean \+- 95 % confidence interval\)' "several runs"
like "$(cat err)" 'task-clock +[01]\.[0-9]+ CPUs utilised +\+- [0-9.]+ %$' "have an interval"
countersink stat -x -r 4 -e page-faults -- true 2>runs.csv
is "$(awk -F, '$1 ~ /^page-faults/ { print $8 }' runs.csv)" 4 "CSV has the number of runs"
ok "and the interval around the mean" awk -F, '$1 ~ /^page-faults/ { exit !($6 <= $4 && $4 <= $7 && $5 >= 0) }' runs.csv
echo 0 >count
countersink stat -r 5 -e task-clock -- sh -c 'n=$(cat count); echo $((n + 1)) >count; [ $n != 2 ] || kill -INT $$' 2>err
is "$?:$(cat count)" "130:3" "an interrupted run ends the series"
like "$(cat err)" 'interrupted: 3 of 5 runs were made' "and it is said"
countersink stat -r 3 -e task-clock -- false 2>err
is $? 1 "runs that fail are counted all the same"
like "$(cat err)" '3 of 3 runs failed' "and said"

# Clocks leave nothing out, and say so where they are asked to.
countersink stat -e task-clock:u,task-clock,page-faults:u -- true 2>err
like "$(cat err)" '^note: task-clock:u is all of the CPU time, of user space and the kernel: a clock leaves neither out$' "a clock of user space alone is none"
is "$(grep -c '^note: ' err)" 1 "of others there is nothing to say"

# What is not counted is no zero.
if [ ! -e /sys/bus/event_source/devices/cpu ]; then
	countersink stat -e cycles,instructions,page-faults true 2>err
	is $? 0 "a machine without counters is no failure"
	like "$(cat err)" '^ +<not supported> +cycles(:u)? +\[1\]$' "cycles is not supported"
	is "$(grep -c '^\[1\] ENOENT: this machine exposes no PMU' err)" 1 "with the cause, once for all"
	countersink stat -j -e cycles true 2>json
	like "$(cat json)" '"value": null' "JSON has null"
	like "$(cat json)" '"reason": "ENOENT: ' "and the reason"
	countersink stat -x -e cycles true 2>csv
	like "$(cat csv)" '^cycles,count,not supported,,,,,1,,,,,"?ENOENT' "so has CSV"
fi
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	unprivileged countersink stat -e page-faults,context-switches true 2>err
	like "$(cat err)" '^ +[0-9]+ +page-faults:u' "an unprivileged user's events leave the kernel out, and say so"
	like "$(cat err)" '^ +<not supported> +context-switches' "what happens in the kernel alone is not 0"
	like "$(cat err)" 'EACCES: .*perf_event_paranoid is 2.*it happens in the kernel only' "but explained"
	unprivileged countersink stat -e page-faults:uk true 2>err
	like "$(cat err)" '^ +[0-9]+ +page-faults:u$' "nor does a name promise the kernel's part"
	unprivileged countersink stat -e page-faults:k true 2>err
	like "$(cat err)" '^ +<not supported> +page-faults:k' "neither is the kernel's part of an event"
fi
countersink stat -o odd -e task-clock:u,task-clock:k,page-faults:h,page-faults:G,context-switches:u,page-faults true
is "$?:$(grep -c '<not supported>' odd)" 0:5 "what the kernel would ignore is not counted as 0, or as all"
is "$(grep -c '^\[[1-5]\] EOPNOTSUPP: .*leave out [ukhG]' odd)" 5 "with the cause, and what to leave out"
# shellcheck disable=SC3045 # the shells that these tests run in have it
(ulimit -n 10 && exec countersink stat -e task-clock,page-faults:u,dummy,cpu-clock,task-clock,cpu-clock,task-clock -- "$TARGETS/burn" 5) >out 2>err
is "$?:$(grep -c '^burn ' out)" "0:1" "with few file descriptors the command runs all the same"
if [ "$(value_of_perf)" = yes ]; then
	like "$(cat err)" '^\[[0-9]\] EMFILE: all 10 file descriptors' "and what could not be counted for want of them says so"
fi
countersink stat -e nosuchevent true 2>err
is $? 125 "an unknown event is refused before anything runs"
countersink stat -e cycles:period=5 true 2>err
is $? 125 "so is a period"
like "$(cat err)" 'stat takes no samples' "and why"
countersink stat -r 2 -I 10 true 2>err
is $? 125 "series and intervals exclude each other"

# Intervals.
countersink stat -I 50 -x -o intervals.csv -e task-clock -- "$TARGETS/burn" 400 >/dev/null
rows=$(grep -c '^[0-9.]*,task-clock' intervals.csv)
ok "intervals are printed ($rows)" test "$rows" -ge 3
ok "they add up to the total" awk -F, '
	$2 == "task-clock" { if ($1 == "total") total = $5; else sum += $5 }
	END { off = sum - total; exit !(total > 0 && (off < 0 ? -off : off) < total / 100) }' intervals.csv
countersink stat -I 50 -j -e task-clock -- "$TARGETS/burn" 200 >/dev/null 2>json
if have python3; then
	ok "JSON is JSON, with intervals" python3 -c 'import json
o = json.load(open("json"))
assert o["intervals"] and all(i["events"][0]["name"] == "task-clock" for i in o["intervals"]), o
assert o["events"][0]["value"]["mean"] > 0 and o["status"] == 0, o'
	countersink stat -j -r 3 -e task-clock,page-faults true 2>json
	ok "and with series" python3 -c 'import json
o = json.load(open("json"))
v = o["events"][1]["value"]
assert o["runs"] == 3 and v["ci95_low"] <= v["mean"] <= v["ci95_high"] and v["deviation"] >= 0, o'
else
	skip "JSON is JSON, with intervals" "there is no python3 to read it"
	skip "and with series" "there is no python3 to read it"
fi

# Threads.
countersink stat --per-thread -e task-clock,page-faults -- "$TARGETS/threads8" >/dev/null 2>err
if grep -q 'keeps their counts to itself' err; then
	skip "each thread has its counts" "this kernel tells of no thread"
else
	is "$(grep -c '^ *[0-9]* *[0-9]* *worker-[0-7] .* ms ' err)" 8 "each thread has its counts"
	unlike "$(cat err)" 'scaled' "which are not scaled for being counted by CPU"
	# Threads that take turns on a CPU: the kernel swaps their events, and what it knows of the time they were enabled.
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
		ok "all threads' counts come to the whole" sums 1 2 3 4 5 6 7 8
		# What two CPUs write at once must not be lost.
		for i in 1 2 3 4 5 6 7 8; do
			countersink stat --per-thread --json -e page-faults:u,task-clock -- "$TARGETS/ends_together" 100 >/dev/null 2>json.$i
		done
		ok "where they end at one moment on two CPUs, too" sums 1 2 3 4 5 6 7 8
	else
		skip "all threads' counts come to the whole" "there is no python3 to add them"
		skip "where they end at one moment on two CPUs, too" "there is no python3 to add them"
	fi
fi

done_testing
