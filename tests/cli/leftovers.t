#!/bin/bash
# Recordings of runs that were killed before their profile was made: report names them, and no others.
. "$(dirname "$0")/lib.sh"

mkdir shm
chmod 711 shm
XDG_RUNTIME_DIR=$TMP/shm
TMPDIR=$TMP/none
export XDG_RUNTIME_DIR TMPDIR

# report's messages without a profile. Other runs' recordings may lie in /dev/shm and /tmp: only ours are kept here.
listed() {
	countersink report 2>&1 | grep "$TMP/shm"
}
is "$(listed)" "" "without leftovers no recordings are named"
like "$(countersink report 2>&1)" 'countersink.pb.gz: ' "the missing profile is named"

LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c '"$0" 60; kill -KILL $$' "$TARGETS/burn" >out 2>&1
is "$(find shm -mindepth 1 -maxdepth 1 | wc -l)" 1 "a program without launcher is killed"
like "$(listed)" "/shm/countersink-[^ ]+  bash, 20[0-9-]+ [0-9:]+, 2 processes, [0-9.]+ [KM]iB" "the recordings of a killed program are named"
is "$(countersink report 2>&1 >/dev/null | grep -c 'found recordings of killed runs')" 1 "found recordings are reported with what to do"
countersink report 2>/dev/null
is $? 1 "a missing profile: status 1"

directory=$(echo "$TMP"/shm/*)
countersink report -q -o /dev/null "$directory"
ok "recordings whose profile went into a device are kept" test -d "$directory"
like "$(countersink report -o p.pb.gz "$directory")" ' burn_60' "a profile is made of recordings"
is "$(ls shm)" "" "recordings are removed when their profile was made"

# A launcher that lives, and its program.
countersink -q -o p.pb.gz -- sh -c 'echo "$COUNTERSINK_RUN_DIR" >directory; : >ready; while ! test -e stop; do sleep 0.05; done' &
wait_until 30 test -e ready
is "$(listed)" "" "recordings in use are not named"
touch stop
wait
rm -f ready stop

# A launcher that is killed, with a program that goes on.
countersink -q -o p.pb.gz -- sh -c 'echo $$ >pid; : >ready; while ! test -e stop; do sleep 0.05; done' &
launcher=$!
wait_until 30 test -e ready
kill -KILL $launcher
wait $launcher 2>/dev/null
is "$(find shm -mindepth 1 -maxdepth 1 | wc -l)" 1 "a launcher is killed"
is "$(listed)" "" "recordings of a killed launcher whose program runs are not named"
touch stop
wait_until 30 sh -c '! kill -0 $(cat pid)'
ok "recordings of a killed launcher are named when its program has ended" wait_until 30 sh -c 'countersink report 2>&1 | grep -q "$0"' "$TMP/shm"
countersink report -q -o q.pb.gz "$(echo "$TMP"/shm/*)"
is $? 0 "the profile of a killed launcher's run can be made"
is "$(ls shm)" "" "no recordings of a killed launcher are left"

# Directories that are no run directories.
mkdir -m 755 shm/countersink-open
cp "$SRC/README.md" shm/countersink-open/1.0.rec
mkdir -m 700 shm/countersink-none
ln -s / shm/countersink-link
is "$(listed)" "" "a directory that is no run directory is not named"

done_testing
