#!/bin/bash
# countersink run --rotate: a profile of each slice of a run. Together they have what one profile of the same recordings has.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slices.sh
. "$SRC/tests/cli/slices.sh"

mkdir -m 711 shm
XDG_RUNTIME_DIR=$TMP/shm
export XDG_RUNTIME_DIR
launcher=
trap '[ -z "$launcher" ] || kill -CONT "$launcher"; touch "$TMP/go"; remove_tmp' EXIT

# ---- what is refused
refused() { # PATTERN NAME OPTION...
	pattern=$1 name=$2
	shift 2
	countersink "$@" -- touch was_run >out 2>err
	is "$?" 125 "$name: status 125"
	like "$(cat err)" "$pattern" "$name: the reason is reported"
	ok "$name: nothing is run" test ! -e was_run
}
refused "option --rotate: '0' is not a time above 0" "a slice of 0" --rotate=0
refused "option --rotate: '-1' is not a time above 0 \(as 60s, 5m, 1h; without a unit, seconds\)" "a negative slice" --rotate=-1
refused "option --rotate: '5x' is not a time" "an unknown unit" --rotate=5x
refused "option --rotate: '5sm' is not a time" "two units" --rotate=5sm
refused "option --rotate: '101d' is too long" "101 days" --rotate=101d
refused 'option --rotate: a slice takes at least 0.1 s' "a slice that is too short" --rotate=0.05s
COUNTERSINK_ROTATE=soon refused "COUNTERSINK_ROTATE in the environment: 'soon' is not a time" "the environment"
refused "option --keep: '-1' is not a whole number" "a negative number of slices" --rotate=1 --keep=-1
refused "option --keep-bytes: '1X' is not a number of bytes" "an unknown unit of bytes" --rotate=1 --keep-bytes=1X
refused 'option --keep needs --rotate$' "--keep without --rotate" --keep=2
refused 'option --keep-bytes needs --rotate$' "--keep-bytes without --rotate" --keep-bytes=1M
refused "option --output: slices are profiles, and x.*html asks for another format" "a page" --rotate=1 -o x.html
refused "option --output: '%q' means nothing: .*%t start" "an unknown letter" --rotate=1 -o %q.pb.gz
refused 'option --output: %t is in the name of a directory' "a directory of each slice" --rotate=1 -o %t/x.pb.gz
mkfifo fifo
for path in /dev/null /dev/stdout /dev/fd/2 fifo .; do
	refused "option --output: $path is not a regular file, and slices are files: use --output=NAME.pb.gz" "--output=$path" --rotate=1 -o $path
done
COUNTERSINK_KEEP=2 COUNTERSINK_KEEP_BYTES=1M countersink -q -o kept.pb.gz -- true
ok "these in the environment are for runs with slices: without them there is a profile" test -s kept.pb.gz
mkdir spare
TMPDIR=$PWD/spare countersink -q --rotate=1h -o missing/x.pb.gz -- true 2>err
like "$(tail -n 1 err)" "missing/x\.[^ ]*\.0001\.pb\.gz: No such file or directory; the last slice is in $PWD/spare/x\.[^ ]*\.pb\.gz\$" \
	"a last slice for a missing directory is elsewhere, which is reported"
is "$(find spare -type f -size +0 | wc -l)" 1 "it is there"
is "$(countersink --rotate=5m --print-config | awk '$1 == "rotate" || $1 ~ /^keep/ { print $1, $2 }' | paste -sd,)" \
	"rotate 5m,keep 24,keep-bytes 0" "defaults"

