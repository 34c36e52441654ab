#!/bin/bash
# Ranks of parallel jobs: which are in the profile, in each way of use; merges and reports by rank. The variables are those
# that OpenMPI 4.1.4 and MPICH 4.0.2 set; those of Slurm are as srun(1) and sbatch(1) document them.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2046
unset $(env | sed -n 's/^\(OMPI_[A-Z_]*\|PMI_[A-Z]*\|PMIX_[A-Z_]*\|SLURM_[A-Z_]*\|PBS_JOBID\|LSB_JOBID\)=.*/\1/p')

facts() { # FILE: its comments about ranks
	go tool pprof -comments "$1" 2>/dev/null | grep -E '^(rank|ranks|ranked_by|job): ' | paste -sd' '
}
ranks() { # FILE...: the rows of --by rank
	report --by rank --csv "$@" | sed 1d | cut -d, -f1 | sort | paste -sd, -
}
report() {
	"$COUNTERSINK" report "$@"
}
sum() { # of the self column
	report --csv --all "$@" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "self") c = i; next } { s += $c } END { printf "%.0f\n", s }'
}

# ---- countersink in each rank, and around the job
# mpirun SIZE COMMAND...: as OpenMPI's does, each rank with more to do.
cat >mpirun <<'END'
#!/bin/sh
size=$1
shift
for rank in $(seq 0 $((size - 1))); do
	OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$size PMIX_RANK=$rank PMIX_NAMESPACE=1 "$@" $((20 << rank)) &
done
wait
END
chmod +x mpirun
ok 'countersink runs in each rank' ./mpirun 4 "$COUNTERSINK" -q -o 'in.%r.pb.gz' -- "$TARGETS/burn"
is "$(facts in.2.pb.gz)" 'rank: 2 ranks: 4 ranked_by: OMPI_COMM_WORLD_RANK' 'in each rank: the profile has its rank'
is "$(ranks in.2.pb.gz)" 'rank 2' 'in each rank: all samples have the rank'
like "$(report in.2.pb.gz)" '^  rank        2 of 4, by OMPI_COMM_WORLD_RANK$' 'the report has the rank'
ok 'countersink runs around the job' "$COUNTERSINK" -q -o around.pb.gz -- ./mpirun 4 "$TARGETS/burn"
is "$(facts around.pb.gz)" 'ranks: 4 ranked_by: OMPI_COMM_WORLD_RANK' 'around the job: the profile has the number of ranks'
is "$(ranks around.pb.gz)" '[no rank],rank 0,rank 1,rank 2,rank 3' 'around the job: samples have the rank of their process'
like "$(report --thread 'burn' --by rank around.pb.gz)" ' rank 3$' 'around the job: the program has a rank'
is "$(report --comm '^(sh|mpirun|seq) ' --by rank --csv around.pb.gz | grep -c '^rank [0-9],.*burn')" 0 'around the job: the starter of the ranks has none'
like "$(report around.pb.gz)" '^  ranks       of a parallel job of 4, by OMPI_COMM_WORLD_RANK$' 'the report has the number of ranks'

