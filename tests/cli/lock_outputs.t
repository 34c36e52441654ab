#!/bin/bash
# Waits for locks in what is made of a profile: JSON, CSV, diff. Each form has the same sums.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"

for n in 1 2; do
	timeout 60 "$COUNTERSINK" -q -e task-clock,lock -o $n.pb.gz -- "$TARGETS/locks" mutex $((n * 20)) >/dev/null
done
countersink report -j -e delay 1.pb.gz >1.json
countersink -q -o none.pb.gz -- true

cat >sums.py <<'E'
import csv, json
report = json.load(open("1.json"))
waits = report["lock_waits"]
whole = {t["name"]: t["sum"] for t in report["types"]}
print(sum(w["delay_ns"] for w in waits) == whole["delay"], sum(w["contentions"] for w in waits) == whole["contentions"],
      len({(w["lock"], w["waiter"], w["holder"]) for w in waits}) == len(waits),
      [w["delay_ns"] for w in waits] == sorted((w["delay_ns"] for w in waits), reverse=True))
print(*sorted({w["lock"] for w in waits} - {"[join]"}))
for end in "holder", "waiter":
    print(*sorted({h for w in waits for h in ("hold_long", "hold_middle", "hold_short") if w[end].endswith(h)}))
for by in "lock", "holder":
    rows = {r[by]: r for r in csv.DictReader(open(by + ".csv"))}
    of = {}
    for w in waits:
        of[w[by]] = of.get(w[by], 0) + w["delay_ns"]
    print(by, all(int(rows[k]["self"]) == int(rows[k]["delay"]) == of[k] for k in of))
E
for by in lock holder; do
	countersink report --csv --by $by 1.pb.gz >$by.csv
done
python3 sums.py >sums
is "$(sed -n 1p sums)" 'True True True True' 'lock_waits of --json add up to the whole, each cell once, the longest first'
is "$(sed -n 2p sums)" 'the_lock' 'with the lock'
is "$(sed -n 3p sums)" 'hold_long hold_middle hold_short' 'its holders'
is "$(sed -n 4p sums)" 'hold_long hold_middle hold_short' 'and who waited'
is "$(sed -n 5p sums)" 'lock True' '--csv --by lock has the same time'
is "$(sed -n 6p sums)" 'holder True' '--csv --by holder, too'
is "$(countersink report -j -n 2 1.pb.gz | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["lock_waits"]))')" 2 '--limit is that of lock_waits, too'
is "$(countersink report -j none.pb.gz | grep -c lock_waits)" 0 'a profile without waits has no lock_waits'
like "$(countersink report --by holder 1.pb.gz)" '^ +self % +self +total % +total +contentions +holder$' 'the report by holder has the time of waits'

# ---- diff
countersink diff -j --by holder 1.pb.gz 2.pb.gz >diff.json
is "$(python3 -c 'import json; d = json.load(open("diff.json")); print(d["event"], sum(r["self"]["a"] for r in d["holder"]) == d["a"]["sum"], all("module" not in r for r in d["holder"]), len(d["stack"]) > 0)')" \
	'delay True True True' 'diff by holder compares the time of waits'
like "$(countersink diff --by lock -e contentions 1.pb.gz 2.pb.gz)" '^ +change +self A +self B +A % +B % +points  lock$' 'diff by lock compares their number, without modules'
unlike "$(countersink diff --by lock 1.pb.gz 2.pb.gz)" '\[no lock\]' 'CPU time is no row of it'

# ---- what cannot be
refused() { # STATUS MESSAGE NAME COMMAND...
	countersink "${@:4}" >out 2>err
	is "$?" "$1" "$3 is refused"
	like "$(cat err)" "$2" 'with the reason'
}
refused 2 'option --by: the profile has no waits for locks: countersink run -e lock measures them' 'report by lock of a profile without waits' report --by lock none.pb.gz
refused 2 'option --by: none.pb.gz has no waits for locks' 'diff with such a profile' diff --by holder 1.pb.gz none.pb.gz
refused 2 'options --stacks and --by lock exclude each other' 'diff of stacks by lock' diff --stacks --by lock 1.pb.gz 2.pb.gz
refused 2 'exclude --by lock and --by holder' 'report --wall by holder' report --wall --by holder 1.pb.gz
is "$(COUNTERSINK_WALL=1 countersink report --by lock 1.pb.gz | grep -c ' the_lock$')" 1 'COUNTERSINK_WALL, which is meant for run, changes nothing of it'
done_testing
