#!/bin/sh
# Events of a run: errors in a list are reported before the command starts, and several events sample at once.
. "$(dirname "$0")/lib.sh"

refused() { # LIST REGEX NAME
	countersink -e "$1" -- touch ran 2>err
	is "$?" 125 "$3: refused"
	like "$(cat err)" "^countersink: option --events: .*$2" "$3: the reason is reported"
	unlike "$(ls)" '^ran$' "$3: the command was not run"
	rm -f ran
}
refused page-fautls "unknown event 'page-fautls'.*did you mean 'page-faults'" "an unknown event, with the nearest name"
refused task-clock:uq "unknown modifier 'q' in ':uq'; known are u k h" "an unknown modifier"
refused page-faults:perod=5 "perod.*did you mean|unknown modifier 'perod" "an unknown long modifier"
refused page-faults:ppp "a software event is recorded where it happens, without skid; leave out p" "a modifier that the PMU refuses"
refused task-clock:period=100 "the kernel samples a clock at most every 10000 ns; give period=10000" "a period below the kernel's floor"
refused page-faults:period=0 "a period is a number of events between samples, from 1" "a period of 0"
refused '{task-clock,page-faults' "no closing '}'" "a group without an end"
refused task-clock,page-faults,cs,migrations,minor-faults,major-faults,cpu-clock,dummy \
	"'dummy' would be number 8, and 7 fit: task-clock,.*,cpu-clock; what does not is dummy" "too many events"

# Modifiers that the kernel accepts and ignores: the event would count 0, or everything.
refused page-faults:h "':h' counts the hypervisor alone.*leave out h" "a hypervisor's part"
refused page-faults:G "it would ignore ':G'; leave out G" "guests' part of what the kernel counts"
refused context-switches:u "it happens in the kernel only.*leave out u" "user space's part of what the kernel does"
refused task-clock:k "clocks count all of the CPU time.*leave out k" "the kernel's part of a clock"
countersink attach -e page-faults:G -p $$ 2>err
like "$?:$(cat err)" "^125:.*it would ignore ':G'" "attach refuses a modifier that the kernel would ignore"
countersink persist detach -e page-faults:G -p $$ 2>err
like "$?:$(cat err)" "^[12]:.*it would ignore ':G'" "persist refuses a modifier that the kernel would ignore"
COUNTERSINK_EVENTS=page-faults:G COUNTERSINK_REPORT=1 LD_PRELOAD=$LIB "$TARGETS/burn" 30 >out 2>err
like "$?:$(cat err)" "it would ignore ':G'; leave out G; sampling CPU time instead" "without a launcher a modifier that the kernel would ignore is reported"

# The library alone cannot refuse to run: it reports the error, and samples CPU time.
COUNTERSINK_EVENTS=page-fautls COUNTERSINK_REPORT=1 LD_PRELOAD=$LIB "$TARGETS/burn" 30 >out 2>err
is $? 0 "without a launcher an unknown event does not stop the program"
like "$(cat err)" "unknown event 'page-fautls'.*sampling CPU time instead" "without a launcher the report names the unknown event and its replacement"

# faults_of FUNCTION: its own, in the table of those that page faults sampled.
faults_of() {
	awk -v name="$1" '/^By page-faults,/ { inside = 1; next } inside && $NF == name { print $2; exit }' report
}

# Each group's first event samples; each function gets the events it caused itself.
countersink -a -e '{task-clock},{page-faults:period=1}' -- "$TARGETS/faulty" 2000 200 >out 2>report
is $? 0 "two groups sample"
like "$(cat report)" '^[0-9].* samples by task-clock, page-faults$' "both sampling events are named"
like "$(cat report)" '^  event +task-clock every 1\.003 ms$' "the first event is sampled by time"
like "$(cat report)" '^  event +page-faults every 1$' "the second event is sampled at each fault"
faults=$(faults_of touch_pages)
ok "faults are attributed to the function that faults ($faults of 2000)" test "${faults:-0}" -ge 1950
other=$(faults_of burn_time)
ok "faults are not attributed to the function that uses time (${other:-0})" test "${other:-0}" -le 20
like "$(cat report)" ' burn_time$' "time is attributed to the function that uses time"
countersink -a -e task-clock,page-faults:period=1 -- "$TARGETS/faulty" 2000 200 >out 2>report
faults=$(faults_of touch_pages)
ok "an event with its own period needs no braces ($faults)" test "${faults:-0}" -ge 1950
countersink -a -e task-clock,page-faults -- "$TARGETS/faulty" 2000 200 >out 2>report
like "$(cat report)" '^[0-9].* samples by task-clock$' "an event without its own period is counted with the first"
countersink -a --engine=signal -e '{task-clock},{page-faults:period=1}' -- "$TARGETS/faulty" 2000 200 >out 2>report
faults=$(faults_of touch_pages)
ok "the signal engine samples two groups ($faults)" test "${faults:-0}" -ge 1950

# CPU time is counted once, whichever event samples.
time_of() {
	sed -n '1s/^\([0-9.]*\) \(m\{0,1\}s\) of CPU time.*/\1 \2/p' report | awk '{ print $2 == "s" ? $1 * 1000 : $1 }'
}
countersink -e '{page-faults:period=1},{task-clock}' -- "$TARGETS/burn" 200 >out 2>report
whole=$(awk '/accounted/ { for (i = 1; i < NF; i++) if ($i == "of") { print $(i + 2) == "s" ? $(i + 1) * 1000 : $(i + 1); exit } }' report)
ok "CPU time is counted once ($(time_of) of $whole ms)" awk -v got="$(time_of)" -v want="$whole" \
	'BEGIN { exit !(want > 0 && got < 1.3 * want && got > 0.8 * want) }'

