#!/bin/bash
# Python functions in running programs, seen from outside: every call in every stack is one that the program makes, in each
# version that is installed; shares; forked and executed processes; other PID namespaces; without rights; what is not read.
. "$(dirname "$0")/lib.sh"

. "$SRC/tests/cli/attach.sh"
FRAMES=$SRC/tests/frames
have python3 || skip_all "python3 is not installed"
PYTHON=$(python3 -c 'import sys; print(sys.executable)')
"$FRAMES/pythons" >pythons

read_of() { # FILE: what the note says: stacks without functions, and all; without a note none lack them
	local said

	said=$(sed -n 's/.*Python functions are missing in \([0-9]*\) of \([0-9]*\) stacks.*/\1 \2/p' "$1")
	echo "${said:-0 1}"
}

# Attach to a running program. On a busy machine threads of countersink come late: how often is the machine's matter, that
# these stacks are counted is ours.
judge() { # TITLE STEPS RATE
	python3 -B "$FRAMES/steps.py" "$2" async.pb.gz >out 2>&1
	is "$?:$(grep -c '^[0-9]* stacks judged' out)" 0:1 "$1 at $3 Hz: calls are legal and stacks are whole: $(head -n 1 out)"
}

# ---- every version, at any moment

for version in 3.7 3.8 3.9 3.10 3.11 3.12 3.13; do
	grep -q " $version\$" pythons || skip "attach: calls in samples of CPython $version are legal" "CPython $version is not installed"
done
while read -r python version; do
	[ "$version" != 3.6 ] || continue
	"$python" "$FRAMES/work.py" trace steps.json >out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "CPython $version ($python): the program writes down its calls"
	rates=5000
	[ "$python" != "$PYTHON" ] || rates='997 5000'
	for rate in $rates; do
		"$python" "$FRAMES/work.py" run 2 2 >target.out 2>target.err </dev/null &
		target=$!
		targets="$targets $target"
		wait_until 30 has_run "$target" 150
		attach -F $rate -p "$target" -o async.pb.gz >out 2>err
		is $? 0 "CPython $version ($python) at $rate Hz: status 0"
		wait "$target"
		is "$?:$(cat target.out target.err)" "0:done" "CPython $version ($python) at $rate Hz: output and status of the target are as without countersink"
		unlike "$(cat err)" 'missing in 0 of' "CPython $version ($python) at $rate Hz: no note where every stack has its functions"
		judge "CPython $version ($python)" steps.json $rate
	done
done <pythons

# ---- every version, at known moments; functions at the addresses of former ones

attach_later() { # PYTHON OPTIONS PROGRAM...: attach to a program before it begins
	local python=$1 options=$2
	shift 2
	rm -f go ready
	"$python" "$FRAMES/later.py" go "$@" >target.out 2>target.err </dev/null &
	target=$!
	targets="$targets $target"
	wait_until 30 test -e ready
	# shellcheck disable=SC2086
	attach $options -p "$target" -o later.pb.gz >out 2>err &
	attached=$!
	wait_until 30 grep -q 'Ctrl-C ends it' err
	touch go
	wait "$target"
	is "$?:$(cat target.out target.err)" "0:" "CPython $version ($python), ${1##*/}: output and status of the target are as without countersink"
	wait "$attached"
}
while read -r python version; do
	[ "$version" != 3.6 ] || continue
	attach_later "$python" "-e page-faults:u -c 1" "$FRAMES/truth.py" truth.json
	python3 -B "$FRAMES/compare.py" truth.json later.pb.gz >out
	like "$(cat out)" '^[5-9][0-9][0-9] stacks, [0-9]+ frames, [0-9]+ missing, 0 false$' \
		"CPython $version ($python): no stack is false: $(head -n 1 out)"
	ok "CPython $version ($python): the missing ones are among those that the note counts: $(read_of err)" \
		awk -v missing="$(sed -n 's/.* \([0-9]*\) missing.*/\1/p' out)" -v read="$(read_of err)" \
		'BEGIN { split(read, n, " "); exit !(missing <= n[1]) }'
	attach_later "$python" "-F 2000" "$FRAMES/made.py" run 300
	like "$(python3 -B "$FRAMES/made.py" judge later.pb.gz)" '^[12][0-9][0-9] functions, [0-9]+ samples, 0 wrong$|^300 functions, [0-9]+ samples, 0 wrong$' \
		"CPython $version ($python): functions made at the addresses of former ones have their own names, files and lines"
done <pythons

# ---- reports

