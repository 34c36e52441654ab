#!/bin/sh
# countersink gate --suite by a hardware counter: a case is judged by its instructions:u, and the function that executes more is named.
. "$(dirname "$0")/lib.sh"
CASES=$TARGETS/cases

# Functions are not judged here (--min-share): so short runs have too few samples of a hardware counter.
countersink gate --suite=lines --list "printf '%s\n' fold plain" --seed 3 -e instructions:u -T 2% --min-share 99% --screen 0 --confirm 14 \
	--run-time 10ms --max-time 20 --vs "$CASES {case} {n} 0" -- "$CASES" '{case}' '{n}' 20 >out.tap 2>err
is $? 3 "a case with more instructions: status 3" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# event: instructions:u' "the cases are sampled by instructions:u"
like "$(cat out.tap)" '^# 1 of 2 cases slower: fold \(' "the first line names the case"
like "$(cat out.tap)" '^not ok 1 - fold: [a-zA-Z:]+ ?[a-z]* regressed: \+' "its point fails"
like "$(cat out.tap)" '^    - "instructions:u regressed: \+[678]\.[0-9]+ % \(95 % CI \+[678]\.[0-9]+ to \+[678]\.[0-9]+, ' \
	"the instructions of the case regressed, by the 8 % that they are, but for what a process executes besides"
like "$(cat out.tap)" '^ok 2 - plain: unchanged' "the case whose instructions did not change is unchanged"

# Runs of 100 ms have enough for a function that got much slower.
countersink gate --suite=lines --list "printf '%s\n' fold plain" --cases fold --seed 3 -e instructions:u -T 2% --min-share 25% --screen 0 --confirm 20 \
	--run-time 100ms --max-time 20 --vs "$CASES {case} {n} 0" -- "$CASES" '{case}' '{n}' 80 >out.tap 2>err
is $? 3 "a function with 80 % more instructions: status 3" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# 1 of 1 cases? slower: fold \(second \+[0-9.]+ %\)$' "the first line names the function"
like "$(cat out.tap)" '^not ok 1 - fold: second in cases regressed: \+' "the function is named in the case's point"
unlike "$(cat out.tap)" '"first in cases regressed' "the function that did not change is not blamed"
done_testing
