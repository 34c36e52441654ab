#!/bin/sh
# countersink gate --deterministic with a hardware counter: instructions:u of the whole command is judged, exactly.
. "$(dirname "$0")/lib.sh"
SHARES=$TARGETS/shares

countersink gate --deterministic -T 0.1% --self-check -- "$SHARES" >out.tap 2>err
is $? 0 "a command against itself at a threshold of 0.1 %: no regression"
like "$(cat out.tap)" '^# event: instructions, counted by the hardware \(instructions:u\)$' "auto takes the hardware's counter"
like "$(cat out.tap)" '^ok 1 - instructions unchanged: .* in all runs\), 200\.[0-9]* M instead of 200\.' "the 200 M instructions are judged"
like "$(cat out.tap)" '^# runs: 2 and 2, in pairs ' "two runs of each side are enough"
like "$(cat out.tap)" '^# note: runs of one side differ by at most [0-9]+ of 200[0-9]+ instructions' "the spread of equal runs is reported"
like "$(cat out.tap)" '^# note: hardware counts the whole command' "what is not counted is reported"
is "$(tail -n 1 out.tap)" "1..1" "instructions alone are judged"

countersink gate --deterministic=pmu -T 1% --vs "$SHARES" -- "$SHARES" 2 >out.tap 2>err
is $? 3 "a second process: status 3"
like "$(cat out.tap)" '^not ok 1 - instructions regressed: \+(99\.[0-9]|100\.[0-9]) % .*, 400\.[0-9]* M instead of 200\.' "instructions regressed, children included"

# Other processes hold all counters.
"$TARGETS/hog" countersink gate --deterministic=pmu --self-check -- true >out.tap 2>err
is $? 2 "no free counter: refused"
like "$(cat err)" 'option --deterministic: no hardware counter counts instructions:u here' "the reason is reported"
done_testing
