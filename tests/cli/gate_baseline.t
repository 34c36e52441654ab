#!/bin/bash
# The gate compares how a baseline was made with the present: machine, kind of measurement, libraries. And nothing
# is lost where something cannot be written or read.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/gate.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
WORK=$TARGETS/gate_work

# gate ARGUMENT...: a few runs, for their messages only.
gate() {
	"$COUNTERSINK" gate --warmup 0 --runs 2 "$@" >out.tap 2>err
}

# noted REGEX NAME: TAP has this note, and the gate completed.
noted() {
	like "$(grep '^# note: ' out.tap)" "^# note: $1" "$2"
	like "$(tail -1 out.tap)" '^1\.\.[1-9]' "$2: the gate completes"
}

gate -b base.pb.gz --update-baseline -- "$WORK" alpha 5 beta 5
is $? 0 "a baseline is made" || diag "$(cat err)"
gate -b base.pb.gz -- "$WORK" alpha 5 beta 5
unlike "$(cat out.tap)" 'the baseline was made with another|than when the baseline was made' "an equal environment gives no note"
like "$("$COUNTERSINK" report base.pb.gz)" ' in [0-9.]+ m?s, 2 processes' "the baseline reports as one profile of all its runs"

# ---- the way of measuring
gate -b base.pb.gz --engine=timer -- "$WORK" alpha 5 beta 5
noted "the baseline was made with another engine: '(sigtrap|signal)', not 'timer'" "another engine is noted"
unlike "$(cat out.tap)" 'perf_event_open is refused' "a requested engine is not reported as refused perf_event_open"
gate -b base.pb.gz -F 997 -- "$WORK" alpha 5 beta 5
noted "the baseline was made with another sampling frequency: '4999', not '997'" "another frequency is noted"
gate -b base.pb.gz -e page-faults --any-environment -- "$WORK" alpha 5 beta 5
noted "the baseline was made with another event: 'task-clock.*', not 'page-faults" \
	"another event with --any-environment is noted"

# ---- the machine, replaced in a mount namespace
# elsewhere COMMAND: a shell command in a namespace of its own.
elsewhere() {
	if [ "$(id -u)" = 0 ]; then
		unshare --mount --propagation private sh -c "$1"
	else
		unshare --map-root-user --mount --propagation private sh -c "$1"
	fi
}
export COUNTERSINK WORK
mkdir -p cpus/cpu0/cpufreq cpus/cpu1/cpufreq
for file in online possible present; do
	cat /sys/devices/system/cpu/$file >cpus/$file 2>/dev/null
done
echo performance >cpus/cpu0/cpufreq/scaling_governor
echo performance >cpus/cpu1/cpufreq/scaling_governor
if elsewhere 'mount --bind cpus /sys/devices/system/cpu' 2>/dev/null; then
	elsewhere 'mount --bind cpus /sys/devices/system/cpu && exec "$COUNTERSINK" gate --warmup 0 --runs 2 -q \
		-b governed.pb.gz --update-baseline -- "$WORK" alpha 5'
	is $? 0 "a baseline is made where there is a governor"
	echo powersave >cpus/cpu1/cpufreq/scaling_governor
	elsewhere 'mount --bind cpus /sys/devices/system/cpu && exec "$COUNTERSINK" gate --warmup 0 --runs 2 \
		-b governed.pb.gz -- "$WORK" alpha 5' >out.tap 2>err
	noted "the baseline was made with another CPU frequency governor: 'performance', not 'performance, powersave'" \
		"a governor that only one CPU has is noted"
	echo schedutil >cpus/cpu0/cpufreq/scaling_governor
	echo schedutil >cpus/cpu1/cpufreq/scaling_governor
	elsewhere 'mount --bind cpus /sys/devices/system/cpu && exec "$COUNTERSINK" gate --warmup 0 --runs 2 \
		-b governed.pb.gz -- "$WORK" alpha 5' >out.tap 2>err
	noted "the baseline was made with another CPU frequency governor: 'performance', not 'schedutil'" \
		"another governor is noted"
	rm -r cpus/cpu?/cpufreq
	elsewhere 'mount --bind cpus /sys/devices/system/cpu && exec "$COUNTERSINK" gate --warmup 0 --runs 2 \
		-b governed.pb.gz -- "$WORK" alpha 5' >out.tap 2>err
	noted "the baseline was made with another CPU frequency governor: 'performance', not 'unknown'" \
		"a missing governor is noted"

	printf 'processor\t: 0\nmodel name\t: Another CPU at 1 GHz\n' >cpuinfo
	elsewhere 'mount --bind cpuinfo /proc/cpuinfo && exec "$COUNTERSINK" gate --warmup 0 --runs 2 \
		-b base.pb.gz -- "$WORK" alpha 5' >out.tap 2>err
	is $? 1 "another CPU is refused"
	like "$(cat err)" "another CPU: '.*', not 'Another CPU at 1 GHz'; make it again .* or compare all the same" "another CPU is reported with its remedy"
	is "$(wc -l <err)" 1 "another CPU is reported in one line"
	elsewhere 'mount --bind cpuinfo /proc/cpuinfo && exec "$COUNTERSINK" gate --warmup 0 --runs 2 --any-environment \
		-b base.pb.gz -- "$WORK" alpha 5' >out.tap 2>err
	noted "the baseline was made with another CPU: '.*', not 'Another CPU at 1 GHz'" "another CPU with --any-environment is noted"