# ---- what a run consists of
# A recording of the whole run is copied when the command has ended, while the launcher, which is stopped, does not know it.
start() { # OUTPUT OPTION... -- COMMAND...: in the background; the command goes on until there is a file `go`
	rm -rf go shm/*
	output=$1
	shift
	begin_whole
	countersink -q -o "$output" --keep=0 "$@" >out 2>err &
	launcher=$!
}
slices() { # how many there are
	find . -maxdepth 2 -name "$(basename "${output%.pb.gz}").*.pb.gz" | wc -l
}
reached() { # N: there is a slice of that number, or of a later one
	list | sed -n 's/.*Z\.0*\([0-9]*\)\.pb\.gz$/\1/p' | awk -v least="$1" '$1 >= least { is_there = 1 } END { exit !is_there }'
}
has_slices() { # N
	[ "$(slices)" -ge "$1" ]
}
state() { # PID STATE
	grep -q "^State:.$2" "/proc/$1/status"
}
command_of() { # the child of the launcher that is not one of its own
	for child in $(pgrep -P "$1"); do
		[ "$(cat "/proc/$child/comm")" = countersink ] || echo "$child"
	done
}
finish() { # the run ends; its recordings are in copy
	command=$(command_of "$launcher")
	kill -STOP "$launcher"
	wait_until 30 state "$launcher" T
	touch go
	wait_until 60 state "$command" Z
	rm -rf copy
	cp -r shm/countersink-* copy
	kill -CONT "$launcher"
	wait "$launcher"
	status=$?
	launcher=
}
cat >sums.py <<'E2'
# sums.py FILE...: of each type, the sum
import json, subprocess, sys
total = {}
for f in sys.argv[1:]:
    for t in json.loads(subprocess.check_output(["countersink", "report", "-j", "-n", "1", f]))["types"]:
        total[t["name"]] = total.get(t["name"], 0) + t["sum"]
print(sorted(total.items()))
E2
list() {
	find . -maxdepth 2 -name "$(basename "${output%.pb.gz}").*.pb.gz" | sort
}
merged_as_whole() { # NAME
	# shellcheck disable=SC2046
	same_as_whole "$1" $(list)
}

# shellcheck disable=SC2016
until_go='until [ -e go ]; do "$0" 20; done; "$0" 60'
start burn.pb.gz -F 997 --rotate=0.3s -- bash -c "$until_go" "$TARGETS/burn"
ok "a fork tree of C programs: slices are written while it runs" wait_until 60 has_slices 3
finish
is "$status $(cat err)" "0 " "its status, and no message"
merged_as_whole "a fork tree of C programs"
numbers=$(for f in $(list); do facts "$f" slice; done)
is "$numbers" "$(seq "$(slices)")" "slices are numbered from 1"
states=$(for f in $(list); do facts "$f" run; done | uniq -c | awk '{ $1 = ""; print }' | paste -sd,)
is "$states" " goes on, ended" "the last one alone says that the run has ended"
is "$(for f in $(list); do facts "$f" run_start; done | uniq | wc -l)" 1 "all have the start of the run"
is "$(for f in $(list); do facts "$f" slice_start; done | sort -C && echo sorted)" sorted "each begins after the one before"
like "$(facts "$(list | head -n 1)" slice_start)" '^20[0-9-]+T[0-9:]+\.[0-9]{3}Z$' "when, in UTC"
is "$(facts "$(list | tail -n 1)" exit)" "status 0" "the last one has the exit status"
# reason_of SLICE: its engine is the timer since there are slices, and a note has the reason
reason_of() {
	case "$(facts "$1" engine):$(facts "$1" note)" in
	'timer: as asked:'*'--rotate samples by timers at '*) echo both ;;
	*'timer: as asked:'* | *'--rotate samples by timers'*) echo one ;;
	*) echo neither ;;
	esac
}
is "$(reason_of "$(list | head -n 1)")" neither "at 997 Hz the engine is what it is without slices"
is "$(ls shm)" "" "no recording is left"

countersink -q --rotate=10 -o seldom.pb.gz -- "$TARGETS/burn" 30 >out 2>err
# Where the kernel's tick is slower than twice the rate, the timer is no choice.
like "$(reason_of "$(find . -name 'seldom.*' | sort | head -n 1)")" '^(both|neither)$' "at the default rate a note has the engine's reason"

start python.pb.gz -F 997 --engine=sigtrap -e task-clock,page-faults --rotate=0.3 -- python3 -c '
import os
def work(n):
    return sum(i * i for i in range(n))
while not os.path.exists("go"):
    work(20000)
    open("ready", "w")
work(100000)'
wait_until 60 test -e ready
before=$(slices)
ok "python3: slices" wait_until 60 has_slices $((before + 2))
finish
is "$status $(cat err)" "0 " "python3: its status, and no message"
merged_as_whole python3
like "$(cat merged.rows)" '^work[ .]' "python3: functions of the program"

# shellcheck disable=SC2016
start chain.pb.gz -F 997 --engine=sigtrap -e task-clock,page-faults --rotate=0.3 -- bash -c 'until [ -e go ]; do "$0" 5 20000; done; exec "$0" 5 40000' "$TARGETS/exec_chain"
ok "chains of execs: slices" wait_until 60 has_slices 2
finish
is "$status $(cat err)" "0 " "chains of execs: its status, and no message"
merged_as_whole "chains of execs"

# ---- what the kernel accounted
output=sum.pb.gz
countersink -q -o "$output" -F 997 --rotate=0.4 --keep=0 -- "$TARGETS/rusage" cpu_ns "$TARGETS/burn" 1500 >out 2>err
has_slices 2
is $? 0 "a program of 1.5 s has slices of 0.4 s"
# shellcheck disable=SC2046
sum=$(python3 sums.py $(list) | sed 's/.*task-clock., \([0-9]*\).*/\1/')
is "$(awk -v sum="$sum" -v cpu="$(cat cpu_ns)" 'BEGIN { print (sum > 0.99 * cpu && sum < 1.01 * cpu) ? "near" : sum " of " cpu }')" near \
	"slices have, within 1 %, what getrusage(2) has"
countersink -o whole.pb.gz -F 997 --rotate=10m -- "$TARGETS/burn" 300 >out 2>err
output=whole.pb.gz
is "$(slices)" 1 "a run that is shorter than a slice: one"
like "$(cat err)" '^countersink: 1 slice written, 0 removed .*; the last one is whole\.[0-9TZ]+\.0001\.pb\.gz$' "it is named"
like "$(cat err)" ' of CPU time in .* 1 process, 1 thread; ' "the report is of the whole run"

# shellcheck disable=SC2016
countersink -o many.pb.gz --rotate=0.5s --keep=0 -- "$TARGETS/rusage" cpu_ns bash -c 'for i in {1..2500}; do (:); done
	until [ "$(ls "$COUNTERSINK_RUN_DIR" | wc -l)" -lt 1500 ] || [ $((n += 1)) -gt 900 ]; do sleep 0.1; done
	ls "$COUNTERSINK_RUN_DIR" | wc -l' >out 2>err
is "$? $(awk '{ print $1 < 1500 }' out)" "0 1" "2,500 processes: the recordings of those that have ended are removed while the run goes on"
output=many.pb.gz
# shellcheck disable=SC2046
sum=$(python3 sums.py $(list) | sed 's/.*task-clock., \([0-9]*\).*/\1/')
is "$(awk -v sum="$sum" -v cpu="$(cat cpu_ns)" 'BEGIN { print (sum > 0.99 * cpu && sum < 1.01 * cpu) ? "near" : sum " of " cpu }')" near \
	"2,500 processes: slices have, within 1 %, what getrusage(2) has"
like "$(cat err)" '^countersink: no report of the whole run, which had more than 1,000 processes: ' "2,500 processes: what makes the report is printed"

# shellcheck disable=SC2016
start mixed.pb.gz -F 997 --rotate=0.3s -- bash -c 'until [ -e go ]; do "$0" 0.02; "$1" 20; done' "$TARGETS/static_spin" "$TARGETS/burn"
ok "programs that cannot be injected: slices" wait_until 60 has_slices 3
touch go
wait "$launcher"
is "$? $(cat err)" "0 " "programs that cannot be injected: the status, and no message"
launcher=
like "$(facts "$(list | tail -n 1)" outside; facts "$(list | tail -n 1)" unprofiled)" '^static_spin' \
	"programs that cannot be injected: the last slice names them"
is "$(for f in $(list | sed '$d'); do facts "$f" outside; facts "$f" unprofiled; done | sort -u)" "" \
	"programs that cannot be injected: no other one does"

# ---- names, on the wall clock
start clock.pb.gz --rotate=2s -- sh -c 'until [ -e go ]; do sleep 0.05; done'
ok "a program that sleeps has slices, too" wait_until 60 has_slices 3
finish
is "$(list | sed -n '2,$p' | sed 's/.*T....\(..\)Z.*/\1/' | awk '{ print $1 % 2 }' | sort -u)" 0 "slices begin at multiples of their length"
is "$(list | sed 's/.*Z\.\([0-9]*\)\.pb\.gz/\1/' | paste -sd' ')" "$(seq -f %04g "$(slices)" | paste -sd' ')" "numbers in names grow from 1"
before=$(slices)
start clock.pb.gz --rotate=2s -- true
wait "$launcher"
launcher=
is "$(list | tail -n 1 | sed 's/.*Z\.\([0-9]*\)\.pb\.gz/\1/')" "$(printf %04d $((before + 1)))" "the next run goes on from there"
SLURM_JOB_ID=17 SLURM_STEP_ID=3 countersink -q --rotate=1m -o 'j%j.%s.%n.%p.%t.pb.gz' -- true
like "$(ls j17*)" '^j17\.3\.1\.[0-9]+\.[0-9]{8}T[0-9]{6}Z\.pb\.gz$' "job, step, ranks, PID and time"
SLURM_JOB_ID=17 countersink -q -o 'once.%j.%t.pb.gz' -- true
like "$(ls once*)" '^once\.17\.[0-9]{8}T[0-9]{6}Z\.pb\.gz$' "without --rotate as well"

# ---- bounds
touch keep.pb.gz keep.20200101T000000Z.1.pb.gz keep.20200101T000000Z.0001.pb.gz.17
start keep.pb.gz --rotate=0.2 --keep=2 -- sh -c 'until [ -e go ]; do sleep 0.05; done'
ok "slices go on" wait_until 60 reached 4
finish
is "$(find . -name 'keep.202[1-9]*' | wc -l)" 2 "--keep=2: two are left"
ok "the oldest are gone" test -z "$(find . -name 'keep.*.000[12].pb.gz')"
is "$(find . -name "keep.pb.gz" -o -name "keep.2020*" | wc -l)" 3 "no other file is removed"
bytes=$(list | tail -n 1 | xargs stat -c %s)
start bytes.pb.gz --rotate=0.2 --keep=0 --keep-bytes=$((3 * bytes)) -- sh -c 'until [ -e go ]; do sleep 0.05; done'
ok "slices go on" wait_until 60 reached 8
finish
ok "--keep-bytes: no more bytes than that" test "$(list | xargs stat -c %s | paste -sd+ | bc)" -le $((3 * bytes))
start all.pb.gz --rotate=0.1 --keep=0 -- sh -c 'until [ -e go ]; do sleep 0.05; done'
ok "--keep=0: more than 24 are written" wait_until 60 has_slices 26
finish
is "$(list | head -n 1 | sed 's/.*Z\.\([0-9]*\)\.pb\.gz/\1/')" 0001 "--keep=0: all are kept"

# ---- ends that are none
# shellcheck disable=SC2016
start killed.pb.gz -F 997 --rotate=0.3 -- bash -c 'until [ -e go ]; do "$0" 20; done; kill -9 $$' "$TARGETS/burn"
ok "slices of a program that is going to be killed" wait_until 60 has_slices 2
finish
is "$status" 137 "killed: the status"
is "$(facts "$(list | tail -n 1)" exit)" "signal 9 (Killed)" "killed: the last slice says it"
countersink report -q -o whole.pb.gz copy 2>report.err
# shellcheck disable=SC2046
is "$(python3 sums.py $(list) | sed 's/, (.task-clock.*//')" "$(python3 sums.py whole.pb.gz | sed 's/, (.task-clock.*//')" "killed: no sample is lost, none is counted twice"

start orphan.pb.gz -F 997 --rotate=0.3 -- bash -c "$until_go" "$TARGETS/burn"
ok "slices of a launcher that is going to be killed" wait_until 60 has_slices 2
before=$(slices)
writer=$(pgrep -P "$launcher" -x countersink | head -n 1)
kill -9 "$launcher"
wait "$launcher" 2>/dev/null
launcher=
touch go
ended() { [ "$(facts "$(list | tail -n 1)" run)" = ended ]; }
ok "the launcher is killed: a last slice is written" wait_until 60 ended
ok "and the process that wrote it ends" wait_until 60 test ! -e "/proc/$writer"
ok "there are more than before" test "$(slices)" -gt "$before"
like "$(facts "$(list | tail -n 1)" note)" '(^|; )countersink was killed: what the command does from here on is in no slice' "the last slice has a note of it"

countersink --rotate=1 -o nothing.pb.gz -- ./not_there >out 2>err
is "$? $(cat err)" "127 countersink: ./not_there: No such file or directory" "a command that is not there"
is "$(find . -maxdepth 1 -name "nothing*gz" | wc -l)" 0 "it leaves no slice"

# ---- attach
needs_to_attach=$(countersink attach -q -d 0.1 -o probe.pb.gz -p $$ 2>&1)
if [ ! -e probe.pb.gz ]; then
	skip "attach --rotate" "attach is refused here: $needs_to_attach"
else
	rm -rf shm/*
	"$TARGETS/burn" 100000000 >/dev/null &
	target=$!
	output=attached.pb.gz
	countersink attach -F 997 --rotate=0.3 --keep=0 -o "$output" -p $target >out 2>err &
	launcher=$!
	ok "attach: slices" wait_until 60 has_slices 3
	kill -TERM "$launcher"
	wait "$launcher"
	is $? 0 "attach: its status"
	launcher=
	kill -9 $target
	wait $target 2>/dev/null
	# shellcheck disable=SC2046
	countersink merge -q -o merged.pb.gz $(list) 2>merge.err
	whole=$(grep ' of CPU time in ' err)
	merged=$(countersink report -n 1 merged.pb.gz 2>&1 | grep ' of CPU time in ')
	is "$(echo "$merged" | sed 's/ in [^,]*,/,/')" "$(echo "$whole" | sed 's/ in [^,]*,/,/')" \
		"attach: slices have the time and the samples of its report, and count its process once"
	is "$(for f in $(list); do facts "$f" slice; done)" "$(seq "$(slices)")" "attach: slices are numbered from 1"
	is "$(for f in $(list); do facts "$f" run; done | sort | uniq -c | awk '$2 == "ended" { print $1 }')" 1 "attach: one is the last"
	like "$(cat err)" '^countersink: [0-9]+ slices written, 0 removed' "attach: how many there are is reported"
	is "$(ls shm)" "" "attach: no directory is left"
fi
countersink attach --rotate=1 -o no.pb.gz -- touch was_run >out 2>err
is "$? $(cat err)" "125 countersink: option --rotate: of a command that is started, \`countersink run --rotate\` writes slices" "attach: a command"
ok "it is not run" test ! -e was_run

# ---- each slice is sent
sent() { # NAME ARGUMENT...: countersink, with slices that are sent; it is given time until as many have arrived as there are
	name=$1
	shift
	rm -rf spool sent.*
	COUNTERSINK_SPOOL=$PWD/spool "$SRC/tests/send/server.py" 200:all -- timeout 100 sh -c '"$@" 2>err
		until [ "$(ls got/*.line | wc -l)" = "$(ls sent.*.pb.gz | wc -l)" ]; do sleep 0.05; done' sh countersink "$@" >out
	is "$?" 0 "$name: as many requests are made as there are slices"
	is "$(sed 's/PUT .//; s/ HTTP.*//' got/*.line | sort)" "$(ls sent.*.pb.gz)" "$name: each slice is sent once"
	ok "$name: there are several" test "$(ls sent.*.pb.gz | wc -l)" -gt 1
}
if [ ! -x "$BUILD/bin/countersink-send" ]; then
	skip "slices are sent" "countersink-send is not built: the headers of libcurl are not here"