# ---- merges
ok 'ranks are merged' "$COUNTERSINK" merge -q -o without.pb.gz in.*.pb.gz
is "$(facts without.pb.gz)" 'ranked_by: OMPI_COMM_WORLD_RANK ranks: 4' 'merge keeps the number of ranks, and none of them'
report --by rank without.pb.gz >out 2>err
is $? 2 'merged without --keep-ranks: --by rank ends with status 2'
like "$(cat err)" '^countersink: option --by: no sample has the rank of a parallel job: .*--keep-ranks$' 'and the reason'
is "$(cat out)" '' 'and prints nothing else'
ok 'ranks are merged with --keep-ranks' "$COUNTERSINK" merge -q --keep-ranks -o kept.pb.gz in.*.pb.gz
is "$(ranks kept.pb.gz)" 'rank 0,rank 1,rank 2,rank 3' '--keep-ranks: samples have their ranks'
is "$(sum kept.pb.gz)" "$(sum without.pb.gz)" '--keep-ranks: the sum is that of the merge without'
"$COUNTERSINK" merge -q --keep-ranks -o a.pb.gz in.3.pb.gz in.0.pb.gz
"$COUNTERSINK" merge -q --keep-ranks -o b.pb.gz in.2.pb.gz a.pb.gz
ok 'and in another order and groups' "$COUNTERSINK" merge -q --keep-ranks -o kept2.pb.gz b.pb.gz in.1.pb.gz
ok '--keep-ranks: the same bytes' cmp kept.pb.gz kept2.pb.gz
ok 'the result is merged without' "$COUNTERSINK" merge -q -o without2.pb.gz kept.pb.gz
ok 'which gives the merge without' cmp without.pb.gz without2.pb.gz
"$COUNTERSINK" export -f wire -o wire.pb.gz kept.pb.gz
isnt "$(gzip -dc wire.pb.gz | strings | grep -c .)" 0 'the wire form is written'
unlike "$(gzip -dc wire.pb.gz | strings)" '^.?rank$' 'the wire form has no rank: each would be a series'

# ---- the ranks compared
figures() { # COLUMN FILE...: of burn_60
	local column=$1
	shift
	report --ranks --csv "$@" | awk -F, -v want="$column" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) column = i; next }
		$1 == "burn_60" { printf "%.0f\n", $column }'
}
is "$(figures ranks in.*.pb.gz)" 4 '--ranks of several profiles: four ranks'
is "$(figures total_in in.*.pb.gz)" 4 '--ranks: a function is in all of them'
is "$(figures total_max_rank in.*.pb.gz)" 3 '--ranks: the one with most work is named'
is "$(figures total_min_rank in.*.pb.gz)" 0 '--ranks: and the one with least'
is "$(figures total_max in.*.pb.gz)" "$(figures total_max in.3.pb.gz)" '--ranks: the most is what that rank has'
for column in sum min mean max lost; do
	is "$(figures total_$column in.*.pb.gz)" "$(figures total_$column kept.pb.gz)" "--ranks: $column of several profiles is that of the merge"
done
out=$(report --ranks --all in.*.pb.gz)
like "$out" '^ +lost +min +mean +max +rank +stddev +imbalance +in +module +function$' '--ranks: the table has its titles'
like "$out" '^4 ranks, own cost by function: lost = \(max - mean\) x ranks, imbalance = max / mean - 1;$' '--ranks: the figures are defined'
like "$out" ' 3 +[0-9.]+ ms +\+[0-9.]+ % +4  burn +spin' '--ranks: the function that works has most in rank 3, and is in all four'
unlike "$out" 'not in the profile|without a rank' '--ranks: nothing is missing'
like "$(report --ranks in.[013].pb.gz)" "^1 of the job's 4 ranks is not in the profile\$" '--ranks: a rank without a profile is reported'
out=$(report --ranks in.0.pb.gz in.2.pb.gz)
like "$out" "^2 of the job's 4 ranks are not in the profile\$" '--ranks: ranks without a profile are reported'
like "$(report --ranks around.pb.gz)" '^[0-9.]+ .*s of samples without a rank are left out$' '--ranks: what is of no rank is reported'
is "$(report --ranks --json around.pb.gz | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["ranks"], d["job_ranks"], d["no_rank"] > 0, len(d["rows"]) > 2)')" '4 4 True True' '--ranks --json is JSON'
for options in '--ranks' '--ranks --json' '--by rank'; do
	# shellcheck disable=SC2086
	report $options without.pb.gz >out 2>err
	is $? 2 "$options of a profile without ranks: status 2"
	like "$(cat err)" '^countersink: option --(ranks|by): no sample has the rank' "$options of a profile without ranks: the reason"
	is "$(cat out)" '' "$options of a profile without ranks prints nothing else"
