#!/bin/bash
# Programs that lock their memory: mlockall(2) returns the same and locks as much as without us.
. "$(dirname "$0")/lib.sh"

run() { # command...
	countersink -q -o p.pb.gz -c 100000 -- "$@"
}

same() { # name command...
	same_name=$1
	shift
	"$@" >alone 2>&1
	same_status=$?
	run "$@" >with 2>err
	is $? $same_status "$same_name: the status is the same"
	is "$(cat with)" "$(cat alone)" "$same_name: the locked memory is the same"
	is "$(cat err)" "" "$same_name: nothing is printed on stderr"
}

locks=$TARGETS/locks_memory
# MCL_CURRENT, MCL_FUTURE, both, both with MCL_ONFAULT
for flags in 1 2 3 7; do
	same "mlockall($flags)" "$locks" $flags
	like "$(countersink report p.pb.gz)" ' spin' "mlockall($flags): the program has a profile"
done
like "$(cat alone)" 'after a thread: VmLck:.* [1-9]' "the target locked memory"
same "mlockall by its number" "$locks" 3 number
for flags in 1 2 3; do
	same "mlockall($flags) in a vfork child" "$locks" $flags vfork
done
same "mlockall with flags that are none" "$locks" 64

for engine in signal timer; do
	COUNTERSINK_ENGINE=$engine same "mlockall under engine $engine" "$locks" 3
done
COUNTERSINK_UNWIND=fp same "with frame pointers" "$locks" 3

# A sandbox may allow mlockall, and punish the call that unlocks what is ours.
run "$TARGETS/static_cage" kill munlock "$locks" 3 >out
is $? 0 "a sandbox that kills for munlock does not stop mlockall"
like "$(cat out)" '^mlockall: 0' "mlockall succeeds below a sandbox that kills for munlock"
"$TARGETS/static_cage" kill munlock countersink -o p.pb.gz -c 100000 -- "$locks" 3 >out 2>err
is $? 0 "a sandbox installed before countersink does not stop mlockall"
like "$(cat err)" 'warning +an? .*seccomp filter .*kills processes that call munlock: not called' "the munlock left out below such a sandbox is reported"
like "$(countersink report p.pb.gz)" ' spin' "a program below such a sandbox has a profile"

# The limit of a user other than root: the kernel compares it with all mapped memory.
if [ "$(id -u)" = 0 ]; then
	as_other() {
		(ulimit -l 8192 && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@")
	}
	for flags in 1 3; do
		as_other "$locks" $flags >alone
		is $? 0 "another user may lock 8 MiB"
		mkdir -p other && chmod 777 other
		as_other countersink -q -o other/p.pb.gz -- "$locks" $flags >with
		is $? 0 "under countersink another user may lock 8 MiB"
		is "$(cat with)" "$(cat alone)" "under countersink another user locks as much as without"
		rm -f other/p.pb.gz
	done
	like "$(cat with)" '^mlockall: 0' "under countersink another user's mlockall succeeds"
else
	(ulimit -l 8192 && "$locks" 3) >alone
	(ulimit -l 8192 && run "$locks" 3) >with
	is "$(cat with)" "$(cat alone)" "with a limit of 8 MiB the same is locked as alone"
fi

# The recording takes no more of its file system than necessary.
if unshare -m true 2>/dev/null; then
	cat >small.sh <<-'EOF'
		mount -t tmpfs -o size=64m none /dev/shm && exec "$@"
	EOF
	unshare -m sh small.sh countersink -q -o p.pb.gz -- "$locks" 3 file /dev/shm/guests >out 2>err
	is $? 0 "a tmpfs of 64 MiB has room for 48 MiB of the program's"
	like "$(cat out)" '^written' "the program's 48 MiB are written"
	like "$(countersink report p.pb.gz)" ' spin' "the recording has room in a tmpfs of 64 MiB"
else
	skip "a tmpfs of 64 MiB has room for 48 MiB of the program's" "no mount namespace can be made here"
fi

if command -v python3 >/dev/null; then
	cat >lock.py <<-'EOF'
		import ctypes
		libc = ctypes.CDLL(None, use_errno=True)
		print(libc.mlockall(3), ctypes.get_errno())
		locked = [line for line in open("/proc/self/status") if line.startswith("VmLck")]
		print(int(locked[0].split()[1]) >> 10)
	EOF
	same "python3" python3 lock.py
else
	skip "python3 locks its memory" "python3 is not installed"
fi

done_testing
