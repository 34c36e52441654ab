#!/bin/sh
# The tarball of countersink in a bare Debian on an emulated machine, whose kernel may be older than what countersink uses.
. "$(dirname "$0")/lib.sh"

BUSY='sub busy { my $s = 0; $s += $_ * $_ for 1 .. 20000; $s } busy() for 1 .. 40; print "done\n"'
release=$(uname -r)
# at_least MAJOR MINOR: the kernel is that one or a later one.
at_least() {
	major=${release%%.*}
	minor=${release#*.}
	minor=${minor%%.*}
	[ "$major" -gt "$1" ] || { [ "$major" = "$1" ] && [ "$minor" -ge "$2" ]; }
}
diag "Linux $release, $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release), perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
if at_least 5 13; then
	best=sigtrap
else
	best=signal
fi

countersink doctor >out 2>err
ok "doctor finds that profiles can be made here" test $? -le 1 || diag "$(cat out err)"
unlike "$(cat out)" '^ *fail' "and nothing that fails" || diag "$(cat out)"
at_least 5 13 || like "$(cat out)" 'sigtrap: needs Linux 5\.13' "doctor names the kernel that the best engine needs"

# engine NAME WANTED [OPTION...]: perl is profiled, by the engine.
engine() {
	name=$1
	wanted=$2
	shift 2
	countersink -o p.pb.gz "$@" -- perl -e "$BUSY" >out 2>report </dev/null
	is "$?:$(cat out)" "0:done" "$name: the program's output and status are its own" || diag "$(cat report)"
	like "$(cat report)" "^  engine +$wanted" "$name: the engine is $wanted" || diag "$(cat report)"
	like "$(cat report)" 'main::busy|Perl_(pp_|runops)' "$name: functions are named" || diag "$(cat report)"
	share=$(sed -n 's/^  accounted .*samples cover \([0-9]*\)[.0-9]* % of.*/\1/p' report)
	ok "$name: samples cover most of the CPU time ($share %)" test "${share:-0}" -ge 60
	unlike "$(cat report)" 'pthread_create did not make|E2BIG' "$name: no false warning"
}
engine auto $best
engine timer timer --engine=timer
engine signal signal --engine=signal
engine "frame pointers" $best --unwind=fp
if at_least 5 13; then
	engine sigtrap sigtrap --engine=sigtrap
else
	countersink -o p.pb.gz --engine=sigtrap -- perl -e "$BUSY" >out 2>report </dev/null
	is "$(cat out)" "done" "an engine that this kernel lacks: the program runs"
	like "$(cat report)" 'sigtrap: needs Linux 5\.13' "and the report has the kernel that it needs"
fi

countersink stat -e task-clock,page-faults -- perl -e "$BUSY" >out 2>err
is "$?:$(cat out)" "0:done" "stat: the program's output and status are its own" || diag "$(cat err)"
like "$(cat err)" '[1-9][0-9.,]* .*task-clock|task-clock .*[1-9]' "stat has the program's CPU time"

# A process that runs already.
mkfifo end
perl -e 'sub busy { my $s = 0; $s += $_ * $_ for 1 .. 20000; $s } $| = 1; $SIG{TERM} = sub { print "ended\n"; exit 7 }; print "up\n"; busy() while 1' >perl.out &
perl=$!
ok "a program runs" wait_until 60 grep -q up perl.out
countersink attach -o a.pb.gz -p $perl --duration 2 >out 2>report
is $? 0 "attach to a program that runs" || diag "$(cat report)"
kill $perl
wait $perl
is "$?:$(tail -n 1 perl.out)" "7:ended" "which goes on afterwards"
like "$(cat report; countersink report a.pb.gz 2>&1)" 'Perl_(pp_|runops)|main::busy|\[perl' "and has its functions in the profile"

# Programs that cannot be injected.
# shellcheck disable=SC2016 # the inner shells expand these
countersink -o s.pb.gz -- sh -c '/bin/busybox sh -c "i=0; while [ \$i -lt 10000 ]; do i=\$((i + 1)); done"; echo "status $?"' >out 2>report
is "$?:$(cat out)" "0:status 0" "a static program in the tree: output and status are its own"
countersink report --by process s.pb.gz >by 2>&1
share=$(awk '$NF ~ /^[0-9]+$/ && $(NF - 1) == "busybox" { print int($1) }' by)
ok "and it has its time: no other program is as long (${share:-no} %)" test "${share:-0}" -ge 60 || diag "$(cat report by)"

# Other users, at the level that the distribution has, and at the kernel's.
for level in "$(cat /proc/sys/kernel/perf_event_paranoid)" 2; do
	echo "$level" >/proc/sys/kernel/perf_event_paranoid
	mkdir -p "user$level"
	chmod 777 "user$level"
	(cd "user$level" && setpriv --reuid=65534 --regid=65534 --clear-groups countersink -o p.pb.gz -- perl -e "$BUSY" >out 2>report)
	is "$?:$(cat "user$level/out")" "0:done" "another user, perf_event_paranoid $level: the program runs" || diag "$(cat "user$level/report")"
	like "$(cat "user$level/report")" 'main::busy|Perl_(pp_|runops)' "and its functions are named" || diag "$(cat "user$level/report")"
	if [ "$level" -ge 3 ]; then
		like "$(cat "user$level/report")" '^  engine +timer.*perf_event_paranoid' "by the timer, and the level is named as the reason"
	fi
done

COUNTERSINK_OUTPUT=$TMP/alone.pb.gz LD_PRELOAD=$LIB perl -e "$BUSY" >out 2>err
is "$?:$(cat out err)" "0:done" "with the library alone, output and status are the program's own"
like "$(countersink report alone.pb.gz 2>&1)" 'main::busy|Perl_(pp_|runops)' "and its profile is made"
is "$(find /dev/shm "$XDG_RUNTIME_DIR" -name 'countersink-??????')" "" "no recordings stay"
dmesg >kernel.log 2>/dev/null || :
unlike "$(cat kernel.log)" 'BUG:|Oops:|segfault|general protection' "the kernel's log has no fault"
done_testing
