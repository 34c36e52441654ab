#!/bin/bash
# gate --suite of hyperfine's command lines and of what it exports, against hyperfine itself.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
command -v hyperfine >/dev/null || skip_all "hyperfine is not installed here"
BENCH=$TARGETS/made_bench
mkdir own
export TMPDIR=$TMP/own

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >out.tap 2>err
}

# names: the cases that --list-cases printed, sorted.
names() {
	grep -v "^$(printf '\t')" out.tap | sort
}

# commands WORD...: what hyperfine itself exports of its command line, sorted.
commands() {
	hyperfine -r 2 --style none --export-json exported.json "$@" >/dev/null 2>hyperfine.err || diag "$(cat hyperfine.err)"
	python3 -c 'import json; print("\n".join(sorted(r["command"] for r in json.load(open("exported.json"))["results"])))'
}

# ---- the same commands as hyperfine has
want=$(commands -L word 'a b,c\,d' -L n 1,2 "echo '{n} {word}' {other}")
gate --suite --list-cases --self-check -- hyperfine -w1 -L word 'a b,c\,d' -L n 1,2 -u second --runs=2 "echo '{n} {word}' {other}"
is "$(names)" "$want" "a list of values: each combination that hyperfine has" || diag "$(cat out.tap err)"
want=$(commands -P t 0.5 1.25 -D 0.25 'echo {t}')
gate --suite --list-cases --self-check -- hyperfine -D 0.25 --parameter-scan t 0.5 1.25 'echo {t}'
is "$(names)" "$want" "a scan of decimals: the values that hyperfine has" || diag "$(cat out.tap err)"
want=$(commands -P t 1 3 -- 'echo {t}' 'printf {t}')
gate --suite --list-cases --self-check -- hyperfine -P t 1 3 -- 'echo {t}' 'printf {t}'
is "$(names)" "$want" "a scan of whole numbers, behind --" || diag "$(cat out.tap err)"
gate --suite=hyperfine --list-cases --self-check -- ./exported.json
is "$(names)" "$want" "an exported file has the same commands" || diag "$(cat out.tap err)"

# ---- how they are run
gate --suite --list-cases --self-check -- hyperfine -L x 'a b' 'echo "$HOME {x}" | cat' "echo 'c  d' {x}"
like "$(cat out.tap)" "new: /bin/sh -c 'echo \"\\\$HOME a b\" \\| cat'$" "a command with a pipe is the shell's, as a word of its own" || diag "$(cat out.tap err)"
like "$(cat out.tap)" "new: echo 'c  d' a b$" "a command that needs no shell is run without"
gate --suite --list-cases --self-check -- hyperfine -S 'bash --norc' -p 'sync {n}' -L n '1,2' 'echo {n}'
like "$(cat out.tap)" "new: sh -c 'sync 2' && bash --norc -c 'echo 2'$" "another shell, and what is run before each run" || diag "$(cat out.tap err)"
gate --suite --list-cases --self-check -- hyperfine -n 'one, [two]' -L n 1,2 'echo {n}'
is "$(names | tr '\n' ';')" 'one, [two] n=1;one, [two] n=2;' "a name that all combinations share has their parameters"

# ---- a slower one, and commands that err
cat >suite <<-SH
	-n 'hash, [1]' '$BENCH PERCENT old "--benchmark_filter=^BM_Hash\$" --benchmark_min_time=250x'
	-n 'sum' '$BENCH PERCENT old "--benchmark_filter=^BM_Sum/1\$" --benchmark_min_time=250x; exit \$?'
	-n fails 'exit 7' -n hangs 'sleep 1000 & wait'
SH
old=$(sed 's/PERCENT/0/' suite | tr '\n' ' ')
new=$(sed 's/PERCENT/60/' suite | tr '\n' ' ')
eval "set -- $new"
gate --suite --seed 5 --threshold 10% --screen 6 --confirm 16 --max-time 50 --vs "hyperfine $old" -- hyperfine "$@"
is $? 3 "a slower command: status 3" || diag "$(cat out.tap err)"
like "$(sed -n 2p out.tap)" '^# 1 of 4 cases slower: hash, \[1\] \(hash_of \+[0-9.]+ %\); 2 in error$' "the case is named, with its function" || diag "$(cat out.tap)"
like "$(cat out.tap)" '^ok 2 - sum: ' "a command that did not change passes"
like "$(cat out.tap)" '^not ok 3 - fails: error: the old side: status 7$' "a command that fails is an error of its case"
like "$(cat out.tap)" '^not ok 4 - hangs: error: the old side: it did not end within [0-9]+ s, and was killed$' "a command that does not end is an error of its case"

# ---- what is run before
echo 'test -e made && rm made' >work
gate --suite --screen 0 --confirm 2 --threshold 90% --max-time 20 --self-check -- hyperfine -s 'echo >was_set_up' -p 'touch made' 'sh ./work'
is "$?:$(cat err)" "0:" "--prepare is run before each run" || diag "$(cat out.tap)"
ok "--setup is run once, before all" test -e was_set_up
gate --suite --screen 0 --confirm 2 --self-check -- hyperfine -p 'exit 5' true
like "$(cat out.tap)" '^not ok 1 - true: error: the old side: what is run before it: status 5$' "--prepare that fails is an error of its case"
gate --suite --screen 0 --confirm 2 --self-check -- hyperfine -s 'echo no >&2; exit 5' true
is $? 1 "--setup that fails: status 1"
like "$(cat err)" "the old side: hyperfine's --setup: status 5; its standard error: no" "the reason is reported"

# ---- what is no command line of hyperfine
gate --suite --self-check -- hyperfine -r 3
is $? 4 "no command: status 4" || diag "$(cat out.tap err)"
gate --suite --self-check -- hyperfine --no-such-option true
is $? 1 "an option that is not known: status 1"
like "$(cat err)" "hyperfine: option '--no-such-option' is not known here" "the reason is reported"
gate --suite --self-check -- hyperfine -N 'true | true'
like "$(cat err)" "hyperfine: 'true \| true' is no command without a shell" "a command that takes a shell, under -N"
gate --suite --self-check -- hyperfine -P x 3 1 "echo {x}"
like "$(cat err)" "hyperfine: --parameter-scan x: there are no values, or too many" "a scan without values"
gate --suite --self-check -- hyperfine -n a true -n a false
like "$(cat err)" "hyperfine: two commands have the name 'a'" "a name that is given twice"
echo '{"results": [' >cut.json
gate --suite=hyperfine --self-check -- ./cut.json
isnt $? 0 "a file that is cut off is no suite"

done_testing
