#!/bin/bash
# gate --suite of criterion's benchmarks, with criterion itself (tests/gate/suites/criterion).
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
suite=$BUILT/criterion/release/criterion_suite
test -x "$suite" || skip_all "criterion is not installed here (make check-suites installs it)"
mkdir own old new
export TMPDIR=$TMP/own XDG_RUNTIME_DIR=$TMP/own
cp "$suite" old/bench
cp "$suite" new/bench
: >new/more
cd new || exit 1

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >"$TMP/out.tap" 2>"$TMP/err"
}

# ---- what would be run
gate --suite --list-cases --vs-dir ../old -- ./bench
is $? 0 "--list-cases: status 0" || diag "$(cat ../err)"
is "$(grep -v "^$(printf '\t')" ../out.tap | sed 's/nnn*/N/' | tr '\n' ';')" 'hash, [x] "y" (z);group/sum/10;group/sum/100;N...;N... #2;panics;ends;hangs;' \
	"criterion is found by asking; its benchmarks are listed" || diag "$(cat ../out.tap)"
like "$(cat ../out.tap)" "new: .*\./bench --bench '\^hash, \\\\\[x\\\\\] \"y\" \\\\\(z\\\\\)\\\$' " "an id is one word, a quoted regular expression"

# ---- a slower one
gate --suite --seed 5 --threshold 10% --screen 0 --confirm 8 --max-time 200 --cases '^hash' --vs-dir ../old -- ./bench --bench
is $? 3 "a slower function: status 3" || diag "$(cat ../out.tap ../err)"
like "$(sed -n 2p ../out.tap)" '^# 1 of 1 case slower: hash, \[x\] "y" \(z\) \(criterion_suite::hash_of \+[0-9.]+ %\)$' "the case is named, with its function" ||
	diag "$(cat ../out.tap)"
change=$(sed -n 's/^not ok 1.*hash_of in bench regressed: +\([0-9]*\).*/\1/p' ../out.tap)
ok "an iteration costs 60 % more, whatever number of them was made (+$change %)" test "${change:-0}" -ge 50 -a "${change:-0}" -le 70

# ---- cases that err, and ids that begin alike
gate --suite --screen 0 --confirm 2 --max-time 100 --self-check --cases '^(group/sum/10$|panics|ends|hangs)' -- ./bench
is $? 1 "cases in error, and none slower: status 1" || diag "$(cat ../err)"
like "$(cat ../out.tap)" '^ok 1 - group/sum/10: ' "an id that another one begins with is run alone"
like "$(cat ../out.tap)" '^not ok 2 - panics: error: the old side: status 101; its standard error: .*it broke' "a panic is an error of its case"
like "$(cat ../out.tap)" '^not ok 3 - ends: error: the old side ran no case of that name, and ended with status 0$' "status 0 without a result is an error of its case"
like "$(cat ../out.tap)" '^not ok 4 - hangs: error: the old side: it did not end within [0-9]+ s, and was killed$' "a benchmark that does not end is an error of its case"
gate --suite --screen 0 --confirm 2 --max-time 100 --self-check --cases '^n+[.][.][.]$' -- ./bench
like "$(cat ../out.tap)" "^not ok 1 - n+\.\.\.: error: the old side: its name chooses another benchmark, too: 'n" "an id that criterion prints in part, and that is not the only one of that beginning, is an error" ||
	diag "$(cat ../err)"
is "$(ls ../own; ls)" "$(printf 'bench\nmore')" "no directory is left, and none of criterion's"

done_testing
