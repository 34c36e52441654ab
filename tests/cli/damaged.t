#!/bin/bash
# A recording that another process truncates or overwrites while it is written: the program runs on unchanged
# and the report names the missing part.
. "$(dirname "$0")/lib.sh"

# Damage every recording of one run, again and again until the run is over: those of later children, too. The run directory is
# found by what the launcher's child has mapped: a shell, which becomes the program once its own recording was damaged.
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
			[ $nr_damaged != 1 ] || echo >&8
		done
	done
}

undisturbed() { # how options -- command...
	undisturbed_how=$1 undisturbed_title="$1, $2" undisturbed_options=()
	shift
	while [ "$1" != -- ]; do
		undisturbed_options+=("$1")
		shift
	done
	shift
	nr_damaged=0
	exec 8<>"$TMP/damaged" # so that neither end is waited for
	countersink -o p.pb.gz "${undisturbed_options[@]}" -- bash -c 'read -r _ <"$0/damaged"; exec "$@"' "$TMP" "$@" >with 2>err 8>&- &
	undisturbed_pid=$!
	damage "$undisturbed_how" $undisturbed_pid
	wait $undisturbed_pid
	is $? "$alone" "$undisturbed_title: the status is as without us"
	is "$(cat with)" "$(cat out)" "$undisturbed_title: the output is as without us"
	ok "$undisturbed_title: recordings were damaged" [ "$nr_damaged" -gt 0 ]
	exec 8>&-
	rm -f p.pb.gz*
}

ulimit -c 0
mkfifo damaged
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

# Programs that start while every recording is truncated all the time; traced, they take longer from one step to the next. Of 40,
# several ended by SIGBUS when it was caught later.
if have python3 && have strace; then
	mkdir -m 700 truncated
	cat >starts.py <<-'END'
		import os, signal, subprocess, sys
		truncates = os.fork()
		while not truncates:
		    for name in os.listdir('truncated'):
		        try:
		            os.truncate('truncated/' + name, 0)
		        except FileNotFoundError:
		            pass
		command = ['strace', '-o', 'trace.txt', '-E', 'COUNTERSINK_RUN_DIR=truncated', '-E', 'LD_PRELOAD=' + sys.argv[1], 'true']
		statuses = {}
		for _ in range(40):
		    status = subprocess.run(command, stderr=subprocess.DEVNULL).returncode
		    statuses[status] = statuses.get(status, 0) + 1
		    for name in os.listdir('truncated'):
		        os.unlink('truncated/' + name)
		os.kill(truncates, signal.SIGKILL)
		print(statuses)
	END
	is "$(python3 -S starts.py "$LIB")" "{0: 40}" "recordings that are truncated as soon as they are there: programs start and end as without us"
else
	skip "recordings that are truncated as soon as they are there" "python3 or strace is not installed"
fi

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
