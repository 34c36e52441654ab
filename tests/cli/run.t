#!/bin/bash
# The command runs as without us: streams, fds, limits, environment, working directory, processes.
. "$(dirname "$0")/lib.sh"

# A launcher built with sanitizers gets the library preloaded below.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0

# same NAME COMMAND...: the command's output and status are the same with and without the launcher.
same() {
	local name=$1 status
	shift
	"$@" >plain.out 2>plain.err
	status=$?
	countersink -q -- "$@" >run.out 2>run.err
	is $? "$status" "$name: status"
	is "$(cat run.out)" "$(cat plain.out)" "$name: stdout"
	is "$(cat run.err)" "$(cat plain.err)" "$name: stderr"
}
same "stdout and stderr" sh -c 'echo out; echo err >&2'
same "open files" sh -c 'ls /proc/self/fd | wc -l'
same "the first file that is opened" sh -c 'exec 3</dev/null; readlink /proc/$$/fd/3'
same "limits" sh -c 'ulimit -a; ulimit -Ha'
same "working directory and umask" sh -c 'pwd; umask'
same "arguments" printf '%s|' a 'b c' '' '*'
same "process group and session" sh -c 'test "$(cut -d" " -f5,6 </proc/$$/stat)" = "$(cut -d" " -f5,6 </proc/$PPID/stat)" && echo same'

echo input | countersink -q -- cat >out
is "$(cat out)" input "stdin is the command's"
is "$(countersink -q -- sh -c 'test -e /proc/$$/fd/0 || echo closed' <&-)" closed "a closed stdin stays closed"
(countersink -q -o closed.pb.gz -- sh -c 'echo to stderr >&2 || exit 3' 2>&-)
is $? 3 "a closed stderr stays closed"
ulimit -Sn 64
same "a low limit of files" sh -c 'ulimit -Sn; ulimit -Hn'
ulimit -Sn "$(ulimit -Hn)"

# ---- environment
is "$(countersink -q -- sh -c 'echo "$LD_PRELOAD"')" "$ENTRY" "LD_PRELOAD is the library"
libz=$(ldd "$COUNTERSINK" | sed -n 's/.*libz\.so\.1 => \([^ ]*\).*/\1/p')
is "$(LD_PRELOAD=$libz countersink -q -- sh -c 'echo "$LD_PRELOAD"')" "$libz:$ENTRY" "LD_PRELOAD keeps a library that was set before, first"
is "$(LD_PRELOAD=$LIB countersink -q -- sh -c 'echo "$LD_PRELOAD"')" "$ENTRY" "LD_PRELOAD has our library once"
env_of() {
	countersink -q "$@" -- sh -c 'env | grep ^COUNTERSINK_ | sort'
}
like "$(env_of -F 50 --engine timer --unwind fp)" '^COUNTERSINK_FREQUENCY=50$' "-F sets COUNTERSINK_FREQUENCY for the library"
like "$(env_of --engine timer)" '^COUNTERSINK_ENGINE=timer$' "--engine sets COUNTERSINK_ENGINE for the library"
like "$(env_of -e page-faults -c 1)" '^COUNTERSINK_EVENTS=.*page-faults' "-e sets COUNTERSINK_EVENTS for the library"
like "$(env_of -e page-faults -c 1)" '^COUNTERSINK_PERIOD=1$' "-c sets COUNTERSINK_PERIOD for the library"
unlike "$(COUNTERSINK_PERIOD=5 env_of -F 50)" 'PERIOD' "an option for the rate overrules the other rate's variable"
like "$(env_of -o 'a%%b.pb.gz')" "^COUNTERSINK_OUTPUT=$TMP/a%%b.pb.gz\$" "-o sets COUNTERSINK_OUTPUT to an absolute path"
like "$(COUNTERSINK_RUN_DIR=/nowhere COUNTERSINK_RUN_OWNER=1 env_of)" '^COUNTERSINK_RUN_DIR=/[^n]' "an outer run's directory is not used"
unlike "$(COUNTERSINK_RUN_OWNER=1 env_of)" 'RUN_OWNER' "an outer run's owner is not passed on"
run_dir=$(countersink -q -- sh -c 'stat -c "%a %u %F" "$COUNTERSINK_RUN_DIR"; echo "$COUNTERSINK_RUN_DIR"')
is "$(echo "$run_dir" | head -1)" "700 $(id -u) directory" "the run directory is private"
ok "the run directory is removed at the end" test ! -e "$(echo "$run_dir" | tail -1)"
run_dir=$(countersink -q -- sh -c 'echo "$COUNTERSINK_RUN_DIR"; kill -9 $$' 2>/dev/null)
ok "the run directory is removed after the command was killed" test ! -e "$run_dir"
(umask 777 && countersink -q -o "$TMP/masked" -- true)
is $? 0 "umask 777 does not stop countersink"
is "$(countersink -q -- countersink -q -o inner.pb.gz -- echo nested)" nested "a launcher runs within a launcher"
ok "a launcher within a launcher writes its own profile" test -s inner.pb.gz
# The launcher's own children do not count as the command's processes, in whichever order they end.
for _ in 1 2 3 4 5 6; do
	countersink -q -o own.pb.gz -- true
	countersink report --json own.pb.gz
done | grep -o '"processes: .*\|"unprofiled: .*' | sort | uniq -c | tr -s ' ' >own
is "$(cat own)" ' 6 "processes: 1",' "one program is one process, and is profiled"

# Process 1 of a container may not reap children: the launcher waits for its own children.
cat >orphans.py <<'END'
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL)
try:
    print("left:", os.waitpid(-1, 0x40000000)[0])  # __WALL
except ChildProcessError:
    print("none")