# Rates at which no program makes progress, or that the kernel refuses.
countersink -e task-clock:freq=60000 -- "$TARGETS/burn" 20 >out 2>report
like "$(cat report)" 'task-clock: 60000 samples a second are more than a program can tolerate: using 50000' "a clock's frequency has a limit"
countersink -e page-faults:freq=99999999 -- "$TARGETS/burn" 20 >out 2>report
like "$(cat report)" 'page-faults: 99999999 samples a second are more than kernel.perf_event_max_sample_rate allows: using [0-9]+$' \
	"the frequency of an event other than a clock has a limit"
like "$(cat report)" '^  event +page-faults' "an event with a reduced frequency is sampled"

# Samples that take more of the time than is allowed become fewer, of all threads; what is counted stays.
countersink --budget=0.001% -o budget.pb.gz -- "$TARGETS/burn" 2500 >out 2>report
is "$?:$(grep -c '^burn ' out)" "0:1" "a program whose samples exceed the budget runs to its end"
like "$(cat report)" "(period raised|frequency lowered) from [0-9]+ to [0-9]+, by a factor of [0-9]+: .* than --budget allows" \
	"samples beyond the budget become fewer, and the report has the factor"
COUNTERSINK_BUDGET=99% countersink -o budget.pb.gz -- "$TARGETS/burn" 1500 >out 2>report
unlike "$(cat report)" "than --budget allows" "within the budget, by the environment, nothing is changed"
countersink --engine=timer --budget=0.001% -o budget.pb.gz -- "$TARGETS/burn" 2500 >out 2>report
like "$(cat report)" "(period raised|frequency lowered) from [0-9]+ to [0-9]+, by a factor of [0-9]+: .* than --budget allows" "the timer engine is slowed, too"
# No descriptor is left for the groups at their new rate: a quarter as many samples, or the ones that there were.
cat >few_fds.py <<'E2'
import resource, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(i * i for i in range(10000))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
work(1.2)
work(1.2)
E2
countersink -F 997 --budget=0.001% -o budget.pb.gz -- python3 few_fds.py >out 2>report
is "$?" 0 "groups that cannot be opened again: the program runs to its end"
unlike "$(cat report)" "sampled no further" "the thread goes on with those that it has"
like "$(cat report)" "a thread is sampled more often than --budget allows: no descriptor or memory is left to lower its rate" "this is reported"
like "$(cat report)" "by a factor of 4: " "and the rate is lowered no further"
is "$(countersink report -j -a budget.pb.gz | python3 -c '
import json, sys
rows = json.load(sys.stdin)["rows"]
print(sum(r["self"] for r in rows if not r["pseudo"]) > 0.9 * sum(r["self"] for r in rows))')" True "and its time has functions"
for wrong in 0 100% x 1%% -1%; do
	countersink --budget=$wrong -- true 2>report
	is "$?:$(grep -c "'$wrong' is not a share above 0 and below 100" report)" "125:1" "the budget '$wrong' is none"
done

# An event that each sample itself causes would stop all progress of the program: not even SIGTERM would arrive.
if [ "$(id -u)" = 0 ] && have unshare && mkdir tracefs && unshare -m mount -t tracefs tracefs "$TMP/tracefs" 2>/dev/null; then
	for event in raw_syscalls:sys_enter raw_syscalls:sys_exit; do
		for engine in sigtrap signal; do
			unshare -m sh -c 'test -e /sys/kernel/tracing/events || mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"' sh \
				timeout -s KILL 100 countersink --engine=$engine -e $event:period=1 -- "$TARGETS/burn" 20 >out 2>report
			is "$?:$(grep -c '^burn ' out)" "0:1" "$event, each of them, by the $engine engine: the program runs to its end"
			like "$(cat report)" "$event: period raised from 1 to [0-9]+: samples took more than 90 % of the time" \
				"$event by the $engine engine: the raised period is reported"
		done
	done
else
	skip "events that the handler itself causes" "tracefs cannot be mounted here"
fi

if [ ! -e /sys/bus/event_source/devices/cpu ]; then
	countersink -e cycles,page-faults -- "$TARGETS/burn" 100 >out 2>report
	is $? 0 "an unsupported first event: status 0"
	like "$(cat report)" '^  event +task-clock every' "an unsupported first event: CPU time samples instead"
	like "$(cat report)" 'could not be counted: cycles' "an unsupported first event is reported as not counted"
	like "$(cat report)" '^  engine +sigtrap' "an unsupported first event: the engine is sigtrap"
fi
"$COUNTERSINK" -e page-faults:u -- true 2>asked
unlike "$(cat asked)" 'perf_event_paranoid' "page-faults:u as requested gives no note about perf_event_paranoid"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ] && ! grep -q '^Seccomp:.*[12]' /proc/self/status; then
	chmod 777 .
	unprivileged "$COUNTERSINK" -o "$TMP/user.pb.gz" -e task-clock,context-switches -- "$TARGETS/burn" 100 >out 2>report
	like "$(cat report)" 'could not be counted: context-switches' "an event of the kernel only is reported as not counted, not as 0, to an unprivileged user"
fi
done_testing
