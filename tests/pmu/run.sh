#!/bin/sh
# countersink run with hardware events: each function gets its share of every counter.
. "$(dirname "$0")/lib.sh"
SHARES=$TARGETS/shares

# near GOT WANT PERCENT
near() {
	awk -v got="$1" -v want="$2" -v percent="$3" 'BEGIN {
		off = got - want
		exit !((off < 0 ? -off : off) <= want * percent / 100)
	}'
}

# self FUNCTION COLUMN: a function's own number in a column of the report.
self() {
	awk -v name="$1" -v column="$2" '
		!start && /self %/ { # where a column ends in the heading, it ends in each row
			start = index($0, column)
			rest = substr($0, start)
			end = start + match(rest " ", / /) - 2
			next
		}
		start && $NF == name {
			n = split(substr($0, 1, end), words, " ")
			unit = words[n] == "G" ? 1e9 : words[n] == "M" ? 1e6 : words[n] == "k" ? 1e3 : 0
			printf "%.0f\n", unit ? words[n - 1] * unit : words[n]
			exit
		}' report
}

# A sample's handler runs some 2,000 instructions, which are counted as the program's.
# Pinned, the samples get the counter of cycles; on another one, the emulator raises overflows at the tick alone.
# A slice of the work is 4 M cycles, of which share_10 has 400,000: the period must be nothing near a fraction of that.
"$COUNTERSINK" -a -c 370003 -e cycles:u:pinned,instructions:u -- "$SHARES" 2>report
is $? 0 "cycles and instructions are profiled" || diag "$(cat report)"
like "$(cat report)" '^  event +cycles:u every 370003$' "the event is every 370,003rd cycle"
like "$(cat report)" '^  engine +sigtrap$' "the engine is sigtrap"
like "$(cat report)" '^  stacks +dwarf$' "stacks are walked by DWARF tables"
unlike "$(cat report)" '^  lost' "no sample is lost"
samples=$(sed -n '1s/.*; \([0-9,]*\) samples by cycles:u.*/\1/p' report | tr -d ,)
ok "1,081 samples of 400 M cycles ($samples)" near "$samples" 1081 3
# One sample is 1 % of the smallest share: there a few samples at the slices' ends are allowed, elsewhere 2 %.
for share in 60 30 10; do
	within=$((share < 30 ? 5 : 2))
	cycles=$(self share_$share 'self  total')
	instructions=$(self share_$share instruc)
	ok "share_$share has $share % of the cycles ($cycles)" near "$cycles" $((share * 4000000)) $within
	ok "share_$share has $share % of the instructions ($instructions)" near "$instructions" $((share * 2000000)) $within
done
like "$(cat report)" '(100\.00|99\.[0-9]+) .* main$' "all samples are below main"
like "$(cat report)" '^  counted +cycles:uD? 40[0-9]\.[0-9]+ M in the whole tree' "the cycles in samples are those counted from outside"

# Without a launcher nothing else counts, and a frequency is steered well.
COUNTERSINK_EVENTS=cycles:u,instructions:u COUNTERSINK_REPORT=1 LD_PRELOAD=$LIB "$SHARES" 2>report
samples=$(sed -n '1s/.*; \([0-9,]*\) samples by cycles:u.*/\1/p' report | tr -d ,)
ok "by frequency: 997 samples a second ($samples in 0.4 s)" near "$samples" 400 10

"$COUNTERSINK" -a -c 400009 --engine=signal -e cycles:u:pinned,instructions:u -- "$SHARES" 2>report
like "$(cat report)" '^  engine +signal: as asked' "the signal engine samples cycles"
instructions=$(self share_60 instruc)
ok "the signal engine attributes instructions to their function ($instructions)" near "$instructions" 120000000 2

"$COUNTERSINK" -a -c 400009 -e cycles:u:pinned,instructions:u -- "$SHARES" 2 3 2>report
like "$(cat report)" '2 processes, 6 threads' "processes and threads are counted"
instructions=$(self share_60 instruc)
ok "processes and threads have their instructions ($instructions)" near "$instructions" 720000000 2

# Two groups, each with a ring of its own; the second one samples where the faults are.
"$COUNTERSINK" -a -c 400009 -e '{cycles:u,instructions:u}:D,page-faults:period=1' -- "$TARGETS/faulty" 400 20 2>report
like "$(cat report)" ' samples by cycles:u, page-faults$' "cycles and page faults are sampled together"
faults=$(awk '/^By page-faults,/ { inside = 1; next } inside && $NF == "touch_pages" { print $2; exit }' report)
ok "each fault is attributed to its function ($faults of 400)" near "$faults" 400 2

