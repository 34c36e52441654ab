#!/bin/bash
# The signal handler on real programs calls no malloc, lock, stdio or loader; and no syscall on the hot path.
. "$(dirname "$0")/lib.sh"

watched() { # NAME OPTIONS... -- COMMAND...: one run with a library that stands around our handler
	local name=$1
	shift
	rm -f shim.out
	HANDLER_SHIM_OUT=$TMP/shim.out LD_PRELOAD=$TARGETS/handler_shim.so \
		timeout -s KILL 120 countersink --quiet -F 2000 -o h.pb.gz "$@" >/dev/null 2>err
	like "$(cat shim.out 2>&1)" '^samples [1-9]' "$name: samples were taken while watched"
	like "$(cat shim.out 2>&1)" '^forbidden 0 ' "$name: no malloc, lock, stdio or loader in the handler"
}

watched "frames without frame pointers" -- "$TARGETS/deep" 100 1
watched "threads" -- "$TARGETS/threads8"
watched "C++ exceptions" -- "$TARGETS/throwcc"
watched "an interpreter" -- python3 -c 'sum(i * i for i in range(3000000))'
watched "off the CPU too" --off-cpu --timeline -- "$TARGETS/sleepy"

# Syscalls between a sample's signal and its return, as strace sees them. Rare work (a new block of the
# recording, the timer queue's ten calls in each second that passes) is not on the hot path: of the samples without it
# nearly all must have none.
samples_with_syscalls() {
	awk '{ pid = $1 }
	/--- SIGTRAP .*TRAP_PERF/ { inside[pid] = 1; calls[pid] = 0; next }
	inside[pid] && /rt_sigreturn/ { n++; if (calls[pid]) with++; inside[pid] = 0; next }
	inside[pid] { calls[pid]++ }
	END { printf "%d %d", n, with }' "$1"
}
if have strace; then
	from=$(date +%s)
	timeout -s KILL 120 countersink -q --engine=sigtrap -F 1000 -o s.pb.gz -- \
		strace -f -o trace.txt "$TARGETS/deep" 30 2 >/dev/null 2>err
	read -r all with <<-EOF
		$(samples_with_syscalls trace.txt)
	EOF
	ok "strace saw samples ($all)" test "$all" -ge 200
	timed=$((10 * ($(date +%s) - from + 1)))
	ok "at most one in twenty of $all samples makes a system call, besides the $timed of the periodic work ($with)" test $(((with - timed) * 20)) -le "$all"
fi
done_testing
