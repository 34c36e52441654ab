#!/bin/bash
# countersink top, one picture: figures of the last interval and of all, from recordings while they are written, which it
# leaves as they are. The view on a terminal is in top_screen.t.
. "$(dirname "$0")/lib.sh"

children=
trap 'kill -KILL -- $children 2>/dev/null; umount "$TMP/groups" 2>/dev/null; remove_tmp' EXIT
mkdir -m 711 shm
XDG_RUNTIME_DIR=$TMP/shm
export XDG_RUNTIME_DIR

# start COMMAND...: in the background, in a run directory and a process group of its own; sets dir and pid. Its first sample
# is there.
start() {
	before=$(ls shm)
	setsid "$@" >out.target 2>&1 &
	pid=$!
	children="$children -$pid"
	wait_until 30 new_run
	wait_until 30 has_samples 1
}
new_run() {
	for dir in shm/countersink-*; do
		case " $before " in
		*"${dir#shm/}"*) ;;
		*) ls "$dir"/*.rec >/dev/null 2>&1 && return 0 ;;
		esac
	done
	return 1
}
has_samples() { # N in all
	countersink top --once -j -d 0.01 "$dir" >samples.json 2>/dev/null && figure samples.json 'd["samples"]["all"]' | grep -qv '^0$'
}
end() {
	kill -KILL -- "-$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}
figure() { # FILE EXPRESSION of d, and row(kind, name), which is None where there is no such row
	python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
def row(kind, name):
    found = [r for r in d[kind] if r["name"] == name]
    return found[0] if found else None
print(eval(sys.argv[2]))' "$1" "$2"
}
# sampled N TARGET...: now.json has at least N samples in the interval, however little of a CPU the target gets.
sampled() {
	local least=$1
	shift
	for seconds in 1 2 4 8 16 32; do
		countersink top --once -j -d $seconds "$@" >now.json 2>err.json || return
		[ "$(figure now.json 'd["samples"]["last"]')" -lt "$least" ] || return 0
	done
	return 1
}
# All that a reader could change; the file's own writer changes contents and times.
listing() {
	(cd "$1" && find . -printf '%P %i %m %U %n %s\n' | sort)
}
contents() { # also times; recordings are sparse files of 256 MiB that have data at their beginning
	(cd "$1" && find . -printf '%P %i %m %U %n %s %b %T@ %C@\n' | sort && find . -type f | sort | while read -r file; do
		head -c 4194304 "$file" | sha256sum
	done)
}

# ---- known shares

start env LD_PRELOAD="$LIB" COUNTERSINK_FREQUENCY=4000 COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/p.pb.gz" "$TARGETS/burn" 1000000
listing "$dir" >before.list
sampled 1000 "$dir"
for share in 60 30 10; do
	is "$(figure now.json "abs(100.0 * row('functions', 'spin')['last']['self'] / d['sum']['last'] - 100) < 5")" True "spin has the time of all three"
	is "$(figure now.json "abs(100.0 * row('functions', 'burn_$share')['last']['total'] / d['sum']['last'] - $share) < 8")" True \
		"burn_$share has its share of the last interval"
	is "$(figure now.json "abs(100.0 * row('functions', 'burn_$share')['all']['total'] / d['sum']['all'] - $share) < 8")" True \
		"burn_$share has its share of all"
done
is "$(figure now.json 'd["form"], d["state"], d["event"], d["unit"], d["percent_of"], d["pid"]')" \
	"(1, 'running', 'task-clock', 'nanoseconds', 'one CPU', None)" "JSON has the form, state, event, unit and target"
is "$(figure now.json '0 < d["ns"]["last"] < d["ns"]["all"] and 0 < d["samples"]["last"] < d["samples"]["all"] and d["processes"] == 1')" True \
	"JSON has lengths and samples of the interval and of all"
is "$(figure now.json 'all(0 <= r["last"][k] <= r["all"][k] for kind in ("functions", "threads", "phases") for r in d[kind] for k in ("self", "total"))')" True \
	"no figure is negative, and none of the interval is more than that of all"
is "$(figure now.json 'sum(r["last"]["self"] for r in d["functions"]) == d["sum"]["last"] == sum(r["last"]["self"] for r in d["threads"])')" True \
	"functions, threads and the sum agree"
is "$(figure now.json 'abs(row("functions", "burn_60")["last"]["total_percent"] - 100.0 * row("functions", "burn_60")["last"]["total"] / d["ns"]["last"]) < 0.001')" True \
	"percent are of one CPU"
countersink top --once -n 3 -s total "$dir" >table 2>err
is "$? $(cat err)" "0 " "one plain table: status 0"
like "$(sed -n 1p table)" "^countersink top: .*burn 1000000$" "the table names the command"
like "$(sed -n 2p table)" '^last [0-9.]+ s: [0-9.]+ % of one CPU; all [0-9.]+ s: [0-9.]+ %$' "the table has the CPU time"
like "$(sed -n 3p table)" '^1 process, 1 thread, [0-9,]+ samples by task-clock$' "the table has processes, threads and samples"
like "$(sed -n 4p table)" '^  self% total%  self ms    all% total% +all  module +function$' "the table has titles"
is "$(sed -n '5,$p' table | wc -l)" 3 "--limit is observed"
for by in 'name:r["name"]' 'self:-r["last"]["self"]' 'total:-r["last"]["total"]' 'all-self:-r["all"]["self"]' 'all-total:-r["all"]["total"]'; do
	countersink top --once -j -d 0.2 -s "${by%%:*}" "$dir" >sorted.json 2>err
	is "$(figure sorted.json "(lambda keys: len(keys) > 3 and keys == sorted(keys))([${by#*:} for r in d['functions']])")" True "--sort=${by%%:*} sorts by it"
done
unlike "$(cat table)" "$(printf '\033')" "no escape sequence where no terminal is"
countersink top --once --by thread "$dir" >table 2>err
like "$(cat table)" "  burn [0-9]+ +burn [0-9]+$" "--by thread has the thread"
countersink top --once --by phase "$dir" >table 2>err
like "$(cat table)" '  \[no phase\]$' "--by phase has what is in no phase"
listing "$dir" | cmp -s before.list -
is $? 0 "the directory of a run that is being recorded: same files, links, modes, owners and sizes"

# A process that stands still writes nothing: then nothing may change at all.
kill -STOP "$pid"
wait_until 30 grep -q '^State:.T' "/proc/$pid/status"
contents "$dir" >before.all
countersink top --once -j -d 0.2 "$dir" >now.json 2>err
is "$? $(cat err)" "0 " "a stopped process is watched"
is "$(figure now.json 'd["samples"]["last"], d["sum"]["last"], d["state"]')" "(0, 0, 'running')" "it has nothing in the interval"
countersink top --once -j -d 0.2 -p "$pid" >now2.json 2>err
is "$? $(cat err)" "0 " "top -p finds the recording of a process"
is "$(figure now2.json 'd["pid"]')" "$pid" "JSON has the PID"
is "$(figure now2.json 'd["sum"]["all"], d["samples"]["all"]')" "$(figure now.json 'd["sum"]["all"], d["samples"]["all"]')" "both have the same figures"
countersink report "$dir" >report.out 2>&1
contents "$dir" | cmp -s before.all -
is $? 0 "top and report change neither contents nor times of recordings, nor the directory"
chmod 500 "$dir"
ok "no write permission is needed" countersink top --once -d 0.1 "$dir"
chmod 700 "$dir"
contents "$dir" >before.all
if have strace; then
	XDG_CACHE_HOME=$TMP/cache strace -f -o calls -e trace=openat,open,flock,fcntl,unlink,unlinkat,rename,mkdir,chmod,utimensat,ftruncate \
		countersink top --once -d 0.1 "$dir" >/dev/null 2>&1
	is "$(grep -c "$dir.*O_RDONLY.* = [0-9]" calls | sed 's/^[1-9].*/some/') $(grep "$dir" calls | grep -Ec 'O_WRONLY|O_RDWR|O_CREAT|O_TRUNC')" "some 0" \
		"recordings are opened for reading alone"
	is "$(grep -v "$TMP/cache" calls | grep -Ec 'flock|F_SETLK|F_OFD_SETLK|LEASE.* = 0|unlink|rename|mkdir|chmod|utimensat|ftruncate')" 0 \
		"nothing is locked, removed or changed"