else
	skip "another governor and CPU" "no mount namespaces here"
fi
if setarch "$(uname -m)" --uname-2.6 true 2>/dev/null; then
	setarch "$(uname -m)" --uname-2.6 "$COUNTERSINK" gate --warmup 0 --runs 2 -b base.pb.gz -- "$WORK" alpha 5 >out.tap 2>err
	noted "the baseline was made with another kernel: 'Linux [3-9].*', not 'Linux 2\.6\." "another kernel is noted"
else
	skip "another kernel" "this machine has no setarch --uname-2.6"
fi

# ---- libraries
# build_library FACTOR FLAG...: what bench calls, in lib/libwork.so.FACTOR, which libwork.so.1 is a link to.
build_library() {
	local factor=$1
	shift
	mkdir -p lib && rm -f lib/libwork.so*
	printf '#include <stdint.h>\nvolatile uint64_t sink;\nvoid work(uint64_t n)\n{\n\tuint64_t x = sink;\n\twhile (n--)\n\t\tx = x * %s + n;\n\tsink = x;\n}\n' \
		"$factor" >work.c
	${CC:-cc} -O1 -shared -fPIC -Wl,-soname,libwork.so.1 "$@" -o "lib/libwork.so.1.$factor" work.c &&
		ln -s "libwork.so.1.$factor" lib/libwork.so.1 && ln -s libwork.so.1 lib/libwork.so
}
if have "${CC%% *}" && build_library 3 -Wl,--build-id=sha1; then
	printf '#include <stdint.h>\nvoid work(uint64_t);\nint main(void)\n{\n\twork(20000000);\n\treturn 0;\n}\n' >bench.c
	${CC:-cc} -O1 -o bench bench.c -Llib -lwork -Wl,-rpath,"$TMP/lib"
	gate -b library.pb.gz --update-baseline -- ./bench
	gate -b library.pb.gz -- ./bench
	unlike "$(cat out.tap)" 'another build' "an unchanged library gives no note"
	build_library 5 -Wl,--build-id=sha1
	gate -b library.pb.gz -- ./bench
	noted "$TMP/lib/libwork.so.1[.5]* is another build than when the baseline was made" "a changed library is named"
	unlike "$(cat out.tap)" 'libc\.so.* another build' "unchanged libraries are not named"
	build_library 3 -Wl,--build-id=none
	gate -b library.pb.gz --update-baseline -- ./bench
	build_library 3 -Wl,--build-id=none -g
	gate -b library.pb.gz -- ./bench
	noted "$TMP/lib/libwork.so.1[.3]* is another build than when the baseline was made" "a changed library without a build-id is named"
	if have valgrind; then
		gate --deterministic=callgrind -b exact.pb.gz --update-baseline -- ./bench
		gate --deterministic=callgrind -b exact.pb.gz -- ./bench
		unlike "$(cat out.tap)" 'another build' "exact counts: an unchanged library gives no note"
		build_library 7
		gate --deterministic=callgrind -b exact.pb.gz -- ./bench
		noted "$TMP/lib/libwork.so.1[.7]* is another build than when the baseline was made" "exact counts: a changed library is named"
	else
		skip "libraries of exact counts" "no valgrind here"
	fi
else
	skip "another library" "no compiler here"
fi

# ---- files that are no baseline
printf 'PERFILE2 and more' >perf.data
printf 'a text\n' >text
: >empty
refused 1 'perf.data: not a profile, but a perf.data file.*keeps this as FILE.old' "a perf.data file" -b perf.data -- "$WORK" alpha 1
refused 1 'text: not a pprof profile' "a text file" -b text -- "$WORK" alpha 1
refused 1 'empty: the file is empty; --update-baseline makes a baseline' "an empty file" -b empty -- "$WORK" alpha 1
refused 1 'option --baseline: \.: ' "a directory" -b . -- "$WORK" alpha 1
refused 1 'option --baseline: \. cannot be written: Is a directory' "a directory as the file to write" -b . --update-baseline -- "$WORK" alpha 1
export TMPDIR=$TMP
refused 1 'option --baseline: /dev/full: No space left on device; the baseline is in ' "a full disk" \
	-b /dev/full --update-baseline -- "$WORK" alpha 1