END
for command in "-q -o own.pb.gz" "stat" "attach -q -o own.pb.gz"; do
	if have python3; then
		is "$(python3 orphans.py countersink $command -- true)" none "countersink $command leaves no orphan"
	else
		skip "countersink $command leaves no orphan" 'no python3'
	fi
done

# ---- a report when it is wanted
countersink -o r.pb.gz -- true 2>err
like "$(cat err)" 'command  *true' "a report on stderr"
countersink -o r.pb.gz --no-report -- true 2>err
is "$(cat err)" "countersink: the profile is in r.pb.gz" "--no-report prints only the profile's path"
countersink -o r.pb.gz -q -- true 2>err
is "$(cat err)" "" "--quiet prints nothing"
COUNTERSINK_REPORT=0 countersink -o r.pb.gz -- true 2>err
is "$(cat err)" "countersink: the profile is in r.pb.gz" "COUNTERSINK_REPORT=0 prints no report"
COUNTERSINK_NO_REPORT=1 countersink -o r.pb.gz -- true 2>err
is "$(cat err)" "countersink: the profile is in r.pb.gz" "COUNTERSINK_NO_REPORT=1 prints no report"
countersink -o r.pb.gz -- true 2>/dev/full
is $? 0 "an unwritable stderr does not change the status"

# ---- too high a rate (no samples are taken here: some machines make no progress at that rate)
max=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
countersink -o r.pb.gz --engine none -e page-faults -F $((max + 1)) -- true 2>err
is $? 0 "a rate over the kernel's limit: the command runs"
like "$(cat err)" "^countersink: $((max + 1)) samples a second are over the kernel's limit: using $max" "a rate over the kernel's limit is reported"
like "$(env_of --engine none -e page-faults -F $((max + 1)))" "^COUNTERSINK_FREQUENCY=$max\$" "a rate over the kernel's limit is reduced"
if [ "$max" -gt 50000 ]; then
	countersink -o r.pb.gz --engine none -F 60000 -- true 2>err
	like "$(cat err)" "^countersink: 60000 samples a second are more than a program can tolerate: using 50000" \
		"a rate at which the program would make no progress is reported"
fi
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=short.pb.gz COUNTERSINK_PERIOD=1000 "$TARGETS/burn" 50 >out
like "$(countersink report short.pb.gz)" "every 1000 ns is more than a program can tolerate: using 20000 ns" \
	"without a launcher a period too short for progress is reported"

LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=short.pb.gz COUNTERSINK_ENGINE=timer COUNTERSINK_EVENTS=task-clock COUNTERSINK_PERIOD=2M "$TARGETS/burn" 50 >out
like "$(countersink report short.pb.gz)" "^  event .*task-clock every 2\.097 ms" "without a launcher K, M or G may follow a period, too"
for wrong in 2m 2MM M2; do
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=short.pb.gz COUNTERSINK_PERIOD=$wrong "$TARGETS/burn" 5 >out
	like "$(countersink report short.pb.gz)" "COUNTERSINK_PERIOD=$wrong: not a number above 0; using none" "a period of $wrong is reported"
done

# ---- without a launcher: nothing is printed unless requested; also for programs that close their streams at exit
head -c 20000000 /dev/zero >zeros
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=sum.pb.gz md5sum zeros >out 2>err
is "$(cat err)" "" "without a launcher nothing is printed"
cp out sum
COUNTERSINK_REPORT=1 LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=sum.pb.gz md5sum zeros >out 2>err
like "$(cat err)" 'command +md5sum zeros' "COUNTERSINK_REPORT=1: the report of a program that has closed stderr"
is "$(cat out)" "$(cat sum)" "COUNTERSINK_REPORT=1: the program's output is unchanged"
COUNTERSINK_REPORT=1 LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=sum.pb.gz md5sum zeros >out 2>&-
is "$? $(cat out)" "0 $(cat sum)" "no report on stdout where stderr was closed from the start"
rm zeros

# ---- an incomplete installation, and one that LD_PRELOAD cannot name
mkdir -p lone/bin 'a b/bin' 'a b/lib'
cp "$COUNTERSINK" lone/bin
lone/bin/countersink -o lone.pb.gz -- sh -c 'echo run; exit 5' >out 2>err
is "$? $(cat out)" "5 run" "no library beside the launcher: the command runs"
like "$(cat err)" '^countersink: .*/lone/lib has no libcountersink.so.*counted only' "a missing library is reported"
like "$(cat err)" 'task-clock' "with a missing library the command is counted"
cp "$COUNTERSINK" 'a b/bin'
cp "$LIB" 'a b/lib'
'a b/bin/countersink' -o blank.pb.gz -- sh -c 'echo run; exit 5' >out 2>err
is "$? $(cat out)" "5 run" "a library whose path has a blank: the command runs"
like "$(cat err)" "LD_PRELOAD cannot name '.*/a b/lib/libcountersink.so'" "a library whose path has a blank is reported"
mkdir -p moved/bin moved/lib
cp "$COUNTERSINK" moved/bin
cp "$LIB" moved/lib
ln -s "$TMP/moved/bin/countersink" linked
is "$(./linked -q -- sh -c 'echo "$LD_PRELOAD"')" "$TMP/moved/lib/libcountersink.so" "the library is found through a link"

# ---- without privilege
mkdir theirs
chmod 777 theirs
cd theirs || exit 1
unprivileged countersink -- sh -c 'echo out; exit 4' >out 2>err
is "$? $(cat out)" "4 out" "unprivileged: output and status are the command's"
ok "unprivileged: a profile is written" test -s countersink.pb.gz
like "$(cat err)" 'task-clock' "unprivileged: a report is printed"

done_testing
