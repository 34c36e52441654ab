#!/bin/bash
# A gate's history: lines that `gate --history` appends, what `countersink history` makes of them, and what is damaged.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/gate.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
WORK=$TARGETS/gate_work
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org GIT_CEILING_DIRECTORIES=$TMP

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >out.tap 2>err
}

# history ARGUMENT...: output in out, messages in err; returns its status.
history() {
	"$COUNTERSINK" history "$@" >out 2>err
}

# few ARGUMENT...: a gate that is short.
few() {
	gate -q --runs 2 --warmup 0 "$@" --vs "$WORK alpha 2 beta 2" -- env -C . "$WORK" alpha 2 beta 2
}

# ---- lines that a gate appends
few --history new.jsonl --anchor v1 --commit abc --verdict verdict
is $? 0 "a gate with a history: the status is the verdict's"
is "$(wc -l <new.jsonl)" 1 "one line is appended"
few --history new.jsonl --anchor v1 --commit abd
is "$(wc -l <new.jsonl)" 2 "the next gate appends a line"
python3 - "$WORK" <<'PY' >line.out 2>&1
import json, sys
lines = [json.loads(line) for line in open("new.jsonl")]
line = lines[0]
assert list(line) == ["v", "commit", "parent", "committed", "time", "anchor", "machine", "cases"], list(line)
assert [one["commit"] for one in lines] == ["abc", "abd"] and line["parent"] is None and line["committed"] is None, lines
assert line["v"] == 1 and line["anchor"] == "v1" and line["time"].endswith("Z") and line["machine"]["cpus"] >= 1, line
(name, case), = line["cases"].items()
assert name == sys.argv[1] + " alpha 2 beta 2", name
ratio, low, high, mean, unit = case["figures"]["cpu"]
assert unit == "nanoseconds" and 0 < low <= ratio <= high and mean > 1e5 and case["pairs"] == 2, case
assert case["command"] == [sys.argv[1], "alpha", "2", "beta", "2"], case
assert all(len(one) == 4 and 0 < one[3] <= 1 for one in case["functions"].values()) and case["functions"], case
PY
is $? 0 "a line has the commit, the anchor, the machine, and ratios with their intervals" || diag "$(cat line.out new.jsonl)"
if have git; then
	mkdir repository
	(
		cd repository && git init -q -b main . && git commit -q --allow-empty -m one && git commit -q --allow-empty -m two &&
			few --history here.jsonl --anchor HEAD~1
	)
	like "$(cat repository/here.jsonl)" "\"commit\":\"$(git -C repository rev-parse HEAD)\",\"parent\":\"$(git -C repository rev-parse HEAD~1)\",\"committed\":\"20[0-9-]+T[0-9:]+Z\"" \
		"the commit is that of the directory, with its parent and its time"
else
	skip "the commit is that of the directory, with its parent and its time" "no git here"
fi

# ---- what is refused before the runs
refused 2 'option --history: it records ratios of pairs of runs, which --vs makes' "a history without --vs" \
	--history x.jsonl --anchor v1 --self-check -- true
refused 2 'option --history: name the commit of --vs with --anchor' "a history without an anchor" --history x.jsonl --vs true -- true
refused 2 'option --anchor: it is for --history=FILE' "an anchor without a history" --anchor v1 --vs true -- true
mkdir nowhere
cd nowhere || exit 1
refused 2 'option --history: git knows no commit of this directory: name it with --commit' "a history outside a repository" \
	--history x.jsonl --anchor v1 --vs true -- true
cd ..
refused 1 'nowhere cannot be written: Is a directory' "a history that is a directory" --history nowhere --anchor v1 --commit c --vs true -- true
ok "what is refused leaves no file" test ! -e x.jsonl
gate --history x.jsonl --anchor v1 --commit c --vs true -- true
is "$? $(cat err)" "0 countersink: x.jsonl: no line was appended, since no runs were made" "the same program twice: no line is appended, and a message reports it"

# ---- what cannot be written leaves the verdict
few --history /dev/full --anchor v1 --commit c --verdict verdict
is "$? $(grep -vc 'so few runs' err) $(head -n 1 verdict)" "1 1 inconclusive" "a full device: one line, status 1, the same verdict" ||
	diag "$(cat err)"
