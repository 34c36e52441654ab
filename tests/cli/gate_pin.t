#!/bin/bash
# The gate: on which CPUs commands run, as they see it themselves.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/gate.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY COUNTERSINK_PIN
SEEN=$TARGETS/cpus_seen
all=$(nproc)

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	: >seen
	"$COUNTERSINK" gate --seed 5 "$@" >out.tap 2>err
}

# Of the lines of seen: the warm-ups first, then the pairs.
pairs() {
	tail -n +3 seen
}

gate --runs 8 --json out.json --self-check -- "$SEEN" seen
is $? 0 "a command of one thread: status 0"
is "$(head -n 2 seen | cut -d' ' -f1 | sort -u)" "$all" "warm-ups run on all CPUs"
if [ "$all" -gt 1 ]; then
	is "$(pairs | cut -d' ' -f1 | sort -u)" 1 "each measured run has one CPU"
	is "$(pairs | cut -d' ' -f2 | paste -d' ' - - | awk '$1 != $2' | wc -l)" 0 "both runs of a pair are on the same CPU"
	is "$(pairs | cut -d' ' -f2 | sort -u | wc -l | awk '{ print ($1 > 1) }')" 1 "pairs are on several CPUs"
	like "$(cat out.tap)" '^# runs: 8 and 8, in pairs in [0-9.]+ s, each pair on one CPU, 1 to warm up; seed 5$' \
		"TAP reports pairs on one CPU"
	like "$(cat out.json)" '"pin": ?"pairs"' "JSON reports pairs on one CPU"
else
	skip "pairs on one CPU each" "there is one CPU"
fi

gate --runs 3 --self-check -- "$SEEN" seen thread
is "$(cut -d' ' -f1 seen | sort -u)" "$all" "a command with two threads has all CPUs"
unlike "$(cat out.tap)" 'each pair on one CPU' "a command with two threads: no pair is reported to be on one CPU"
gate --runs 3 --self-check -- "$SEEN" seen child
is "$(cut -d' ' -f1 seen | sort -u)" "$all" "a command with a child has all CPUs"
gate --runs 3 --vs "$SEEN seen thread" -- "$SEEN" seen
is "$(cut -d' ' -f1 seen | sort -u)" "$all" "where one side has two threads, both have all CPUs"

gate --runs 3 --warmup 0 --self-check -- "$SEEN" seen
is "$(head -n 1 seen | cut -d' ' -f1)" "$all" "without a warm-up, the first run has all CPUs"
is "$(tail -n 2 seen | cut -d' ' -f1 | sort -u)" 1 "without a warm-up, later pairs have one"

# A command that starts a thread in some runs only: from there on all runs have all CPUs.
cat >sometimes <<EOF
#!/bin/sh
if [ -e many ]; then exec "$SEEN" seen thread; fi
exec "$SEEN" seen
EOF
chmod +x sometimes
gate --runs 6 --prepare 'echo >>times; [ "$(wc -l <times)" -lt 7 ] || : >many' --self-check -- ./sometimes
if [ "$all" -gt 1 ]; then
	is "$(sed -n 3,6p seen | cut -d' ' -f1 | sort -u) $(tail -n 2 seen | cut -d' ' -f1 | sort -u)" "1 $all" \
		"once a run had two threads, later pairs have all CPUs"
	like "$(cat out.tap)" '^# note: a run had more threads or processes than the runs before it' "the change is noted"
else
	skip "once a run had two threads, later pairs have all CPUs" "there is one CPU"
fi
gate --pin no --runs 3 --self-check -- "$SEEN" seen
is "$(cut -d' ' -f1 seen | sort -u)" "$all" "--pin=no: all runs have all CPUs"
like "$(cat out.tap)" '^# runs: 3 and 3, in pairs in [0-9.]+ s, 1 to warm up' "--pin=no: no CPU is reported"
gate --pin no --runs 3 --json out.json --self-check -- "$SEEN" seen
like "$(cat out.json)" '"pin": ?"no"' "--pin=no: JSON reports that"

gate --pin 0 --runs 3 --json out.json --self-check -- "$SEEN" seen thread
is "$(sort -u seen)" "1 0" "--pin=0: all runs are on CPU 0, warm-ups too"
like "$(cat out.tap)" '^# runs: 3 and 3, in pairs in [0-9.]+ s, all on CPU 0, 1 to warm up' "--pin=0: the CPU is reported"
like "$(cat out.json)" '"pin": ?0,' "--pin=0: JSON reports the CPU"
: >hooks
gate --pin 0 --runs 2 --prepare "$SEEN hooks" --self-check -- "$SEEN" seen
is "$(cut -d' ' -f1 hooks | sort -u)" "$all" "--prepare runs on all CPUs"

: >seen
taskset -c 0 "$COUNTERSINK" gate --runs 3 --self-check -- "$SEEN" seen >out.tap 2>err
unlike "$(cat out.tap)" 'each pair on one CPU' "with one CPU for all, nothing is drawn"
gate -b base.pb.gz --update-baseline --runs 3 -- "$SEEN" seen
gate -b base.pb.gz --runs 3 -- "$SEEN" seen
is "$(cut -d' ' -f1 seen | sort -u)" "$all" "against a baseline, runs have all CPUs"

refused 1 '^countersink: --pin: CPU 1000 cannot be used: ' "a CPU that is not there" --pin 1000 --self-check -- true
refused 2 "option --pin: 'x' is neither the number of a CPU nor auto or no" "no CPU" --pin x --self-check -- true
done_testing
