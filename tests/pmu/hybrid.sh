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

countersink events cycles >events
like "$(cat events)" "^  yes +$BIG/cpu_cycles/" "the kernel sees a PMU"
like "$(cat events)" "^  yes +$LITTLE/cpu_cycles/" "and another one"

taskset 1 countersink stat -x -o csv -e cycles:u,instructions:u -- "$SHARES"
is $? 0 "generic events are counted"
ok "where the program ran ($(value $BIG/instructions/:u 4))" near "$(value $BIG/instructions/:u 4)" 200150000 0.1
like "$(cat csv)" "^$LITTLE/cycles/:u,count,not counted,,.*it counts on one kind of CPU only, and nothing ran there" \
	"and where it did not, there is no 0 but the cause"
ok "by kind there is what they mean together" near "$(awk -F, -v e=$BIG/instructions/:u '$1 == e { print $10 }' csv)" 0.5 1

# On both: what one kind counts while the other one runs is nothing, which is no share of a counter to be scaled by.
countersink stat -x -o csv -e cycles:u,instructions:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES"
ok "each has its part ($(value $BIG/instructions/:u 4))" near "$(value $BIG/instructions/:u 4)" 200150000 1
ok "and nothing is added to it ($(value $LITTLE/instructions/:u 4))" near "$(value $LITTLE/instructions/:u 4)" 200150000 1
unlike "$(cat csv)" 'scaled' "nothing is scaled"
countersink stat -x -o csv -e r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES"
ok "more events than counters take turns, on each kind ($(value $BIG/r8/:u 4))" near "$(value $BIG/r8/:u 4)" 1600000000 10 ||
	diag "$(cat csv)"
ok "and are scaled by those turns ($(value $LITTLE/r8/:u 4))" near "$(value $LITTLE/r8/:u 4)" 1600000000 10 ||
	diag "$(cat csv)"
countersink stat --per-thread -x -o csv -e instructions:u -- taskset 2 "$SHARES"
ok "per thread as well ($(value $LITTLE/instructions/:u 4))" near "$(value $LITTLE/instructions/:u 4)" 200150000 1

for cpu in 1 2; do
	pmu=$BIG
	[ $cpu = 1 ] || pmu=$LITTLE
	taskset $cpu countersink -a -- "$SHARES" 2>report
	like "$(cat report)" '^  event +armv8_cortex_a53/cycles/: cycles: the PMU of this machine counts' \
		"on CPU $((cpu - 1)), auto finds cycles"
	like "$(cat report)" "^  event +$pmu/cycles/" "of that kind, too"
	like "$(cat report)" "^  counted +$pmu/cycles/ 40[0-9]\\.[0-9]+ M in the whole tree" "which count"
done
countersink -a -c 1000003 -e cycles:u,instructions:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES" 2>report
like "$(cat report)" " samples by $LITTLE/cycles/:u, $BIG/cycles/:u" "both kinds' cycles sample"
for pmu in $BIG $LITTLE; do
	like "$(cat report)" "^  counted +$pmu/instructions/:u 20[0-9]\\.[0-9]+ M in the whole tree" "$pmu counts its half"
done
countersink attach -o x.pb.gz -e cycles:u -- sh -c "taskset 1 $SHARES; taskset 2 $SHARES" 2>report
is $? 0 "attach opens each event on its own CPUs" || diag "$(cat report)"
# We work on the other CPU meanwhile, and the emulator has one clock for both, which its counters are made of.
for pmu in $BIG $LITTLE; do
	like "$(cat report)" "^  counted +$pmu/cycles/:u 4[0-4][0-9]\\.[0-9]+ M in the whole tree" "and $pmu counts its half"
done
like "$(cat report)" ' share_60$' "with the functions of what began on either"

countersink doctor >doctor
is $? 0 "the doctor is content" || diag "$(cat doctor)"
like "$(cat doctor)" "^ok +pmu +.*hybrid: an event counts on the CPUs of its own PMU only" "and knows what machine it is"
like "$(cat doctor)" "^ok +group +7 hardware events are counted together by $LITTLE: cycles instructions" "and one kind's group"
done_testing