like "$(cat err)" '^countersink: /dev/full: No space left on device; no line was appended; the verdict: ' "a full device is reported, with the verdict"
# A file of holes that has room for 300 bytes below the limit.
truncate -s $(((1 << 30) - 300)) short.jsonl
(
	ulimit -f $((1 << 20))
	few --history short.jsonl --anchor v1 --commit c
	echo $? >status
)
is "$(cat status) $(stat -c %s short.jsonl)" "1 $(((1 << 30) - 300))" "a line of which only a part has room is taken back"
like "$(cat err)" '^countersink: short.jsonl: .*; no line was appended; the verdict: ' "a line that has no room is reported"
rm short.jsonl
cp new.jsonl locked.jsonl
chmod 444 locked.jsonl
cat >locked.sh <<END
cd "$TMP" && "$COUNTERSINK" gate -q --history locked.jsonl --anchor v1 --commit c --vs true -- sleep 0 >/dev/null 2>locked.err
END
touch locked.err && chmod 666 locked.err
unprivileged sh locked.sh
is "$? $(cat locked.err)" "1 countersink: locked.jsonl cannot be written: Permission denied" "a read-only history is refused before the runs"
ok "a read-only history stays as it was" cmp new.jsonl locked.jsonl
printf '{"v":1,"com' >torn.jsonl
few --history torn.jsonl --anchor v1 --commit c
is "$(wc -l <torn.jsonl)" 2 "after a line without an end, a new one begins"
history torn.jsonl
is $? 0 "the line after a torn one is read"
like "$(cat out)" '^1 damaged line was skipped: line 1$' "a torn line is counted and named"

cat >alike.py <<'PY'
first = lambda n: 0 if n == 0 else first(n - 1) + 1
second = lambda n: 0 if n == 0 else second(n - 1) + 2
for _ in range(500):
    first(800)
    second(800)
PY
gate -q --runs 2 --warmup 0 --history alike.jsonl --anchor v1 --commit abc --vs 'python3 alike.py' -- python3 alike.py other
is "$(grep -o '"<lambda> at alike.py":\[' alike.jsonl | wc -l)" 1 "functions of one name in a file have one member" || diag "$(cat alike.jsonl)"

# ---- two jobs at once: no line is lost or mixed
for job in 1 2 3 4; do
	(for _ in 1 2 3; do few --history both.jsonl --anchor v1 --commit "job$job" 2>/dev/null; done) &
done
wait
is "$(python3 -c 'import json; print(sorted({json.loads(l)["commit"] for l in open("both.jsonl")}), sum(1 for l in open("both.jsonl")))')" \
	"['job1', 'job2', 'job3', 'job4'] 12" "four jobs that append at once: every line is whole"

