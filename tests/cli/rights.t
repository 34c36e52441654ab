#!/bin/bash
# Services that root starts without a launcher, and that drop privileges: their profile is written, whichever user they have
# at their end, and nothing else is left.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root, to drop privileges"
setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || skip_all "setpriv cannot become another user"

mkdir place shm spare
chmod 1777 shm spare
chmod 777 place
cd place || exit 1
XDG_RUNTIME_DIR=$TMP/shm TMPDIR=$TMP/spare
export XDG_RUNTIME_DIR TMPDIR

# dropped HOW END [DIRECTORY]: the profile goes to p.pb.gz.
dropped() {
	rm -rf p.pb.gz* stop ready
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/place/p.pb.gz "$TARGETS/drops_rights" "$@" >out 2>err
}
functions() {
	countersink report --all "$1" 2>&1 | grep -Eo '(before_drop|after_drop|worker)$' | sort -u | tr '\n' ' '
}

while read -r how end status owner names; do
	dropped "$how" "$end"
	is "$? $(cat out err)" "$status " "$how, $end: the program keeps its status and prints nothing"
	is "$(stat -c '%u %a' p.pb.gz)" "$owner 644" "$how, $end: the profile's owner and mode"
	is "$(functions p.pb.gz)" "$names " "$how, $end: the profile has the time before and after"
	is "$(find "$TMP/shm" "$TMP/spare" -mindepth 1)" "" "$how, $end: nothing else is left"
done <<-ROWS
	setuid exit 3 65534 after_drop before_drop
	setuid _exit 3 65534 after_drop before_drop
	setreuid exit 3 65534 after_drop before_drop
	setresuid exit 3 65534 after_drop before_drop
	undumpable exit 3 65534 after_drop before_drop
	early exit 3 65534 after_drop
	for-a-while exit 3 0 after_drop before_drop
	for-a-while _exit 3 0 after_drop before_drop
	refused exit 3 0 after_drop before_drop
	workers exit 3 0 after_drop before_drop worker
	ended-child exit 3 65534 after_drop before_drop worker
ROWS

dropped setuid kill
is "$? $(cat out)" "137 " "killed: the program's status"
is "$(stat -c '%u %a' "$TMP"/shm/*)" "65534 700" "killed: the recordings are its new user's"
like "$(cd / && countersink report 2>&1)" "$TMP/shm/countersink-[^ ]*  drops_rights, " "killed: root's report names the recordings"
like "$(unprivileged sh -c 'cd / && countersink report 2>&1')" "$TMP/shm/countersink-[^ ]*  drops_rights, " "killed: the new user's report names the recordings"
unprivileged countersink report -q -o p.pb.gz "$TMP"/shm/*
is "$(functions p.pb.gz)" "after_drop before_drop " "killed: the new user makes the profile"
is "$(ls "$TMP/shm")" "" "killed: nothing else is left"

# An output that the new user cannot write.
mkdir -m 700 closed
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/place/closed/p.pb.gz "$TARGETS/drops_rights" setuid exit >out 2>err
is $? 3 "an output of root's: the program keeps its status"
is "$(cat err)" "countersink: $TMP/place/closed/p.pb.gz: Permission denied; the profile is in $TMP/spare/p.pb.gz" "an output of root's: the profile's place is reported"
is "$(stat -c '%u %a' "$TMP/spare/p.pb.gz")" "65534 600" "an output of root's: the saved profile has mode 600"
is "$(functions "$TMP/spare/p.pb.gz")" "after_drop before_drop " "an output of root's: the saved profile is complete"
is "$(find "$TMP/shm" closed -mindepth 1)" "" "an output of root's: nothing else is left"
rm -f "$TMP"/spare/*

# exec of another program.
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/place/e.pb.gz setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$TARGETS/burn" 50 >out 2>err
is "$? $(cat err)" "0 " "exec after dropping privileges: the status is the program's"
like "$(countersink report --all e.pb.gz)" ' burn_60' "exec after dropping privileges: the program is in the profile"
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/place/f.pb.gz setpriv --reuid=65534 --regid=65534 --clear-groups \
	sh -c '"$0" 50; "$0" 50; exit 4' "$TARGETS/burn" >out 2>err
is "$? $(cat err)" "4 " "a shell after dropping privileges: the status is the shell's"
like "$(countersink report f.pb.gz)" ', 3 processes,' "a shell after dropping privileges: all processes are in the profile"
is "$(ls "$TMP/shm")" "" "a shell after dropping privileges: no run directory is left"

# A child that still runs as root: no process with fewer privileges can change its recording.
dropped root-child exit
is $? 3 "a child with more privileges: the program keeps its status"
left=$(sed -n 's/^countersink: recordings of processes with more privileges are not in the profile: `countersink report -o FILE \([^ ,]*\)`, as root.*/\1/p' err)
is "$(stat -c '%u %a' "$left")" "0 700" "a child with more privileges: its recording is root's, and named"
is "$(functions p.pb.gz)" "after_drop before_drop " "a child with more privileges: the profile has the rest"
is "$(ls "$TMP/shm")" "$(basename "$left")" "a child with more privileges: nothing else is left"
: >stop
ok "a child with more privileges: root's report names the recording after the child's end" \
	wait_until 30 sh -c 'cd / && countersink report 2>&1 | grep -q "$0"' "$left"
countersink report -q -o q.pb.gz "$left"
like "$(functions q.pb.gz)" 'worker' "a child with more privileges: its recording is complete"
is "$(ls "$TMP/shm")" "" "a child with more privileges: nothing is left after the report"

# A process in a chroot reaches neither countersink nor the recordings: a line reports where they are.
mkdir -m 755 cage
dropped chroot exit "$TMP/place/cage"
is $? 3 "chroot: the program keeps its status"
like "$(cat err)" "^countersink: no countersink beside the library: .countersink report -o $TMP/place/p.pb.gz $TMP/shm/[^ ]*. makes " \
	"chroot: the recordings' place and the remedy are reported"
countersink report -q -o p.pb.gz "$TMP"/shm/*
is "$(functions p.pb.gz)" "after_drop before_drop " "chroot: report makes the profile"
is "$(ls "$TMP/shm")" "" "chroot: nothing else is left"

# With a launcher the profile is root's.
countersink -q -o l.pb.gz -- "$TARGETS/drops_rights" setuid exit >out 2>err
is "$? $(cat err) $(stat -c %u l.pb.gz)" "3  0" "with a launcher the profile is root's"
is "$(functions l.pb.gz)" "after_drop before_drop " "with a launcher the profile is complete"

done_testing