done
report in.0.pb.gz in.1.pb.gz >out 2>err
is $? 2 'several profiles without --ranks: status 2'
like "$(cat err)" 'one profile or run directory, not 2, unless --ranks' 'several profiles without --ranks: the reason'
unlike "$(report --ranks in.*.pb.gz 2>&1)" 'different events' 'profiles with the same events: no note of their events'
OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=5 "$COUNTERSINK" -q -e page-faults -o faults.pb.gz -- "$TARGETS/burn" 10 >burned
report --ranks in.0.pb.gz faults.pb.gz >out 2>err
is "$?" 0 'profiles with different events can be compared'
like "$(cat err)" '^countersink: the profiles have different events: one that a profile lacks, as (in\.0|faults)\.pb\.gz does, counts as 0 in its ranks$' 'and that is reported'
report --ranks --tree kept.pb.gz >out 2>err
is $? 2 '--ranks with --tree: status 2'
report --ranks in.0.pb.gz missing.pb.gz >out 2>err
is $? 1 '--ranks with a missing profile: status 1'
like "$(cat err)" 'missing\.pb\.gz: No such file' '--ranks with a missing profile: it is named'
is "$(COLUMNS=80 script -qec "$COUNTERSINK report --no-pager --ranks kept.pb.gz" /dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' | grep -E '^ +lost')" '         lost         mean          max   rank  imbalance  function' '--ranks in 80 columns: the wide columns are left out'

# ---- the library alone, and programs that it cannot be injected into
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/alone.%r.pb.gz" PMI_RANK=5 PMI_SIZE=6 "$TARGETS/burn" 20 >burned
is "$(facts alone.5.pb.gz)" 'rank: 5 ranks: 6 ranked_by: PMI_RANK' 'without launcher: the rank of MPICH'
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/tree.pb.gz" ./mpirun 2 "$TARGETS/burn" >burned
is "$(ranks tree.pb.gz)" '[no rank],rank 0,rank 1' 'without launcher, around the job: its ranks'
(
	export COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/dead.pb.gz" PMI_RANK=3 PMI_SIZE=4
	LD_PRELOAD=$LIB bash -c '"$0" 20; kill -KILL $$' "$TARGETS/burn"
) >burned 2>&1
ok 'a rank was killed, and leaves recordings' "$COUNTERSINK" report -q -o dead.pb.gz "$XDG_RUNTIME_DIR"/countersink-??????
is "$(facts dead.pb.gz)" 'rank: 3 ranks: 4 ranked_by: PMI_RANK' 'the recordings of a killed rank have its rank'
PMI_RANK=2 PMI_SIZE=5 "$TARGETS/burn" 100000 >burned &
pid=$!
if "$COUNTERSINK" attach -q -p "$pid" -d 0.2 -o attached.pb.gz 2>err; then
	is "$(facts attached.pb.gz)" 'rank: 2 ranks: 5 ranked_by: PMI_RANK' 'a process that is attached to has its rank'
	like "$(report --by rank attached.pb.gz)" ' rank 2$' 'and its samples have it'
else
	skip 'the rank of a process that is attached to' "$(head -n 1 err)"
fi
kill "$pid" && wait "$pid" 2>/dev/null
ok 'a static program is profiled' env PMI_RANK=1 PMI_SIZE=2 "$COUNTERSINK" -q -o static.pb.gz -- "$TARGETS/static_spin" 0.05
is "$(ranks static.pb.gz)" 'rank 1' 'a static program has its rank'
PMI_RANK=1 PMI_SIZE=2 "$COUNTERSINK" -q -o emptied.pb.gz -- env -i "$TARGETS/burn" 20 >burned
is "$(ranks emptied.pb.gz)" 'rank 1' 'a program with an empty environment has the rank of its launcher'

