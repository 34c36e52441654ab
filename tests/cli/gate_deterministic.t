#!/bin/bash
# The gate that counts instructions: which tool counts, what it counts, what it does not, and what is reported of that.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
WORK=$TARGETS/gate_work
QEMU=qemu-$(uname -m)
have "$QEMU" || skip_all "no $QEMU here (scripts/install-deps check)"
have valgrind || skip_all "no valgrind here"

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >out.tap 2>err
}

instructions() { # of the gate before
	python3 -c 'import json; d = json.load(open("out.json")); print(int([r for r in d["rows"] if r.get("metric") == "instructions"][0]["means"][1]))'
}

# counted TOOL COMMAND...: the instructions of a run.
counted() {
	local tool=$1
	shift
	gate "--deterministic=$tool" --json out.json --self-check -- "$@" || cat out.tap err >&2
	instructions
}

# near A B PARTS: they differ by less than one in so many parts.
near() {
	awk -v a="$1" -v b="$2" -v parts="$3" 'BEGIN { d = a - b; exit !(a > 0 && b > 0 && (d < 0 ? -d : d) * parts < a) }'
}

# ---- a function with more instructions
gate --deterministic=qemu -T 0.5% --vs "$WORK alpha 2 beta 4" -- "$WORK" alpha 2 beta 4
is $? 0 "the same command: nothing to find"
gate --deterministic=qemu -T 0.5% --vs "$WORK alpha 2 beta 40" -- "$WORK" alpha 2 beta 41
is $? 3 "2.5 % more instructions in one function: status 3"
like "$(cat out.tap)" '^not ok [0-9]+ - beta in gate_work regressed: \+2\.5 % \(\+2\.5 to \+2\.5 in all runs\), 205\.000 M instead of 200\.000 M' \
	"the function is named, with the instructions of both sides"
like "$(cat out.tap)" '^ok [0-9]+ - alpha in gate_work unchanged: \+0\.0 %' "the other function passes"
like "$(cat out.tap)" '^  file: ".*tests/targets/gate_work.c"$' "the function has its file"
like "$(cat out.tap)" "^# event: instructions, counted by qemu-user \\($QEMU version [0-9.]+\\)\$" "the tool and its version are reported"
like "$(cat out.tap)" '^# note: qemu-user counts user space only, by an emulated CPU' "what the tool does not see is reported"
like "$(cat out.tap)" '^# note: runs of one side differ by at most [0-9]+ of [0-9]+ instructions \([0-9.e-]+ %\)$' "the spread of equal runs is reported"
like "$(cat out.tap)" '^# runs: 2 and 2, in pairs .*, 0 to warm up' "two runs of each side"

# ---- the same totals as callgrind's
seq 30000 >numbers
for command in "$WORK alpha 5 beta 5" "gzip -c numbers" "sort -rn numbers"; do
	qemu=$(counted qemu $command)
	ok "${command%% *}: qemu-user's total is callgrind's, within 0.1 % ($qemu)" near "$qemu" "$(counted callgrind $command)" 1000
done
gate --deterministic=qemu -T 0.01% --self-check -- gzip -c numbers
is $? 0 "gzip against itself at a threshold of 0.01 %: no regression"
is "$(grep -c '^not ok' out.tap)" 0 "no function of gzip differs"

# ---- system calls
cat >calls.sh <<'END'
n=0
while [ $n -lt $1 ]; do n=$((n + 1)); echo x >/dev/null; done
END
gate --deterministic=qemu -T 5% --vs "sh calls.sh 500" -- sh calls.sh 600
is $? 3 "more system calls: status 3"
like "$(cat out.tap)" '^not ok 2 - system calls regressed: \+1[5-9]\.[0-9] %' "system calls are judged, beside instructions"
gate --deterministic=qemu --self-check -- sh -c 'n=$(($$ % 64 + 8 * ($(date +%N | sed "s/^0*//") % 50))); while [ $n -gt 0 ]; do n=$((n - 1)); echo x >/dev/null; done'
is "$(grep -c '^ok .*system calls' out.tap):$(grep -c 'note: system calls are not judged: equal runs differ' out.tap)" "0:1" \
	"system calls are not judged where their number differs between equal runs"

# ---- what is not counted
cat >parts.sh <<'END'
#!/bin/sh -e
/bin/true
/nonexistent 2>/dev/null || :
/bin/true
exec /bin/echo x
END
chmod +x parts.sh
gate --deterministic=qemu --self-check -- ./parts.sh
is $? 0 "qemu-user, a script with an argument for its interpreter: it runs"
like "$(cat out.tap)" '^# note: NOT counted: 3 programs that the command executes \(echo, true \(2\)\)' \
	"programs that are not counted are named, with their numbers; one that could not be executed is not"
