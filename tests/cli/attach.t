#!/bin/bash
# Attaching to running programs: targets, endings, results; no target is left stopped. Refusals: attach_refused.t.
# `make check-attach` checks how exactly it counts.
. "$(dirname "$0")/lib.sh"

. "$SRC/tests/cli/attach.sh"

# ---- a process
start "$TARGETS/burn" 1000000
burn=$target
wait_until 30 has_run "$burn" 50
attach -p "$burn" -d 1 >out 2>err
is $? 0 "a process, for a time: status 0"
is "$(cat out)" "" "attach prints nothing on stdout"
like "$(cat err)" 'attached to 1 thread of 1 process; all of them were stopped for [0-9.]+ ms' "attach reports how long the threads were stopped"
like "$(cat err)" 'burn_60$' "the report names its functions"
like "$(cat err)" 'engine +from outside' "the report names the engine"
like "$(cat err)" "command +burn \($burn\)" "the report names the target"
is "$(countersink report countersink.pb.gz 2>&1 | grep -c 'burn_60$')" 1 "the profile has the target's functions"
unlike "$(cat err)" 'stacks that end' "no stack is reported as cut"
total=$(sed -n 's/^ *[0-9.]* *[0-9.]* *[num]*s *\([0-9.]*\).* main$/\1/p' err)
ok "main is below all of it: $total %" awk "BEGIN { exit !($total > 95) }"
ok "the target runs on, not stopped" sh -c 'kill -0 "$1" && ! grep -qE "^State:.[tT]" /proc/"$1"/status' sh "$burn"
for way in libunwind fp none; do
	attach_for 200 "$burn" countersink attach -p "$burn" --unwind=$way
	like "$(cat err)" 'burn_60$' "--unwind=$way names functions"
done
attach_for 200 "$burn" countersink attach -p "$burn" --unwind=libunwind
like "$(cat err)" '^  stacks +libunwind: over the 16 KiB' "--unwind=libunwind: the report names the unwinder"
unlike "$(cat err)" 'stacks that end' "--unwind=libunwind: all stacks are whole"
if [ "$(uname -m)" = x86_64 ]; then
	attach --unwind=dwarf -o sum.pb.gz -- "$TARGETS/walk_ends" 200 sum >out 2>err
	like "$(cat err)" 'lost .*stacks that end at unwind rules that are not followed' "--unwind=dwarf: rules that need an evaluation end stacks"
	attach -o sum.pb.gz -- "$TARGETS/walk_ends" 200 sum >out 2>err
	like "$(cat err)" '[0-9]+ stacks were walked by libunwind' "--unwind=auto: a note counts the stacks that libunwind walked"
	unlike "$(cat err)" 'stacks that end at unwind rules' "--unwind=auto: libunwind follows the rules that need an evaluation"
else
	skip "stacks that libunwind takes over" "the program is written for x86-64"
fi
# What is deeper than the copy is counted; a larger copy has it.
attach -o deep.pb.gz -- "$TARGETS/walk_ends" 200 large >out 2>err
like "$(cat err)" '^  note +[0-9]+ stacks are deeper than the 16 KiB of them .* \(--stack-bytes=64K copies more; --unwind=fp has no such limit\)$' \
	"stacks that are deeper than the copy are counted, with what helps"
attach --stack-bytes=64K -o deep.pb.gz -- "$TARGETS/walk_ends" 200 large >out 2>err
like "$(cat err)" '^  stacks +dwarf: over the 64 KiB of stack' "--stack-bytes: the report has how much is copied"
unlike "$(cat err)" 'stacks are deeper|stacks that end' "--stack-bytes=64K: they are whole"
countersink export -o deep.folded deep.pb.gz
like "$(cat deep.folded)" ';main;spin_large ' "--stack-bytes=64K: a function with a large array has its caller"
for bytes in 512 65K 0 -1 16X; do
	attach --stack-bytes=$bytes -- true >out 2>err
	is "$?:$(wc -l <err)" 125:1 "--stack-bytes=$bytes is refused in a line" || diag "$(cat err)"
