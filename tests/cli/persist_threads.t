#!/bin/sh
# countersink persist detach -p PID: all threads of a process under one id, those started later included, and their
# samples.
. "$(dirname "$0")/lib.sh"

if ! countersink stat -x -e page-faults:u true 2>&1 | grep -q ',counted,'; then
	skip_all "perf_event_open is refused here"
fi
export COUNTERSINK_PERSIST_DIR=$TMP/base
mkdir base
mkfifo to from

# target NR: threads of the target, its process in $target.
target() {
	"$TARGETS/fault_threads" "$1" 1000 <to >from &
	target=$!
	exec 8>to 9<from
	read -r _ <&9
}
tell() {
	echo "$1" >&8
	read -r _ <&9
}
untarget() {
	exec 8>&- 9<&-
	wait "$target"
}
value() {
	countersink persist read "$1" | awk '{ print $2 }'
}
# is_about GOT WANT NAME: and at most 20 more for each 1,000, and 60: libc, and starting threads.
is_about() {
	if [ "$1" -ge "$2" ] && [ "$1" -le $(($2 + $2 / 50 + 60)) ]; then
		ok "$3" true
	else
		is "$1" "$2 and a little" "$3"
	fi
}

target 5
id=$(countersink persist detach -e page-faults:u -p "$target" 2>err)
is "$?" 0 "an event of a process with six threads"
is "$(cat err)" "" "detach prints nothing on stderr"
is "$(countersink persist list | wc -l | tr -d ' ')" 1 "list shows one id for all threads"
like "$(cat "base/countersink-persist/events/$id")" '^events 6$' "the event's file has six events"
tell old
is_about "$(value "$id")" 5000 "5 threads x 1,000 faults are counted"
like "$(countersink persist read "$id")" 'enabled ([0-9.]+) s  running \1 s$' "the threads are counted all of the time"
tell new
is_about "$(value "$id")" 6000 "a thread that starts later is counted"
tell nested
is_about "$(value "$id")" 7000 "a thread started by a later thread is counted"
tell end
tell end
tell old
is_about "$(value "$id")" 10000 "two threads end; the others are counted"
tell child
is_about "$(value "$id")" 10000 "children are not counted"
untarget
is_about "$(value "$id")" 10000 "the count stays after the process has ended"
countersink persist samples "$id" 2>err
is "$?" 1 "an event without rings has no samples"
like "$(cat err)" "^countersink: event $id: it keeps no ring of samples \(detach it with --pages\)\$" "the reason is reported"
countersink persist attach "$id"
is "$?" 0 "attach of an event of all threads"
ok "attach of the event ends the keeper" wait_until 20 test ! -S base/countersink-persist/socket

# One thread of a process: its TID.
target 2
tid=$(ls "/proc/$target/task" | sort -n | tail -1)
id=$(countersink persist detach -e page-faults:u -p "$tid")
tell old
is_about "$(value "$id")" 1000 "a TID is that thread alone"
countersink persist attach "$id"

# Samples of all threads, one for each fault.
id=$(countersink persist detach -e page-faults:u:period=1 -p "$target" -m 64)
is "$?" 0 "detach of an event with rings"
tell old
tell new
countersink persist samples "$id" >out 2>err
is "$?" 0 "samples are printed"
is_about "$(wc -l <out)" 3000 "each of 3,000 faults has a sample"
is "$(grep -vcE "^ *$target/[0-9]+ +\[[0-9]{3}\] +[0-9]+\.[0-9]{9}: +1 page-faults:u: +[0-9a-f]+\$" out)" 0 \
	"samples have perf script's fields: process and thread, CPU, time, period, event, address"
is "$(awk '{ sub(":", "", $3); print $3 }' out | sort -c -g 2>&1)" "" "samples are in order of time"
is "$(awk '{ split($1, at, "/"); n[at[2]]++ } END { for (t in n) if (n[t] >= 1000) m++; print m }' out)" 3 "samples come from three threads"
is "$(cat err)" "" "no sample is lost"
if have python3; then
	countersink persist samples --json "$id" >json
	ok "samples --json prints valid JSON" python3 -c 'import json
