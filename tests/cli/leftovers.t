#!/bin/bash
# Recordings of runs that were killed before anybody made their profile: report names them, and nothing else.
. "$(dirname "$0")/lib.sh"

mkdir shm
chmod 711 shm
XDG_RUNTIME_DIR=$TMP/shm
TMPDIR=$TMP/none
export XDG_RUNTIME_DIR TMPDIR

# What report says where there is no profile. Others' leftovers may lie in /dev/shm and /tmp: ours alone are kept.
listed() {
	countersink report 2>&1 | grep "$TMP/shm"
}
is "$(listed)" "" "nothing is left, and nothing is named"
like "$(countersink report 2>&1)" 'countersink.pb.gz: ' "the file that is missing is named"

LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c '"$0" 60; kill -KILL $$' "$TARGETS/burn" >out 2>&1
is "$(find shm -mindepth 1 -maxdepth 1 | wc -l)" 1 "a program without launcher is killed"
like "$(listed)" "/shm/countersink-[^ ]+  bash, 20[0-9-]+ [0-9:]+, 2 processes, [0-9.]+ [KM]iB" "and its recordings named"
is "$(countersink report 2>&1 >/dev/null | grep -c 'recordings are left')" 1 "with what to do"
countersink report 2>/dev/null
is $? 1 "which is a failure"

folder=$(echo "$TMP"/shm/*)
countersink report -q -o /dev/null "$folder"
ok "recordings whose profile went into a device are kept" test -d "$folder"
like "$(countersink report -o p.pb.gz "$folder")" ' burn_60' "a profile is made of them"
is "$(ls shm)" "" "and they are removed"

# A launcher that lives, and its program.
countersink -q -o p.pb.gz -- sh -c 'echo "$COUNTERSINK_RUN_DIR" >folder; : >ready; while ! test -e stop; do sleep 0.05; done' &
wait_until 30 test -e ready
is "$(listed)" "" "what is in use is not named"
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
is "$(listed)" "" "its program goes on: not named"
touch stop
wait_until 30 sh -c '! kill -0 $(cat pid)'
ok "when that has ended" wait_until 30 sh -c 'countersink report 2>&1 | grep -q "$0"' "$TMP/shm"
countersink report -q -o q.pb.gz "$(echo "$TMP"/shm/*)"
is $? 0 "the profile can be made"
is "$(ls shm)" "" "and nothing is left"

# Not ours to name.
mkdir -m 755 shm/countersink-open
cp "$SRC/README.md" shm/countersink-open/1.0.rec
mkdir -m 700 shm/countersink-none
ln -s / shm/countersink-link
is "$(listed)" "" "what is no run folder is not named"

done_testing
