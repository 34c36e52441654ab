#!/bin/bash
# Reading the directory of a run that has not ended changes nothing in it. The directory of a run that has ended is removed
# by its last reader.
. "$(dirname "$0")/lib.sh"

mkdir -m 711 shm
XDG_RUNTIME_DIR=$TMP/shm
export XDG_RUNTIME_DIR
listing() {
	(cd "$1" && find . -printf '%P %i %m %U\n' | sort)
}
gone() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}

# read_live NAME PIDFILE: read the run in shm, which has not ended.
read_live() {
	local name=$1 dir
	dir=$(echo shm/countersink-*)
	listing "$dir" >before
	for i in 1 2; do
		countersink report -o "now$i.pb.gz" "$dir" >out 2>err
		is $? 0 "$name: report succeeds while it runs, time $i"
		like "$(cat err)" "^countersink: the recordings in $dir are kept: the run goes on" "$name: the recordings are kept, time $i"
		ok "$name: the profile is readable, time $i" countersink report "now$i.pb.gz"
	done
	countersink report -q -o now3.pb.gz "$dir" >out 2>err
	is "$?$(cat out err)" 0 "$name: -q prints nothing"
	listing "$dir" | cmp -s before -
	is $? 0 "$name: the run directory is unchanged"
	chmod 500 "$dir" && countersink report "$dir" >out 2>&1
	is $? 0 "$name: report needs no write permission"
	like "$(cat out)" "^countersink: $dir: the run goes on; this is what it did until now" "$name: a report that is not kept says that the run goes on"
	chmod 700 "$dir"
}

spin='"$0" 60; echo $$ >pid; : >ready; while ! test -e stop; do :; done'

LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/p.pb.gz sh -c "$spin" "$TARGETS/burn" &
wait_until 30 test -e ready
read_live "without launcher"
touch stop
wait $!
is $? 0 "without launcher: the program ends"
is "$(echo p.pb.gz*)" p.pb.gz "without launcher: one profile, at its usual place"
like "$(countersink report --all p.pb.gz)" ' burn_60' "without launcher: the profile is complete"
is "$(ls shm)" "" "without launcher: no run directory is left"
rm -f stop ready ./*.gz*

countersink -q -o p.pb.gz -- sh -c "$spin" "$TARGETS/burn" &
wait_until 30 test -e ready
read_live launcher
touch stop
wait $!
is $? 0 "launcher: the program ends"
is "$(echo p.pb.gz*)" p.pb.gz "launcher: one profile"
is "$(ls shm)" "" "launcher: no run directory is left"
rm -f stop ready ./*.gz*

# The first process was killed; a child of it still runs.
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/p.pb.gz sh -c 'sh -c "$1" "$0" & wait' "$TARGETS/burn" "$spin" &
first=$!
wait_until 30 test -e ready
kill -KILL $first
wait $first 2>/dev/null
read_live "a child that still runs"
child=$(cat pid)
touch stop
wait_until 30 gone "$child"
dir=$(echo shm/countersink-*)
ok "the recording of an ended child stays" test -d "$dir"
countersink report -o q.pb.gz "$dir" >out 2>err
is "$?$(cat err)" 0 "the recording of an ended child is read"
is "$(ls shm)" "" "the recording of an ended child is removed"
rm -f stop ready ./*.gz*

# The only process has become a program that writes no recording; another one that it starts will, in the same directory.
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/p.pb.gz sh -c '"$0" 60; : >ready; exec "$1" 1000' "$TARGETS/burn" "$TARGETS/static_spin" >out.spin 2>&1 &
spin_pid=$!
wait_until 30 test -e ready
wait_until 30 grep -q static_spin "/proc/$spin_pid/comm"
read_live "a program that cannot be injected"
kill -KILL $spin_pid
wait $spin_pid 2>/dev/null
countersink report -q -o r.pb.gz shm/countersink-*
is "$(ls shm)" "" "the directory is removed when it has ended"
rm -f ready ./*.gz*

# The PID of an ended run may have been reused: the owner of the recording counts, not the PID.
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c '"$0" 20; kill -KILL $$' "$TARGETS/burn" >out 2>&1
dir=$(echo shm/countersink-*)
for rec in "$dir"/*.rec; do
	if exec 9<"$rec"; then
		countersink report -q -o r.pb.gz "$dir"
		is $? 0 "report reads a run while another process has a recording open"
		exec 9<&-
		break
	fi
done
is "$(ls shm)" "" "an open recording does not keep the run directory"

# Two readers of an ended run: the last one removes it.
if have flock; then
	LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c '"$0" 20; kill -KILL $$' "$TARGETS/burn" >out 2>&1
	dir=$(echo shm/countersink-*)
	flock -s "$dir" sh -c ': >held; while ! test -e stop; do sleep 0.05; done' &
	wait_until 30 test -e held
	countersink report -o r.pb.gz "$dir" >out 2>err
	like "$(cat err)" "the recordings in $dir are kept: the run goes on, or another command reads them" "another reader keeps the run directory"
	ok "the run directory is there while another reader has it" test -d "$dir"
	touch stop && wait
	# The directory may be another user's, who can lock it for any time.
	rm held stop
	flock -x "$dir" sh -c ': >held; while ! test -e stop; do sleep 0.05; done' &
	wait_until 30 test -e held
	timeout 60 "$BUILD/bin/countersink" report -o r.pb.gz "$dir" >out 2>err
	is "$? $(cat err)" "1 countersink: $dir: another process has locked it" "a lock that stays is not waited for: status 1"
	touch stop && wait
	countersink report -q -o r.pb.gz "$dir"
	is "$(ls shm)" "" "the last reader removes the run directory"
else
	skip "two readers" "no flock(1)"
fi
rm -f ./*.gz*
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c 'for i in 1 2 3 4 5 6; do "$0" 5; done; kill -KILL $$' "$TARGETS/burn" >out 2>&1
dir=$(echo shm/countersink-*)
countersink report -o r0.pb.gz "$dir" >whole 2>/dev/null
mkdir again && cp r0.pb.gz again/
is "$(ls shm)" "" "an ended run's directory is removed"
for round in 1 2 3; do
	LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c 'for i in 1 2 3 4 5 6; do "$0" 5; done; kill -KILL $$' "$TARGETS/burn" >out 2>&1
	dir=$(echo shm/countersink-*)
	pids=
	for i in 1 2 3 4; do
		(countersink report -o "c$i.pb.gz" "$dir" >"c$i.out" 2>&1; echo $? >"c$i.status") &
		pids="$pids $!"
	done
	# shellcheck disable=SC2086
	wait $pids
	bad=
	for i in 1 2 3 4; do
		if [ "$(cat c$i.status)" = 0 ]; then
			countersink report "c$i.pb.gz" | grep -q ', 7 processes,' || bad="$bad $i: not whole"
		else
			grep -Eq 'removed while|no recording|No such file' c$i.out || bad="$bad $i: $(cat c$i.out)"
		fi
	done
	is "$bad" "" "four readers at once, round $round: each has the whole run, or reports that it is gone"
	ok "four readers at once, round $round: at least one has the run" sh -c 'grep -qx 0 c?.status'
	is "$(ls shm)" "" "four readers at once, round $round: the run directory is removed"
	rm -f c?.*
done

done_testing