printf '#! /bin/sh -e \t\n:\n' >blanks.sh
chmod +x blanks.sh
gate --deterministic=qemu --self-check -- ./blanks.sh
is $? 0 "qemu-user, a script whose first line ends with blanks: it runs" || diag "$(cat out.tap err)"
gate --deterministic --json out.json --self-check -- ./parts.sh
is $? 0 "auto, the same script: it runs"
like "$(cat out.tap)" '^# event: instructions, counted by valgrind.s callgrind' "auto gives a command with children to callgrind"
like "$(cat out.tap)" "callgrind was chosen, since .*it executes other programs \\(echo, true \\(2\\)\\), which qemu-user does not count" \
	"the reason is reported"
unlike "$(cat out.tap)" 'NOT counted' "callgrind counts the command's children, too"

# A child that executes nothing is counted. How long the shell looks for n depends on its other variables: it has one.
counted_alone() {
	env -i PATH="$PATH" "$COUNTERSINK" gate --deterministic=qemu --json out.json --self-check -- sh -c "$1" >out.tap 2>err || cat out.tap err >&2
	instructions
}
busy='n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done'
alone=$(counted_alone "$busy")
both=$(counted_alone "($busy); :")
ok "the instructions of a forked child are counted ($both, without a child $alone)" near "$both" "$alone" 100
killed=$(counted_alone "($busy; kill -KILL \$(exec sh -c 'echo \$PPID') ); :")
ok "those of a child that is killed, too ($killed, without a child $alone)" near "$killed" "$alone" 100

# ---- statuses and signals
gate --deterministic=qemu --self-check -- "$WORK" fail 7
is $? 1 "a command that fails: no verdict"
like "$(cat err)" 'a run under qemu-user failed: status 7; its standard error: gate_work: asked to fail' "the status and the standard error of the run are reported"
gate --deterministic=qemu --self-check -- sh -c 'kill -TERM $$'
like "$(cat err)" 'a run under qemu-user failed: signal 15' "the signal that ended it is reported"

# ---- which tool
gate --deterministic --self-check -- "$WORK" alpha 1
like "$(cat out.tap)" '^# event: instructions, counted by (qemu-user|the hardware)' "auto: hardware counters, else qemu-user"
like "$(cat out.tap)" '^# runs: 2 and 2, in pairs ' "--deterministic takes no word that follows"
gate --deterministic=qemu --fold-native --self-check -- "$WORK" alpha 1
is "$?:$(cat err)" "2:countersink: option --fold-native: not with --deterministic, which counts a function's instructions without its callers" \
	"callers are not counted: --fold-native is refused"
gate --deterministic=simics --self-check -- "$WORK" alpha 1
is "$?:$(cat err)" "2:countersink: option --deterministic: 'simics' is unknown (one of: auto, pmu, qemu, callgrind, no) (see countersink help gate)" "another tool is refused"
gate --deterministic=no --runs 2 --self-check -- "$WORK" alpha 1
unlike "$(cat out.tap)" 'instructions, counted' "no: time is measured"
mkdir only && printf '#!/bin/sh\nPATH=%s exec valgrind "$@"\n' "$PATH" >only/valgrind && chmod +x only/valgrind
PATH=$TMP/only gate --deterministic --self-check -- "$WORK" alpha 1
like "$(cat out.tap)" "callgrind was chosen, since .*there is no $QEMU here" "auto without qemu-user: callgrind, with the reason"
PATH=/nowhere gate --deterministic --self-check -- "$WORK" alpha 1
is $? 2 "auto without any of the tools: status 2"
like "$(cat err)" "option --deterministic: .*there is no $QEMU here.*there is no valgrind here" "what is missing is reported"
PATH=/nowhere gate --deterministic=qemu --self-check -- "$WORK" alpha 1
is "$?:$(cat err)" "2:countersink: option --deterministic: there is no $QEMU here (Debian's package: qemu-user)" "qemu without qemu-user is refused"
printf '\177ELF\2\2\1\0\0\0\0\0\0\0\0\0\0\2\0\026%044d' 0 >of_s390x && chmod +x of_s390x
PATH=/nowhere gate --deterministic=qemu --self-check -- ./of_s390x
is "$?:$(cat err)" "2:countersink: option --deterministic: there is no qemu-s390x here (Debian's package: qemu-user)" \
	"a program of the other byte order has its own qemu"