else
	skip "recordings are opened for reading alone" "no strace"
	skip "nothing is locked, removed or changed" "no strace"
fi

# Another PID namespace has other numbers for the processes.
if [ "$(id -u)" = 0 ] && have unshare && unshare --pid --fork --mount-proc true 2>/dev/null; then
	unshare --pid --fork --mount-proc "$COUNTERSINK" top --once -j -d 0.1 "$dir" >ns.json 2>err
	is "$? $(cat err)" "0 " "a run is watched from another PID namespace"
	unshare --pid --fork --mount-proc "$COUNTERSINK" report -o ns.pb.gz "$dir" >out 2>err
	like "$(cat err)" "are kept: the run goes on" "report keeps recordings of a run of another PID namespace"
	contents "$dir" | cmp -s before.all -
	is $? 0 "nothing of it has changed"
else
	skip "a run of another PID namespace" "no PID namespaces here"
fi
end

# Recordings of processes that have ended, and of programs before an exec: to ask the kernel which process writes one keeps others
# from opening it.
if have strace; then
	start env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_MAX_MEMORY=4 COUNTERSINK_OUTPUT="$TMP/p.pb.gz" \
		sh -c '"$0" 5; "$0" 5; exec "$0" 1000000' "$TARGETS/burn"
	wait_until 30 ls "$dir/$pid.1.rec"
	strace -f -o calls -e trace=fcntl countersink top --once -d 0.1 "$dir" >/dev/null 2>&1
	is "$(ls "$dir"/*.rec | wc -l) $(grep -c 'F_SETLEASE.* = 0' calls)" "4 0" "no recording of a process that has ended is locked by a lease"
	end
	rm -rf "$dir"