# ---- the table, and change points
# made NAME LINES STEP AT: a history in which crc32_of is slower by a factor from one line on.
made() {
	python3 - "$@" <<'PY' >"$1.jsonl"
import json, random, sys
lines, step, at = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
random.seed(7)
parent = None
def figure(level, deviation, *more):
    ratio = level * (1 + random.gauss(0, deviation))
    return [ratio, ratio * (1 - 2 * deviation), ratio * (1 + 2 * deviation), *more]
for i in range(lines):
    commit, level = "%040x" % random.getrandbits(160), step if i >= at else 1
    print(json.dumps({"v": 1, "commit": commit, "parent": parent, "committed": "2026-%02d-%02dT10:00:00Z" % (1 + i // 28, 1 + i % 28),
        "time": "2026-11-01T00:00:00Z", "anchor": "v1", "machine": {"cpu": "x", "cpus": 2, "kernel": "6"}, "cases": {"./bench 'a b'": {
        "figures": {"cpu": figure(1 + (level - 1) / 8, 0.005, 1e8, "nanoseconds"), "wall": figure(level, 0.005, 1e8, "nanoseconds")},
        "functions": {"crc32_of in bench": figure(level, 0.01, 0.25), "evil\x1b[31m <b>": figure(1, 0.01, 0.1)}, "pairs": 20, "command": ["./bench", "a b"]}}}))
    parent = commit
PY
}
# id FILE LINE: the commit of a line.
id() {
	sed -n "$2s/.*\"commit\": \"\([0-9a-f]*\)\".*/\1/p" "$1"
}
made same 60 1 0
history same.jsonl
is "$? $(wc -c <err)" "0 0" "a history without a change: status 0"
like "$(cat out)" '^no change points$' "a history without a change has no change points"
like "$(cat out)" '^60 lines from 2026-01-01 to 2026-03-04$' "the table begins with the lines and their days"
like "$(cat out)" "^\./bench 'a b': $(id same.jsonl 60 | cut -c1-12) against v1$" "a case has its latest commit and the anchor"
like "$(cat out)" '^  cpu +[+-][0-9.]+ %  [+-][0-9.]+ % to [+-][0-9.]+ % +[+-][0-9.]+ % +60 +0$' "a figure has its latest ratio, interval, trend, lines, changes"
unlike "$(cat out)" '^  wall' "wall time is left out"
ok "foreign text is escaped" grep -qF 'evil\x1b[31m <b>' out
history --all same.jsonl
like "$(cat out)" '^  wall +' "--all shows every figure"

made slower 60 1.10 40
history slower.jsonl
is $? 0 "a change that was found before the last line: status 0"
like "$(cat out)" '^1 change point\. A change point is a question' "the change is one change point"
line=$(sed -n 's/^1\. \([0-9a-f]*\) .*/\1/p' out)
index=$(grep -n "\"commit\": \"$line" slower.jsonl | cut -d: -f1)
ok "the change is placed within one line of the true one (41): $index" test "$index" -ge 40 -a "$index" -le 42
like "$(cat out)" "^1\. $line \(2026-02-1[0-9]\), found [0-9] lines? later: \./bench 'a b': crc32_of in bench \+(9|10|11)\.[0-9] %, cpu \+" \
	"a change point has its commit and what changed, the clearest first"
old=$(id slower.jsonl $((index - 2))) new=$(id slower.jsonl $((index + 1)))
ok "the command that confirms it is printed" grep -qxF "   confirm it: git checkout --detach $new && perf-gate.sh $old -- ./bench 'a b'" out
ok "the command that finds the commit is printed" grep -qxF "   if it is confirmed, find the commit: git bisect start $new $old && git bisect run perf-bisect.sh $old -- ./bench 'a b'" out

# hostile COMMAND [COMMIT]: what is printed of a history whose lines have another command, as JSON, and other commits.
hostile() {
	python3 - "$@" <<'PY' >hostile.jsonl
import json, sys
for line in map(json.loads, open("slower.jsonl")):
    line["parent"] = None
    line["commit"] = sys.argv[2] if len(sys.argv) > 2 else line["commit"]
    for case in line["cases"].values():
        case["command"] = json.loads(sys.argv[1])
    print(json.dumps(line))
PY
	history hostile.jsonl --html hostile.html
}
# pasted: what a shell makes of the printed command: the arguments of perf-gate.sh, one a line, behind the old commit.
mkdir bin
printf '#!/bin/sh\n' >bin/git
printf '#!/bin/sh\nshift\nprintf "%%s\\n" "$@"\n' >bin/perf-gate.sh
chmod +x bin/git bin/perf-gate.sh
pasted() {
	PATH=$TMP/bin:$PATH sh -c "$(sed -n 's/^   confirm it: //p' out)" 2>&1 | tr '\n' '|'
}
hostile '["./bench", "; touch harm", "$(touch harm)", "`touch harm`", "'"'"'; touch harm; '"'"'", "", "~", "*", "a=b&|<>#!"]'
is "$(pasted)" "--|./bench|; touch harm|\$(touch harm)|\`touch harm\`|'; touch harm; '||~|*|a=b&|<>#!|" "each word of a recorded command is one word of a shell"
hostile '["x"]' "';touch harm;'"
is "$(pasted)" "--|x|" "a commit is one word of a shell"
hostile '["x"]' "$(printf 'y%.0s' $(seq 1 9000))';touch harm;'"
is "$(grep -c 'confirm' out)" 0 "where a commit's name leaves no room for the command, none is printed"
ok "no shell runs what a history has in its words" test ! -e harm
hostile '["x"]' --detach
is "$(grep -c 'confirm' out) $(grep -c '"confirm":null,"bisect":null' hostile.html)" "0 1" "an option is no commit: no command is printed"
for command in '["x\u001b[2Jy"]' '["x\u202ey"]' '["a\nb"]' '["x\u007f"]' '"./bench; touch harm"' '["./bench", 1]' '[]' 'null' "[\"$(printf 'y%.0s' $(seq 1 5000))\"]"; do
	hostile "$command"
	is "$(pasted)$(LC_ALL=C grep -c "$(printf '[\001-\010\013-\037\177]')" out hostile.html | tr '\n' ' ')" "--|COMMAND|out:0 hostile.html:0 " \
		"COMMAND stands for a command without visible words: $(printf %.30s "$command")"
done
history slower.jsonl

# statuses FILE OPTION...: prints the statuses of the lines 38 to 50, each as the last one.
statuses() {
	for n in $(seq 38 50); do
		head -n "$n" "$1" >until.jsonl
		history "${@:2}" until.jsonl
		printf %d $?
	done
}
like "$(statuses slower.jsonl)" '^0{4,10}30*$' "status 3 comes once, with the line that shows the change first"
made faster 60 0.9 40
is "$(statuses faster.jsonl)" 0000000000000 "what got faster is no alarm"
history faster.jsonl
like "$(cat out)" 'crc32_of in bench -(9|10)\.[0-9] %' "what got faster is a change point"
sort -R --random-source=/dev/zero slower.jsonl >shuffled.jsonl
history slower.jsonl
mv out sorted.out
history shuffled.jsonl
ok "lines may be in any order" cmp sorted.out out
sed '41,$s/"anchor": "v1"/"anchor": "v2"/' slower.jsonl >anchors.jsonl
history anchors.jsonl
like "$(cat out)" '^no change points$' "where the anchor changes, a history begins anew"

# ---- a figure of which more is better: what is a regression of others is none, and the other way round
for name in slower faster; do
	python3 - <<PY >rate.jsonl
import json
for line in map(json.loads, open("$name.jsonl")):
    for case in line["cases"].values():
        case["figures"], case["functions"] = {"rate": case["figures"]["wall"][:4] + ["requests/s", "more"]}, {}
    print(json.dumps(line))
PY
	case $name in
	slower) is "$(statuses rate.jsonl --all)" 0000000000000 "a higher rate: status 0" ;;
	faster) like "$(statuses rate.jsonl --all)" '^0{2,10}30*$' "a lower rate: status 3 once" ;;
	esac
