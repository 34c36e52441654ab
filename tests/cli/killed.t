#!/bin/bash
# SIGKILL at random moments, while eight threads meet new stacks at 10 kHz: every recording is read to its end, and what it
# holds adds up to no more than the kernel accounted. KILLED_RUNS to deepen.
. "$(dirname "$0")/lib.sh"
runs=${KILLED_RUNS:-12}
RANDOM=${KILLED_SEED:-$$}
seed=$RANDOM
RANDOM=$seed

bad=0 samples=0 stored=0
complain() {
	bad=$((bad + 1))
	diag "KILLED_SEED $seed, run $run, killed after $ms ms: $1"
}

for ((run = 1; run <= runs; run++)); do
	ms=$((RANDOM % 150)).$((RANDOM % 1000))
	timeout -s KILL 120 countersink -F 10000 --all -o k.pb.gz -- "$TARGETS/newstacks" "$ms" >out 2>err
	status=$?
	[ "$status" = 137 ] || complain "status $status: $(cat err)"
	if grep -iE '^ +(warning|damaged|lost|truncated)' err >said; then
		complain "$(cat said)"
	fi
	# Samples and what was counted come from the recording; CPU time from the kernel, which outlives the program.
	read -r part cpu unit nr <<-END
		$(sed -nE -e 's/.*samples cover ([0-9.]+) % of ([0-9.]+) ([a-z]+) .*/\1 \2 \3/p' err) $(sed -nE -e 's/.*; ([0-9,]+) samples? by.*/\1/p' err | tr -d ,)
	END
	case ${part:-none} in
	none) complain "no account: $(cat err)" ;;
	# They are two clocks: one per cent, or a millisecond.
	*) awk -v part="$part" -v cpu="$cpu" -v unit="$unit" 'BEGIN { ms = cpu * (unit == "s" ? 1000 : unit == "us" ? 0.001 : 1)
		exit !(part >= 0 && (part <= 101 || (part - 100) / 100 * ms < 1)) }' || complain "samples cover $part % of $cpu $unit" ;;
	esac
	samples=$((samples + ${nr:-0}))
	folded=$(countersink export -f folded k.pb.gz | grep -c 'step_') || folded=0
	stored=$((stored + folded))
done
is "$bad" 0 "killed at $runs random moments: every recording is whole"
isnt "$stored" 0 "stacks are there"
diag "$samples samples, $stored distinct stacks"
done_testing
