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
ok "200 M instructions, and those that start and end a program ($got)" near "$got" 200150000 0.1
ok "0.5 instructions a cycle ($(value instructions:u 10 one.csv))" near "$(value instructions:u 10 one.csv)" 0.5 0.1
is "$(value instructions:u 11 one.csv)" "per cycle" "is what they mean together"
ok "1 GHz ($(value cycles:u 10 one.csv))" near "$(value cycles:u 10 one.csv)" 1 2
is "$(value cycles:u 11 one.csv)" "GHz" "and that"

countersink stat -x -o tree.csv -e instructions:u -- "$SHARES" 3 2
got=$(value instructions:u 4 tree.csv)
ok "three processes of two threads are one sum ($got)" near "$got" 1200000000 0.2

countersink stat -x -r 3 -o runs.csv -e instructions:u -- "$SHARES"
is "$(value instructions:u 8 runs.csv)" 3 "three runs"
ok "that differ by less than a ten thousandth ($(value instructions:u 5 runs.csv))" \
	awk -v off="$(value instructions:u 5 runs.csv)" 'BEGIN { exit !(off < 20000) }'

# Twelve events on six counters.
twelve=r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u
countersink stat -o shared -e "$twelve" -- "$SHARES" 3
is "$(grep -c 'r8:u .*scaled: it had a counter [0-9.]* % of the time' shared)" 12 "twelve events take turns, which is shown"
countersink stat -x -o shared.csv -e "$twelve" -- "$SHARES" 3
ok "scaled, each is near 600 M" awk -F, '$1 == "r8:u" { n++; if ($4 < 5.6e8 || $4 > 6.4e8) bad++ } END { exit !(n == 12 && !bad) }' \
	shared.csv
like "$(cat shared.csv)" '^r8:u,count,counted,[0-9]+,,,,1,0\.[0-9]+,' "and the share of the time is in CSV"

# A group that never fits.
countersink stat -e "{$twelve}" -- "$SHARES" 2>err
is $? 125 "a group of twelve is refused"
like "$(cat err)" 'cannot be counted at once; what fits is \{r8:u,r8:u,r8:u,r8:u,r8:u,r8:u\}' "and what fits is named"
countersink -e "{$twelve}" -- "$SHARES" 2>err
is $? 125 "by run as well" || diag "$(cat err)"
countersink stat -e '{r8:u,r8:u}' -o group -- "$SHARES"
is $? 0 "a group of two is not"

countersink stat -I 100 -x -o intervals.csv -e cycles:u,instructions:u -- "$SHARES" 2
ok "intervals add up" awk -F, '
	$2 == "instructions:u" { if ($1 == "total") total = $5; else { sum += $5; n++ } }
	END { off = sum - total; exit !(n >= 5 && total > 3.9e8 && (off < 0 ? -off : off) < 1000) }' intervals.csv

# Somebody else's pinned events: none is left, and that is no zero.
"$TARGETS/hog" countersink stat -o held -e instructions:u,task-clock true
like "$(cat held)" '^ +<not counted> +instructions:u +\[1\]$' "an event that never had a counter is not counted"
like "$(cat held)" '^\[1\] it never had a counter: somebody holds them' "and the cause is told"

# What the kernel opens and then counts as 0, or as something else.
countersink stat -o odd -e cycles:h,cycles:G,cycles:ppp,r3,cycles:I,instructions:H,task-clock:u -- true
is $? 0 "modifiers that the kernel would ignore do not keep the rest from counting"
is "$(grep -c '<not supported>' odd)" 6 "none of them is shown as 0"
like "$(cat odd)" '^ +[0-9,]+ +instructions:H' "what needs no heed is counted"
like "$(cat odd)" "^\\[1\\] EOPNOTSUPP: ':h' leaves only what a hypervisor does" "a hypervisor's part"
like "$(cat odd)" "^\\[2\\] EOPNOTSUPP: ':G' counts in virtual machines" "guests'"
like "$(cat odd)" "^\\[3\\] EOPNOTSUPP: ARM's PMUs cannot sample with less skid" "precision"
like "$(cat odd)" "^\\[4\\] EOPNOTSUPP: this CPU does not have that one of ARM's events" "an event that the CPU lacks"
like "$(cat odd)" "^\\[5\\] EOPNOTSUPP: .*exclude_idle" "what the kernel itself refuses"
like "$(cat odd)" "^\\[6\\] EOPNOTSUPP: the kernel's clocks count all of the CPU time" "a clock of user space"

# A pinned event that lost its counter, in a keeper's hands.
id=$("$TARGETS/hog" countersink persist detach -e instructions:u:D -p $$)
"$TARGETS/hog" sh -c 'exec countersink persist read "$1"' sh "$id" >out 2>err
is "$? $(cat out)" "1 " "a persistent event that is pinned, and displaced, has no value"
like "$(cat err)" 'has lost its counter' "which is said"
countersink persist attach "$id"
is $? 0 "and is attached"

countersink doctor >doctor
is $? 0 "where all works the doctor is content" || diag "$(cat doctor)"
like "$(cat doctor)" '^ok +pmu .* counts cycles' "it finds the counters"
like "$(cat doctor)" '^ok +group +7 hardware events are counted together: cycles instructions' "and how many go together"
"$TARGETS/hog" countersink doctor >doctor
is $? 1 "not where somebody holds them"
like "$(cat doctor)" '^warn +group +not even one hardware event' "which it tells"
like "$(cat doctor)" '^note +holders +.*hog' "and who that is"

# As a user, with what Debian and then everybody allows.
mkdir -m 777 user
cd user || exit 1
echo 3 >/proc/sys/kernel/perf_event_paranoid
unprivileged countersink stat -e instructions:u true 2>err
like "$(cat err)" '<not supported> +instructions:u' "paranoid 3 of Debian's kernel refuses all"
like "$(cat err)" '^\[1\] EACCES: kernel.perf_event_paranoid is 3' "which is said"
echo 2 >/proc/sys/kernel/perf_event_paranoid
unprivileged countersink stat -x -e instructions "$SHARES" 2>user.csv
got=$(value instructions 4 user.csv)
ok "at 2 a user counts in user space ($got)" near "$got" 200150000 0.1
# Of a CPU's own codes nobody says which it has; the kernel opens them all. Here 0x40 is in libpfm4's table of the model, and
# not in the emulated CPU; 0xe77 is in neither.
countersink stat -o zero -e r40:u,re77:u,instructions:u -- true
is "$(grep -cE '^ +0 +re?[47][07]' zero)" 2 "what the CPU may not have is 0"
like "$(cat zero)" '^note: r40:u is 0, which is right if none happened: CPUs of this model have it \(arm_ac57::[A-Z0-9_]+\)' "with a note"
like "$(cat zero)" '^note: re77:u is 0, and may mean nothing: libpfm4 knows no event 0xe77 of this CPU \(arm_ac57\)' "that says what is known"
is "$(grep -c '^note: ' zero)" 2 "and none of what counts"
countersink stat --json -o zero -e r40:u,instructions:u -- true
like "$(cat zero)" '"r40:u is 0, which is right if none happened' "in JSON as well"
countersink -a -e r8:u,r40:u -- "$TARGETS/shares" 2>report
like "$(cat report)" '^  note +r40:u is 0, which is right if none happened' "run says so"
countersink attach -o x.pb.gz -e r8:u,re77:u -- "$TARGETS/shares" 2>report
like "$(cat report)" '^  note +re77:u is 0, and may mean nothing' "and attach"
done_testing
