#!/bin/bash
# Blocked real-time signals with the same number as the sampling signal: none is lost, and they arrive in
# order, with their values, at the thread they were sent to, across an exec, and not at a child.
. "$(dirname "$0")/lib.sh"

OURS=2 # below SIGRTMAX: what the engines take first (csink_engine_free_signal)
OTHER=5

"$TARGETS/queued" $OURS >alone
is "$(grep -c ', 0 out of order, 0 foreign' alone) $(grep -cE ' ([0-9]+) of \1,' alone)" "16 16" "without us all queued signals arrive in order" ||
	diag "$(cat alone)"
for engine in sigtrap signal timer; do
	for number in $OURS $OTHER; do
		[ "$engine $number" = "sigtrap $OTHER" ] && continue
		timeout 100 countersink -q -o "$engine.pb.gz" --engine=$engine -- "$TARGETS/queued" $number >with 2>err
		is "$(cat with)" "$(cat alone)" "queued signals arrive as without us under the $engine engine, SIGRTMAX - $number"
	done
done
timeout 100 countersink -q -o fast.pb.gz --engine=signal -c 50000 -- "$TARGETS/queued" $OURS >with 2>err
is "$(cat with)" "$(cat alone)" "queued signals arrive as without us with a sample each 50 us"
is "$("$TARGETS/kept_trap")" "0 of 400 wrong" "without us a SIGTRAP to the thread and one to the process are both caught"
is "$(countersink -q -F 10000 -o trap.pb.gz --engine=sigtrap -- "$TARGETS/kept_trap")" "0 of 400 wrong" \
	"a pending SIGTRAP is not lost while samples come at 10 kHz"
mkdir place
chmod 777 place
(cd place && unprivileged timeout 100 countersink -q -o x.pb.gz --engine=signal -- "$TARGETS/queued" $OURS) >with 2>err
is "$(cat with)" "$(cat alone)" "queued signals arrive as without us, unprivileged"

# Pending signals that we store do not count, a timer's sample does. They are accounted by user: a user that no other test
# uses has none but its own.
near() {
	[ "$1" -le $(($2 + 40)) ] && [ "$1" -ge $(($2 - 40)) ]
}
cd place || exit 1
alone_user() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=64174 --regid=64174 --clear-groups "$@"
	else
		"$@"
	fi
}
limit=$(alone_user "$TARGETS/queued" $OURS limit)
for engine in sigtrap signal timer; do
	got=$(alone_user countersink -q -o limit.pb.gz --engine=$engine -- "$TARGETS/queued" $OURS limit 2>err)
	ok "$engine: a sender gets EAGAIN at the same number ($got, $limit)" near "${got:-0}" "$limit"
done

done_testing