o, = json.load(open("json"))
assert o["overwritten"] == 0 and o["lost"] == 0 and o["rings"] >= 1
assert 3000 <= len(o["samples"]) <= 3200 and all(s["period"] == 1 and s["ip"].startswith("0x") for s in o["samples"])'
else
	skip "samples --json prints valid JSON" "there is no python3 to read it"
fi
countersink persist attach "$id"
id=$(countersink persist detach -e page-faults:u:period=10 -p "$target" -m 4)
tell old
tell new
countersink persist samples "$id" >out
is_about "$(wc -l <out)" 290 "one of ten faults has a sample" # each CPU's event of a thread has a period of its own
is "$(grep -vcE ': +10 page-faults:u: ' out)" 0 "its weight is ten"
countersink persist attach "$id"
id=$(countersink persist detach -e page-faults:u:period=1 -p "$target" -m 4)
for _ in 1 2 3 4 5; do
	tell old
done
countersink persist samples "$id" >out 2>err
is "$?" 0 "more samples than the rings hold"
nr=$(wc -l <out)
gone=$(sed -n 's/^countersink: event [0-9]*: about \([0-9]*\) older samples are overwritten.*/\1/p' err)
ok "the latest are printed ($nr); about how many are overwritten is reported ($gone)" \
	test $((nr + ${gone:-0})) -ge 9900 -a $((nr + ${gone:-0})) -le 10300
is_about "$(value "$id")" 10000 "the count includes overwritten samples"
countersink persist attach "$id"
untarget

# Events that stat refuses.
countersink persist detach -e task-clock:u -p $$ 2>err
is "$?" 2 "a clock of user space alone is refused"
like "$(cat err)" "^countersink: option --event: 'task-clock:u': the kernel's clocks count all of the CPU time" "a refused clock of user space alone is explained"
countersink persist detach -e context-switches:u -p $$ 2>err
is "$?" 2 "an event of the kernel only is refused with :u"
like "$(cat err)" "^countersink: option --event: 'context-switches:u': " "the refused context-switches:u is named"
# Real programs.
if have python3; then
	cat >threads.py <<'END'
import mmap, sys, threading
def work(nr):
    m = mmap.mmap(-1, nr * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(15)
    for i in range(nr):
        m[i * 4096] = 1
    m.close()
go, end = threading.Barrier(6), threading.Barrier(6)
def old():
    go.wait(); work(1000); end.wait()
for i in range(5):
    threading.Thread(target=old).start()
print("ready", flush=True); sys.stdin.readline()
go.wait(); end.wait()
for i in range(5):
    t = threading.Thread(target=work, args=(1000,)); t.start(); t.join()
print("done", flush=True); sys.stdin.readline()
END
	python3 threads.py <to >from &
	target=$!
	exec 8>to 9<from
	read -r _ <&9
	id=$(countersink persist detach -e page-faults:u -p "$target")
	tell go
	got=$(value "$id")
	ok "python3, five threads and five later ones: 10,000 and its own ($got)" test "$got" -ge 10000 -a "$got" -le 11000
	countersink persist attach "$id"
	untarget
else
	skip "python3" "there is no python3"
fi
if have redis-server && have redis-cli; then
	redis-server --port 0 --unixsocket "$TMP/redis" --save '' --io-threads 4 --io-threads-do-reads yes >redis.log 2>&1 &
	target=$!
	ok "redis starts" wait_until 60 redis-cli -s "$TMP/redis" ping
	id=$(countersink persist detach -e page-faults -p "$target")
	redis-cli -s "$TMP/redis" eval \
		"for i = 1, 20000 do redis.call('set', 'k' .. i, string.rep('x', 4096)) end" 0 >/dev/null
	redis-cli -s "$TMP/redis" shutdown nosave >/dev/null 2>&1
	wait "$target"
	got=$(value "$id")
	ok "redis, 20,000 values of 4 KiB: a page each at least ($got)" test "$got" -ge 20000
	countersink persist attach "$id"
else
	skip "redis" "there is no redis-server"
fi
done_testing
