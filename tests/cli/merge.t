#!/bin/bash
# `countersink merge`: the order and the groups of profiles do not matter, byte for byte; build-ids stay apart.
. "$(dirname "$0")/lib.sh"

merge() { # output files...
	local output=$1
	shift
	"$COUNTERSINK" merge -q -o "$output" "$@"
}
same() {
	cmp "$1" "$2"
}
sum() { # of a column of a profile
	"$COUNTERSINK" report --csv --by process "$1" | awk -F, -v want="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) column = i; next }
		{ sum += $column } END { printf "%.0f\n", sum }'
}

# ---- real profiles of several programs
for run in 1 2 3; do
	ok "inlines, run $run, is recorded" "$COUNTERSINK" -q -F 1000 -o "inlines$run.pb.gz" -- "$TARGETS/inlines" 800
done
ok 'threads8 is recorded' "$COUNTERSINK" -q -F 1000 -o threads.pb.gz -- "$TARGETS/threads8" 50
ok 'a pipeline is recorded' "$COUNTERSINK" -q -F 1000 -o pipe.pb.gz -- sh -c 'seq 200000 | sort -rn | uniq -c | tail -1'
printf 'main;read 3\nmain;write 4\n' >one.folded
printf 'main;read 5\nmain;close 6\n' >two.folded
all='inlines1.pb.gz inlines2.pb.gz inlines3.pb.gz threads.pb.gz pipe.pb.gz one.folded two.folded'
# shellcheck disable=SC2086
{
	ok 'all profiles are merged' merge forth.pb.gz $all
	ok 'all profiles are merged in reverse order' merge back.pb.gz two.folded one.folded pipe.pb.gz threads.pb.gz inlines3.pb.gz inlines2.pb.gz inlines1.pb.gz
	for seed in 1 2 3 4 5; do
		shuf=$(printf '%s\n' $all | shuf --random-source=<(yes "$seed"))
		ok "all profiles are merged in the order of seed $seed" merge "shuffled$seed.pb.gz" $shuf
		ok "order of seed $seed: the same bytes" same forth.pb.gz "shuffled$seed.pb.gz"
	done
}
ok 'reverse order: the same bytes' same forth.pb.gz back.pb.gz
ok 'a pair of profiles is merged' merge a.pb.gz inlines1.pb.gz two.folded
ok 'another pair is merged' merge b.pb.gz threads.pb.gz inlines3.pb.gz
ok 'a merged profile is merged with another' merge c.pb.gz a.pb.gz pipe.pb.gz
ok 'the remaining pair is merged' merge d.pb.gz inlines2.pb.gz one.folded
ok 'the merged groups are merged' merge grouped.pb.gz d.pb.gz c.pb.gz b.pb.gz
ok 'merging by groups gives the same bytes' same forth.pb.gz grouped.pb.gz
ok 'a merged profile is merged alone' merge alone.pb.gz forth.pb.gz
ok 'merging a merged profile alone gives the same bytes' same forth.pb.gz alone.pb.gz
ok '--keep-ids merges' "$COUNTERSINK" merge -q --keep-ids -o ids1.pb.gz inlines1.pb.gz threads.pb.gz
ok '--keep-ids merges in reverse order' "$COUNTERSINK" merge -q --keep-ids -o ids2.pb.gz threads.pb.gz inlines1.pb.gz
ok '--keep-ids: reverse order gives the same bytes' same ids1.pb.gz ids2.pb.gz
like "$("$COUNTERSINK" report --by thread ids1.pb.gz)" 'worker-3 [0-9]+$' '--keep-ids keeps thread ids'
like "$("$COUNTERSINK" report --by thread --all forth.pb.gz)" 'worker-3$' 'without --keep-ids threads have names only'

# ---- contents of a merged profile
for type in samples task-clock; do
	want=0
	for file in $all; do
		want=$((want + $(sum "$file" "$type")))
	done
	is "$(sum forth.pb.gz "$type")" "$want" "$type add up in the merged profile"