else
	sent "run --rotate --send" run -q --rotate=0.2 --keep=0 --send=put+http://@ADDRESS@/%n -o sent.pb.gz -- timeout 1.5 "$TARGETS/burn" 100000000
	# A server that is away, and comes back: what is kept is sent, and two lines say so.
	rm -rf spool away.* got open stop
	# shellcheck disable=SC2016
	COUNTERSINK_SPOOL=$PWD/spool timeout 200 "$SRC/tests/send/server.py" --opens open 200:all -- bash -c '. "$0/tests/cli/lib.sh"
		cd "$1"
		countersink -q --rotate=0.3 --keep=0 --send-timeout=0.1 --send=put+http://@ADDRESS@/%n -o away.pb.gz -- sh -c "until [ -e stop ]; do \"\$0\" 20; done" "$2" >/dev/null 2>away.err &
		slices() { [ "$(ls away.*.pb.gz | wc -l)" -ge "$1" ]; }
		wait_until 60 slices 6
		cp away.err before.err
		touch open
		wait_until 60 grep -q "sent again" away.err
		touch stop
		wait' "$SRC" "$PWD" "$TARGETS/burn" >out 2>&1
	is "$(grep -c '^countersink: slices are sent again, and those that were kept$' away.err)" 1 "a server that comes back is reported once"
	lines=$(grep -c 'was not sent' before.err)
	ok "a server that is away is reported for the first slices, of 6 ($lines lines)" test "$lines" -ge 1 -a "$lines" -le 3
	if [ -e probe.pb.gz ]; then
		"$TARGETS/burn" 100000000 >/dev/null &
		target=$!
		sent "attach --rotate --send" attach -q -d 1.5 --rotate=0.2 --keep=0 --send=put+http://@ADDRESS@/%n -o sent.pb.gz -p $target
		kill -9 $target
		wait $target 2>/dev/null
	else
		skip "attach: slices are sent" "attach is refused here: $needs_to_attach"
	fi