# ---- Slurm, and jobs within others
SLURM_JOB_ID=71 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 "$COUNTERSINK" -q -o s.pb.gz -- "$TARGETS/burn" 10 >burned
is "$(facts s.pb.gz)" 'rank: 1 ranks: 2 ranked_by: SLURM_PROCID job: Slurm 71.0' 'srun: the rank and the step'
like "$(report s.pb.gz)" '^  job         Slurm 71\.0$' 'the report has the job'
SLURM_JOB_ID=71 SLURM_PROCID=0 SLURM_NTASKS=2 "$COUNTERSINK" -q -o s.pb.gz -- "$TARGETS/burn" 10 >burned
is "$(facts s.pb.gz)" 'job: Slurm 71' 'the script of sbatch is no rank, but of the job'
SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 "$COUNTERSINK" -q -o s.pb.gz -- ./mpirun 3 "$TARGETS/burn" >burned
is "$(report --by rank --csv --comm burn s.pb.gz | sed 1d | cut -d, -f1 | sort | paste -sd, -)" 'rank 0,rank 1,rank 2' 'mpirun within srun: the ranks are those of mpirun'
PMI_RANK=0 PMI_SIZE=1 "$COUNTERSINK" -q -o s.pb.gz -- "$TARGETS/burn" 10 >burned
is "$(facts s.pb.gz)" '' 'a job of one process has no ranks'

# ---- what is printed, where nothing else is asked for
mkdir quiet && cd quiet || exit 1
"$TMP/mpirun" 3 "$COUNTERSINK" -- "$TARGETS/burn" >out 2>err
is "$(ls countersink.* | paste -sd' ')" 'countersink.0.pb.gz countersink.1.pb.gz countersink.2.pb.gz' 'each rank has a file of its own'
is "$(grep -c ' samples by ' err)" 1 'one rank prints its report'
like "$(cat err)" '^  rank        0 of 3,' 'that is rank 0'
unlike "$(cat err)" '^countersink: ' 'and none prints a note'
COUNTERSINK_REPORT=1 "$TMP/mpirun" 3 "$COUNTERSINK" -- "$TARGETS/burn" >out 2>err
is "$(grep -c ' samples by ' err)" 3 'COUNTERSINK_REPORT=1: each rank prints its report'
strace -o trace -e trace=write "$COUNTERSINK" -o one.pb.gz -- "$TARGETS/burn" 10 >out 2>err
is "$(grep -c '^write(2,' trace)" 1 'a report is written in one piece, so that those of several ranks are not mixed'
"$TMP/mpirun" 2 "$COUNTERSINK" -o missing/x.%r.pb.gz -- "$TARGETS/burn" >out 2>err
is "$(grep -c 'cannot be written to missing/x\.[01]\.pb\.gz' err)" 2 'an error of each rank is reported'
rm -f "${TMPDIR:-/tmp}"/x.[01].pb.gz
"$TMP/mpirun" 2 "$COUNTERSINK" -o same.pb.gz -- "$TARGETS/burn" >out 2>err
is "$(grep -c '^countersink: each rank writes same\.pb\.gz, in place of the others: name it with %r' err)" 1 'one name for all ranks: a warning, once'
"$TMP/mpirun" 2 "$COUNTERSINK" --ranks=0 -o same.pb.gz -- "$TARGETS/burn" >out 2>err
unlike "$(cat err)" '^countersink: ' 'one name where one rank alone is profiled: no warning'
"$TMP/mpirun" 2 "$COUNTERSINK" --ranks=0-1 -o same.pb.gz -- "$TARGETS/burn" >out 2>err
is "$(grep -c '^countersink: each rank writes' err)" 1 'one name for some of the ranks: a warning, once'
COUNTERSINK_REPORT=0 "$TMP/mpirun" 3 "$COUNTERSINK" -- "$TARGETS/burn" >out 2>err
is "$(cat err)" 'countersink: the profile is in countersink.0.pb.gz' 'COUNTERSINK_REPORT=0: no report, and the note of one rank'
"$TMP/mpirun" 2 "$COUNTERSINK" -q -o same.pb.gz -- "$TARGETS/burn" >out 2>err
is "$(cat err)" '' '-q: nothing'
cd "$TMP" || exit 1