else
	skip "no recording of a process that has ended is locked by a lease" "no strace"
fi

# ---- an interpreter; threads; names that are hostile

cat >evil.py <<'END'
import threading, types
def spin():
    n = 0
    while True:
        for i in range(1000):
            n += i * i
evil = 'evil\x1b[31m\x1b]0;title\x07\r'
names = {'co_name': evil, 'co_qualname': evil} if hasattr(spin.__code__, 'co_qualname') else {'co_name': evil}
named = types.FunctionType(spin.__code__.replace(**names), globals())
threading.Thread(target=named, daemon=True).start()
open('/proc/self/comm', 'w').write('th\x1b[7mread')
spin()
END
if have python3; then
	start countersink -q -o p.pb.gz -- python3 evil.py "$(printf 'argument\033[2J')"
	wait_until 60 eval 'sampled 50 "$dir" && [ "$(figure now.json "row(\"functions\", \"spin\") is not None")" = True ]'
	is "$(figure now.json 'row("functions", "spin")["module"]')" evil.py "a function of Python has its file"
	countersink top --once "$dir" >table 2>&1
	countersink top --once --by thread "$dir" >>table 2>&1
	countersink top --once -j "$dir" >>table 2>&1
	unlike "$(cat table)" "$(printf '[\033\007\r]')" "no escape sequence of a name reaches the output"
	like "$(cat table)" 'evil\\x1b\[31m' "a name with escape sequences is shown with its bytes"
	end
else
	skip "functions of Python" "no python3"
fi

# ---- what is missing

start countersink -q --max-depth=2 -o p.pb.gz -- "$TARGETS/deep" 30 1000000
wait_until 60 sampled 5 "$dir"
like "$(figure now.json 'd["losses"]')" "^\\['[0-9]+ stacks? cut at the depth limit'\\]$" "JSON says what is missing"
countersink top --once -d 0.1 "$dir" >table 2>&1
like "$(cat table)" ' samples by task-clock; [0-9]+ stacks cut at the depth limit' "and so does the head of a picture"
end
start countersink -q -o p.pb.gz -- "$TARGETS/burn" 1000000
countersink top --once -j -d 0.1 "$dir" >now.json 2>&1
is "$(figure now.json 'd["losses"]')" '[]' "nothing is missing: the list is empty"
end