# The loader is an object like others: samples in it look for no new objects, each one again, and have its name.
"$COUNTERSINK" -a -c 100003 -e cycles:u:pinned -- "$TARGETS/look_up" 10000 >out 2>report
is "$(cat out)" "look_up found 0" "a program that the loader works for runs to its end"
unlike "$(cat report)" 'period raised' "samples in the loader leave it the time"
unlike "$(cat report)" ' \[anon\]' "no sample in the loader is in an unknown object"
like "$(cat report)" ' ld-linux-aarch64' "samples in the loader have its name"

# Seven events here and as many outside: they take turns, and what is shown is scaled.
"$COUNTERSINK" -a -e cycles:u,r8:u:freq=997,instructions:u,r11:u,r8:u,r8:u,r8:u -- "$SHARES" 3 2>report
is $? 0 "more events than counters: the program runs"
like "$(cat report)" '^  note +shared a counter, so the counts are estimates: .*instructions:u' "more events than counters: the report notes scaled counts"
like "$(cat report)" '^  counted +instructions:u .* \(scaled: it had a counter [0-9.]+ % of the time\)' "more events than counters: counts from outside are scaled"
instructions=$(awk '/^  counted +instructions:u/ { print $3 * ($4 == "G" ? 1e9 : 1e6); exit }' report)
ok "more events than counters: scaled counts are right within 10 % ($instructions of 600 M)" near "$instructions" 600000000 10