kept=$(sed -n 's/.*the baseline is in //p' err)
gate -b "$kept" -- "$WORK" alpha 1
like "$(cat out.tap)" '^# runs: 2 and 2 ' "a baseline saved elsewhere on a full disk is usable"
if have valgrind; then
	gate --deterministic=callgrind -b /dev/full --update-baseline -- "$WORK" alpha 1
	kept=$(sed -n 's/.*the baseline is in //p' err)
	gate --deterministic=callgrind -b "$kept" -- "$WORK" alpha 1
	like "$(cat out.tap)" '^ok 1 - instructions unchanged: ' "an exact baseline saved elsewhere is usable"
	like "$(cat out.tap)" '^ok 2 - alpha in gate_work unchanged: ' "an exact baseline saved elsewhere has each function once"
else
	skip "an exact baseline that is kept elsewhere" "no valgrind here"
fi
size=$(stat -c %s base.pb.gz)
bad=0
for n in 1 10 18 100 $((size / 2)) $((size - 8)) $((size - 1)); do
	head -c "$n" base.pb.gz >cut.pb.gz
	gate -b cut.pb.gz -- "$WORK" alpha 1
	{ [ $? = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -Eq 'option --baseline: cut.pb.gz: .*(truncated|cut or damaged)' err; } || {
		bad=$((bad + 1))
		diag "cut to $n bytes: $(cat err)"
	}
done
is $bad 0 "a baseline truncated at any size is refused"

# ---- output that cannot be written is refused before the runs, or the verdict is reported anyway
export GITHUB_ACTIONS=true
GITHUB_STEP_SUMMARY=/nowhere/summary.md refused 1 'GITHUB_STEP_SUMMARY in the environment: /nowhere/summary.md cannot be written' \
	"a summary file that cannot be created" --self-check -- "$WORK" alpha 1
is "$(cat out.tap)" "" "a summary file that cannot be created: no runs are made"
GITHUB_STEP_SUMMARY=/dev/full gate --self-check -- "$WORK" alpha 1
is $? 1 "a summary on a full disk: status 1"
like "$(cat err)" '^countersink: /dev/full: No space left on device' "a summary on a full disk is reported"
like "$(cat err)" '^countersink: the output is incomplete; the verdict: no regression' "a summary on a full disk: stderr has the verdict"
like "$(tail -1 out.tap)" '^1\.\.[1-9]' "a summary on a full disk: TAP is complete"
unset GITHUB_ACTIONS

# ---- a signal that ends the command is a failed run, not an interruption of the gate
cat >dies <<'END'
#!/bin/sh
n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) >count
[ "$n" -lt 2 ] || kill -TERM $$
END
chmod +x dies
gate --self-check -- ./dies
is $? 1 "a run ended by a signal: status 1"
like "$(cat err)" 'run 2 of the command.* failed: signal 15 \(Terminated\)' "the signal that ended the run is reported"
like "$(cat out.tap)" '^Bail out!' "a run ended by a signal: no verdict"

# ---- a baseline may be a pipe, such as <(zcat FILE.gz): the gate waits for it as cat would, and a signal ends that
gate -b <(cat base.pb.gz) -- "$WORK" alpha 5 beta 5
is $? 0 "a baseline that is a pipe is read" || diag "$(cat err)"
mkfifo no_writer
"$COUNTERSINK" gate -b no_writer -- true >out.tap 2>err &
pid=$!
wait_until 30 grep -q "wait_for_partner\|fifo_open" /proc/$pid/wchan || diag "it waits in $(cat /proc/$pid/wchan)"
kill -TERM $pid
wait_until 30 sh -c "! kill -0 $pid 2>/dev/null || grep -q '^State:.Z' /proc/$pid/status" || kill -KILL $pid
wait $pid
is $? 143 "SIGTERM ends a gate that waits for a writer of its baseline"
gate --input no_writer --self-check -- "$WORK" alpha 1
is $? 1 "an --input that is a pipe: status 1"
like "$(cat err)" 'no_writer: a pipe, and each run reads its input anew: give a regular file' \
	"an --input that is a pipe is refused, not waited for"

# ---- memory: the launcher's own memory does not count as the command's
if [ "$(getconf LONG_BIT)" = 64 ]; then
	gate --json rss.json --self-check -- sh -c 'x=$(head -c 6000000 /dev/zero | tr "\0" x)'
	like "$(cat out.tap)" '^ok [0-9]+ - max RSS ' "the memory of a command that uses a few MB is judged"
fi

done_testing
