#!/bin/bash
# What commands print as JSON has the form that launcher/schema describes: as it is printed, and not with a member less, or, at any
# depth, a member more or a value of another kind.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
SCHEMAS=$SRC/launcher/schema
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip_all "python3-jsonschema is not installed"
: >tried

cat >valid.py <<'E2'
# valid.py SCHEMA FILE: judges the file, and changed copies of it.
import copy, json, sys
from jsonschema import Draft7Validator

with open(sys.argv[1]) as f:
    schema = json.load(f)
with open(sys.argv[2]) as f:
    document = json.load(f)
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)
errors = ["%s: %s" % ("/".join(map(str, e.absolute_path)), e.message[:200]) for e in validator.iter_errors(document)]
if errors:
    print("\n".join(errors[:5]))
    sys.exit()
items = schema.get("items", {}) if schema["type"] == "array" else schema
accepted = []

def judge(name, change):
    changed = copy.deepcopy(document)
    change(changed[0] if isinstance(changed, list) else changed)
    if validator.is_valid(changed):
        accepted.append(name)

for name in (document[0] if isinstance(document, list) and document else document or {}):
    if name in items["required"]:
        judge("without " + name, lambda d: d.pop(name))
    judge("another kind of " + name, lambda d: d.__setitem__(name, {"": [[]]}))

def walk(value, path):
    """Every object, but of a list the first of each set of members alone."""
    if isinstance(value, dict):
        yield path
        for name in value:
            yield from walk(value[name], path + [name])
    elif isinstance(value, list):
        seen = set()
        for i, one in enumerate(value):
            members = tuple(sorted(one)) if isinstance(one, dict) else None
            if members not in seen:
                seen.add(members)
                yield from walk(one, path + [i])

def at(value, path):
    for step in path:
        value = value[step]
    return value

for path in list(walk(document, [])):
    changed = copy.deepcopy(document)
    at(changed, path)["surplus"] = "text"
    if validator.is_valid(changed):
        accepted.append("one more in /" + "/".join(map(str, path)))
    for name in at(document, path):
        changed = copy.deepcopy(document)
        at(changed, path)[name] = {"": [[]]}
        if validator.is_valid(changed):
            accepted.append("another kind of /" + "/".join(map(str, path + [name])))
print("valid; accepted: %s" % (", ".join(accepted) or "none"))
E2
valid() { # SCHEMA FILE NAME
	echo "$1" >>tried
	is "$(/usr/bin/python3 -B valid.py "$SCHEMAS/$1.json" "$2" 2>&1)" "valid; accepted: none" "$3 has the form of $1.json, and nothing else has"
}
printed() { # SCHEMA NAME COMMAND...: what it prints
	schema=$1 name=$2
	shift 2
	countersink "$@" >out.json 2>err
	status=$?
	valid "$schema" out.json "$name" || diag "status $status: $(head -n 5 err)"
}

# ---- profiles
countersink -q --wall -o a.pb.gz -- "$TARGETS/burn" 60 >/dev/null
countersink -q -o b.pb.gz -- "$TARGETS/burn" 90 >/dev/null
for rank in 0 1; do
	OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 countersink -q -o "rank$rank.pb.gz" -- "$TARGETS/burn" 40 >/dev/null
done
for by in function module line thread process phase; do
	printed report "report --by $by" report -j --by $by a.pb.gz
done
printed report "report --wall" report -j --wall a.pb.gz
printed report "report of one row" report -j -n 1 b.pb.gz
printed report-tree "report --tree" report -j --tree a.pb.gz
printed report-tree "report --callers" report -j --callers burn_60 a.pb.gz
printed report-annotate "report --annotate" report -j --annotate burn_60 a.pb.gz
printed report-ranks "report --ranks" report -j --ranks rank0.pb.gz rank1.pb.gz
countersink -q -e lock -o waits.pb.gz -- "$TARGETS/locks" mutex 20 >/dev/null
for by in lock holder; do
	printed report "report --by $by" report -j --by $by waits.pb.gz
	printed diff "diff --by $by" diff -j --by $by waits.pb.gz waits.pb.gz
