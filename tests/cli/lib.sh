# What every tests/cli/*.t begins with:  . "$(dirname "$0")/lib.sh"
#
# A test runs in a private directory ($TMP, removed at the end) with a clean countersink environment. Points are printed by
# ok, is, isnt, like, unlike; skip says why a point cannot be judged here; done_testing prints the plan last, so that a test
# which dies on its way fails. POSIX sh; BUILD names the build tree (default: build beside this source tree).

SRC=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$SRC/build}
BUILT=$BUILD # whole; of BUILD, a copy below may have only what is tested
COUNTERSINK=$BUILD/bin/countersink
LIB=$BUILD/lib/libcountersink.so
ENTRY=$BUILD'/lib/countersink/$PLATFORM/libcountersink.so' # what the launcher puts into LD_PRELOAD
TARGETS=$BUILD/tests/targets
PATH=$BUILD/bin:$PATH
export PATH

for tap_var in $(env | sed -n 's/^\(COUNTERSINK_[A-Z_]*\)=.*/\1/p'); do
	unset "$tap_var"
done
unset LD_PRELOAD tap_var
LC_ALL=C
export LC_ALL

TMP=$(mktemp -d "${TMPDIR:-/tmp}/countersink-test.XXXXXX") || exit 1
chmod 755 "$TMP"
cd "$TMP" || exit 1
# Where recordings go: a program that another test kills leaves its own elsewhere, and no start here salvages them.
XDG_RUNTIME_DIR=$(mktemp -d /dev/shm/countersink-test.XXXXXX 2>/dev/null || mktemp -d "$TMP/shm.XXXXXX") || exit 1
TMP_RUNS=$XDG_RUNTIME_DIR
chmod 1777 "$TMP_RUNS"
# Nor does the spool of one test have what another one, or this user, left in it.
XDG_STATE_HOME=$TMP_RUNS.state
mkdir "$XDG_STATE_HOME" || exit 1
export XDG_RUNTIME_DIR XDG_STATE_HOME
remove_tmp() { # at the end; a test that has more to end then has a trap of its own
	cd / && rm -rf "$TMP" "$TMP_RUNS" "$TMP_RUNS.state"
}
trap remove_tmp EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A tree in root's own home cannot be entered by the user that root becomes for some tests: they get a copy.
if [ "$(id -u)" = 0 ] && [ -x "$COUNTERSINK" ] && command -v setpriv >/dev/null &&
	! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$COUNTERSINK"; then
	mkdir -p "$TMP/build/tests"
	cp -r "$BUILD/bin" "$BUILD/lib" "$TMP/build/"
	cp -r "$BUILD/tests/targets" "$TMP/build/tests/"
	BUILD=$TMP/build
	COUNTERSINK=$BUILD/bin/countersink
	LIB=$BUILD/lib/libcountersink.so
	ENTRY=$BUILD'/lib/countersink/$PLATFORM/libcountersink.so'
	TARGETS=$BUILD/tests/targets
	PATH=$BUILD/bin:$PATH
fi

formats() { # [line]: of each export format's name, in place of %s
	"$COUNTERSINK" export --format= 2>&1 | sed -n 's/.*(one of: \([^)]*\)).*/\1/p' | tr -d , | xargs printf "${1:-%s}\n"
}

tap_nr=0
tap_failed=0

diag() {
	printf '%s\n' "$*" | sed 's/^/#   /' >&2
}

tap_point() { # passed(0/1) name
	tap_nr=$((tap_nr + 1))
	if [ "$1" = 1 ]; then
		echo "ok $tap_nr - $2"
	else
		echo "not ok $tap_nr - $2"
		tap_failed=$((tap_failed + 1))
	fi
	[ "$1" = 1 ]
}

# ok NAME COMMAND...: passes if the command succeeds (its words go to the diagnostics).
ok() {
	tap_name=$1
	shift
	if tap_out=$("$@" 2>&1); then
		tap_point 1 "$tap_name"
	else
		tap_point 0 "$tap_name"
		diag "failed: $*"
		diag "$tap_out"
		return 1
	fi
}

# is GOT WANT NAME
is() {
	if [ "$1" = "$2" ]; then
		tap_point 1 "$3"
	else
		tap_point 0 "$3"
		diag "got:  $1"
		diag "want: $2"
		return 1
	fi
}

# isnt GOT UNWANTED NAME
isnt() {
	if [ "$1" != "$2" ]; then
		tap_point 1 "$3"
	else
		tap_point 0 "$3"
		diag "got what must not be: $1"
		return 1
	fi
}

# like GOT REGEX NAME: some line of GOT matches the extended regular expression.
like() {
	if printf '%s\n' "$1" | grep -Eq -- "$2"; then
		tap_point 1 "$3"
	else
		tap_point 0 "$3"
		diag "no line matches: $2"
		diag "$1"
		return 1
	fi
}

# unlike GOT REGEX NAME: no line of GOT matches.
unlike() {
	if printf '%s\n' "$1" | grep -Eq -- "$2"; then
		tap_point 0 "$3"
		diag "a line matches: $2"
		diag "$1"
		return 1
	else
		tap_point 1 "$3"
	fi
}

# skip NAME WHY
skip() {
	tap_nr=$((tap_nr + 1))
	echo "ok $tap_nr - $1 # SKIP $2"
}

# skip_all WHY: the whole file cannot be judged here.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