fi

# The process that writes slices is killed while a slice is being sent: the launcher does not wait for that one.
if [ -x "$BUILD/bin/countersink-send" ]; then
	rm -rf spool lone.*
	# shellcheck disable=SC2016
	timeout 300 "$SRC/tests/send/server.py" 200:then=sent 200:all -- bash -c '. "$0/tests/cli/lib.sh"
		cd "$1" || exit
		countersink -q --rotate=0.2 --spool=no --send-timeout=1000 --send=put+http://@ADDRESS@/%n -o lone.pb.gz -- sh -c "until [ -e got/1.line ]; do sleep 0.05; done; touch asked
			until [ -e ended ]; do sleep 0.05; done" 2>err &
		launcher=$!
		wait_until 60 test -e asked
		for child in $(pgrep -P $launcher -x countersink); do
			[ "$(ps -o ni= -p "$child")" -gt "$(ps -o ni= -p $launcher)" ] && kill -9 "$child"
		done
		touch ended
		wait_until 60 grep -q "the process that wrote slices was ended" err && echo first
		touch sent
		wait' "$SRC" "$TMP" >out
	is "$(tail -n 1 out)" first "killed while a slice is sent: the launcher does not wait until that has ended"
	output=lone.pb.gz
	for slice in $(list); do facts "$slice" note; done >notes
	is "$(grep -c 'the process that wrote slices was ended: this slice has the whole run, also what slices before it have' notes)" 1 \
		"killed while a slice is sent: one slice has a note of what it has"