start "$PYTHON" "$FRAMES/shares.py"
shares=$target
wait_until 30 has_run "$shares" 100
attach -p "$shares" -d 3 -o shares.pb.gz >out 2>err
is $? 0 "a Python program: status 0"
like "$(cat err)" '^ +[0-9.]+ +[0-9.]+ m?s +[0-9.]+ +[0-9.]+ m?s +shares\.py +work$' "the report has a row for a Python function, with its file as the module"
countersink export -f folded shares.pb.gz >folded
like "$(cat folded)" '<module>;.*main;.*three;.*work' "an export has the Python functions in order"
ok "functions of known cost, 3 : 1: shares are within 5 % ($(awk '/;three/ { t += $NF } /;one/ { o += $NF } END { print 100 * t / (t + o) }' folded))" \
	awk '/;three/ { t += $NF } /;one/ { o += $NF } END { share = 100 * t / (t + o); exit !(share > 70 && share < 80) }' folded
countersink report --all --by line shares.pb.gz >out 2>&1
like "$(cat out)" ' shares\.py:[78] work$' "report --by line has lines of Python"
like "$(countersink export -f speedscope shares.pb.gz)" '"name":"work","file":"[^"]*/shares\.py","line":5' "speedscope has the function with its file and line"

# ---- --frames, --unwind

attach_for 300 "$shares" countersink attach -p "$shares" --frames=native >out
like "$(cat err)" '_PyEval_EvalFrameDefault' "--frames=native: the evaluator is reported"
unlike "$(cat err)" 'shares\.py|Python functions are missing' "--frames=native: no functions of Python are read"
attach_for 300 "$shares" countersink attach -p "$shares" --frames=both -o both.pb.gz >out
like "$(countersink export -f folded both.pb.gz)" 'work;_PyEval_EvalFrameDefault' "--frames=both has the functions beside the evaluator's frames"
attach_for 300 "$shares" countersink attach -p "$shares" --unwind=fp >out
is "$(grep -c 'Python frames are not read: they need copies of stacks, which --unwind=fp and none do not take' err)" 1 "--unwind=fp: the report has one line with the reason"
attach_for 300 "$shares" countersink attach -p "$shares" --unwind=libunwind -o both.pb.gz >out
like "$(cat err)" ' shares\.py +work$' "--unwind=libunwind: functions of Python are reported"
attach_for 300 "$shares" countersink attach -t "$shares" >out
like "$(cat err)" ' shares\.py +work$' "-t: functions of Python are reported"
attach_for 200 "$shares" "$TARGETS/deny_perf" -r "$COUNTERSINK" attach -p "$shares" >out
is $? 0 "process_vm_readv is refused: status 0"
is "$(grep -c 'Python frames are not read: EPERM: ' err)" 1 "process_vm_readv is refused: the report has one line with the reason"
like "$(cat err)" '_PyEval_EvalFrameDefault' "process_vm_readv is refused: stacks are native ones"
end "$shares"
rm -f go ready
start "$PYTHON" "$FRAMES/later.py" go "$FRAMES/calls_out.py"
wait_until 30 test -e ready
attach -p "$target" -d 2 -o calls.pb.gz >out 2>err &
attached=$!
wait_until 30 grep -q 'Ctrl-C ends it' err
touch go
wait "$attached"
if is_root; then
	ok "system calls that return a struct on the stack: their functions are read: $(read_of err)" \
		awk -v read="$(read_of err)" 'BEGIN { split(read, n, " "); exit !(n[1] < n[2] * 0.2) }'
else
	skip "system calls that return a struct on the stack: their functions are read" "samples in the kernel need root"
fi
countersink export -f folded calls.pb.gz >folded
is "$(grep 'stats' folded | grep -c 'times\|gettime')$(grep 'times' folded | grep -c 'stats\|os_stat')" 00 "system calls that return a struct on the stack: functions are those that made them"
end "$target"
if ! taskset -c 1 true 2>/dev/null; then
	skip "reading threads that were moved to another CPU read nothing" "there is one CPU"
else
	rm -f go ready
	start taskset -c 1 "$PYTHON" "$FRAMES/later.py" go "$FRAMES/shares.py"
	wait_until 30 test -e ready
	"$COUNTERSINK" attach -p "$target" -d 3 >out 2>err &
	attached=$!
	# A thread that binds itself to its CPU after that would be back there.
	wait_until 30 sh -c 'grep -q "^Cpus_allowed_list:[[:space:]]*1\$" /proc/"$0"/task/*/status' "$attached"
	taskset -acp 0 "$attached" >/dev/null
	touch go
	wait "$attached"
	like "$(cat err)" 'missing in ([0-9]+) of \1 stacks' "reading threads that were moved to another CPU read nothing"
