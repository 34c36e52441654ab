#!/bin/bash
# --follow: which of the programs that a command starts are profiled. The others run and are counted and named.
. "$(dirname "$0")/lib.sh"

# Two programs by one shell; what it says of them.
run() {
	countersink -o f.pb.gz "$@" -- sh -c '"$0" 60; "$1" 60; exit 4' "$TARGETS/burn" "$TARGETS/burnt" >out 2>err
}
mkdir bin
cp "$TARGETS/burn" bin/burn
cp "$TARGETS/burn" bin/burnt-with-a-long-name
TARGETS=$TMP/bin
mv bin/burnt-with-a-long-name bin/burnt

run
is $? 4 "everything is followed"
like "$(cat err)" ' burn_60' "by default"
like "$(cat err)" ' 3 processes' "every process"
unlike "$(cat err)" 'unprofiled|--follow' "and nothing is said of it"

run --follow=none
is $? 4 "none is followed: the status is the command's"
unlike "$(cat err)" ' burn_60' "no child is sampled"
like "$(cat err)" 'unprofiled.*burn \(not followed\)' "the report names them"
like "$(cat err)" '\[not followed: burnt\]' "with their time"
like "$(cat err)" 'note +profiled is the command alone: --follow=none' "and says why"
countersink -o f.pb.gz --follow=none -- sh -c 'exec "$0" 60' "$TARGETS/burn" >out 2>err
like "$(cat err)" ' burn_60' "what the command becomes by exec is the command"
countersink -o f.pb.gz --follow=none -- perl -e 'if (!fork) { $i++ while $i < 3e6; exit } wait' 2>err
like "$(cat err)" 'not followed: perl' "a child that is only forked is not followed either"

run --follow='x*,burn?'
is $? 4 "names are followed"
like "$(cat err)" ' burn_60' "what fits is sampled"
like "$(cat err)" 'unprofiled +sh \(not followed\); burn \(not followed\)|unprofiled +burn.*; sh' "what does not is named"
unlike "$(cat err)" 'unprofiled.*burnt \(' "and nothing else"
like "$(cat err)" 'note +profiled is what has these names: --follow=x\*,burn\?' "the pattern is told"
countersink -o f.pb.gz --follow=burn -- env -i "$TARGETS/burn" 60 >out 2>err
like "$(cat err)" ' burn_60' "below one that is not followed and clears the environment"

mv "$TARGETS/burnt" "$TARGETS/a-name-over-fifteen-characters"
countersink -o f.pb.gz --follow='*fifteen-characters' -- "$TARGETS/a-name-over-fifteen-characters" 60 >out 2>err
like "$(cat err)" ' burn_60' "a long name fits as a whole"

COUNTERSINK_FOLLOW=none countersink -o f.pb.gz -- sh -c '"$0" 60; :' "$TARGETS/burn" >out 2>err
like "$(cat err)" 'unprofiled.*burn \(not followed\)' "the environment says it as well"

# Without launcher: the first that is followed makes the profile.
rm -f f.pb.gz
mkdir shm
XDG_RUNTIME_DIR=$TMP/shm LD_PRELOAD=$LIB COUNTERSINK_FOLLOW=burn COUNTERSINK_OUTPUT=$TMP/f.pb.gz \
	sh -c '"$0" 60; :' "$TARGETS/burn" >out 2>err
is $? 0 "without launcher"
is "$(cat err)" "" "nothing is said"
like "$(countersink report f.pb.gz)" ' burn_60' "what is followed makes its profile"
is "$(ls shm)" "" "and leaves nothing"
rm -f f.pb.gz
XDG_RUNTIME_DIR=$TMP/shm LD_PRELOAD=$LIB COUNTERSINK_FOLLOW=none COUNTERSINK_OUTPUT=$TMP/f.pb.gz \
	sh -c '"$0" 60; :' "$TARGETS/burn" >out 2>err
unlike "$(countersink report f.pb.gz)" ' burn_60' "none: the first process alone"
is "$(ls shm)" "" "which leaves nothing either"

done_testing
