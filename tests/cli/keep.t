#!/bin/bash
# COUNTERSINK_ROTATE without a launcher: a process of countersink's own, the keeper, writes a profile of each slice. Whatever
# is killed, all slices together have what the recordings have, once.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slices.sh
. "$SRC/tests/cli/slices.sh"

mkdir -m 711 shm out
XDG_RUNTIME_DIR=$TMP/shm
TMPDIR=$TMP/none
COUNTERSINK_PLACE=$TMP/shm
export XDG_RUNTIME_DIR TMPDIR COUNTERSINK_PLACE
trap 'touch "$TMP/go"; pkill -CONT -f "keep .*$TMP/shm"; remove_tmp' EXIT

PYTHON=$(python3 -c 'import sys; print(sys.executable)') # not a script that finds it

exec=
# with ROTATE COMMAND...: without a launcher; slices are out/x.TIME.NUMBER.pb.gz.
with() {
	rotate=$1
	shift
	$exec env LD_PRELOAD="$LIB" COUNTERSINK_ROTATE="$rotate" COUNTERSINK_KEEP=0 COUNTERSINK_FREQUENCY=997 \
		COUNTERSINK_OUTPUT="$TMP/out/x.pb.gz" "$@"
}
start() { # ROTATE COMMAND...: in the background, until there is a file `go`
	rm -rf go out/* shm/* whole copy
	begin_whole
	exec="exec" with "$@" >said 2>err &
	program=$!
}
keeper() { # its pid, by its lock
	awk '{ print $1 }' shm/countersink-*/slices.lock 2>/dev/null
}
has_keeper() {
	kill -0 "$(keeper)" 2>/dev/null && ! ended "$(keeper)"
}
has_slices() { # N
	[ "$(find out -name '*.pb.gz' | wc -l)" -ge "$1" ]
}
has_worked() { # for 50 ms of CPU time, which samples have
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); exit ($12 + $13) * 20 < hz }' "/proc/$program/stat"
}
empty() {
	test -z "$(ls "$1")"
}
ended() { # PID: also where it waits for a parent that does not ask for its status
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}
# The program's last work is done: countersink report waits for the keeper, which is stopped. Of a run before this one
# there may be such a process, too, that sends its last slice.
finishing() {
	pgrep -f "report -o $TMP/out/x.pb.gz .*$(echo "$TMP"/shm/countersink-*)" >/dev/null
}
finish() { # the run ends; its recordings are in copy
	writer=$(keeper)
	if has_keeper; then
		kill -STOP "$writer"
		touch go
		wait_until 30 finishing
		cp -r shm/countersink-* copy
		kill -CONT "$writer"
	fi
	touch go
	wait "$program"
	status=$?
}
merged_as_whole() { # NAME
	same_as_whole "$1" out/*.pb.gz
}
is_ended() { # NAME: nothing is left, and the last slice alone says that the run has ended
	ok "$1: the run's directory is removed" wait_until 30 empty shm
	is "$(for f in out/*.pb.gz; do facts "$f" run; done | uniq | paste -sd,)" "goes on,ended" "$1: the last slice alone has the run's end"
	is "$(for f in out/*.pb.gz; do facts "$f" slice; done)" "$(seq "$(find out -name '*.pb.gz' | wc -l)")" "$1: slices are numbered from 1"
}

# ---- as a launcher's
# shellcheck disable=SC2016
until_go='until [ -e go ]; do "$0" 20; done; exit 7'
start 0.2s bash -c "$until_go" "$TARGETS/burn"
ok "slices are written while the program runs" wait_until 60 has_slices 3
isnt "$(ps -o ppid= -p "$(keeper)" | tr -d ' ')" "$program" "the keeper is no child of the program"
is "$(find "/proc/$(keeper)/fd" -lname 'pipe:*' -o -lname "$TMP/said" -o -lname "$TMP/err" | wc -l)" 0 "it has no file of the program's open"
finish
is "$status $(cat err)" "7 " "the program's status, and no message"
merged_as_whole "a fork tree"
is_ended "a fork tree"
ok "the keeper has ended" wait_until 30 ended "$writer"

cat >work.py <<'E2'
import os, resource, sys
def work(n):
    return sum(i * i for i in range(n))
while not os.path.exists("go"):
    work(20000)
if len(sys.argv) > 1:
    os.kill(os.getpid(), 9)
E2
start 0.2s "$PYTHON" work.py
ok "python3: slices are written" wait_until 60 has_slices 3
wait_until 60 has_worked
finish
is "$status" 0 "python3: its status"
merged_as_whole "python3"
is_ended "python3"
like "$(for f in out/*.pb.gz; do countersink report "$f"; done)" '<genexpr>' "a slice has python3's functions" # the last one may be short

# ---- what is killed
start 0.2s "$PYTHON" work.py die
ok "a program that is killed: slices are written" wait_until 60 has_slices 2
touch go
wait "$program" 2>/dev/null
is "$?" 137 "it is killed"
is_ended "a program that is killed"

start 0.2s bash -c "$until_go" "$TARGETS/burn"
wait_until 60 has_slices 2
writer=$(keeper)
kill -KILL "$writer"
wait_until 30 ended "$writer"
# shellcheck disable=SC2016
ok "its keeper is killed: the program goes on" sh -c 'kill -0 "$0"' "$program"
finish
is "$status $(cat err)" "7 " "without a keeper: the program's status, and no message"
is_ended "without a keeper"

start 0.2s "$PYTHON" work.py
wait_until 60 has_slices 2
writer=$(keeper)
kill -KILL "$writer"
wait_until 30 ended "$writer"
nr=$(find out -name '*.pb.gz' | wc -l)
countersink keep shm/countersink-* >keep.out 2>keep.err &
by_hand=$!
ok "countersink keep goes on with the slices" wait_until 60 has_slices $((nr + 2))
finish
ok "it ends with the run" wait_until 30 ended "$by_hand"
merged_as_whole "a keeper that was killed, and another"
is_ended "a keeper that was killed, and another"

# Both, at any moment: the next start has the last slice made.
rm -rf out/* shm/*
start 0.1s "$PYTHON" work.py
wait_until 60 has_slices 2
wait_until 60 has_worked
writer=$(keeper)
kill -KILL "$writer" "$program"
wait "$program" 2>/dev/null
wait_until 30 ended "$writer"
cp -r shm/countersink-* copy
is "$(find out -name '*killed*' | wc -l)" 0 "both are killed"
# The kernel lets go of a killed process's mappings a little after its parent has waited for it.
ok "a later start has the last slice made" wait_until 30 sh -c 'LD_PRELOAD=$0 COUNTERSINK_OUTPUT=$1/next.pb.gz /bin/true; sleep 0.1; test -z "$(ls shm)"' "$LIB" "$TMP"
merged_as_whole "both are killed"

torn=
for round in 1 2 3 4; do
	start 0.1s "$PYTHON" work.py
	wait_until 60 has_slices 1
	wait_until 60 has_worked
	for kill in 1 2 3; do
		before=$(keeper)
		wait_until 30 has_slices $((kill + 1))
		kill -KILL "$before"
		wait_until 30 ended "$before"
		countersink keep -q shm/countersink-* 2>>keep.err &
		wait_until 30 has_keeper
	done
	finish
	wait_until 30 empty shm
	slices_and_whole out/*.pb.gz
	{ [ -s whole.rows ] && cmp -s merged.rows whole.rows; } || {
		torn="$torn $round"
		diag "$(cat report.err merge.err; diff merged.rows whole.rows | head -n 20)"
	}
done
is "$torn" "" "keepers that are killed again and again: each function has the same counts in all slices as in one profile"

# ---- who is waited for
# shellcheck disable=SC2016
start 0.2s bash -c '(until [ -e go ]; do "$0" 20; done; touch last) & until [ -e first ]; do "$0" 10; done' "$TARGETS/burn"
wait_until 60 has_slices 1
touch first
wait "$program"
is "$? $(cat err)" "0 " "a program with a child that lives on ends as it does"
nr=$(find out -name '*.pb.gz' | wc -l)
ok "slices of the child are written" wait_until 60 has_slices $((nr + 2))
touch go
ok "its end is the run's" wait_until 30 empty shm
ok "and comes after its work" test -e last
is_ended "a child that lives on"
rm -f first last

start 0.2s "$TARGETS/daemonizes"
wait "$program"
is "$?" 0 "a daemon's first process ends"
ok "a daemon's run ends with it" wait_until 60 empty shm
ok "it has a slice" has_slices 1

rm -rf out/* shm/*
with 1h /bin/true
is "$? $(find out -name 'x.20*Z.0001.pb.gz' | wc -l) $(ls shm)" "0 1 " "a short program has one slice"
is "$(facts "$(echo out/*)" run)" ended "it has the run's end"
got=$(with 1h sh -c 'ls /proc/self/fd | wc -l; ps -o comm= --ppid $$ | grep -c countersink; wait; echo done' 2>&1)
is "$got" "$(sh -c 'ls /proc/self/fd | wc -l'; printf '0\ndone')" "the program has no further file or child, and its output ends with it"
rm -rf out/*
COUNTERSINK_REPORT=1 with 1h "$TARGETS/burn" 50 >said 2>err
like "$(cat err)" ' burn_60' "COUNTERSINK_REPORT=1: the report is printed"
like "$(tail -n 1 err)" '^countersink: 1 slice written, 0 removed .*; the last one is .*/out/x\.20.*\.0001\.pb\.gz' "and where the last slice is"
rm -rf out/*
(cd out && LD_PRELOAD=$LIB COUNTERSINK_ROTATE=1h COUNTERSINK_OUTPUT='%c.%t.pb.gz' "$TARGETS/burn" 5 >/dev/null 2>"$TMP/err")
ok "a template that is relative, with %t" sh -c 'ls out/burn.20*Z.pb.gz'
is "$(cat err)" "" "nothing is reported of it"

# ---- who the run belongs to
if [ "$(id -u)" = 0 ]; then
	chmod 711 "$TMP"
	chmod 777 out
	chmod 1777 shm # as /dev/shm
	cat >drops.py <<'E2'
import os
def work(ns):
    end = os.times().user + ns
    while os.times().user < end:
        sum(i * i for i in range(20000))
work(0.7)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
work(0.7)
t = os.times()
print(t.user + t.system)
E2
	rm -rf out/* shm/*
	with 0.2s "$PYTHON" drops.py >said 2>err
	is "$? $(cat err)" "0 " "a program that gives up root: its status, and no message"
	is_ended "a program that gives up root"
	is "$(find out -name '*.pb.gz' -printf '%u\n' | sort -u | wc -l)" 2 "slices are written by both users"
	countersink merge -q -o merged.pb.gz out/*.pb.gz
	is "$(countersink report -j -n 1 merged.pb.gz | python3 -c '
import json, sys
seconds = sum(t["sum"] for t in json.load(sys.stdin)["types"] if t["name"] == "task-clock") / 1e9
own = float(open("said").read())
print("same" if 0.95 * own < seconds < 1.1 * own else (seconds, own))')" same "all have the CPU time of the program, once"
	chmod 755 out
	chmod 711 shm
else
	skip "a program that gives up root" "it takes root"
fi

# A server that takes what is sent and never answers: the keeper has the run for itself, and not what sends.
cat >silent.py <<'E2'
import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
all = []
while True:
    all.append(s.accept())
E2
python3 silent.py >port &
silent=$!
wait_until 30 test -s port
rm -f go
start 0.2s env COUNTERSINK_SEND="put+http://127.0.0.1:$(cat port)/%n" COUNTERSINK_SEND_TIMEOUT=60 "$PYTHON" work.py
ok "slices that are sent to a server which never answers are written" wait_until 60 has_slices 3
finish
is "$status $(cat err)" "0 " "the program's end: its status, and no message"
is_ended "a server that never answers"
kill $silent
wait $silent 2>/dev/null

# ---- what is not possible
rm -rf out/*
with soon "$TARGETS/burn" 5 >said 2>err
is "$? $(ls out)" "0 x.pb.gz" "a rotation that is none: the program runs, and has one profile"
like "$(cat err)" "^countersink: COUNTERSINK_ROTATE in the environment: 'soon' is not a time above 0" "it is reported"
rm -rf out/*
LD_PRELOAD=$LIB COUNTERSINK_ROTATE=1h COUNTERSINK_OUTPUT=/dev/null "$TARGETS/burn" 5 >said 2>err
like "$?: $(cat err)" '^0: countersink: COUNTERSINK_OUTPUT in the environment: /dev/null is not a regular file|^0: countersink: .*/dev/null is not a regular file' \
	"slices that have no names: the program runs, and it is reported"
rm -rf out/*
if [ "$(id -u)" = 0 ] && unshare -pf true 2>/dev/null; then
	# shellcheck disable=SC2016
	unshare -pf --mount-proc sh -c 'LD_PRELOAD=$0 COUNTERSINK_ROTATE=1h COUNTERSINK_OUTPUT=$1/out/x.pb.gz exec python3 -c "
import os
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print(os.getpid(), \"no child\")"' "$LIB" "$TMP" >said 2>err
	is "$(tail -n 1 said) $(ls out)" "1 no child x.pb.gz" "a program that is PID 1 has no child of ours, and one profile"
	like "$(cat err)" '^countersink: no slices, but one profile at the end: this process would be .*; another one can start `countersink keep --rotate=1h /' \
		"it is reported, and what can be done"
else
	skip "a program that is PID 1" "no pid namespaces here"
fi
# A subreaper inherits what has lost its parent. The command of the message works.
cat >subreaper.py <<'E2'
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
os.environ["LD_PRELOAD"] = sys.argv[1]
os.execv(sys.executable, [sys.executable, "-c", """
import os
while not os.path.exists("go"):
    sum(i * i for i in range(20000))
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""])
E2
rm -rf out/* shm/* go
COUNTERSINK_ROTATE=0.2s COUNTERSINK_KEEP=0 COUNTERSINK_FREQUENCY=997 COUNTERSINK_OUTPUT="$TMP/out/x.pb.gz" "$PYTHON" subreaper.py "$LIB" >said 2>err &
program=$!
ok "a subreaper: what can be done is reported" wait_until 60 grep -q 'can start `' err
command=$(sed -n 's/.*`countersink \(keep .*\)`.*/\1/p' err)
# shellcheck disable=SC2086
countersink $command --keep=0 -o "$TMP/out/x.pb.gz" 2>keep.err &
by_hand=$!
ok "by that, slices are written" wait_until 60 has_slices 2
touch go
wait "$program"
is "$? $(cat said)" "0 no child" "the subreaper has no child of ours"
ok "and the keeper ends with it" wait_until 30 ended "$by_hand"
is_ended "a subreaper"
rm -rf out/* shm/*
start 0.2s "$PYTHON" work.py
wait_until 60 has_slices 1
mv out elsewhere
ln -s missing out
countersink keep -q shm/countersink-* 2>err &
again=$!
wait_until 30 grep -qs "^$again " shm/countersink-*/slices.lock
ok "a second keeper takes the place of the first" test "$(keeper)" = "$again"
ok "slices that cannot be written are reported" wait_until 60 test -s err
rm out
mv elsewhere out
nr=$(find out -name '*.pb.gz' | wc -l)
ok "slices go on once they can be" wait_until 60 has_slices $((nr + 1))
like "$(cat err)" '^countersink: a slice could not be written: .*; the next one will have its time, too$' "once"
finish
merged_as_whole "slices that could not be written"
like "$(for f in out/*.pb.gz; do facts "$f" warning; done)" 'slices? before this one (was|were) not written' "the next one has a warning"

# ---- what keep refuses
refused() { # STATUS PATTERN NAME ARGUMENT...
	status=$1 pattern=$2 name=$3
	shift 3
	countersink keep "$@" >out.txt 2>err
	is "$?" "$status" "$name: status $status"
	like "$(cat err)" "$pattern" "$name: the reason is reported"
}
mkdir -m 755 open
mkdir -m 700 private
refused 2 'keep takes one run directory, not 0' "no directory"
refused 1 'missing: No such file or directory' "a directory that is missing" missing
refused 1 'open: not a directory of this user alone' "a directory that others may enter" open
refused 2 'private has no slices to go on with: how long is one\? \(--rotate=60s\)' "a run without slices" private
refused 2 "option --rotate: 'x' is not a time" "a rotation that is none" --rotate=x private
head -c 20000 /dev/urandom >private/slices
refused 1 'private: its slices are of another version of countersink, or damaged' "damage" private
# Of a killed run with damage there is one profile.
rm -rf out/* shm/*
start 0.1s "$PYTHON" work.py
wait_until 60 has_slices 1
kill -KILL "$(keeper)" "$program"
wait "$program" 2>/dev/null
printf garbage >"$(echo shm/countersink-*)/slices"
wait_until 30 sh -c '"$0" salvage -q shm; test -z "$(ls shm)"' "$COUNTERSINK"
is "$(find out -name '*killed-*' | wc -l)" 1 "where it is damaged how far they are, a killed run has one profile of all"

done_testing
