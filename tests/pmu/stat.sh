#!/bin/sh
# countersink stat with hardware events: exact, with what they mean, and shared counters scaled.
. "$(dirname "$0")/lib.sh"
SHARES=$TARGETS/shares

near() { # GOT WANT PERCENT
	awk -v got="$1" -v want="$2" -v percent="$3" 'BEGIN {
		off = got - want
		exit !((off < 0 ? -off : off) <= want * percent / 100)
	}'
}
value() { # EVENT COLUMN FILE
	awk -F, -v event="$1" -v column="$2" '$1 == event { print $column; exit }' "$3"
}

countersink stat -x -o one.csv -e cycles:u,instructions:u,task-clock -- "$SHARES"
is $? 0 "hardware events are counted"
got=$(value instructions:u 4 one.csv)
ok "200 M instructions are counted, and those of start and exit ($got)" near "$got" 200150000 0.1
ok "0.5 instructions a cycle are reported ($(value instructions:u 10 one.csv))" near "$(value instructions:u 10 one.csv)" 0.5 0.1
is "$(value instructions:u 11 one.csv)" "per cycle" "the ratio of instructions is per cycle"
ok "1 GHz is reported ($(value cycles:u 10 one.csv))" near "$(value cycles:u 10 one.csv)" 1 2
is "$(value cycles:u 11 one.csv)" "GHz" "the rate of cycles is in GHz"

countersink stat -x -o tree.csv -e instructions:u -- "$SHARES" 3 2
got=$(value instructions:u 4 tree.csv)
ok "three processes of two threads are one sum ($got)" near "$got" 1200000000 0.2

countersink stat -x -r 3 -o runs.csv -e instructions:u -- "$SHARES"
is "$(value instructions:u 8 runs.csv)" 3 "three runs are counted"
ok "three runs differ by less than a ten thousandth ($(value instructions:u 5 runs.csv))" \
	awk -v off="$(value instructions:u 5 runs.csv)" 'BEGIN { exit !(off < 20000) }'

# Twelve events on six counters.
twelve=r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u
countersink stat -o shared -e "$twelve" -- "$SHARES" 3
is "$(grep -c 'r8:u .*scaled: it had a counter [0-9.]* % of the time' shared)" 12 "twelve multiplexed events are shown as scaled"
countersink stat -x -o shared.csv -e "$twelve" -- "$SHARES" 3
ok "each of twelve scaled events is near 600 M" awk -F, '$1 == "r8:u" { n++; if ($4 < 5.6e8 || $4 > 6.4e8) bad++ } END { exit !(n == 12 && !bad) }' \
	shared.csv
like "$(cat shared.csv)" '^r8:u,count,counted,[0-9]+,,,,1,0\.[0-9]+,' "CSV has the share of the time counted"

# A group that never fits.
countersink stat -e "{$twelve}" -- "$SHARES" 2>err
is $? 125 "a group of twelve is refused"
like "$(cat err)" 'cannot be counted at once; what fits is \{r8:u,r8:u,r8:u,r8:u,r8:u,r8:u\}' "the refused group of twelve is reported with what fits"
countersink -e "{$twelve}" -- "$SHARES" 2>err
is $? 125 "run refuses a group of twelve" || diag "$(cat err)"
countersink stat -e '{r8:u,r8:u}' -o group -- "$SHARES"
is $? 0 "a group of two is counted"

countersink stat -I 100 -x -o intervals.csv -e cycles:u,instructions:u -- "$SHARES" 2
ok "intervals add up to the total" awk -F, '
	$2 == "instructions:u" { if ($1 == "total") total = $5; else { sum += $5; n++ } }
	END { off = sum - total; exit !(n >= 5 && total > 3.9e8 && (off < 0 ? -off : off) < 1000) }' intervals.csv

# Somebody else's pinned events: none is left, and that is no zero.
"$TARGETS/hog" countersink stat -o held -e instructions:u,task-clock true
like "$(cat held)" '^ +<not counted> +instructions:u +\[1\]$' "an event that never had a counter is not counted"
like "$(cat held)" '^\[1\] it never had a counter: other processes hold them' "an event that never had a counter is reported with the cause"