mkdir -p commas,/here && XDG_RUNTIME_DIR=$PWD/commas,/here gate --deterministic=qemu --self-check -- "$WORK" alpha 1
is "$?:$(ls commas,/here)" 0: "a directory for the counts may have a comma in its name" || diag "$(cat out.tap err)"
mkdir -p bare/bin bare/lib && cp "$COUNTERSINK" bare/bin/
bare/bin/countersink gate --deterministic=qemu --self-check -- "$WORK" alpha 1 2>err
is $? 2 "an installation without the plugin: status 2"
like "$(cat err)" 'lib has no countersink/qemu_count.so' "the missing plugin is reported"
mkdir bare/lib/countersink && echo 'no plugin' >bare/lib/countersink/qemu_count.so
bare/bin/countersink gate --deterministic=qemu --self-check -- "$WORK" alpha 1 >out.tap 2>err
is $? 1 "a plugin that cannot be loaded: no verdict"
bare/bin/countersink gate --deterministic --self-check -- "$WORK" alpha 1 >out.tap 2>err
is $? 0 "auto then counts by callgrind"
like "$(cat out.tap)" 'callgrind was chosen, since .*under qemu-user it fails' "callgrind was chosen, with the reason"

# ---- baselines
gate --deterministic=qemu -b qemu.pb.gz --update-baseline -- "$WORK" alpha 2 beta 40
gate --deterministic -T 1% -b qemu.pb.gz -- "$WORK" alpha 2 beta 41
is $? 3 "a baseline that qemu-user counted: the regression is found"
gate --deterministic=callgrind -T 1% -b qemu.pb.gz -- "$WORK" alpha 2 beta 40
is $? 1 "the counts of two tools are not compared"
like "$(cat err)" "another kind of measurement: 'simulated by qemu-user', not 'simulated'" "the reason is reported"
gate --deterministic=callgrind -b callgrind.pb.gz --update-baseline -- "$WORK" alpha 2 beta 40
gate --deterministic -T 1% -b callgrind.pb.gz -- "$WORK" alpha 2 beta 40
is $? 0 "auto takes the tool of the baseline"
like "$(cat out.tap)" '^# event: instructions, counted by valgrind' "the tool that counted is reported"

# ---- a function that is split in two is no regression
CC=${CC:-gcc}
if have "${CC%% *}"; then
	cat >split.c <<'END'
static volatile unsigned sink;
__attribute__((noipa)) static void turn(unsigned nr) { for (unsigned i = 0; i < nr; i++) sink = sink * 5 + i; }
#ifdef SPLIT
__attribute__((noipa)) static void second(unsigned nr) { for (unsigned i = 0; i < nr; i++) sink = sink * 5 + i; }
#else
#define second turn
#endif
__attribute__((noipa)) static void work(unsigned nr) { turn(nr); second(nr); sink++; }
int main(void) { work(1000000); sink++; return 0; }
END
	$CC -O1 -g -o whole split.c && $CC -O1 -g -DSPLIT -o halves split.c
	gate --deterministic=qemu -T 1% --vs ./whole -- ./halves
	is $? 0 "a function of which half moved to a new one: no regression"
	like "$(cat out.tap)" 'cost.* moved' "a note names where cost moved"
	gate --deterministic=callgrind -T 1% --vs ./whole -- ./halves
	is $? 0 "callgrind: no regression either"
	cat >threads.c <<'END'
#include <pthread.h>
static volatile unsigned sink;
static void *work(void *unused) { for (unsigned i = 0; i < 1000000; i++) sink++; return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); work(0); return pthread_join(t, 0); }
END
	$CC -O1 -o threads threads.c -lpthread
	gate --deterministic=qemu -T 50% --self-check -- ./threads
	like "$(cat out.tap)" 'has several threads, whose instructions qemu-user counts without atomic additions' "threads are noted"
else
	skip "a function that is split in two" "no compiler here"
fi

# ---- a disk that is full
if unshare -m true 2>/dev/null; then
	cat >small.sh <<-'END'
		mount -t tmpfs -o size=1m none /dev/shm && exec "$@"
	END
	cat >forks.sh <<-'END'
		i=0
		while [ $i -lt 40 ]; do
			(:) || exit 9
			i=$((i + 1))
		done
	END
	unshare -m sh small.sh "$COUNTERSINK" gate --deterministic=qemu --self-check -- sh forks.sh >out.tap 2>err
	is $? 0 "processes whose counts have no room on the disk run to their end" || diag "$(cat out.tap err)"
	like "$(cat out.tap)" '^# note: NOT counted: [0-9]+ forked process(es)?, for which no file could be made' "they are noted"
else
	skip "processes whose counts have no room on the disk run to their end" "no mount namespace can be made here"
fi
done_testing