done
attach_for 100 "$burn" countersink attach -p "$burn" --no-stop
like "$(cat err)" 'they were not stopped: threads and processes that they started meanwhile' "--no-stop reports its effect"
attach_for 200 "$burn" countersink attach -t "$burn"
like "$(cat err)" "attached to thread $burn of process $burn \(burn\) alone: its other threads, and threads and processes that it starts" "-t reports that only one thread is profiled"
like "$(cat err)" 'burn_30$' "-t samples the thread"
attach -e '{page-faults:period=1,task-clock}' -o group.pb.gz -- "$TARGETS/faulty" 400 20 >out 2>err
is $? 0 "a group of events"
like "$(cat err)" ' self +total %.* task-clock ' "the second event of a group has a column"
like "$(cat err)" ' 400 .* [0-9.]+ [mu]s +faulty +touch_pages$' "the second event's column has its counts between samples"
for events in page-faults:period=50 page-faults:period=50,task-clock:freq=100; do
	attach -q -j -e "$events" -o group.pb.gz -- "$TARGETS/faulty" 400 20 >json
	counted=$(count_of page-faults <json) nr=$(sum_of samples group.pb.gz)
	# Each CPU's event has a period of its own.
	ok "$events: a software event has a sample a period: $nr of $counted" test "$nr" -ge $((counted / 50 - $(nproc) + 1)) -a "$nr" -le $((counted / 50 + 20))
done
attach -q -j -F 2000 -e '{task-clock,page-faults}' -o group.pb.gz -- "$TARGETS/faulty" 400 200 >json
faults=$(sampled_of page-faults group.pb.gz) counted=$(count_of page-faults <json)
ok "samples have $faults of $counted page faults: 90 % or more" test "$faults" -ge $((counted * 9 / 10)) -a "$faults" -le "$counted"
own=own_burn_$$ # other processes may be called burn
cp "$TARGETS/burn" "$own"
start "./$own" 1000000
wait_until 30 has_run "$target" 20
attach_for 200 "$target" countersink attach -e task-clock,page-faults -j "^$own\$" >json
is $? 0 "attach by a regular expression for the name: status 0"
end "$target"
if have python3; then
	ok "--json is JSON" python3 -c 'import json; d = json.load(open("json"))
assert d["stopped"] and d["stop_ms"] > 0 and d["attached_threads"] >= 1, d
assert [c["name"] for c in d["counters"]][0] == "task-clock" and d["counters"][0]["value"] > 0, d
assert d["samples"] > 0 and d["lost"] == 0, d'
else
	skip "--json is JSON" "no python3 here"
fi

# ---- how it ends
env --default-signal=INT countersink attach -p "$burn" -o int.pb.gz 2>int.err & # the shell ignores it for its background
pid=$!
wait_until 30 grep -q 'Ctrl-C ends it' int.err
wait_until 30 has_run "$burn" $(($(ran_ms "$burn") + 100))
kill -INT $pid
wait $pid
is $? 0 "Ctrl-C ends it: status 0"
like "$(cat int.err)" 'burn_60$' "Ctrl-C ends attach with a report"
countersink attach -p "$burn" -o int.pb.gz 2>term.err & # a file of its own: err has the message already
pid=$!
wait_until 30 grep -q 'Ctrl-C ends it' term.err
kill -TERM $pid
wait $pid
is $? 0 "SIGTERM ends attach: status 0"
start "$TARGETS/burn" 2000
attach -p "$target" 2>err
is $? 0 "attach ends with the last target: status 0"
like "$(cat err)" 'burn_60$' "attach that ends with its target reports"
ok "the target is gone" sh -c '! kill -0 "$1" 2>/dev/null || grep -q "^State:.Z" /proc/"$1"/status' sh "$target"
start "$TARGETS/lineages" 8 600 5 "$TMP/over"
# shellcheck disable=SC2016
wait_until 30 sh -c '[ "$(ls "/proc/$1/task" | wc -l)" -gt 4 ] && pgrep -P "$1" >/dev/null' sh "$target"
countersink attach -p "$target" -j >json 2>err &
pid=$!
targets="$targets $pid"
wait_until 60 grep -q 'Ctrl-C ends it' err
touch over
wait $pid
is $? 0 "attach to threads that start each other and to forks ends with them: status 0"
nr=$(sed -n 's/.*"attached_processes": *\([0-9]*\).*/\1/p' json)
ok "the report has the target's child processes: $nr" test "${nr:-0}" -ge 2