done
history --all -f perfherder rate.jsonl
like "$(tr -d '\n ' <out)" '"name":"rate","value":[0-9.]+,"unit":"ratio","lowerIsBetter":false' "Perfherder is given what is better"
history --all -f github rate.jsonl
unlike "$(cat out)" rate "a format for which less is better leaves it out"

# ---- exports
for format in bmf github perfherder csv; do
	history --export=$format slower.jsonl
	is "$? $(wc -c <err)" "0 0" "--export=$format: status 0"
	mv out "out.$format"
done
history -f csv -o file.csv slower.jsonl
ok "--output has what --export writes" cmp file.csv out.csv
is "$(cat out err)" "" "with --output nothing is printed"
python3 - <<'PY' >export.out 2>&1
import csv, json
last = [json.loads(line) for line in open("slower.jsonl")][-1]
name, case = list(last["cases"].items())[0]
shown = {"cpu": case["figures"]["cpu"], **case["functions"]}
near = lambda a, b: abs(a - b) < 1e-5
bmf = json.load(open("out.bmf"))
assert set(bmf) == {name} and set(bmf[name]) == set(shown), bmf
for key, (ratio, low, high, *_) in shown.items():
    one = bmf[name][key]
    assert set(one) == {"value", "lower_value", "upper_value"} and near(one["value"], ratio) and near(one["lower_value"], low) and near(one["upper_value"], high), one
