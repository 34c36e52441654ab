#!/bin/bash
# Real-time signals that the program has blocked, with the number that samples come by: none is lost, and they come in
# their order, with their values, to whom they were sent, across an exec, and not to a child.
. "$(dirname "$0")/lib.sh"

OURS=2 # below SIGRTMAX: what the engines take first (csink_engine_free_signal)
OTHER=5

"$TARGETS/queued" $OURS >alone
is "$(grep -c ', 0 out of order, 0 foreign' alone) $(grep -cE ' ([0-9]+) of \1,' alone)" "16 16" "alone: all come, in their order" ||
	diag "$(cat alone)"
for engine in sigtrap signal timer; do
	for number in $OURS $OTHER; do
		[ "$engine $number" = "sigtrap $OTHER" ] && continue
		timeout 100 countersink -q -o "$engine.pb.gz" --engine=$engine -- "$TARGETS/queued" $number >with 2>err
		is "$(cat with)" "$(cat alone)" "the same under the $engine engine, SIGRTMAX - $number"
	done
done
timeout 100 countersink -q -o fast.pb.gz --engine=signal -c 50000 -- "$TARGETS/queued" $OURS >with 2>err
is "$(cat with)" "$(cat alone)" "the same with a sample each 50 us"
mkdir work
chmod 777 work
(cd work && unprivileged timeout 100 countersink -q -o x.pb.gz --engine=signal -- "$TARGETS/queued" $OURS) >with 2>err
is "$(cat with)" "$(cat alone)" "the same unprivileged"

# A few that are kept here do not count, a timer's sample does; and so do signals of the same user's other processes.
near() {
	[ "$1" -le $(($2 + 40)) ] && [ "$1" -ge $(($2 - 40)) ]
}
limit=$("$TARGETS/queued" $OURS limit)
for engine in sigtrap signal timer; do
	got=$(countersink -q -o limit.pb.gz --engine=$engine -- "$TARGETS/queued" $OURS limit 2>err)
	ok "$engine: a sender gets EAGAIN where it does alone ($got, $limit)" near "${got:-0}" "$limit"
done

done_testing
