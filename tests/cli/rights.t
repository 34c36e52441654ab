#!/bin/bash
# Services that root starts without a launcher, and that give up their rights: their profile is there, whoever they are at
# their end, and nothing else is left.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "only root has rights to give up"
setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null || skip_all "no rights to become another user"

mkdir work shm spare
chmod 1777 shm spare
chmod 777 work
cd work || exit 1
XDG_RUNTIME_DIR=$TMP/shm TMPDIR=$TMP/spare
export XDG_RUNTIME_DIR TMPDIR

# dropped HOW END [DIRECTORY]: the profile goes to p.pb.gz.
dropped() {
	rm -rf p.pb.gz* stop ready
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/work/p.pb.gz "$TARGETS/drops_rights" "$@" >out 2>err
}
functions() {
	countersink report --all "$1" 2>&1 | grep -Eo '(before_drop|after_drop|worker)$' | sort -u | tr '\n' ' '
}

while read -r how end status owner names; do
	dropped "$how" "$end"
	is "$? $(cat out err)" "$status " "$how, $end: the program's status, and no word"
	is "$(stat -c '%u %a' p.pb.gz)" "$owner 644" "$how, $end: whose the profile is"
	is "$(functions p.pb.gz)" "$names " "$how, $end: it has what came before, and what came after"
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
like "$(cd / && countersink report 2>&1)" "$TMP/shm/countersink-[^ ]*  drops_rights, " "killed: root finds them"
like "$(unprivileged sh -c 'cd / && countersink report 2>&1')" "$TMP/shm/countersink-[^ ]*  drops_rights, " "and that user"
unprivileged countersink report -q -o p.pb.gz "$TMP"/shm/*
is "$(functions p.pb.gz)" "after_drop before_drop " "killed: he makes the profile"
is "$(ls "$TMP/shm")" "" "killed: nothing else is left"

# Where its new user cannot write.
mkdir -m 700 closed
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/work/closed/p.pb.gz "$TARGETS/drops_rights" setuid exit >out 2>err
is $? 3 "an output that is root's: status"
is "$(cat err)" "countersink: $TMP/work/closed/p.pb.gz: Permission denied; the profile is in $TMP/spare/p.pb.gz" "where the profile is"
is "$(stat -c '%u %a' "$TMP/spare/p.pb.gz")" "65534 600" "for its user alone"
is "$(functions "$TMP/spare/p.pb.gz")" "after_drop before_drop " "whole"
is "$(find "$TMP/shm" closed -mindepth 1)" "" "nothing else is left"
rm -f "$TMP"/spare/*

# It becomes another program.
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/work/e.pb.gz setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$TARGETS/burn" 50 >out 2>err
is "$? $(cat err)" "0 " "another program: status"
like "$(countersink report --all e.pb.gz)" ' burn_60' "it is in the profile"
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/work/f.pb.gz setpriv --reuid=65534 --regid=65534 --clear-groups \
	sh -c '"$0" 50; "$0" 50; exit 4' "$TARGETS/burn" >out 2>err
is "$? $(cat err)" "4 " "a shell that starts programs: status"
like "$(countersink report f.pb.gz)" ', 3 processes,' "all are in the profile"
is "$(ls "$TMP/shm")" "" "nothing else is left"

# A child that still runs as root: no process with fewer rights can change what it writes.
dropped root-child exit
is $? 3 "a child with more rights: status"
left=$(sed -n 's/^countersink: recordings of processes that kept more rights are in \([^ ,]*\),.*as root.*/\1/p' err)
is "$(stat -c '%u %a' "$left")" "0 700" "a child with more rights: what it writes is root's, and named"
is "$(functions p.pb.gz)" "after_drop before_drop " "a child with more rights: the profile has the rest"
is "$(ls "$TMP/shm")" "$(basename "$left")" "a child with more rights: nothing else is left"
: >stop
ok "a child with more rights: when it has ended, root finds the rest" \
	wait_until 30 sh -c 'cd / && countersink report 2>&1 | grep -q "$0"' "$left"
countersink report -q -o q.pb.gz "$left"
like "$(functions q.pb.gz)" 'worker' "a child with more rights: it is whole"
is "$(ls "$TMP/shm")" "" "a child with more rights: nothing is left then"

# What is in another root reaches neither countersink nor the recordings: a line says where they are.
mkdir -m 755 cage
dropped chroot exit "$TMP/work/cage"
is $? 3 "chroot: status"
like "$(cat err)" "^countersink: no countersink beside the library: the recordings stay in $TMP/shm/[^ ]*; .countersink report -o $TMP/work/p.pb.gz " \
	"chroot: where the recordings are, and what to do"
countersink report -q -o p.pb.gz "$TMP"/shm/*
is "$(functions p.pb.gz)" "after_drop before_drop " "chroot: which makes the profile"
is "$(ls "$TMP/shm")" "" "chroot: nothing else is left"

# With a launcher it is root's, as ever.
countersink -q -o l.pb.gz -- "$TARGETS/drops_rights" setuid exit >out 2>err
is "$? $(cat err) $(stat -c %u l.pb.gz)" "3  0" "with a launcher"
is "$(functions l.pb.gz)" "after_drop before_drop " "it is whole, too"

done_testing
