#!/bin/bash
# Programs that start threads all the time do not fill their recording: from a quarter on, threads that follow one another
# share rows. Slices have the CPU time that the kernel accounts, and every thread.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slices.sh
. "$SRC/tests/cli/slices.sh"

PYTHON=$(python3 -c 'import sys; print(sys.executable)') # not a script that finds it

# sums FILE...: CPU time of all, and of threads' functions (the program's own) in it.
cat >sums.py <<'E3'
import json, subprocess, sys
d = json.loads(subprocess.check_output(["countersink", "report", "-j", "-a", sys.argv[1]]))
print(sum(t["sum"] for t in d["types"] if t["name"] == "task-clock"),
      sum(r["values"]["task-clock"] for r in d["rows"] if "short_work" in r["name"] or r["name"] == "spin"))
E3
within() { # NAME OURS KERNEL: within 3 %
	is "$(echo "$2 $3" | awk '{ print ($1 > 0.97 * $2 && $1 < 1.03 * $2) ? "same" : $1 " and " $2 }')" same "$1"
}
named() { # FILE: the threads
	countersink report -j -n 1000 --by thread "$1" | python3 -c '
import json, sys
print("\n".join(sorted({r["name"].rpartition(" ")[0] or r["name"] for r in json.load(sys.stdin)["rows"]})))'
}

# ---- many
countersink -q -F 3989 --max-memory=1 --rotate=0.3s --keep=0 -o many.pb.gz -- \
	"$TARGETS/rusage" kernel "$TARGETS/shortthreads" 7000 300 >said 2>err
is "$?" 0 "7000 threads, and a recording that has room for 6000: the status"
countersink merge -q -o all.pb.gz many.*.pb.gz
is "$(facts all.pb.gz processes) $(facts all.pb.gz threads)" "2 7002" "all threads are counted, once"
for f in many.*.pb.gz; do
	facts "$f" warning
	facts "$f" loss
done >lacking
unlike "$(cat lacking)" "full|threads" "none is lost, and no slice finds the recording half full"
like "$(facts all.pb.gz note)" 'threads of a shortthreads process that followed one another are shown as one' "a note says that they share rows"
is "$(facts "$(find . -name 'many.*.pb.gz' | sort | head -n 1)" note | grep -c 'followed one another')" 0 "not from the beginning"
read -r sum inside < <(python3 sums.py all.pb.gz)
within "slices have the kernel's CPU time" "$sum" "$(cat kernel)"
ok "most of it is that of the threads' function ($inside of $sum ns)" test "$((inside * 2))" -gt "$sum"
last=$(find . -name 'many.*.pb.gz' | sort | tail -n 2 | head -n 1)
read -r sum inside < <(python3 sums.py "$last")
ok "also near the end ($inside of $sum ns)" test "$((inside * 2))" -gt "$sum"

# ---- names; and an end by SIGKILL, in a process with forked ones
cat >names.py <<'E3'
import ctypes, glob, os, signal, threading, time
libc = ctypes.CDLL(None)
deadline = time.time() + 60
def work(name):
    libc.prctl(15, name)
    end = time.thread_time() + 0.0005
    while time.thread_time() < end:
        pass
def run(name):
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
def slices():
    return len(glob.glob("names.*.pb.gz"))
def until_slices(n, names):
    while slices() < n and time.time() < deadline:
        for name in names:
            run(name)
for i in range(1700):
    run(b"conn")
pid = os.fork()
if not pid:
    for i in range(1700):
        run(b"child")
    os._exit(0)
os.waitpid(pid, 0)
until_slices(slices() + 2, [b"conn"])
print(sorted(glob.glob("names.*.pb.gz"))[-1], flush=True)
until_slices(slices() + 3, [b"even", b"odd"])
times = os.times()
print(times.user + times.system + times.children_user + times.children_system, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
E3
countersink -q -F 3989 --max-memory=1 --rotate=0.3s --keep=0 -o names.pb.gz -- "$PYTHON" names.py >said 2>err
is "$?" 137 "threads with names: the program ends by SIGKILL"
shared=$(sed -n 1p said)
like "$(named "$shared")" '^conn$' "threads of one name share it"
unlike "$(named "$shared")" 'several' "and no other one"
like "$(for f in names.*.pb.gz; do named "$f"; done | sort -u)" '^child$' "a forked child's threads have their name"
like "$(named "$(find . -name 'names.*.pb.gz' | sort | tail -n 2 | head -n 1)")" '^\[several threads\]$' "of different names, none is given"
countersink merge -q -o all.pb.gz names.*.pb.gz
within "all slices have the CPU time of the killed program" "$(python3 sums.py all.pb.gz | cut -d' ' -f1)" \
	"$(sed -n 2p said | awk '{ printf "%.0f", $1 * 1e9 }')"

done_testing
