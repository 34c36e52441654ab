#!/bin/sh
# CPUs of two kinds, each with a PMU of its own: what has no PMU in its name is counted on both.
. "$(dirname "$0")/lib.sh"
SHARES=$TARGETS/shares
BIG=armv8_cortex_a72    # CPU 0
LITTLE=armv8_cortex_a53 # CPU 1

near() { # GOT WANT PERCENT
	awk -v got="$1" -v want="$2" -v percent="$3" 'BEGIN {
		off = got - want
		exit !((off < 0 ? -off : off) <= want * percent / 100)
	}'
}
# value EVENT COLUMN: of the file csv; of several of that name, their sum
value() {
	awk -F, -v event="$1" -v column="$2" '$1 == event { sum += $column } END { printf "%.0f", sum }' csv
}
# attached EVENT FILE: in JSON of attach; of several names that contain it, their sum
attached() {
	awk -F'[:,]' -v event="$1" '/"name"/ { on = index($0, event) } /"value"/ && on { sum += $2 } END { printf "%.0f", sum }' "$2"
}
# counted EVENT FILE: in a report
counted() {
	awk -v event="$1" '/^  counted/ && $2 == event { print $3 * ($4 == "G" ? 1e9 : $4 == "M" ? 1e6 : 1); exit }' "$2"
}
# intervals EVENT: of the file csv, without the total
intervals() {
	awk -F, -v event="$1" '$2 == event && $1 != "total" { sum += $5 } END { printf "%.0f", sum }' csv
}

countersink events cycles >events
like "$(cat events)" "^  yes +$BIG/cpu_cycles/" "the first PMU's events open"
like "$(cat events)" "^  yes +$LITTLE/cpu_cycles/" "the second PMU's events open"

taskset 1 countersink stat -x -o csv -e cycles:u,instructions:u -- "$SHARES"
is $? 0 "generic events are counted"
ok "an event is counted on the CPU kind where the program ran ($(value $BIG/instructions/:u 4))" near "$(value $BIG/instructions/:u 4)" 200150000 0.1
like "$(cat csv)" "^$LITTLE/cycles/:u,count,not counted,,.*it counts on one kind of CPU only, and nothing ran there" \
	"an event of the other CPU kind is not counted, with the cause"
ok "the ratio is that of one CPU kind" near "$(awk -F, -v e=$BIG/instructions/:u '$1 == e { print $10 }' csv)" 0.5 1

# On both: what one kind counts while the other one runs is nothing, which is no share of a counter to be scaled by.
countersink stat -x -o csv -e cycles:u,instructions:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES"
ok "each CPU kind has its part ($(value $BIG/instructions/:u 4))" near "$(value $BIG/instructions/:u 4)" 200150000 1
ok "the other CPU kind has its part ($(value $LITTLE/instructions/:u 4))" near "$(value $LITTLE/instructions/:u 4)" 200150000 1
unlike "$(cat csv)" 'scaled' "no count is scaled"
countersink stat -x -o csv -e r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES"
ok "more events than counters are multiplexed on each CPU kind ($(value $BIG/r8/:u 4))" near "$(value $BIG/r8/:u 4)" 1600000000 10 ||
	diag "$(cat csv)"
ok "multiplexed counts are scaled on the other CPU kind ($(value $LITTLE/r8/:u 4))" near "$(value $LITTLE/r8/:u 4)" 1600000000 10 ||
	diag "$(cat csv)"
countersink stat --per-thread -x -o csv -e instructions:u -- taskset 2 "$SHARES"
ok "--per-thread counts each CPU kind ($(value $LITTLE/instructions/:u 4))" near "$(value $LITTLE/instructions/:u 4)" 200150000 1

for cpu in 1 2; do
	pmu=$BIG
	[ $cpu = 1 ] || pmu=$LITTLE
	taskset $cpu countersink -a -- "$SHARES" 2>report
	like "$(cat report)" '^  event +armv8_cortex_a53/cycles/: cycles: the PMU of this machine counts' \
		"on CPU $((cpu - 1)), auto finds cycles"
	like "$(cat report)" "^  event +$pmu/cycles/" "run samples cycles of each CPU kind"
	like "$(cat report)" "^  counted +$pmu/cycles/ 40[0-9]\\.[0-9]+ M in the whole tree" "run counts cycles of each CPU kind from outside"
done
countersink -a -c 1000003 -e cycles:u,instructions:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES" 2>report
like "$(cat report)" " samples by $LITTLE/cycles/:u, $BIG/cycles/:u" "cycles of both CPU kinds are sampled"
for pmu in $BIG $LITTLE; do
	like "$(cat report)" "^  counted +$pmu/instructions/:u 20[0-9]\\.[0-9]+ M in the whole tree" "run counts $pmu's half of the instructions"
done
countersink attach -o x.pb.gz -e cycles:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES" 2>report
is $? 0 "attach opens each event on its own CPUs" || diag "$(cat report)"
# We work on the other CPU meanwhile, and the emulator has one clock for both, which its counters are made of.
for pmu in $BIG $LITTLE; do
	like "$(cat report)" "^  counted +$pmu/cycles/:u 4[0-4][0-9]\\.[0-9]+ M in the whole tree" "attach counts $pmu's half of the cycles"
done
like "$(cat report)" ' share_60$' "attach has functions of both CPU kinds"