fi
end "$target"

# ---- processes

cat >tree.py <<'EOF'
import os, sys

def burn(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

def in_child():
    for _ in range(100):
        burn(20000)

def before():
    burn(1000000)

for _ in range(3):
    before()
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    os.waitpid(pid, 0)
os.execv(sys.executable, [sys.executable, 'after.py'])
EOF
cat >after.py <<'EOF'
def after():
    total = 0
    for i in range(8000000):
        total += i * i % 7
    print('done')

after()
EOF
sh -c '"$0" tree.py; exit $?' "$PYTHON" >target.out 2>&1 &
target=$!
targets="$targets $target"
wait_until 30 pgrep -P "$target"
attach -p "$target" -o tree.pb.gz >out 2>err
wait "$target"
is "$?:$(cat target.out)" "0:done" "a tree of processes has its output and status"
countersink report --all tree.pb.gz >out 2>&1
like "$(cat out)" ' tree\.py +before$' "the child of a shell that is attached to: its functions of Python are reported"
like "$(cat out)" ' tree\.py +in_child$' "a process that is forked later: its functions are reported"
like "$(cat out)" ' after\.py +after$' "a program that is executed later: its functions are reported"
attach -o command.pb.gz -- "$PYTHON" after.py >out 2>err
is "$?:$(cat out)" "0:done" "a Python program that is started has its output and status"
like "$(cat err)" ' after\.py +after$' "a Python program that is started: its functions are reported"
attach -- sh -c '"$0" after.py; exit $?' "$PYTHON" >out 2>err
is "$?:$(grep -c 'note  *Python frames of process [0-9]* are not read: attach reads those of a command only where that itself is python' err)" 0:1 "a Python program below a command that is not Python: the report says why its functions have no names"
cat >sleepy.py <<'EOF'
import time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
for _ in range(30):
    burn(0.001)
    time.sleep(0.01)
EOF
is_half_read() { awk -v read="$(read_of err)" 'BEGIN { split(read, n, " "); exit !(n[1] < n[2] / 2) }'; }
if is_root; then
	for _ in 1 2 3 4 5 6; do # on a busy machine, countersink may get its turn late
		attach -- "$PYTHON" sleepy.py >out 2>err
		grep -q ' sleepy\.py  *burn$' err && is_half_read && break
	done
	ok "a program of 30 ms of CPU time that is started: most of its functions are read: $(read_of err)" is_half_read
	like "$(cat err)" ' sleepy\.py +burn$' "a program of 30 ms of CPU time that is started: they are reported"
else
	skip "a program of 30 ms of CPU time that is started: most of its functions are read" "no right to read before others run"
fi
"$TARGETS/deny_perf" -a "$COUNTERSINK" attach -- "$PYTHON" after.py >out 2>err
is "$?:$(cat out)" "0:done" "reading threads cannot be bound to their CPUs: output and status are as without countersink"
unlike "$(cat err)" 'dropped by the kernel' "reading threads cannot be bound to their CPUs: no sample is lost"
like "$(cat err)" 'missing in ([0-9]+) of \1 stacks .*: [0-9]+ not reached by a reading thread in time; start the program with countersink to see them' "reading threads cannot be bound to their CPUs: a note counts what they have not read"
cp "$PYTHON" python-copy
cat >driver.py <<'EOF'
import os
os.spawnv(os.P_WAIT, 'python-copy', ['python-copy', '-V'])
os.spawnv(os.P_WAIT, 'python-copy', ['python-copy', 'after.py'])
EOF
attach -- "$PYTHON" driver.py >out 2>err
is "$?:$(cat out)" "0:$("$PYTHON" -V; echo "done")" "an interpreter whose first process ends at once: output and status are as without countersink"
like "$(cat err)" ' after\.py +after$' "an interpreter whose first process ends at once: the functions of the next one are reported"
if is_root && have unshare && unshare --pid --fork --mount-proc true 2>/dev/null; then
	start unshare --pid --fork --mount-proc "$PYTHON" "$FRAMES/shares.py"
	wait_until 30 pgrep -P "$target"
	inside=$(pgrep -P "$target")
	targets="$targets $inside"
	wait_until 30 has_run "$inside" 100
	attach_for 300 "$inside" countersink attach -p "$inside" >out
	like "$(cat err)" ' shares\.py +work$' "a process in a PID namespace of its own: its functions are reported"
	end "$inside"
else
	skip "a process in a PID namespace of its own: its functions are reported" "no right to make one"
fi

# A thread gets the number of one that has ended, whose state another thread has.
while read -r python version; do
	[ "$version" != 3.6 ] || continue
	if ! is_root || ! unshare --pid --fork --mount-proc sh -c 'echo 300 >/proc/sys/kernel/ns_last_pid' 2>/dev/null; then
		skip "CPython $version ($python): a thread with the number of a former one has its own functions" "no right to choose a thread's number"
		continue
	fi
	rm -f go ready reuse.pb.gz
	# shellcheck disable=SC2016
	unshare --pid --fork --mount-proc sh -c '
		"$1" "$2/later.py" go "$2/reuse.py" >reused 2>&1 &
		target=$!
		until test -e ready || ! kill -0 $target 2>/dev/null; do sleep 0.05; done
		"$0" attach -p $target -o reuse.pb.gz >out 2>err &
		until grep -q "Ctrl-C ends it" err 2>/dev/null; do sleep 0.05; done
		touch go
		wait' "$COUNTERSINK" "$python" "$FRAMES"
	countersink export -f folded reuse.pb.gz >folded
	is "$(cat reused):$(grep -c 'sleeper' folded):$(grep -c 'latter;.*burn' folded | sed 's/^[1-9].*/some/')" "the number is reused:0:some" \
		"CPython $version ($python): a thread with the number of a former one has its own functions: $(read_of err)"
	ok "CPython $version ($python): most of its stacks have them" \
		awk '/clone/ && !/former/ { n += $NF } /latter/ { own += $NF } END { exit own < n / 2 }' folded
done <pythons

if is_root && mkdir groups && mount -t cgroup -o perf_event none groups 2>/dev/null; then
	group=groups/countersink.$$
	mkdir $group
	sh -c 'echo $$ >"$0/cgroup.procs"; exec "$1" "$2"' $group "$PYTHON" "$FRAMES/shares.py" >/dev/null &
	target=$!
	targets="$targets $target"
	wait_until 30 has_run $target 100
	attach_for 300 $target countersink attach --cgroup $group -e cpu-clock -o group.pb.gz >out
	like "$(cat err)" ' shares\.py +work$' "a control group: functions of Python are reported"
	end $target
	wait_until 30 rmdir $group
	umount groups
else
	skip "a control group: functions of Python are reported" "control groups of perf_event's cannot be mounted here"
fi

# ---- memory that never comes

if ! is_root; then
	skip "memory of a target that never comes: attach ends all the same" "userfaultfd(2) needs root"
else
	rm -f go ready
	start "$PYTHON" "$FRAMES/stuck.py" go
	wait_until 30 test -e ready
	timeout -s KILL 30 "$COUNTERSINK" attach -p "$target" -d 1 -o stuck.pb.gz >out 2>err &
	attached=$!
	wait_until 30 grep -q 'Ctrl-C ends it' err
	touch go
	wait "$attached"
	is $? 0 "memory of a target that never comes: attach ends all the same"
	is "$(grep -c 'still wait for a process.s memory' err)" 1 "memory of a target that never comes: a note says so"
	end "$target"
fi

# ---- without rights

cp "$FRAMES/shares.py" .
start_unprivileged "$PYTHON" "$PWD/shares.py"
wait_until 30 has_run "$target" 100
mkdir -m 777 own
unprivileged() {
	if is_root; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}
unprivileged "$COUNTERSINK" attach -p "$target" -d 2 -o own/own.pb.gz >out 2>err
is $? 0 "a user without rights attaches to an own process: status 0"
like "$(cat err)" ' shares\.py +work$' "a user without rights: functions of Python are read: $(read_of err)"
is "$(countersink export -f folded own/own.pb.gz | grep -v '<module>;main;\(three\|one\)\(;work\)\?\|PyEval' | grep -c 'main')" 0 "a user without rights: every stack with functions is whole"
end "$target"

# ---- interpreters whose frames are not read

not_read() { # OBJECT REASON TITLE
	start env LD_PRELOAD="$TARGETS/plugs/like_python_$1.so" "$TARGETS/burn" 1000000
	wait_until 30 has_run "$target" 20
	attach_for 200 "$target" countersink attach -p "$target" >out
	is $? 0 "$3: status 0"
	is "$(grep -c "$2" err)" 1 "$3: the report has one line with the reason"
	like "$(cat err)" ' burn_60$' "$3: stacks are native ones"
	end "$target"
}
not_read next "Python frames are not read: only CPython 3\.6 to 3\.14 is supported" "attach, a version of CPython that is not known"
not_read free "Python frames are not read: free-threaded builds are not supported" "attach, a free-threaded CPython"
not_read pypy "Python frames are not read: PyPy is not supported" "attach, PyPy"
# Real interpreters of other languages: of each kind one line, and only where its process was sampled.
cat >spin.php <<'EOF'
<?php
function spin($n) { for ($i = 0, $t = 0; $i < $n; $i++) $t += $i % 7; return $t; }
$how = $argv[1] ?? "once";
if ($how == "sleep") sleep(60);
do spin(3000000); while ($how == "on");
EOF
echo 'do { my $t = 0; $t += $_ % 7 for 1 .. 1000000 } while (($ARGV[0] // "") eq "on");' >spin.pl
echo 'loop { t = 0; 1000000.times { |i| t += i % 7 }; break if ARGV[0] != "on" }' >spin.rb
echo 'do { var t = 0; for (let i = 0; i < 1e8; i++) t += i % 7 } while (process.argv[2] == "on")' >spin.js
cat >Spin.java <<'EOF'
public class Spin {
	public static void main(String[] args) {
		long t = 0;
		do
			for (long i = 0; i < 500000000L; i++)
				t += i % 7 ^ t << 1;
		while (args.length > 0 && args[0].equals("on"));
		System.exit(t == 1 ? 1 : 0);
	}
}
EOF
other() { # LANGUAGE COMMAND FILE
	local line="$1 frames are not read: attach reads those of CPython only.*; start the program with countersink to see them (process [0-9]*)\$"

	if ! have "$2"; then
		skip "attach, a command in $1: one line says why its functions are not named" "$2 is not installed"
		skip "attach, a process in $1 that runs: one line says why its functions are not named" "$2 is not installed"
		return
	fi
	attach -- "$2" "$3" >out 2>err
	is "$?:$(grep -c 'frames are not read' err):$(grep -c "note  *$line" err)" 0:1:1 "attach, a command in $1: one line says why its functions are not named"
	start "$2" "$3" on
	wait_until 30 has_run "$target" 50
	attach_for 200 "$target" countersink attach -p "$target" >out
	is "$?:$(grep -c 'frames are not read' err):$(grep -c "note  *$line" err)" 0:1:1 "attach, a process in $1 that runs: one line says why its functions are not named"
	end "$target"
}
other PHP php spin.php
other Perl perl spin.pl
other Ruby ruby spin.rb
other JavaScript node spin.js
other Java java Spin.java
if have php && have perl; then
	attach -- sh -c 'for i in 1 2 3; do php spin.php; done; perl spin.pl' >out 2>err
	is "$(grep -c 'PHP frames are not read: .* (process [0-9]* and 2 more)' err):$(grep -c 'Perl frames are not read: .* (process [0-9]*)' err):$(grep -c 'frames are not read' err)" 1:1:2 \
		"attach, processes in PHP and Perl: a line for each language, which counts its processes"
	attach --frames=native -- php spin.php >out 2>err
	is "$(grep -c 'frames are not read' err)" 0 "attach --frames=native of PHP: no line about what was not asked for"
	start php spin.php sleep
	sleeper=$target
	start "$TARGETS/burn" 1000000
	wait_until 30 has_run "$target" 20
	wait_until 30 grep -q nanosleep "/proc/$sleeper/wchan"
	attach_for 200 "$target" countersink attach -p "$target,$sleeper" >out
	is "$?:$(grep -c 'note .*attached to 2 threads of 2 processes' err):$(grep -c 'frames are not read' err)" 0:1:0 "attach, a process in PHP that sleeps, of which there is no sample: no line about its functions"
	end "$target"
	end "$sleeper"
else
	skip "attach, processes in PHP and Perl: a line for each language, which counts its processes" "php or perl is not installed"
	skip "attach --frames=native of PHP: no line about what was not asked for" "php or perl is not installed"
	skip "attach, a process in PHP that sleeps, of which there is no sample: no line about its functions" "php or perl is not installed"
fi

cp "$PYTHON" ./python-gone
start ./python-gone "$FRAMES/shares.py"
wait_until 30 has_run "$target" 50
rm python-gone
attach_for 200 "$target" countersink attach -p "$target" >out
is "$(grep -c "Python frames are not read: the interpreter's file was deleted or replaced" err)" 1 "attach, an interpreter that was replaced since: the report has one line with the reason"
end "$target"
while read -r python version; do
	[ "$version" = 3.6 ] || continue
	start "$python" -u "$FRAMES/shares.py"
	wait_until 30 has_run "$target" 100
	attach_for 200 "$target" countersink attach -p "$target" >out
	is "$(grep -c 'Python frames are not read: from outside only CPython 3\.7 to 3\.14 is supported' err)" 1 "attach, CPython 3.6: the report has one line with the reason"
	end "$target"
done <pythons

done_testing