# Periods that are shorter than a sample takes: the program comes to its end, the period gets longer, and what was counted
# is in the samples, but for some tens of milliseconds in which the kernel stopped the event again and again.
short() { # WANTED-WARNING OPTION...
	want=$1
	shift
	"$COUNTERSINK" -a "$@" -- "$TARGETS/burn" "$length" >out 2>report
	is "$?:$(grep -c '^burn ' out)" "0:1" "$*: the program runs to its end"
	like "$(cat report)" "$want" "$*: the report gives the raised period"
	counted=$(awk '/^  counted / { print $3 * ($4 == "G" ? 1e9 : 1e6); exit }' report)
	sampled=$(awk '
		$NF == "main" { # % self, % total: a number may have a unit
			at = $3 ~ /^[GMk]$/ ? 5 : 4
			print $at * ($(at + 1) == "G" ? 1e9 : $(at + 1) == "M" ? 1e6 : $(at + 1) == "k" ? 1e3 : 1)
			exit
		}' report)
	ok "samples agree with the count ($sampled of $counted)" near "$sampled" "$counted" 10
}
length=80
raised='^  warning +[^ ]+: period raised from [0-9]+ to [0-9]+: '
short "$raised" -e r11:u:period=5000
# At these, the emulated machine takes one overflow after another and never runs another instruction: an event that is not
# known by its name is counted before it samples. Where that fails, the machine's own deadline ends this.
often='^  warning +r(11|8):u: period raised from (1|3|1000) to [0-9]+: it happens so often'
length=10
short "$often" -e r11:u:period=1
short "$often" -c 1000 -e r11:u:D
short "$often" -e r8:u:D:period=3
length=80
# What comes in the kernel alone shows only once the program runs.
"$COUNTERSINK" -a -e r11:k:D:period=1000 -- "$TARGETS/burn" 20 >out 2>report
is "$?:$(grep -c '^burn ' out)" "0:1" "cycles of the kernel, one in a thousand: the program runs to its end"
like "$(cat report)" '^  warning +r11:k: period raised from 1000 to [0-9]+: (samples took|the kernel allows)' "the stuck guard raised the period of kernel cycles"
"$COUNTERSINK" -e r40:u:period=1 -- "$TARGETS/burn" 20 >out 2>report
like "$(cat report)" '^  event +r40:u every 1$' "an event that hardly ever happens keeps its period"
unlike "$(cat report)" 'period raised' "an event that hardly ever happens gives no warning"
short "$raised" -e r11:u:D:period=100
short "$raised" --engine=signal -e r11:u:D:period=100
short 'cycles:u: a sample every 100 is more than a program can tolerate: using 50000' -c 100 -e cycles:u:pinned

# A group that its counters cannot hold names what they can, and what not: before anything runs.
eight='{r8:u,instructions:u,r8:u,r8:u,r8:u,r8:u,armv8_pmuv3/inst_retired/u,r11:u}'
room='the group of 8 events cannot be counted at once; what fits is .r8:u,instructions:u,(r8:u,){4}r11:u., '
room="${room}and what does not is .armv8_pmuv3/inst_retired/:u.: split it"
"$COUNTERSINK" -e "$eight" -- touch ran 2>err
is "$?:$(test -e ran && echo ran)" "125:" "a group that cannot fit is refused before the command starts"
like "$(cat err)" "option --events: $room" "the refused group is reported with what fits"
"$COUNTERSINK" attach -e "$eight" -p $$ 2>err
like "$?:$(cat err)" "^125:.*option --events: $room" "attach refuses the group, too"
"$COUNTERSINK" stat -e "$eight" -- touch ran 2>err
is "$?:$(test -e ran && echo ran)" "125:" "stat refuses the group, too"
like "$(cat err)" "option --events: $room" "stat reports the refused group with what fits"
"$COUNTERSINK" -e r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r11:u,r40:u -- touch ran 2>err
like "$?:$(cat err)" "^125:.*too many events: 'r40:u' would be number 8, and 7 fit: (r8:u,){6}r11:u; what does not is r40:u" \
	"more events than a sample has room for are named as well"

# What the kernel would open, and count as something else.
refused() { # EVENT REGEX
	"$COUNTERSINK" -e "$1" -- touch ran 2>err
	is "$?:$(test -e ran && echo ran)" "125:" "$1 is refused before the command starts"
	like "$(cat err)" "option --events: '$1': $2" "$1: the reason is reported"
	"$COUNTERSINK" attach -e "$1" -p $$ 2>err
	like "$?:$(cat err)" "^125:.*option --events: '$1': $2" "attach refuses $1, too"
	"$COUNTERSINK" events "$1" >listed
	like "$(cat listed)" "^  no \[1\] +$1" "events lists $1 as not usable"
	like "$(cat listed)" "^\[1\] EOPNOTSUPP: $2" "events gives the reason for $1"
}
refused cycles:ppp "ARM's PMUs cannot sample with less skid.*leave out p"
refused instructions:h "':h' counts the hypervisor alone.*leave out h"
refused cycles:G "':G' counts in virtual machines .*leave out G"
refused r3:u "this CPU does not have that one of ARM's events"
"$COUNTERSINK" events L1D_CACHE_REFILL >events
like "$(cat events)" '^  no \[[0-9]\] +arm_[a-z0-9]+::L1D_CACHE_REFILL' "an event of libpfm4 that the CPU lacks does not open"

# What the kernel stops for a while it does not count: the whole tree's count, from outside, is right all the same, and how
# much of it the samples have is what the table says.
rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
echo 2000 >/proc/sys/kernel/perf_event_max_sample_rate
"$COUNTERSINK" -a -c 60000 -e cycles:u:D,instructions:u -- "$SHARES" 2>report
like "$(cat report)" '^  lost +[0-9]+ times throttled by the kernel' "throttling by the kernel is reported as lost"
like "$(cat report)" '^  warning +cycles:u: period raised from 60000 to [0-9]+: the kernel allows no more samples' "the period raised after throttling is reported"
reported=$(sed -n 's/^  counted  *cycles:u .*; samples have \([0-9.]*\) M, \([0-9.]*\) % of it$/\1 \2/p' report)
counted=$(awk '/^  counted +cycles:u/ { print $3 * ($4 == "G" ? 1e9 : 1e6); exit }' report)
ok "the count from outside is complete ($counted of 400 M)" near "$counted" 401000000 2
sampled=$(awk '$NF ~ /^share_/ { sum += $2 } END { print sum }' report)
ok "the cycles in samples are reported ($reported)" near "${reported% *}" "$sampled" 1
ok "the share of cycles in samples is reported" near "${reported#* }" "$(awk -v s="$sampled" -v c="$counted" 'BEGIN { print 1e8 * s / c }')" 1
"$COUNTERSINK" attach -o x.pb.gz -c 60000 -e cycles:u:D -- "$SHARES" 2>report
like "$(cat report)" '^  note +the kernel stopped events [0-9]+ times,.* their counts are too small' "attach notes that throttled counts are too small"
echo "$rate" >/proc/sys/kernel/perf_event_max_sample_rate
"$COUNTERSINK" attach -o x.pb.gz -c 100 -e cycles:u:D -- "$SHARES" 2>report
like "$(cat report)" '^  note +cycles:u: a sample every 100 is more than a program can tolerate: using 50000' "attach raises a period that is too short"
like "$(cat report)" '^  counted +cycles:u 40[0-9]\.[0-9]+ M in the whole tree' "with the raised period no event is throttled"

"$COUNTERSINK" -- "$SHARES" 2>report
like "$(cat report)" '^  event +cycles: cycles: the PMU of this machine counts' "auto chooses cycles"
done_testing
