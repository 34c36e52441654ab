#!/bin/bash
# An environment that names a run directory which this process cannot use: it came from another machine, into a container,
# or was kept. The process owns a run of its own then and leaves a profile; no directory of others is written to.
. "$(dirname "$0")/lib.sh"

mkdir -m 711 shm
XDG_RUNTIME_DIR=$TMP/shm
export XDG_RUNTIME_DIR
OTHER_BOOT=d:00000000-0000-0000-0000-000000000000:1

# start NAME=VALUE...: a shell and two programs in the environment of a run that began elsewhere.
start() {
	rm -rf p.pb.gz*
	# shellcheck disable=SC2016
	env "$@" LD_PRELOAD="$ENTRY" COUNTERSINK_OUTPUT="$TMP/p.pb.gz" sh -c '"$0" 30; "$0" 20; exit 7' "$TARGETS/burn" >out 2>err
	status=$?
}
# owns WHY NAME [FILE]: start left one profile of all three processes, with a note that says why.
owns() {
	is "$status $(cat err)" "7 " "$2: the status is the program's, nothing is printed"
	is "$(echo p.pb.gz*)" "${3:-p.pb.gz}" "$2: one profile is left"
	countersink report --all p.pb.gz* >report 2>&1
	like "$(cat report)" "note +COUNTERSINK_RUN_DIR=.* $1: this process and its descendants are a run of their own" "$2: the profile's note gives the reason"
	like "$(cat report)" ' 3 processes' "$2: the profile has all processes"
}

start COUNTERSINK_RUN_DIR=/nowhere/countersink-AbCdEf
owns 'is not there' "a directory that is not there"
start COUNTERSINK_RUN_DIR=/nowhere/countersink-AbCdEf COUNTERSINK_RUN_OWNER=1
owns 'is not there' "a missing directory of another owner"

start COUNTERSINK_RUN_DIR=/nowhere/countersink-AbCdEf COUNTERSINK_RUN_PARENT=1
owns 'is not there' "a missing directory of a launcher elsewhere" "$(echo p.pb.gz.*)"
like "$(echo p.pb.gz*)" "^p\.pb\.gz\.$(hostname)\.[0-9]+$" "the profile's name leaves the other launcher's file alone"

: >file
start COUNTERSINK_RUN_DIR="$TMP/file"
owns 'is no directory' "a file"
start COUNTERSINK_RUN_DIR="$TMP/file/below"
owns 'cannot be reached' "a path through a file"
mkdir -m 700 target
ln -s target link
start COUNTERSINK_RUN_DIR="$TMP/link"
owns 'is no directory' "a link to a directory"
mkdir -m 777 open
chmod 777 open
start COUNTERSINK_RUN_DIR="$TMP/open"
owns 'can be written to by other users' "a directory that others may write to"
mkdir -m 700 mine
start COUNTERSINK_RUN_DIR="$TMP/mine" COUNTERSINK_RUN_PLACE=$OTHER_BOOT
owns 'is of another boot or machine' "a directory that machines share"
start COUNTERSINK_RUN_DIR="$TMP/mine" COUNTERSINK_RUN_PLACE=$OTHER_BOOT COUNTERSINK_RUN_PARENT=$$
owns 'is of another boot or machine' "a directory that machines share, with the launcher's PID in use" "$(echo p.pb.gz.*)"
if [ "$(id -u)" = 0 ]; then
	mkdir -m 700 theirs
	chown 65534 theirs
	start COUNTERSINK_RUN_DIR="$TMP/theirs"
	owns "is another user's" "another user's directory"
	mkdir -m 777 place
	chmod 777 place
	mkdir -m 700 roots
	# shellcheck disable=SC2016
	unprivileged env XDG_RUNTIME_DIR="$TMP/place" COUNTERSINK_RUN_DIR="$TMP/roots" LD_PRELOAD="$ENTRY" \
		COUNTERSINK_OUTPUT="$TMP/place/p.pb.gz" "$TARGETS/burn" 30 >out 2>err
	is "$? $(cat err)" "0 " "root's run directory, for another user: status 0"
	like "$(countersink report place/p.pb.gz 2>&1)" "is another user's" "root's run directory, for another user: the note gives the reason"
	# shellcheck disable=SC2016
	countersink -o l.pb.gz -- sh -c 'chown 65534 "$COUNTERSINK_RUN_DIR"; "$0" 30; exit' "$TARGETS/burn" >out 2>err
	like "$(cat err)" 'unprofiled.* burn' "a run directory whose owner changes is reported by its launcher"
	is "$(find theirs roots -mindepth 1)" "" "nothing is written to another user's directory"
else
	chmod 500 mine
	start COUNTERSINK_RUN_DIR="$TMP/mine"
	owns 'Permission denied' "a directory without the right to write"
	chmod 700 mine
