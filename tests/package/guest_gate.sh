#!/bin/sh
# The tarball's gate and its moves, in an emulated machine of another kind (tests/package/tar_arm64.t).
. "$(dirname "$0")/lib.sh"

WORK='sub busy { my $s = 0; $s += $_ * $_ for 1 .. $ARGV[0]; $s } busy() for 1 .. 20'
# What the gate finds is not judged: CPU time in the emulator follows the load of its host.
countersink gate --runs 12 -T 20% --min-share 99% --seed 3 --vs "perl -e '$WORK' 1000" -- perl -e "$WORK" 10000 >out.tap 2>err
status=$?
ok "the gate compares two commands: status 0 or 3 ($status)" test $status = 0 -o $status = 3 || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# runs: 12 and 12, in pairs' "by runs of both"
like "$(cat out.tap)" '^(not )?ok 2 - CPU time ' "and judges their CPU time"

# Elsewhere, without a right to write there.
cp -r /opt/countersink "$TMP/moved"
chmod -R a-w "$TMP/moved"
"$TMP/moved/bin/countersink" -o p.pb.gz -- sh -c 'echo "$LD_PRELOAD"; exec perl -e "$0" 40000' "$WORK" >out 2>report
is "$?:$(cat out)" "0:$TMP/moved/lib/countersink/\$PLATFORM/libcountersink.so" "moved: its own library is injected" || diag "$(cat report)"
like "$("$TMP/moved/bin/countersink" report p.pb.gz 2>&1)" 'main::busy|Perl_(pp_|runops)' "moved: functions are named in the report"
chmod -R u+w "$TMP/moved"
done_testing
