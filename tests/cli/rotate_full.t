#!/bin/bash
# Slices of a program that fills its recording: a warning comes before, and nothing is lost of the CPU time.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slices.sh
. "$SRC/tests/cli/slices.sh"

cat >functions.py <<'E2'
import glob, os, time
def work():
    sum(i * i for i in range(100))
def work_until_next_slice():
    before, end = len(glob.glob("s.*.pb.gz")), time.time() + 60
    while len(glob.glob("s.*.pb.gz")) == before:
        assert time.time() < end, "no slice was written"
        work()
work_until_next_slice()
def number(i):
    names = {}
    exec(compile(f"def function_{i}(n):\n    while n: n -= 1\n", "long" * 100, "exec"), names)
    names[f"function_{i}"](9000)
for i in range(6000):
    number(i)
    if i % 400 == 399:
        work_until_next_slice()  # however fast the machine is, one slice begins between half full and full
times = os.times()
print(times.user + times.system)
work_until_next_slice()
work_until_next_slice()
E2
countersink -q -F 3989 --max-memory=1 --rotate=0.3s --keep=0 -o s.%p.pb.gz -- python3 functions.py >said 2>err
is "$?" 0 "a program of 6000 functions, with a recording of 1 MiB: its status"
for f in s.*.pb.gz; do
	facts "$f" warning
done >warnings
is "$(sed -n 1p warnings)" "" "the first slice has no warning"
like "$(cat warnings)" "^the recording of a python3[.0-9]* process is more than half full: once it is full, new stacks have no functions" \
	"a slice warns when it is half full"
like "$(cat warnings)" "^the recording of a python3[.0-9]* process is full: new stacks have no functions" "and when it is full"
for f in s.*.pb.gz; do
	facts "$f" loss
done >losses
like "$(cat losses)" "[0-9]+ samples with no room left" "samples that it has no room for are counted"
countersink merge -q -o all.pb.gz s.*.pb.gz
is "$(countersink report -j -n 1 all.pb.gz | python3 -c '
import json, sys
seconds = sum(t["sum"] for t in json.load(sys.stdin)["types"] if t["name"] == "task-clock") / 1e9
own = float(open("said").read())
print("same" if 0.97 * own < seconds else (seconds, own))')" same "all slices have the CPU time of the program"

countersink -q --rotate=0.3s --keep=0 -o t.%t.pb.gz -- "$TARGETS/burn" 300 >/dev/null 2>&1
is "$(for f in t.*.pb.gz; do facts "$f" warning; done | grep -c recording)" 0 "a recording that has room: no warning"

done_testing
