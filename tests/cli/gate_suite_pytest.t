#!/bin/bash
# gate --suite of pytest-benchmark, with itself: one process for several cases, and a process for each.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY PYTHONPATH
for PYTHON in python3 /usr/bin/python3; do
	"$PYTHON" -c 'import pytest_benchmark' 2>/dev/null && break
	PYTHON=
done
test -n "$PYTHON" || skip_all "pytest-benchmark is not installed here"
mkdir own old new
export TMPDIR=$TMP/own XDG_RUNTIME_DIR=$TMP/own PYTHONDONTWRITEBYTECODE=1

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	(cd new && "$COUNTERSINK" gate "$@" >"$TMP/out.tap" 2>"$TMP/err")
}

cat >old/work.py <<'PY'
ROUNDS = 100


def hash_of(n):
    h = 1
    for i in range(n):
        h = (h * 31 + i) % 65521
    return h


def sum_of(n):
    h = 0
    for i in range(n):
        h += i * i % 7
    return h


def both(n):
    return hash_of(n) + sum_of(2 * n)
PY
cat >old/test_first.py <<'PY'
import os
import threading

import pytest

import work

CHOSEN = 'COUNTERSINK_CASES' in os.environ


def MOVED():
    work.sum_of(50000)



def test_hash(benchmark):
    benchmark(lambda: work.hash_of(work.ROUNDS))


@pytest.mark.parametrize('text', ['a b', 'c/d, "e"'])
def test_sum(benchmark, text):
    assert benchmark(work.sum_of, 100) > len(text)


class TestOwn:
    def test_pedantic(self, benchmark):
        benchmark.pedantic(work.sum_of, args=(100,), rounds=1500, iterations=2)


def test_short(benchmark):
    benchmark.pedantic(work.sum_of, args=(1,), rounds=1, iterations=1)


def test_skips(benchmark):
    if CHOSEN:
        pytest.skip('not here')
    benchmark(work.sum_of, 100)


LEFT = []


def test_leaves(benchmark):
    LEFT.append(benchmark(work.sum_of, 100))


def test_needs(benchmark):
    benchmark(work.sum_of, 100)
    assert LEFT, 'nothing was left'


def test_fails(benchmark):
    benchmark(work.sum_of, 100)
    assert not CHOSEN, 'it broke'


def test_crashes(benchmark):
    benchmark(lambda: CHOSEN and os.abort())


def test_late(benchmark):
    benchmark(lambda: 'LD_PRELOAD' in os.environ and os.abort())


def test_exits(benchmark):
    benchmark(work.sum_of, 100)
    if CHOSEN:
        os._exit(3)


def test_thread(benchmark):
    def run():
        thread = threading.Thread(target=work.sum_of, args=(50000,))
        thread.start()
        thread.join()
    benchmark(run)


def test_moved(benchmark):
    benchmark(MOVED)


def test_no_benchmark():
    pass
PY
mkdir old/more
cat >old/more/test_second.py <<'PY'
import work


def test_both(benchmark):
    benchmark(lambda: work.both(work.ROUNDS))
PY
touch old/conftest.py # Makes pytest find work.py.
cp -r old/. new
cat >>new/test_first.py <<'PY'


def MOVED():
    thread = threading.Thread(target=work.sum_of, args=(50000,))
    thread.start()
    thread.join()
PY
sed -i '/def hash_of/,/return/s,range(n),range(2 * n),' new/work.py

# ---- one process for all cases
gate --suite --seed 3 --threshold 15% --min-share 10% --screen 0 --confirm 20 --run-time 20ms --max-time 300 --cases 'hash|sum|pedantic|both' --json "$TMP/out.json" --html "$TMP/out.html" \
	--vs-dir ../old -- "$PYTHON" -m pytest