# ---- ended by the launcher of its job: SIGTERM, and soon SIGKILL
mkdir ended && cd ended || exit 1
# started FILE: a rank runs, and has printed to it
started() {
	until [ -s "$1" ]; do kill -0 "$pid" || return; done
}
work='echo; exec "$0" 100000'
PMI_RANK=1 PMI_SIZE=2 "$COUNTERSINK" -q -o 'term.%r.pb.gz' -- sh -c "$work" "$TARGETS/burn" >out &
pid=$!
started out
kill -TERM "$pid"
wait "$pid"
is $? 143 'SIGTERM ends a rank'
is "$(ls -A | paste -sd' ')" 'out term.1.pb.gz' 'SIGTERM: its profile is written, and no recordings are left beside it'
rm -f out
has_burned() { # LAUNCHER: its command has used 50 ms of CPU time
	local burn
	burn=$(pgrep -P "$1" -x burn) && [ "$(cut -d ' ' -f 14 "/proc/$burn/stat")" -ge 5 ]
}
# killed NAME [VARIABLE...]: at the first file that it would put in its place, after SIGTERM
killed() {
	local name=$1 launcher
	shift
	env "$@" strace -o /dev/null -e trace=link,linkat,renameat,renameat2 -e inject=link,linkat,renameat,renameat2:signal=KILL:when=1 \
		"$COUNTERSINK" -q -o "$name" -- sh -c "$work" "$TARGETS/burn" >out 2>/dev/null &
	pid=$!
	started out
	launcher=$(ps -o pid= --ppid "$pid" | head -n 1)
	wait_until 60 has_burned "${launcher// /}"
	kill -TERM "$launcher"
	wait "$pid" 2>/dev/null
	rm -f out
}
XDG_CACHE_HOME=$TMP/no-names killed killed.0.pb.gz PMI_RANK=0 PMI_SIZE=2
is "$(ls -d killed* | sed 's/-......$//')" 'killed.0.pb.gz.recordings' 'killed before its profile is written: its recordings are beside it'
ok 'a profile is made of them' "$COUNTERSINK" report -q -o made.pb.gz killed.0.pb.gz.recordings-*
is "$(facts made.pb.gz)" 'rank: 0 ranks: 2 ranked_by: PMI_RANK' 'it has the rank'
like "$(report made.pb.gz)" ' burn_60$' 'and the functions'
killed killed.1.pb.gz PMI_RANK=1 PMI_SIZE=2
is "$(report --ranks --json term.1.pb.gz killed.1.pb.gz.recordings-* made.pb.gz | grep '"ranks"')" '  "ranks": 2,' 'report --ranks reads profiles and recordings'
# A recording that was cut, one that is none, and a FIFO: neither the others are lost by them, nor does the launcher wait.
plain=$work
work='for one in "$COUNTERSINK_RUN_DIR"/*.rec; do head -c 40000 "$one" >"$COUNTERSINK_RUN_DIR/8.0.rec"; break; done
	echo damaged >"$COUNTERSINK_RUN_DIR/9.0.rec"; mkfifo "$COUNTERSINK_RUN_DIR/7.0.rec"; '$work
killed odd.pb.gz PMI_RANK=0 PMI_SIZE=2
work=$plain
ok 'beside damaged recordings the others are kept' "$COUNTERSINK" report -q -o odd.made.pb.gz odd.pb.gz.recordings-*
like "$(report odd.made.pb.gz)" ' burn_60$' 'with their functions'
PMI_RANK=1 PMI_SIZE=2 "$COUNTERSINK" -q -o both.pb.gz -- sh -c 'kill -TERM $PPID; trap : TERM; echo; while :; do sleep 0.01; done' >out &
pid=$!
started out
wait_until 30 has_taken_term "$pid"
kill -TERM "$pid"
ok 'after a SIGTERM of the command itself, which it does not get, that of another process has the recordings kept' \
	wait_until 30 sh -c 'ls -d both.pb.gz.recordings-*'
kill -HUP "$pid"
wait "$pid"
# A sleep that was forked just before may go on, and write what it samples after that: both.pb.gz.PID.
is "$? $(ls -Ad both.pb.gz *both*recordings* .both* 2>/dev/null)" '129 both.pb.gz' 'where another signal ends the command, they are removed once the profile is written'
rm -f out
killed none.pb.gz A=b
is "$(find . -name '*none*recordings*')" '' 'of a process that is no rank, nothing is kept beside the output'
cd "$TMP" || exit 1