else
	skip "killed while a slice is sent" "countersink-send is not built: the headers of libcurl are not here"
fi

# ---- a disk that is full for a while
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	skip "a full disk" "only root can mount a small file system"
else
	mkdir -p small
	begin_whole
	# shellcheck disable=SC2016
	unshare -m bash -c '
		. "$0/tests/cli/lib.sh"
		cd "$1" && XDG_RUNTIME_DIR=$1/shm && mount -t tmpfs -o size=128k none small && rm -rf go shm/* || exit 1
		there() { ls small/*."$1".pb.gz; }
		filled() { grep -q "could not be written" err; }
		rest() { [ "$(ls small/p.*.pb.gz | wc -l)" -gt "$1" ]; }
		countersink -q -F 997 -o small/p.pb.gz --rotate=0.3 -- bash -c "$2" "$TARGETS/burn" >out 2>err &
		launcher=$!
		wait_until 60 there 0001
		cat /dev/zero >small/fill 2>/dev/null
		wait_until 60 filled
		before=$(ls small/p.*.pb.gz | wc -l)
		ls small | grep -vc "^p\..*gz$\|^fill$" >leftovers
		rm small/fill
		wait_until 60 rest "$before"
		kill -STOP $launcher
		command=$(pgrep -P $launcher -x bash)
		touch go
		gone() { grep -q "^State:.Z" /proc/$command/status; }
		wait_until 60 gone
		rm -rf copy
		cp -r shm/countersink-* copy
		kill -CONT $launcher
		wait $launcher
		mkdir full && cp small/p.* full/' "$SRC" "$TMP" "$until_go" >full.out 2>&1
	is "$(cat leftovers)" 0 "a full disk leaves no torn file"
	is "$(grep -c "a slice could not be written: No space left on device; the next one will have its time, too" err)" 1 "it is reported, once"
	warning=$(for f in full/p.*; do facts "$f" warning; done | grep -v '^$')
	like "$warning" '^[0-9]+ slices? before this one (was|were) not written, No space left on device: this one has their time, too$' \
		"the next slice says that it has more than its own time"
	output=full/p.pb.gz
	merged_as_whole "a full disk"
	mkdir -p small
fi

done_testing