# ---- a target that does nothing
start sleep 1000
sleeps() {
	[ "$(cat "/proc/$1/comm")" = sleep ] && grep -q '^State:.S' "/proc/$1/status" && grep -q nanosleep "/proc/$1/wchan"
}
wait_until 30 sleeps "$target"
attach -e page-faults --duration 0.1 -p "$target" -o idle.pb.gz 2>err
is $? 0 "a target that sleeps: status 0"
is "$(countersink report --json idle.pb.gz | tr -d ' \n' | grep -o '"types":.*"by_type":"[^"]*"')" \
	'"types":[{"name":"samples","unit":"count","sum":0},{"name":"page-faults","unit":"count","sum":0}],"by_type":"page-faults"' \
	"a target that sleeps: the profile has a column for page-faults, and none for CPU time"
end "$target"

# ---- two attach to one target; a target that is profiled already
countersink attach -p "$burn" -o one.pb.gz 2>one &
pid=$!
wait_until 60 grep -q 'Ctrl-C ends it' one
attach_for 200 "$burn" countersink attach -p "$burn" -o two.pb.gz
kill -TERM $pid
wait $pid
like "$(cat one)" 'burn_60$' "the first of two attach to one target has samples"
like "$(cat err)" 'burn_60$' "the second of two attach to one target has samples"
end "$burn"
countersink -q -o inside.pb.gz -- "$TARGETS/burn" 3000 >/dev/null 2>&1 &
pid=$!
targets="$targets $pid"
wait_until 30 sh -c 'pgrep -P "$1" burn' sh $pid
inner=$(pgrep -P $pid burn)
attach_for 200 "$inner" countersink attach -p "$inner" -o outside.pb.gz
like "$(cat err)" 'burn_60$' "a program that runs under countersink can be attached to"
wait $pid
is $? 0 "a program under countersink keeps its status when attached to"
like "$(countersink report inside.pb.gz 2>&1)" 'burn_60$' "a program under countersink keeps its own profile when attached to"

# ---- before exec
attach -o exec.pb.gz -- sh -c "$TARGETS/burn 300 >/dev/null; exit 7" 2>err
is $? 7 "attach -- COMMAND returns the command's status"
like "$(cat err)" 'burn_60$' "attach -- COMMAND samples child processes"
attach -o exec.pb.gz -- "$TARGETS/static_spin" 0.3 2>err
like "$(cat err)" ' main$' "attach -- COMMAND samples a static program"
attach -q -j -e '{task-clock:period=100000000000,page-faults}' -o few.pb.gz -- true >json
faults=$(sum_of page-faults few.pb.gz)
is "$faults $((faults > 0))" "$(count_of page-faults <json) 1" "a command without a sample: a row has all that was counted"
attach -q -e alignment-faults -o few.pb.gz -- true
is "$(countersink report --json few.pb.gz | tr -d ' \n' | grep -o '"types":.*"by_type":"[^"]*"')" \
	'"types":[{"name":"samples","unit":"count","sum":0},{"name":"alignment-faults","unit":"count","sum":0}],"by_type":"alignment-faults"' \
	"a command without a sample: there is no column for CPU time that was not counted"
# A second thread that execs takes over the first one's TID: its earlier counts must not be counted again.
samples_are_the_whole() { # STOLEN: of exec.pb.gz and out: rows have what events counted; less, where the kernel accounts less
	local counted
	counted=$(count_of task-clock <out)
	countersink export -f folded exec.pb.gz | awk -v counted="$counted" -v stolen="$1" '!/\[kernel: exits and switches\]|\[not counted\]/ { sum += $NF }
		/\[kernel: exits and switches\]|\[not counted\]/ { has_gap = 1 }
		END { exit !(sum == counted || (!has_gap && sum >= 0.8 * counted - stolen && sum <= counted)) }'
}
wrong=0
for _ in 1 2 3; do
	stolen_before=$(steal_counter)
	attach -j -e task-clock -o exec.pb.gz -- "$TARGETS/exec_chain" 4 30000 thread >out 2>err
	samples_are_the_whole "$(stolen_since "$stolen_before")" || { wrong=$((wrong + 1)); diag "$(cat out err)"; }
done
is $wrong 0 "an exec by a second thread: the samples have no more time than was counted"
like "$(cat out)" '^end of the chain' "an exec by a second thread: the whole chain ran"
start "$TARGETS/exec_chain" 4000 3000 thread
wait_until 30 has_run "$target" 20
stolen_before=$(steal_counter)
attach_for 300 "$target" countersink attach -j -e task-clock -o exec.pb.gz -p "$target" >out
stolen=$(stolen_since "$stolen_before")
unlike "$(cat out)" 'changed its credentials' "an exec by a second thread is not reported as one with other credentials"
ok "an exec by a second thread of a running target: the samples have the counted time" samples_are_the_whole "$stolen" || diag "$(cat out err; countersink report -a exec.pb.gz)"
# While one of its threads takes over its TID, the process has not ended.
refused=0
for _ in 1 2 3 4 5 6; do
	attach -d 0.02 -q -o exec.pb.gz -p "$target" 2>err || { refused=$((refused + 1)); diag "$(cat err)"; }
done
is $refused 0 "a process whose threads exec can be attached to at any time"
end "$target"
start "$TARGETS/headless" 60000
wait_until 30 grep -q '^State:.Z' "/proc/$target/status"
attach_for 200 "$target" countersink attach -o headless.pb.gz -p "$target"
is $? 0 "attach to a process whose first thread has ended: status 0"
like "$(cat err)" ' left_to_it$' "a process whose first thread has ended is sampled"
attach -d 0.02 -q -o headless.pb.gz '^headless$' 2>err
is $? 0 "a process whose first thread has ended is found by its name"
end "$target"
attach -- ./not_there 2>err
is $? 127 "a command that is not there: status 127"

# ---- control groups
if is_root && mkdir groups && { mount -t cgroup -o perf_event none groups 2>/dev/null || mount -t cgroup2 none groups 2>/dev/null; }; then
	group=groups/countersink.$$
	mkdir $group
	sh -c 'echo $$ >"$0/cgroup.procs"; exec "$1" 100000' $group "$TARGETS/burn" >/dev/null &
	target=$!
	targets="$targets $target"
	wait_until 30 has_run $target 20
	attach_for 300 $target countersink attach --cgroup $group -e cpu-clock -o group.pb.gz
	is $? 0 "a control group: status 0"
	like "$(cat err)" 'burn_60$' "a control group: its functions are sampled"
	unlike "$(cat err)" 'spin_suid' "a control group: processes outside it are not sampled"
	end $target
	wait_until 30 rmdir $group
	umount groups
else
	skip "a control group" "control groups of perf_event's cannot be mounted here"
fi

# ---- attach killed while its targets are stopped
start "$TARGETS/lineages" 100 1000 2
many=$target
# A look at all threads takes about as long as they are stopped: some two of five tries catch attach in time.
caught=0 nr=0 end=$(($(date +%s) + 120))
while [ $nr -lt 6 ] || { [ $caught = 0 ] && [ "$(date +%s)" -lt $end ]; }; do
	nr=$((nr + 1))
	countersink attach -q -o /dev/null -p "$many" 2>/dev/null &
	pid=$!
	soon=$(($(date +%s) + 5)) # it may have attached between two looks
	until is_traced "$many" || [ "$(date +%s)" -gt $soon ]; do
		[ "$(grep -c ^TracerPid "/proc/$pid/status" 2>/dev/null)" = 1 ] || break
		[ "$(ls /proc/$pid/fd 2>/dev/null | wc -l)" -lt 200 ] || break # it has attached; the targets run again
	done
	is_traced "$many" && caught=$((caught + 1))
	kill -9 $pid
	wait $pid 2>/dev/null
	wait_until 30 sh -c '! grep -lE "^State:.[tT]" /proc/"$1"/task/*/status 2>/dev/null | grep -q .' sh "$many" || break
done
ok "attach is killed $nr times: no thread of the target stays stopped" sh -c '! grep -lE "^State:.[tT]" /proc/"$1"/task/*/status 2>/dev/null | grep -q .' sh "$many"
ok "attach was killed $caught times while the target was stopped" test $caught -gt 0
end "$many"

done_testing