fi
is "$(find target open mine -mindepth 1)" "" "nothing is written to refused directories"
is "$(ls shm)" "" "no run directory is left in shm"

# Without a place for a run directory, one line reports it, and the program runs.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016
	unshare -m sh -c 'for at in /dev/shm /tmp; do mount --bind $at $at && mount -o remount,ro,bind $at || exit; done
		unset XDG_RUNTIME_DIR TMPDIR; COUNTERSINK_RUN_DIR=/nowhere LD_PRELOAD=$1 exec "$0"' /bin/true "$ENTRY" >out 2>err
	is $? 0 "no place for a run directory: the program runs"
	like "$(cat err)" '^countersink: cannot record in any temporary directory: .*; the program runs without being profiled$' "no place for a run directory: one line reports it"
	is "$(wc -l <err)" 1 "no place for a run directory: only one line is printed"
	# A container below a launcher: its pids are others, and its /dev/shm is its own.
	if unshare -mpf --mount-proc true 2>/dev/null; then
		# shellcheck disable=SC2016
		countersink -q -o c.pb.gz -- unshare -mpf --mount-proc sh -c 'mount -t tmpfs none "$XDG_RUNTIME_DIR" && "$0" 60; exit 3' \
			"$TARGETS/burn" >out 2>err
		is "$? $(cat err)" "3 " "a container below a launcher"
		like "$(countersink report c.pb.gz."$(hostname)".*)" ' burn_60' "a container below a launcher leaves its own profile"
		# shellcheck disable=SC2016
		countersink -o c.pb.gz -- unshare -pf --mount-proc sh -c '"$0" 60; exit 3' "$TARGETS/burn" >out 2>err
		like "$(cat err)" ' burn_60' "a container that sees the run directory is in the launcher's profile"
	else
		skip "a container below a launcher" "no pid namespaces here"
	fi
	# shellcheck disable=SC2016
	countersink -o m.pb.gz -- unshare -m sh -c 'mount -t tmpfs none "$XDG_RUNTIME_DIR" && "$0" 60; exit 3' "$TARGETS/burn" >out 2>err
	is $? 3 "another mount namespace below a launcher: status 3"
	like "$(cat err)" 'unprofiled +burn' "another mount namespace below a launcher: the program is named unprofiled"
else
	skip "a container below a launcher" "no mount namespaces here"
fi

# A process that starts after the run belongs to no run.
# shellcheck disable=SC2016
countersink -o late.pb.gz -- sh -c '(i=0; until test -e over || test $((i += 1)) = 3000; do sleep 0.02; done
	"$0" 20 >late.out 2>late.err; echo $? >late) >/dev/null 2>&1 &' "$TARGETS/burn" >out 2>err
like "$(cat err)" 'programs started from now on are not profiled' "the report notes that later programs are not profiled"
: >over
wait_until 60 test -s late
is "$(cat late late.err)" 0 "a process that starts after the run is unchanged"

# A process that outlives the launcher forks children, which work, and others, which become other programs: neither is
# profiled, and nothing of them is left.
rm -rf shm/*
mkfifo hold up
# shellcheck disable=SC2016
countersink -q -o f.pb.gz -- sh -c '(echo up >up; read -r line <hold
	for name in a b c; do (i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done; echo "$i" >counted.$name); done
	for i in 1 2 3; do /bin/true; done; :) & read -r line <up'
: >hold
ok "children of a process that outlives the launcher do their work" wait_until 30 test -s counted.c
ok "a process that outlives the launcher leaves a profile" wait_until 20 sh -c 'test -s f.pb.gz.[0-9]*'
ok "no run directory is left of children after the launcher" wait_until 20 sh -c '! ls shm | grep -q .'
is "$(echo f.pb.gz.* | wc -w)" 1 "children after the launcher leave no profiles"

# daemon(3) ends the first process inside libc, where no call of ours can make the profile: the daemon makes it.
rm -rf shm/*
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/s.pb.gz COUNTERSINK_QUIET=1 "$TARGETS/daemonizes" 60 "$TMP/ended" >out 2>&1
is "$? $(cat out)" "0 " "the environment alone, daemon(3): status"
ok "the environment alone, daemon(3): the daemon ends" wait_until 30 test -e "$TMP/ended"
ok "the environment alone, daemon(3): it leaves a profile" wait_until 20 test -s "$TMP/s.pb.gz"
countersink report --all "$TMP/s.pb.gz" >out
like "$(cat out)" ' before_daemon' "the environment alone, daemon(3): the profile has the first process"
like "$(cat out)" ' in_daemon' "the environment alone, daemon(3): the profile has the daemon"
ok "the environment alone, daemon(3): no run directory is left" wait_until 20 sh -c '! ls shm | grep -q .'
done_testing
