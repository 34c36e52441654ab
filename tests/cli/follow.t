#!/bin/bash
# --follow: selects the child programs to profile. The others run and are counted and named.
. "$(dirname "$0")/lib.sh"

# One shell starts two programs; the report is in err.
run() {
	countersink -o f.pb.gz "$@" -- sh -c '"$0" 60; "$1" 60; exit 4' "$TARGETS/burn" "$TARGETS/burnt" >out 2>err
}
mkdir bin
cp "$TARGETS/burn" bin/burn
cp "$TARGETS/burn" bin/burnt-with-a-long-name
TARGETS=$TMP/bin
mv bin/burnt-with-a-long-name bin/burnt

run
is $? 4 "by default the status is the command's"
like "$(cat err)" ' burn_60' "by default child programs are sampled"
like "$(cat err)" ' 3 processes' "by default all processes are profiled"
unlike "$(cat err)" 'unprofiled|--follow' "by default nothing is reported as not followed"

run --follow=none
is $? 4 "--follow=none: the status is the command's"
unlike "$(cat err)" ' burn_60' "--follow=none: no child is sampled"
like "$(cat err)" 'unprofiled.*burn \(not followed\)' "--follow=none: the report names the programs not followed"
like "$(cat err)" '\[not followed: burnt\]' "--follow=none: the report has their time"
like "$(cat err)" 'note +only the command is profiled: --follow=none' "--follow=none: a note gives the reason"
countersink -o f.pb.gz --follow=none -- sh -c 'exec "$0" 60' "$TARGETS/burn" >out 2>err
like "$(cat err)" ' burn_60' "--follow=none: a program that the command execs is profiled"
countersink -o f.pb.gz --follow=none -- perl -e 'if (!fork) { $i++ while $i < 3e6; exit } wait' 2>err
like "$(cat err)" 'not followed: perl' "--follow=none: a forked child without exec is not profiled"

run --follow='x*,burn?'
is $? 4 "--follow=PATTERNS: the status is the command's"
like "$(cat err)" ' burn_60' "--follow=PATTERNS: a matching program is sampled"
like "$(cat err)" 'unprofiled +sh \(not followed\); burn \(not followed\)|unprofiled +burn.*; sh' "--follow=PATTERNS: other programs are named"
unlike "$(cat err)" 'unprofiled.*burnt \(' "--follow=PATTERNS: a matching program is not named as unprofiled"
like "$(cat err)" 'note +only programs with these names are profiled: --follow=x\*,burn\?' "--follow=PATTERNS: a note gives the patterns"
countersink -o f.pb.gz --follow=burn -- env -i "$TARGETS/burn" 60 >out 2>err
like "$(cat err)" ' burn_60' "--follow=burn: below a program that is not followed and clears the environment, burn is sampled"

mv "$TARGETS/burnt" "$TARGETS/a-name-over-fifteen-characters"
countersink -o f.pb.gz --follow='*fifteen-characters' -- "$TARGETS/a-name-over-fifteen-characters" 60 >out 2>err
like "$(cat err)" ' burn_60' "--follow matches a name of more than fifteen characters as a whole"

COUNTERSINK_FOLLOW=none countersink -o f.pb.gz -- sh -c '"$0" 60; :' "$TARGETS/burn" >out 2>err
like "$(cat err)" 'unprofiled.*burn \(not followed\)' "COUNTERSINK_FOLLOW=none works as the option"

# Without a launcher: the first followed process makes the profile.
rm -f f.pb.gz
mkdir shm
XDG_RUNTIME_DIR=$TMP/shm LD_PRELOAD=$LIB COUNTERSINK_FOLLOW=burn COUNTERSINK_OUTPUT=$TMP/f.pb.gz \
	sh -c '"$0" 60; :' "$TARGETS/burn" >out 2>err
is $? 0 "without a launcher COUNTERSINK_FOLLOW=burn: status 0"
is "$(cat err)" "" "without a launcher COUNTERSINK_FOLLOW=burn prints nothing"
like "$(countersink report f.pb.gz)" ' burn_60' "without a launcher the followed program makes the profile"
is "$(ls shm)" "" "without a launcher COUNTERSINK_FOLLOW=burn leaves no run directory"
rm -f f.pb.gz
XDG_RUNTIME_DIR=$TMP/shm LD_PRELOAD=$LIB COUNTERSINK_FOLLOW=none COUNTERSINK_OUTPUT=$TMP/f.pb.gz \
	sh -c '"$0" 60; :' "$TARGETS/burn" >out 2>err
unlike "$(countersink report f.pb.gz)" ' burn_60' "without a launcher COUNTERSINK_FOLLOW=none profiles the first process alone"
is "$(ls shm)" "" "without a launcher COUNTERSINK_FOLLOW=none leaves no run directory"


# Children that no launcher sees are named by their notes in the recording of their parent.
cat >children.pl <<'END'
my ($nr, $until) = @ARGV;
if ($until) {
	pipe my $r, my $w; # the child is recorded before the run ends
	if (fork) { sysread $r, my $byte, 1; exit }
	syswrite $w, 'x';
	select undef, undef, undef, 0.02 until -e $until;
}
for (1 .. $nr) {
	fork or exit;
	wait;
}
$i++ while $i < 3e6;
END
alone() {
	LD_PRELOAD=$LIB COUNTERSINK_FOLLOW=none COUNTERSINK_OUTPUT=c.pb.gz perl children.pl "$@" >out 2>err
	echo "$?"
	countersink report c.pb.gz >report 2>err
}
is "$(alone 12)" 0 "without a launcher, 12 children are not followed: the status is the program's"
like "$(cat report)" 'unprofiled +perl \(not followed\) \(12 times\)' "without a launcher, each of 12 children not followed is named"
unlike "$(cat report)" 'has room to name' "without a launcher, there is room to name 12 children"
is "$(alone 60)" 0 "without a launcher, 60 children are not followed: the status is the program's"
like "$(cat report)" 'unprofiled +perl \(not followed\) \([0-9]+ times\)' "without a launcher, children are named as far as there is room"
like "$(cat report)" 'note +more children were not profiled than a recording has room to name' \
	"without a launcher, a note reports that further children are not named"
countersink -q -o o.pb.gz -- perl children.pl 3 "$TMP/go" >out 2>err
: >go
own_profile() { # by its whole name: while it is written its file has a longer one
	find . -maxdepth 1 | grep -E '/o\.pb\.gz\.[0-9]+$'
}
ok "a process that outlives the run leaves a profile" wait_until 60 own_profile
like "$(countersink report "$(own_profile)")" 'unprofiled +perl \(not injected.*\) \(3 times\)' "the profile of a process that outlives the run names all children that it forked after the run"
done_testing