# ---- some ranks alone
mkdir some && cd some || exit 1
"$TMP/mpirun" 5 "$COUNTERSINK" --ranks=4,1-2 -- "$TARGETS/burn" >out 2>err
is "$(ls countersink.* | paste -sd' ')" 'countersink.1.pb.gz countersink.2.pb.gz countersink.4.pb.gz' '--ranks: these ranks have profiles'
is "$(wc -l <out)" 5 '--ranks: all ranks run'
is "$(grep -c ' samples by ' err)" 1 '--ranks: one rank prints its report'
like "$(cat err)" '^  rank        1 of 5,' '--ranks: the lowest of them'
like "$(report --ranks countersink.*.pb.gz)" "^2 of the job's 5 ranks are not in the profile\$" '--ranks: the others are reported as missing'
PMI_RANK=1 PMI_SIZE=2 "$COUNTERSINK" --ranks=0 -- sh -c 'echo "$LD_PRELOAD.$COUNTERSINK_RUN_DIR"; exit 7' >out 2>err
is "$? $(cat out err)" '7 .' '--ranks: another rank runs without countersink'
COUNTERSINK_RANKS=0 PMI_RANK=1 PMI_SIZE=2 "$COUNTERSINK" -- sh -c 'echo "$COUNTERSINK_RUN_DIR"' >out 2>err
is "$(cat out err)" '' 'COUNTERSINK_RANKS does so, too'
PMI_RANK=0 PMI_SIZE=1 "$COUNTERSINK" -q -o one.pb.gz --ranks=0 -- true
is "$? $(ls one.pb.gz)" '0 one.pb.gz' '--ranks=0 in a job of one process: it is profiled'
for list in a 0,a 3-1 1,,2 ',' '0,' -3 5- '0 1' 1-2-3 99999999999; do
	PMI_RANK=0 PMI_SIZE=8 "$COUNTERSINK" --ranks="$list" -- touch ran 2>err
	is $? 125 "--ranks='$list': status 125"
	like "$(cat err)" "^countersink: option --ranks: '.*' is no list of ranks" "--ranks='$list': the reason"
done
PMI_RANK=0 PMI_SIZE=2 "$COUNTERSINK" --ranks=2-5 -- touch ran 2>err
is "$? $(cat err)" '125 countersink: option --ranks: the job has 2 ranks: there is no rank 2' '--ranks that the job has not'
"$COUNTERSINK" --ranks=0 -- touch ran 2>err
is $? 125 '--ranks outside a parallel job: status 125'
like "$(cat err)" 'option --ranks: this process is no rank of a parallel job' '--ranks outside a parallel job: the reason'
PMI_RANK=x PMI_SIZE=2 "$COUNTERSINK" --ranks=0 -- touch ran 2>err
is $? 125 '--ranks, and the rank is nonsense: status 125'
like "$(cat err)" '^countersink: option --ranks: PMI_RANK=x and PMI_SIZE=2 are no rank of a parallel job$' '--ranks, and the rank is nonsense: the reason'
ok 'the program did not run then' test ! -e ran
cd "$TMP" || exit 1

# ---- nonsense
for wrong in abc/4 4/4 99999999999999999999/4 0/-1; do
	rm -f wrong.pb.gz
	PMI_RANK=${wrong%/*} PMI_SIZE=${wrong#*/} "$COUNTERSINK" -o wrong.pb.gz -- "$TARGETS/burn" 10 >burned 2>err
	is $? 0 "PMI_RANK and PMI_SIZE of $wrong: the program runs"
	is "$(facts wrong.pb.gz)" '' "$wrong: no rank"
	like "$(cat err)" "^  warning     PMI_RANK=.* and PMI_SIZE=.* are no rank of a parallel job" "$wrong: a warning"
done
done_testing