is $? 3 "a slower function: status 3" || diag "$(cat out.tap err)"
like "$(sed -n 2p out.tap)" '^# 2 of 5 cases slower: .*hash_of \+[0-9.]+ %' "the first line names the slower cases and the function" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^# note: one process runs 5 cases \(to start it takes [0-9]+ ms of CPU time\): what is judged of a case is the CPU time of the samples below its function; --process=case has a process for each$' \
	"the output reports that one process runs several cases, and why"
"$PYTHON" - out.json >summary <<'PY'
import json, sys

for case in json.load(open(sys.argv[1]))["cases"]:
    functions = {row["function"]: row["verdict"] for row in case["rows"] if "function" in row}
    print(case["case"], case["process"], "regressed" if case["verdict"] == "regressed" else "no",
          *sorted(f"{name}:{functions[name] == 'regressed'}" for name in {"hash_of", "sum_of"} & functions.keys()))
PY
like "$(cat summary)" '^more/test_second\.py::test_both suite regressed hash_of:True sum_of:False$' \
	"a case of another directory: of the two functions that it calls, the one that is slower is named" || diag "$(cat out.tap err)"
like "$(cat summary)" '^test_first\.py::test_hash suite regressed hash_of:(True|False)$' "a slower case has its own function, and not another case's"
like "$(cat summary)" '^test_first\.py::test_sum\[a b\] suite no sum_of:False$' "a case with a parameter is unchanged, and has its function"
like "$(cat summary)" '^test_first\.py::test_sum\[c/d, "e"\] suite no sum_of:False$' "so is one with slashes, blanks and quotes in its parameter"
like "$(cat summary)" '^test_first\.py::TestOwn::test_pedantic suite no sum_of:False$' "a case with numbers of its own is judged by them"
like "$(cat out.html)" 'countersink_case_[0-9]' "the page has the functions of the process"
is "$(cd new && find . -name '*cache*' -o -name '.bench*' | sort)" "" "nothing is left where the benchmarks are"

# ---- cases that fail, and one whose work is elsewhere
gate --suite --process=suite --min-share 90% --threshold 90% --alpha 90% --screen 0 --confirm 2 --run-time 20ms --max-time 200 --cases 'fails|crashes|exits|late|thread|a b' --json "$TMP/out.json" --vs-dir ../old -- "$PYTHON" -m pytest
is $? 1 "cases in error: status 1" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_fails: error: the old side: the benchmark fails: AssertionError: it broke' "a case that fails is an error of its own"
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_crashes: error: the old side: signal 6 \(Aborted\)' "so is one that ends the process"
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_late: error: the old side: run 1 of .* failed: signal 6 \(Aborted\)' "and one that ends it in a run with a profile"
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_exits: error: the old side: status 3' "so is one that ends the process when its iterations are made"
like "$(cat out.tap)" '^# note: 1 case works elsewhere than below the function .*: it has a process of its own$' "a case that works in a thread is named in a note"
is "$("$PYTHON" -c 'import json
for case in json.load(open("out.json"))["cases"]:
	print(case["case"], case["process"], case["confirmed_pairs"] > 0) if case["verdict"] != "error" else None')" \
	"$(printf '%s\n' 'test_first.py::test_sum[a b] suite True' 'test_first.py::test_thread case True')" \
	"it has a process of its own, and the case that is left is judged"
is "$(ls own)" "" "no directory is left"
mkdir last
cp -r old/. last
cat >last/conftest.py <<'PY'
import os


def pytest_sessionfinish(session):
    if 'COUNTERSINK_CASES' in os.environ:
        session.exitstatus = 9
PY
gate --suite --process=suite --screen 0 --confirm 2 --max-time 200 --cases 'test_hash|a b' --vs-dir ../last -- "$PYTHON" -m pytest
is "$?:$(grep -c '^not ok [0-9] - .*: error: status 9$' out.tap)" "1:2" "a process that fails when all cases have ended is an error of each" || diag "$(cat out.tap err)"