# ---- programs that are not profiled: sampled from outside

have_shares() { # TITLE
	for share in 60 30 10; do
		is "$(figure now.json "abs(100.0 * row('functions', 'burn_$share')['last']['total'] / d['sum']['last'] - $share) < 10")" True "$1: burn_$share has its share"
	done
	is "$(figure now.json 'd["source"], d["state"], d["event"], d["directory"]')" "('attach', 'running', 'task-clock', None)" "$1: JSON has the source"
	is "$(figure now.json 'd["sum"]["last"] <= d["sum"]["all"] and d["ns"]["last"] <= d["ns"]["all"] and d["sum"]["all"] <= 1.02 * d["ns"]["all"]')" True \
		"$1: no more than one CPU's time"
	is "$(figure now.json 'all(0 <= r["last"][k] <= r["all"][k] for kind in ("functions", "threads", "phases") for r in d[kind] for k in ("self", "total"))')" True \
		"$1: no figure is negative, and none of the interval is more than that of all"
}

unprofiled() { # COMMAND...: in the background, in a process group of its own; sets pid
	setsid "$@" >/dev/null 2>&1 &
	pid=$!
	children="$children -$pid"
	wait_until 30 grep -q "^Name:.${1##*/}" "/proc/$pid/status"
}
ticks() { # of CPU time of the process
	cut -d ' ' -f 14 "/proc/$pid/stat"
}
has_used() { # TICKS
	[ "$(ticks)" -ge "$1" ]
}

countersink stat -x -o stat.csv -e task-clock -- true
if grep -q '^task-clock,nanoseconds,counted' stat.csv; then
	ls shm >before.shm
	unprofiled "$TARGETS/burn" 1000000
	sampled 400 -p "$pid"
	have_shares "top -p"
	is "$(figure now.json 'd["pid"], d["command"], d["processes"]')" "($pid, 'burn ($pid)', 1)" "JSON names the process"
	countersink top --once --by thread -p "$pid" >table 2>&1
	like "$(cat table)" "  burn $pid +burn $pid\$" "a thread of a process that is sampled from outside"
	is "$(ls shm)" "$(cat before.shm)" "no directory of ours is left"
	if [ "$(id -u)" = 0 ] && mkdir groups && { mount -t cgroup -o perf_event none groups 2>/dev/null || mount -t cgroup2 none groups 2>/dev/null; }; then
		group=groups/countersink-test-$$
		mkdir $group
		echo "$pid" >$group/cgroup.procs
		sampled 400 --cgroup $group
		have_shares "top --cgroup"
		end
		rmdir $group
		umount groups
	else
		skip "top --cgroup" "no control groups can be made here"
		end
	fi
	unprofiled "$TARGETS/burn" 1000000
	countersink top --once -j -d 1000 -p "$pid" >now.json 2>err &
	top=$!
	wait_until 30 eval 'ls -l /proc/$top/fd | grep -q perf_event'
	wait_until 60 has_used $(($(ticks) + 20))
	end
	wait "$top"
	is "$? $(cat err) $(figure now.json 'd["state"]')" "0  ended" "a process that ends in the interval"
	is "$(figure now.json 'row("functions", "burn_60")["last"]["total"] > 0')" True "it has what it did until then"
	unprofiled sleep 1000
	countersink top --once -d 0.3 -p "$pid" >table 2>err
	is "$? $(tail -n 1 table) $(cat err)" "0 no sample yet " "a process that sleeps has no sample yet"
	"$TARGETS/deny_perf" countersink top --once -p "$pid" >out 2>err
	like "$? $(cat out err)" '^1 countersink: task-clock: EPERM: ' "perf_event_open is refused: the reason is printed"
	is "$(wc -l <err)" 1 "in one line"
	end
else
	skip "processes that are sampled from outside" "perf_event_open is refused here"
fi
mkdir empty
countersink top --once --cgroup "$TMP/empty" >out 2>err
like "$? $(cat out err)" '^1 countersink: .*empty' "what is no control group"