done_testing() {
	echo "1..$tap_nr"
	[ "$tap_failed" = 0 ]
	exit
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# The whole file needs perf_event_open(2).
needs_events() {
	countersink stat -x -o stat.csv -e task-clock -- true
	grep -q '^task-clock,nanoseconds,counted' stat.csv || skip_all "perf_event_open is refused here"
}

# unprivileged COMMAND...: run it as a user without any privilege. Root becomes nobody; others stay who they are.
unprivileged() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}

# What the host took from all CPUs since they started, in ns. Events of clocks count it; the kernel accounts it to no
# process.
steal_counter() {
	awk -v tick="$(getconf CLK_TCK)" '/^cpu / { printf "%.0f\n", $9 * 1e9 / tick }' /proc/stat
}
stolen_since() { # NS: what steal_counter was. It has whole ticks: where it moves at all, one more may be under way.
	echo $(($(steal_counter) - $1)) "$(getconf CLK_TCK)" | awk '{ printf "%.0f\n", $1 ? $1 + 1e9 / $2 : 0 }'
}

# start_ns COMMAND...: the CPU time that a process of it takes here, its exec included, ns: the mean of 50.
start_ns() {
	python3 -c '
import resource, subprocess, sys
for _ in range(50):
    subprocess.run(sys.argv[1:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(int((usage.ru_utime + usage.ru_stime) / 50 * 1e9))' "$@"
}

# wait_until SECONDS COMMAND...: wait for a condition, not for a time; 1 if it did not come true in three times what is more than
# enough on an idle machine.
wait_until() {
	tap_deadline=$(($(date +%s) + 3 * $1))
	tap_looks=0
	shift
	until "$@" >/dev/null 2>&1; do
		tap_looks=$((tap_looks + 1))
		[ $((tap_looks % 10)) != 0 ] || [ "$(date +%s)" -le "$tap_deadline" ] || return 1
		sleep 0.02
	done
}

# go_cache: Go's standard library is compiled once for all tests, where the tree may be written (test_walk_copied.c, too).
go_cache() {
	if mkdir -p "$BUILT/go-cache" 2>/dev/null && [ -w "$BUILT/go-cache" ]; then
		echo "$BUILT/go-cache"
	else
		echo "$TMP/go-cache"
	fi
}

# has_taken_term PID: no SIGTERM waits for the process. Two that wait are one signal to the kernel, with the first one's sender.
has_taken_term() {
	! grep -Eq '^(SigPnd|ShdPnd):.*[4-7c-f][0-9a-f]{3}$' "/proc/$1/status"
}

share_of() { # PROFILE REGEX: the per cent of the samples whose leaf it is, rounded up; without samples "no", with which
# each comparison of numbers fails
	countersink export -f folded -e samples "$1" | awk -v name="$2" '
		{ nr = $NF; all += nr; sub(/ [0-9]+$/, ""); n = split($0, frames, ";"); if (frames[n] ~ name) of += nr }
		END { print all ? int((100 * of + all - 1) / all) : "no" }'
}

# frames_not_read PROGRAM NAME REASON TITLE: it runs, as without countersink, and the report says why no frames are read; no
# function is given a NAME.
frames_not_read() {
	countersink -F 10000 -o p.pb.gz -- "$1" 500 >out 2>err
	is "$?:$(cat out)" "3:" "$4: the program runs as without countersink"
	is "$(grep -c "$3" err)" 1 "$4: the report has one line with the reason"
	is "$(countersink export -f folded p.pb.gz | grep -c "$2")" 0 "$4: no name is guessed"
}

# sample_faults COMMAND...: a sample for each page fault, in truth.pb.gz. On a busy machine a sample can take as long as two page
# faults are apart: then the period is raised, which the report says, and stacks are left out; that is done again.
sample_faults() {
	for _ in 1 2 3 4 5; do
		countersink -q -e page-faults:u -c 1 -o truth.pb.gz -- "$@" >out 2>err </dev/null
		tap_status=$?
		countersink report truth.pb.gz 2>&1 | grep -q 'period raised' || break
	done
	return $tap_status
}

# have_32_bit_program FILE: make a dynamic 32-bit program for x86 whose status is 6; no 32-bit C library's headers are
# needed. 1 if it cannot be made or started here.
have_32_bit_program() {
	printf '%s\n' '.globl _start' '_start: mov $1, %eax' 'mov $6, %ebx' 'int $0x80' '.section .note.GNU-stack, ""' >"$1.S"
	gcc -m32 -nostdlib -fpic -pie -Wl,-dynamic-linker,/lib/ld-linux.so.2 -o "$1" "$1.S" 2>/dev/null || return 1
	"./$1" 2>/dev/null
	[ $? = 6 ]
}

# asks_seldom NAME PATTERN TIMES COMMAND...: of the samples whose stacks match, the kernel is asked for pages less than TIMES a sample,
# by a system call that always fails.
asks_seldom() {
	asks_name=$1 asks_pattern=$2 asks_times=$3
	shift 3
	strace -f -o calls -e trace=rt_sigprocmask countersink -q -o kept.pb.gz -- "$@" >out 2>&1 </dev/null
	asks_samples=$(countersink export -f folded -e samples kept.pb.gz | grep -E "$asks_pattern" | awk '{ nr += $NF } END { print nr + 0 }')
	asks_nr=$(grep -c ' EINVAL ' calls)
	ok "there are samples of $asks_name ($asks_samples)" test "$asks_samples" -ge 50
	ok "for these, pages are asked for less than $asks_times times a sample ($asks_nr in all)" test "$asks_nr" -lt $((asks_times * asks_samples))
}