done
for by in function module line; do
	printed diff "diff --by $by" diff -j --by $by a.pb.gz b.pb.gz
done

# ---- counts
for how in "" "-r 3" "-I 20" "--per-thread" "-e task-clock,page-faults,cycles,cache-misses"; do
	# shellcheck disable=SC2086
	countersink stat -j $how -o out.json -- "$TARGETS/burn" 60 >/dev/null 2>err
	valid stat out.json "stat $how"
done
# shellcheck disable=SC2016
countersink stat -j -o out.json -- sh -c 'kill -TERM $$' >/dev/null 2>err
valid stat out.json "stat of a command that a signal ends"
"$TARGETS/burn" 100000000 >/dev/null &
target=$!
if countersink attach -q -d 0.1 -o probe.pb.gz -p $target 2>refused; then
	printed attach "attach" attach -q -j -d 0.2 -o attached.pb.gz -p $target
	printed top "top of a process that is sampled from outside" top --once -j -d 0.2 -p $target
else
	skip "attach" "attach is refused here: $(cat refused)"
	skip "top of a process that is sampled from outside" "attach is refused here"
fi
kill -KILL $target
wait $target 2>/dev/null
rm -f go
mkdir -m 711 run
# shellcheck disable=SC2016
XDG_RUNTIME_DIR=$PWD/run LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$PWD/live.pb.gz sh -c ': >up; until test -e go; do "$0" 5; done' "$TARGETS/burn" >/dev/null 2>&1 &
wait_until 30 test -e up
printed top "top of a run" top --once -j -d 0.2 "$(echo run/countersink-*)"
touch go
wait

# ---- the gate
countersink gate --seed 1 --runs 6 --warmup 0 --json gate.json --verdict verdict --badge badge.json --vs "$TARGETS/burn 20" -- "$TARGETS/burn" 20 >/dev/null 2>err
valid gate gate.json "gate"
sed 1d verdict >verdict.json
valid gate-verdict verdict.json "gate --verdict"
valid gate-badge badge.json "gate --badge"
countersink gate --runs 2 --warmup 0 --json gate.json --verdict verdict --badge badge.json --vs false -- true >/dev/null 2>err
valid gate gate.json "a gate that errs"
sed 1d verdict >verdict.json
valid gate-verdict verdict.json "gate --verdict of an error"
valid gate-badge badge.json "gate --badge of an error"
BENCH=$TARGETS/made_bench
countersink gate --suite --seed 5 --threshold 25% --screen 6 --confirm 8 --run-time 15ms --max-time 20 --cases 'BM_|XM_Crash' --json gate.json \
	--vs "$BENCH 0 old" -- "$BENCH" 60 new >/dev/null 2>err
valid gate-suite gate.json "gate --suite"
countersink gate --suite --cases 'none such' --json gate.json --vs "$BENCH 0 old" -- "$BENCH" 60 new >/dev/null 2>err
valid gate-suite gate.json "a suite without cases"

# ---- what is here
printed events "events" events -j
printed doctor "doctor" doctor -j
printed reserve "reserve --status" reserve --status -j --lock-file=lock
export COUNTERSINK_PERSIST_DIR=$PWD/run
id=$(countersink persist detach -m 1 2>err | grep -o '[0-9]*' | head -n 1)
printed persist-list "persist list" persist list -j
if [ -n "$id" ]; then
	printed persist-read "persist read" persist read -j "$id"
	printed persist-samples "persist samples" persist samples -j "$id"
	countersink persist attach "$id" >/dev/null 2>&1
else
	skip "persist read" "no event can be kept here: $(cat err)"
	skip "persist samples" "no event can be kept here"
	printf 'persist-read\npersist-samples\n' >>tried
fi
[ -s refused ] && printf 'attach\n' >>tried

is "$(sort -u tried)" "$(find "$SCHEMAS" -name "*.json" -exec basename {} .json \; | sort)" "every form is tried"
done_testing
