#!/bin/bash
# A recording that another process truncates or overwrites while it is written: the program runs on unchanged
# and the report names the missing part.
. "$(dirname "$0")/lib.sh"

# Damage every recording of one run, again and again until the run is over: those of later children, too. The run directory is
# found by what the launcher's child has mapped.
damage() { # how launcher
	damage_dir=
	while kill -0 "$2" 2>/dev/null; do
		if [ -z "$damage_dir" ]; then
			for damage_pid in $(cat "/proc/$2/task/$2/children" 2>/dev/null); do
				damage_dir=$(sed -n 's,^[^/]*\(/.*\)/[0-9.]*\.rec.*,\1,p' "/proc/$damage_pid/maps" 2>/dev/null | head -n 1)
			done
			[ -n "$damage_dir" ] || continue
		fi
		for damage_file in "$damage_dir"/*.rec; do
			[ -f "$damage_file" ] || continue
			case $1 in
			truncate) truncate -c -s 0 "$damage_file" ;;
			redirect) : >"$damage_file" ;;
			cut) truncate -c -s 9000 "$damage_file" ;;
			zero) dd if=/dev/zero of="$damage_file" bs=64k count=32 conv=nocreat,notrunc status=none ;;
			garbage) dd if=/dev/urandom of="$damage_file" bs=64k count=16 conv=nocreat,notrunc status=none ;;
			ones) tr '\0' '\377' </dev/zero | dd of="$damage_file" bs=64k count=16 iflag=fullblock conv=nocreat,notrunc status=none ;;
			behind) dd if=/dev/urandom of="$damage_file" bs=4k seek=1 count=64 conv=nocreat,notrunc status=none ;;
			replace) dd if=/dev/urandom of="$damage_file" bs=64k count=4 conv=nocreat status=none ;;
			esac 2>/dev/null
			nr_damaged=$((nr_damaged + 1))
		done
	done
}

undisturbed() { # how options -- command...
	undisturbed_how=$1
	shift
	nr_damaged=0
	countersink -o p.pb.gz "$@" >with 2>err &
	undisturbed_pid=$!
	damage "$undisturbed_how" $undisturbed_pid
	wait $undisturbed_pid
	is $? "$alone" "$undisturbed_how, $1: the status is as without us"
	is "$(cat with)" "$(cat out)" "$undisturbed_how, $1: the output is as without us"
	ok "$undisturbed_how, $1: recordings were damaged" [ "$nr_damaged" -gt 0 ]
	rm -f p.pb.gz*
}

ulimit -c 0
locks=$TARGETS/locks_memory
"$locks" 0 >out 2>&1
alone=$?
for engine in sigtrap signal timer; do
	for how in truncate redirect cut zero garbage ones behind replace; do
		undisturbed $how --engine=$engine -c 100000 --timeline -- "$locks" 0
		case $how in
		truncate | redirect | replace)
			like "$(cat err)" 'warning +.*(left out|cut short)' "the missing part is reported"
			;;
		esac
	done
done

# Many processes, one after the other and at once; their ends and their starts meet the damage.
spawns() {
	for i in 1 2 3 4 5 6 7 8 9 10; do
		sh -c "$TARGETS/burn 5 >/dev/null; (exit $i)" &
		sh -c "exec $TARGETS/burn 5" >/dev/null
		wait $!
		echo $?
	done
}
export TARGETS
export -f spawns
bash -c spawns >out
alone=$?
for how in truncate garbage replace; do
	undisturbed $how -- bash -c spawns
done

# The program's own SIGBUS behaves as without us.
"$TARGETS/guest_bus" >out
alone=$?
for engine in sigtrap signal timer none; do
	countersink -q -o p.pb.gz --engine=$engine -- "$TARGETS/guest_bus" >with 2>err
	is $? "$alone" "SIGBUS under engine $engine: the status is as without us"
	is "$(cat with)" "$(cat out)" "SIGBUS under engine $engine: actions, faults, sent, blocked and ignored signals are as without us"
	is "$(cat err)" "" "SIGBUS under engine $engine: nothing is printed"
	rm -f p.pb.gz*
done
undisturbed truncate -- "$TARGETS/guest_bus"
"$TARGETS/guest_bus" die >out 2>&1
alone=$?
is $alone 135 "without us a SIGBUS fault ends the program"
countersink -q -o p.pb.gz -- "$TARGETS/guest_bus" die >with 2>&1
is $? $alone "under countersink a SIGBUS fault ends the program"

done_testing