# We work on the other CPU meanwhile, and the emulator has one clock for both, which both time and counters are made of: so
# they agree with each other, but for what the samples themselves take, in which the kernel stops the counters.
"$COUNTERSINK" attach --json -o x.pb.gz -e cycles,task-clock -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES" >counts 2>&1
ok "attach's cycles agree with its time ($(attached cycles/ counts) cycles in $(attached task-clock counts) ns)" \
	near "$(attached cycles/ counts)" "$(attached task-clock counts)" 2.5

# Events that take turns, in a program that goes from one kind of CPU to the other and back: each waits where its own kind
# is, and that alone is to be made up for.
eight=r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u
countersink stat -x -o csv -e $eight -- "$TARGETS/wander" 36 4 10
ok "multiplexed counts of short stays are right ($(value $BIG/r8/:u 4))" near "$(value $BIG/r8/:u 4)" 2880000000 3
ok "multiplexed counts are right on the less used CPU kind ($(value $LITTLE/r8/:u 4))" near "$(value $LITTLE/r8/:u 4)" 320000000 3
like "$(countersink stat -e $eight -- "$TARGETS/wander" 2 2 10 2>&1)" 'scaled: it had a counter' "multiplexed counts of short stays are reported as scaled"
countersink stat -x -o csv -e "$(echo $eight | sed "s,r8:u,$BIG/event=8/u,g")" -- "$TARGETS/wander" 20 60 5
ok "an event of one CPU kind alone is right ($(value $BIG/event=8/:u 4))" near "$(value $BIG/event=8/:u 4)" 800000000 3
"$TARGETS/hog" -5 countersink stat -x -o csv -e r8:u,r8:u -- "$TARGETS/wander" 20 60 5
ok "an event multiplexed with another process's is right ($(value $BIG/r8/:u 4))" near "$(value $BIG/r8/:u 4)" 200000000 5
ok "an event multiplexed with another process's is right on the other CPU kind ($(value $LITTLE/r8/:u 4))" near "$(value $LITTLE/r8/:u 4)" 600000000 5
countersink stat --per-thread -x -o csv -e $eight -- "$TARGETS/wander" 20 60 5 2
ok "--per-thread: multiplexed counts are right ($(value $BIG/r8/:u 4))" near "$(value $BIG/r8/:u 4)" 1600000000 3
ok "--per-thread: multiplexed counts are right on the other CPU kind ($(value $LITTLE/r8/:u 4))" near "$(value $LITTLE/r8/:u 4)" 4800000000 3
countersink stat -I 100 -x -o csv -e $eight -- "$TARGETS/wander" 20 60 5
ok "-I: multiplexed counts are right ($(intervals $BIG/r8/:u))" near "$(intervals $BIG/r8/:u)" 800000000 3
ok "-I: multiplexed counts are right on the other CPU kind ($(intervals $LITTLE/r8/:u))" near "$(intervals $LITTLE/r8/:u)" 2400000000 3

"$TARGETS/hog" -4 countersink -a -c 500003 -e '{cycles:u,r8:u}' -- "$TARGETS/wander" 40 40 5 2>report
for pmu in $BIG $LITTLE; do
	counted=$(counted $pmu/r8/:u report)
	ok "run counts $pmu from outside ($counted)" near "$counted" 200000000 8 || diag "$(cat report)"
	sampled=$(awk -v event="By $pmu" -v first="$LITTLE" '
		index($0, event) == 1 || (event ~ first && /self %/ && !at) { at = 1; next }
		at == 1 && /wander +on_/ { print $2; exit }' report)
	ok "run's samples have $pmu's cycles ($sampled M cycles)" near "$sampled" 400 12 || diag "$(cat report)"
done
like "$(cat report)" "^  note +shared a counter.*: $LITTLE/cycles/:u; $LITTLE/r8/:u; $BIG/cycles/:u; $BIG/r8/:u" "run notes shared counters of both CPU kinds"
countersink -a -c 500003 -e '{cycles:u,r8:u}' -- "$TARGETS/wander" 2 2 20 2>report
unlike "$(cat report)" 'shared a counter|scaled' "a program that changes CPU kinds gives no note about shared counters"
# Unscaled it would be a third; what the attach itself does on the other CPU adds some percent, as above.
"$TARGETS/hog" -5 countersink attach --json -o x.pb.gz -e '{cycles:u,r8:u},{r8:u},{r8:u}' -- "$TARGETS/wander" 36 24 5 >counts 2>&1
ok "attach scales counts ($(attached $BIG/r8/:u counts) in three)" near "$(attached $BIG/r8/:u counts)" 540000000 8
ok "attach scales the other CPU kind's counts ($(attached $LITTLE/r8/:u counts) in three)" near "$(attached $LITTLE/r8/:u counts)" 360000000 8

# So many samples as here make the kernel allow fewer.
echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
countersink doctor >doctor
is $? 0 "doctor on a hybrid machine: status 0" || diag "$(cat doctor)"
like "$(cat doctor)" "^ok +pmu +.*hybrid: an event counts on the CPUs of its own PMU only" "doctor reports a hybrid machine"
like "$(cat doctor)" "^ok +group +7 hardware events are counted together by $LITTLE: cycles instructions" "doctor reports one CPU kind's group"
done_testing