done
like "$("$COUNTERSINK" report --csv -e samples forth.pb.gz)" '^read,,8,8,' 'equal functions of two profiles become one row'
like "$("$COUNTERSINK" report --all forth.pb.gz)" 'churn' 'the merged profile has symbols'
is "$("$COUNTERSINK" report --csv --by module forth.pb.gz | grep -c '/inlines,')" 1 'three runs of one program are one module'
"$COUNTERSINK" merge -o said.pb.gz one.folded two.folded 2>err
is "$? $(cat err)" '0 countersink: said.pb.gz: 2 profiles, 3 distinct samples in 0 modules' 'the number of merged profiles is reported'

# ---- build-ids
cp "$TARGETS/burn" prog
"$COUNTERSINK" -q -o old.pb.gz -- ./prog 200 >out 2>&1
${CC:-cc} -O1 -o prog.c.out -x c - <<'END'
#include <time.h>
static volatile long n;
__attribute__((noinline)) static void burn_other(void) { for (long i = 0; i < 100000; i++) n += i; }
int main(void) { while (clock() < CLOCKS_PER_SEC / 5) burn_other(); return 0; }
END
mv prog.c.out prog
"$COUNTERSINK" -q -o new.pb.gz -- ./prog >out 2>&1
ok 'two builds of one path are merged' merge builds.pb.gz old.pb.gz new.pb.gz
if have go; then
	is "$(go tool pprof -raw builds.pb.gz 2>err | grep -cE "$PWD/prog [0-9a-f]{40}")" 2 'two builds of one path are two mappings'
	like "$(go tool pprof -top builds.pb.gz 2>err)" 'burn_other' 'go tool pprof reads a merged profile of two builds'
else
	skip 'two builds of one path are two mappings' 'go is not installed'
	skip 'go tool pprof reads a merged profile of two builds' 'go is not installed'
fi

# ---- 2,000 profiles
mkdir many
if have python3; then
	ok '2,000 profiles are made' python3 - <<'END'
import random
random.seed(5)
for i in range(2000):
    with open(f"many/{i}.folded", "w") as f:
        for _ in range(50):
            depth = random.randint(1, 20)
            stack = ";".join(f"function_{random.randint(0, 300 if d > 2 else 3)}" for d in range(depth))
            f.write(f"{stack} {random.randint(1, 1000)}\n")
END
	find many -name '*.folded' | sort >list
	xargs "$COUNTERSINK" merge -q -o forth.pb.gz <list
	sort -R list | xargs "$COUNTERSINK" merge -q -o back.pb.gz
	ok '2,000 profiles in two orders give the same bytes' same forth.pb.gz back.pb.gz
	split -n l/13 list part.
	for part in part.*; do
		xargs "$COUNTERSINK" merge -q -o "$part.pb.gz" <"$part"
	done
	ok '13 groups of 2,000 profiles are merged' merge grouped.pb.gz part.*.pb.gz
	ok '2,000 profiles in 13 groups give the same bytes' same forth.pb.gz grouped.pb.gz
	want=$(cat many/*.folded | awk '{ sum += $NF } END { print sum }')
	is "$(sum forth.pb.gz samples)" "$want" 'no sample of 2,000 profiles is lost'
	# Memory for the result and one profile, not for 2,000 profiles.
	ok '200,000 KiB are enough to merge 2,000 profiles' sh -c 'ulimit -v 200000; exec xargs "$0" merge -q -o small.pb.gz <list' "$COUNTERSINK"
else
	skip '2,000 profiles are made' 'no python3 here'
fi

# ---- errors
"$COUNTERSINK" merge -o bad.pb.gz one.folded nowhere.pb.gz 2>err
is "$? $(wc -l <err)" '1 1' 'a missing file is refused in one line'
like "$(cat err)" 'nowhere.pb.gz: No such file.*nothing is merged' 'a missing file is named'
ok 'a missing file: no output is written' test ! -e bad.pb.gz
"$COUNTERSINK" merge 2>err
is $? 2 'no file: status 2'
"$COUNTERSINK" merge -q -o /dev/full one.folded 2>err
is "$? $(wc -l <err)" '1 1' 'a full device is reported in one line'
done_testing
