#!/bin/bash
# Waits for locks in the critical path of --wall: from a wait's end to the thread that released the lock.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"

figures() { # FILE: steps of the path
	countersink report -j --wall "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["wall"]["steps"])'
}
run() { # FILE OPTION...
	timeout 120 "$COUNTERSINK" -q -o "$1" "${@:2}" -- "$TARGETS/parallel" lock 2000 >out 2>err
}
run both.pb.gz --wall -e task-clock,lock
is "$? $(cat out err)" '0 ' 'a program whose threads contend for a lock runs with --wall and lock'
steps=$(figures both.pb.gz)
ok "its critical path goes from thread to thread ($steps steps)" test "${steps:-0}" -ge 5
ok 'a profile has who released what was waited for' test "$(zcat both.pb.gz | grep -ac releaser)" -gt 0
is "$(countersink report -j both.pb.gz | python3 -c 'import json, sys
r = json.load(sys.stdin)
whole = {t["name"]: t["sum"] for t in r["types"]}
print(sum(w["delay_ns"] for w in r["lock_waits"]) == whole["delay"], whole["contentions"] < 1000)')" 'True True' 'these are no waits more'
countersink merge -q --keep-ids -o merged.pb.gz both.pb.gz
is "$(figures merged.pb.gz)" "$steps" 'a merge that keeps threads has the same path'
run plain.pb.gz -e task-clock,lock
is "$(zcat plain.pb.gz | grep -ac releaser)" 0 'without a timeline there is none'
# Waits enough for two rounds.
note='note +after 16384 waits for locks in a locks process, the critical path leaves out who ended those of less than 0\.[1-4] ms$'
unlike "$(countersink report both.pb.gz)" 'the critical path leaves out' 'of few waits, no end is left out'
timeout 120 "$COUNTERSINK" -q -o many.pb.gz --wall -e task-clock,lock -- "$TARGETS/locks" plain 30000 10 >out 2>err
is "$? $(cat err)" '0 ' 'a program with tens of thousands of waits'
like "$(countersink report many.pb.gz)" "$note" 'has the ends of longer ones alone, and a note of it'
nr=$(figures many.pb.gz)
ok "its critical path goes from thread to thread ($nr steps)" test "${nr:-0}" -ge 5
done_testing