github = json.load(open("out.github"))
assert [one["name"] for one in github] == [name + ": " + key for key in shown], github
assert all(near(one["value"], shown[one["name"][len(name) + 2:]][0]) and one["unit"] == "x" for one in github), github
perfherder = json.load(open("out.perfherder"))
(suite,) = perfherder["suites"]
assert perfherder["framework"]["name"] == "countersink" and suite["name"] == name and suite["lowerIsBetter"] is True, perfherder
assert [(one["name"], near(one["value"], shown[one["name"]][0])) for one in suite["subtests"]] == [(key, True) for key in shown], suite
rows = list(csv.DictReader(open("out.csv")))
assert len(rows) == 60 * 3 and sorted({row["name"] for row in rows if row["change"] == "1"}) == ["cpu", "crc32_of in bench"], rows
cpu = [row for row in rows if row["name"] == "cpu"]
assert cpu[-1]["commit"] == last["commit"] and cpu[-1]["unit"] == "nanoseconds" and near(float(cpu[-1]["ratio"]), shown["cpu"][0]), cpu[-1]
PY
is $? 0 "exports have the latest ratios, CSV all of them and the change points" || diag "$(cat export.out)"
history -f csv --all slower.jsonl
is "$(grep -c ',wall,' out)" 60 "--all: exports have every figure"
history -f xml slower.jsonl
is $? 2 "an unknown format: status 2"
history -o x slower.jsonl
is "$? $(cat err)" "2 countersink: option --output: it is for --export, which is not given" "--output without --export is refused"

# ---- the page; tests/browser/history_page.t looks at it
history --html page.html slower.jsonl
is $? 0 "--html: status 0"
ok "the table is printed beside the page" cmp sorted.out out
ok "the page has no foreign text as markup" sh -c '! grep -q "<b>" page.html && grep -qF "evil\\\\x1b" page.html'
like "$(cat page.html)" '<title>slower.jsonl</title>' "the page's title is the file"

# ---- damage
{
	head -n 30 slower.jsonl
	echo '{"v":1,"commit":"x"}'
	echo 'garbage'
	head -c 200 slower.jsonl && echo
	echo
	printf '{"v":1,"commit":"%s","anchor":"v1","cases":{"c":{"figures":{"cpu":[1e999]}}}}\n' z
	printf '[%.0s' $(seq 1 100) && echo
	head -c 3000 /dev/urandom | tr '\n' x && echo
	echo '{"v":2,"commit":"y","news":[]}'
	tail -n 30 slower.jsonl
} >damaged.jsonl
history damaged.jsonl
is "$? $(wc -c <err)" "0 0" "a file with damaged lines is read"
like "$(cat out)" '^6 damaged lines were skipped: line 31, 32, 33, 35, 36, 37$' "damaged lines are counted and named"
like "$(cat out)" '^1 line was skipped: written by a later version of countersink$' "lines of a later version are counted"
like "$(cat out)" '^60 lines from' "all other lines are read"
like "$(cat out)" '^1\. '"$line" "damaged lines change no result"
for i in 1 2 3; do
	printf '{"v":1,"commit":"%s","anchor":"a","cases":{"c":{"figures":{"cpu":[1,1,1,1]},"functions":{"f":[1.25,1,2,0.5],"f":[3,1,4,0.1]}}}}\n' $i
done >twice.jsonl
history -f csv twice.jsonl
is "$(grep -c ',f,1.25,' out):$(grep -c ',f,3,' out)" "3:0" "of a name that a line has twice, the first one is read"
name=$(printf 'x%.0s' $(seq 1 4096))
printf '{"v":1,"commit":"%s","anchor":"a","cases":{"%s":{"figures":{"cpu":[1.5,1,2,3,"%s"]},"functions":{"%s":[1,1,1,1]}}}}\n' \
	"$name" "$name" "$name" "$name" >long.jsonl
history long.jsonl
is $? 0 "names of 4 KB are read"
printf 'garbage\n' >none.jsonl
history none.jsonl
is "$? $(cat err)" "1 countersink: none.jsonl: none of its lines is of a history (1 damaged, 0 of a later version): it is written by countersink gate --history" \
	"a file without a line of a history: status 1, one line"
: >empty.jsonl
history empty.jsonl
is "$? $(cat err)" "1 countersink: empty.jsonl: it has no lines: it is written by countersink gate --history" "an empty file: status 1, one line"
history no.jsonl
is "$? $(cat err)" "1 countersink: no.jsonl: No such file or directory" "no file: status 1, one line"
history
is $? 2 "no operand: status 2"
history - <slower.jsonl
ok "standard input is read" cmp sorted.out out
done_testing