# What the kernel opens and then counts as 0, or as something else.
countersink stat -o odd -e cycles:h,cycles:G,cycles:ppp,r3,cycles:I,instructions:H,task-clock:u -- true
is $? 0 "modifiers that the kernel would ignore do not keep the rest from counting"
is "$(grep -c '<not supported>' odd)" 6 "refused modifiers are shown as not supported, not 0"
like "$(cat odd)" '^ +[0-9,]+ +instructions:H' "a modifier without effect is counted"
like "$(cat odd)" "^\\[1\\] EOPNOTSUPP: ':h' counts the hypervisor alone" ":h is not supported"
like "$(cat odd)" "^\\[2\\] EOPNOTSUPP: ':G' counts in virtual machines" ":G is not supported"
like "$(cat odd)" "^\\[3\\] EOPNOTSUPP: ARM's PMUs cannot sample with less skid" "precision is not supported"
like "$(cat odd)" "^\\[4\\] EOPNOTSUPP: this CPU does not have that one of ARM's events" "an event that the CPU lacks is not supported"
like "$(cat odd)" "^\\[5\\] EOPNOTSUPP: .*exclude_idle" "an attribute that the kernel refuses is not supported"
like "$(cat odd)" "^\\[6\\] EOPNOTSUPP: the kernel's clocks count all of the CPU time" "a clock of user space alone is not supported"

# A pinned event that lost its counter, in a keeper's hands.
id=$("$TARGETS/hog" countersink persist detach -e instructions:u:D -p $$)
"$TARGETS/hog" sh -c 'exec countersink persist read "$1"' sh "$id" >out 2>err
is "$? $(cat out)" "1 " "a displaced pinned persistent event has no value"
like "$(cat err)" 'has lost its counter' "a displaced pinned persistent event is reported"
countersink persist attach "$id"
is $? 0 "a displaced pinned persistent event can be attached"

countersink doctor >doctor
is $? 0 "doctor with free counters: status 0" || diag "$(cat doctor)"
like "$(cat doctor)" '^ok +pmu .* counts cycles' "doctor reports the counters"
like "$(cat doctor)" '^ok +group +7 hardware events are counted together: cycles instructions' "doctor reports how many events are counted together"
"$TARGETS/hog" countersink doctor >doctor
is $? 1 "doctor with held counters: status 1"
like "$(cat doctor)" '^warn +group +not even one hardware event' "doctor warns of held counters"
like "$(cat doctor)" '^note +holders +.*hog' "doctor names the holder"

# As a user, with what Debian and then everybody allows.
mkdir -m 777 user
cd user || exit 1
echo 3 >/proc/sys/kernel/perf_event_paranoid
unprivileged countersink stat -e instructions:u true 2>err
like "$(cat err)" '<not supported> +instructions:u' "paranoid 3 of Debian's kernel refuses all"
like "$(cat err)" '^\[1\] EACCES: kernel.perf_event_paranoid is 3' "perf_event_paranoid 3 is reported"
echo 2 >/proc/sys/kernel/perf_event_paranoid
unprivileged countersink stat -x -e instructions "$SHARES" 2>user.csv
got=$(value instructions 4 user.csv)
ok "at paranoid 2 a user counts in user space ($got)" near "$got" 200150000 0.1
# A CPU does not report which of its own codes it has; the kernel opens them all. Here 0x40 is in libpfm4's table of the
# model, and not in the emulated CPU; 0xe77 is in neither.
countersink stat -o zero -e r40:u,re77:u,instructions:u -- true
is "$(grep -cE '^ +0 +re?[47][07]' zero)" 2 "an event that the CPU may lack is 0"
like "$(cat zero)" '^note: r40:u is 0, which is right if none happened: CPUs of this model have it \(arm_ac57::[A-Z0-9_]+\)' "a 0 of an event that the CPU has is noted"
like "$(cat zero)" '^note: re77:u is 0, which may be meaningless: libpfm4 knows no event 0xe77 of this CPU \(arm_ac57\)' "a 0 of an unknown event is noted"
is "$(grep -c '^note: ' zero)" 2 "only zeros are noted"
countersink stat --json -o zero -e r40:u,instructions:u -- true
like "$(cat zero)" '"r40:u is 0, which is right if none happened' "JSON has the notes"
countersink -a -e r8:u,r40:u -- "$TARGETS/shares" 2>report
like "$(cat report)" '^  note +r40:u is 0, which is right if none happened' "run notes a 0 of an event that the CPU has"
countersink attach -o x.pb.gz -e r8:u,re77:u -- "$TARGETS/shares" 2>report
like "$(cat report)" '^  note +re77:u is 0, which may be meaningless' "attach notes a 0 of an unknown event"
done_testing