# ---- what cannot be shown

countersink top --once shm/nonexistent >out 2>err
is "$? $(cat out err)" "1 countersink: shm/nonexistent: No such file or directory" "a directory that is not there"
countersink top --once empty >out 2>err
is "$? $(cat out err)" "1 countersink: empty: there is no recording in it: no process of the run has started yet, or it is no run directory" \
	"a directory that is no run directory"
countersink top --once evil.py >out 2>err
is "$? $(cat out err)" '1 countersink: evil.py is no run directory; `countersink report evil.py` prints a profile' "a file"
LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 bash -c '"$0" 20; kill -KILL $$' "$TARGETS/burn" >out 2>&1
dead=
for each in shm/countersink-*; do
	! ls "$each"/*.rec >/dev/null 2>&1 || dead=$each
done
contents "$dead" >before.dead
countersink top --once "$dead" >out 2>err
is "$? $(cat out err)" "1 countersink: $dead: the run has ended; \`countersink report -o FILE $dead\` makes its profile" "a run that has ended"
contents "$dead" | cmp -s before.dead -
is $? 0 "its recordings are kept as they are"
true &
gone=$!
wait $gone
countersink top --once -p $gone >out 2>err
is "$? $(cat out err)" "1 countersink: there is no process $gone" "a process that is gone"
mkdir -m 711 none
# Runs of other tests may be in the places that all share.
others=$(XDG_RUNTIME_DIR=$TMP/none countersink top --once -d 0.01 2>&1)
case $others in
"countersink: no run of this user goes on: "*)
	is "$(XDG_RUNTIME_DIR=$TMP/none countersink top --once >/dev/null 2>&1; echo $?)" 1 "no target, and no run: status 1"
	;;
esac
start env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/p.pb.gz" "$TARGETS/burn" 1000000
one=$pid one_dir=$dir
start env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/p.pb.gz" "$TARGETS/burn" 1000000
countersink top --once >out 2>err
is "$? $(cat out)" "1 " "no target, and several runs: status 1"
like "$(cat err)" '^countersink: [0-9]+ runs go on; choose one by `countersink top DIRECTORY`:$' "that is reported"
for each in "$dir" "$one_dir"; do
	like "$(cat err)" "^countersink:   $TMP/$each  burn, 1 process$" "each is listed"
done
end
pid=$one
end
countersink top --once -p 1 empty >out 2>err
is $? 2 "two targets"
countersink top --once -d 0 empty >out 2>err
is "$? $(cat out err)" "2 countersink: option --interval: '0' is not a time in seconds above 0 (see countersink help top)" "an interval of 0"
if [ "$(id -u)" = 0 ]; then
	start env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/p.pb.gz" "$TARGETS/burn" 1000000
	chmod 1777 shm
	unprivileged "$COUNTERSINK" top --once "$dir" >out 2>err
	is "$? $(cat out err)" "1 countersink: $dir: Permission denied: it belongs to user ID 0; ask as that user or root" "another user's run"
	unprivileged "$COUNTERSINK" top --once -p "$pid" >out 2>err
	like "$? $(cat out err)" "^1 countersink: process $pid cannot be looked at .*: ask as its user, or as root$" "another user's process"
	end
	# Root may look at other users' runs, and changes nothing of them, either.
	start setpriv --reuid=65534 --regid=65534 --clear-groups env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=/dev/null "$TARGETS/burn" 1000000
	is "$(stat -c %u "$dir")" 65534 "a run of another user"
	kill -STOP "$pid"
	wait_until 30 grep -q '^State:.T' "/proc/$pid/status"
	contents "$dir" >before.all
	ok "root watches it" countersink top --once -d 0.1 "$dir"
	ok "root watches its process" countersink top --once -d 0.1 -p "$pid"
	countersink report -o other.pb.gz "$dir" >out 2>err
	like "$(cat err)" "are kept: the run goes on" "root's report keeps it"
	contents "$dir" | cmp -s before.all -
	is $? 0 "nothing of it has changed"
	end
else
	skip "another user's run" "needs root"
fi

done_testing