# ---- cases that are skipped, too short for a process of all, or not independent
gate --suite --process=suite --seed 1 --min-share 90% --threshold 90% --alpha 90% --screen 0 --confirm 3 --run-time 5ms --max-time 200 --cases 'short|skips|leaves|needs' --json "$TMP/out.json" --vs-dir ../old -- "$PYTHON" -m pytest
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_skips: error: the old side: the benchmark is skipped: not here$' "a case that is skipped is an error, with its reason" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_needs: error: the (old|new) side: the benchmark fails: AssertionError: nothing was left' "a case that needs another one to run before is an error"
like "$(cat out.tap)" '^# note: 2 cases failed in a process with others: a case must not depend on those that ran before it \(--process=case has a process for each\)$' "a note says what that may come of"
like "$(cat out.tap)" '^# note: 1 case takes too little time for a process of all cases \(fewer than 10 samples\): it has a process of its own$' "a case of few samples leaves the process of all"
is "$("$PYTHON" -c 'import json
for case in json.load(open("out.json"))["cases"]:
	print(case["case"], case["process"], case["confirmed_pairs"] > 0) if case["verdict"] != "error" else None' | sort)" \
	"$(printf '%s\n' 'test_first.py::test_leaves suite True' 'test_first.py::test_short case True')" "it is judged there"

# ---- a Python that does not find the plugin
gate --suite --self-check -- "$PYTHON" -I -m pytest
like "$?:$(cat err)" '^1:countersink: the old side: the benchmarks cannot be listed: its Python ignores PYTHONPATH \(its options -I and -E have it so\)' \
	"python -I: status 1 and the reason"

mkdir a:b
XDG_RUNTIME_DIR=$TMP/a:b TMPDIR=$TMP/a:b gate --suite --self-check -- "$PYTHON" -m pytest
like "$?:$(cat err)" '^1:countersink: .*/a:b/[^ ]*: PYTHONPATH can have no directory with a colon: set TMPDIR to another one$' "a directory with a colon: status 1 and the reason"
is "$(ls a:b)" "" "it is empty again"

# ---- what the other side has moved to a thread
gate --suite --process=suite --min-share 90% --threshold 90% --alpha 90% --screen 0 --confirm 2 --run-time 5ms --max-time 200 --cases 'moved|a b' --json "$TMP/out.json" --vs-dir ../old -- "$PYTHON" -m pytest
is "$("$PYTHON" -c 'import json
for case in json.load(open("out.json"))["cases"]:
	print(case["case"], case["process"], case["iterations"] > 1)' | sort)" \
	"$(printf '%s\n' 'test_first.py::test_moved case True' 'test_first.py::test_sum[a b] suite True')" \
	"a case that works in a thread on the new side alone has a process of its own" || diag "$(cat out.tap err)"

# ---- a process for each case
gate --suite --process=case --min-share 90% --threshold 90% --alpha 90% --screen 0 --confirm 2 --run-time 20ms --max-time 200 --cases 'test_hash|pedantic|fails' --json "$TMP/out.json" --vs-dir ../old -- "$PYTHON" -m pytest
unlike "$(cat out.tap)" '^# note: one process' "--process=case: there is no process for several cases"
like "$(cat out.tap)" '^not ok [0-9] - test_first\.py::test_fails: error: the old side: status 1' "--process=case: a case that fails is an error"
is "$("$PYTHON" -c 'import json; print(sorted({(case["process"], any(row.get("metric") == "wall" for row in case["rows"]), case["iterations"] > 1)
	for case in json.load(open("out.json"))["cases"] if case["verdict"] != "error"}))')" "[('case', True, False), ('case', True, True)]" \
	"--process=case: figures are of a whole process, and a case with numbers of its own keeps them"
gate --suite=lines --list 'echo a' --process=suite --self-check -- true
like "$?:$(cat err)" '^1:countersink: option --process: this harness takes a process for each case \(--suite=lines\)$' \
	"--process=suite of a harness that cannot: status 1 and the reason"
gate --process=suite --self-check -- true
is $? 2 "--process without --suite: status 2"

done_testing
