#!/bin/bash
# SIGKILL at random times, while eight threads meet new stacks at 10 kHz: every recording is read to its end, and its
# time adds up to no more than the kernel accounted. KILLED_RUNS sets the number of runs.
. "$(dirname "$0")/lib.sh"
runs=${KILLED_RUNS:-12}
RANDOM=${KILLED_SEED:-$$}
seed=$RANDOM
RANDOM=$seed

bad=0 samples=0 stored=0 covered=0 accounted=0
# A killed thread's last samples have what the host took, too.
stolen_before=$(steal_counter)
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
	if [ -n "$part" ]; then
		read -r covered accounted <<-END
			$(awk -v part="$part" -v cpu="$cpu" -v unit="$unit" -v covered="$covered" -v accounted="$accounted" 'BEGIN {
				ms = cpu * (unit == "s" ? 1000 : unit == "us" ? 0.001 : 1)
				print covered + ms * part / 100, accounted + ms }')
		END
	else
		complain "no account: $(cat err)"
	fi
	samples=$((samples + ${nr:-0}))
	folded=$(countersink export -f folded k.pb.gz | grep -c 'step_') || folded=0
	stored=$((stored + folded))
done
is "$bad" 0 "killed at $runs random times: every recording is readable"
ok "the recordings' $covered ms are no more than the $accounted ms that the kernel accounted plus the host's" \
	awk -v covered="$covered" -v accounted="$accounted" -v stolen=$(($(stolen_since "$stolen_before") / 1000000)) \
	'BEGIN { exit !(accounted > 0 && covered > 0 && covered <= accounted * 1.01 + stolen) }'
isnt "$stored" 0 "recordings of killed programs have stacks"
diag "$samples samples, $stored distinct stacks"
done_testing
