#!/bin/bash
# Profiles of other tools: Go's runtime, gperftools; and JIT-compiled code, named by its perf map.
. "$(dirname "$0")/lib.sh"

# ---- Go
if have go; then
	cp "$SRC/tests/targets/go_profile.go.txt" main.go
	GOCACHE=$(go_cache)
	export GO111MODULE=off GOCACHE GOPATH=$TMP/go
	ok 'a Go program is built' go build -o goprog main.go
	ok 'the Go program profiles itself' sh -c './goprog 700ms >go.pb.gz'
	"$COUNTERSINK" report go.pb.gz >out 2>err
	is "$? $(cat err)" '0 ' "Go's profile is read"
	like "$(head -1 out)" ' of cpu in .*; [0-9,]+ samples?$' "Go's profile keeps its units"
	like "$(cat out)" 'main.hashAll' "Go's profile has functions"
	want=$(go tool pprof -raw go.pb.gz 2>err | awk '/^Locations/ { exit } /^ +[0-9]+ +[0-9]+: / { sum += $2 } END { printf "%.0f\n", sum }')
	is "$("$COUNTERSINK" report --csv go.pb.gz | awk -F, '{ sum += $3 } END { printf "%.0f\n", sum }')" "$want" "the report has the whole of Go's profile"
	like "$("$COUNTERSINK" report --tree go.pb.gz)" 'main.work' "Go's profile is reported as a tree"
	like "$("$COUNTERSINK" report --annotate main.hashAll go.pb.gz)" 'n \^= n >> 29' "Go's profile is annotated with source lines"
	ok "Go's profile is merged" "$COUNTERSINK" merge -q -o merged.pb.gz go.pb.gz
	is "$(go tool pprof -top merged.pb.gz 2>err | sed -n '/flat%/,$p')" "$(go tool pprof -top go.pb.gz 2>err | sed -n '/flat%/,$p')" \
		'go tool pprof sees the same in a merged profile'
	like "$(go tool pprof -tags merged.pb.gz 2>err)" 'request: Total' 'labels of other tools are kept'
	like "$("$COUNTERSINK" report go.pb.gz -o x 2>&1; "$COUNTERSINK" diff go.pb.gz merged.pb.gz)" '\+0.00 %' "Go's profiles are compared"

	# ---- gperftools
	profiler=$(ldconfig -p | sed -n 's/.*libprofiler\.so.* => //p' | head -1)
	if [ -n "$profiler" ]; then
		LD_PRELOAD=$profiler CPUPROFILE=$TMP/g.prof CPUPROFILE_FREQUENCY=1000 CPUPROFILE_REALTIME=1 "$TARGETS/inlines" 4000 >out 2>&1
		ok "gperftools' profile is converted" sh -c 'go tool pprof -proto "$0" g.prof >g.pb.gz 2>err' "$TARGETS/inlines"
		like "$("$COUNTERSINK" report g.pb.gz 2>&1)" 'churn' "gperftools' profile is read"
	else
		skip 'gperftools' 'libprofiler is not installed'
	fi
else
	skip 'profiles of Go' 'go is not installed'
fi

# ---- JIT-compiled code: the trampolines of Python 3.12, one for each function
python=
for candidate in python3.13 python3.12 python3; do
	if [ -z "$python" ] && "$candidate" -X perf -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' >out 2>&1; then
		python=$("$candidate" -c 'import sys; print(sys.executable)')
	fi
done
if [ -n "$python" ]; then
	cat >work.py <<'END'
import time
def inner_work(n):
    return sum(i * i for i in range(n))
def outer_work():
    end = time.process_time() + 0.6
    while time.process_time() < end:
        inner_work(2000)
outer_work()
END
	ok 'Python is profiled' "$COUNTERSINK" -q -F 1000 -o python.pb.gz -- "$python" -X perf work.py
	like "$("$COUNTERSINK" report --tree python.pb.gz)" 'py::outer_work:.*work.py' "Python's functions have names"
	like "$("$COUNTERSINK" report --callers 'py::inner_work' python.pb.gz)" 'py::outer_work' "Python's functions have callers"
else
	skip 'Python is profiled' 'no Python that has trampolines for perf (3.12)'
fi

# A perf map that we write for a program that generates its code.
cat >jit.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
#if defined(__x86_64__)
	/* mov $N, %ecx; dec %ecx; jnz; ret */
	static const unsigned char code[] = {0xb9, 0x00, 0x00, 0x01, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
#elif defined(__aarch64__)
	static const unsigned int code[] = {0x52a00021, 0x71000421, 0x54ffffe1, 0xd65f03c0};
#endif
	char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[64];
	FILE *map;

	memcpy(made, code, sizeof(code));
	__builtin___clear_cache(made, made + sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx %lx made_at_run_time\n", (unsigned long)made, sizeof(code));
	fclose(map);
	puts(path);
	if (argc > 1)
		system(argv[1]); /* what becomes of the map */
	while (clock() < CLOCKS_PER_SEC / 3)
		((void (*)(void))made)();
	return 0;
}
END
ok 'a program that generates code is built' ${CC:-cc} -o jit jit.c
ok 'a program that generates code is profiled' sh -c '"$0" -q -F 1000 -o jit.pb.gz -- ./jit >map' "$COUNTERSINK"
like "$("$COUNTERSINK" report jit.pb.gz)" 'made_at_run_time$' 'generated code is named by the perf map'
rm -f "$(cat map)"

# Maps of a former process of the same PID, or of another user.
refused() { # WHY COMMAND TITLE
	"$COUNTERSINK" -q -F 1000 -o jit.pb.gz -- ./jit "map=/tmp/perf-\$PPID.map; $2" >map
	"$COUNTERSINK" report jit.pb.gz >out 2>&1
	is "$(grep -c 'made_at_run_time' out):$(grep -cF "$(cat map) $1: code made at run time may have no names" out)" 0:1 "$3"
	rm -f "$(cat map)"
}
refused 'was written before the process started, by a former one of the same PID, and was not read' 'touch -d "1 hour ago" "$map"' \
	'a map that is older than the process is refused'
refused 'is a symbolic link' 'mv "$map" linked; ln -s "$PWD/linked" "$map"' 'a map that is a symbolic link is refused'
if [ "$(id -u)" = 0 ]; then
	refused 'belongs to another user and was not read' 'chown 65534 "$map"' "another user's map is refused"
else
	skip "another user's map is refused" 'only root can give a file to another user'
fi

# A process that was warm before the attach, by more than a file's time may be wrong (2 s), and that has ended when its
# map is read: only the kernel had its start. Its parent leaves no zombie, of which the start would still be known.
mkfifo go_on
touch begun
perl -e '$SIG{CHLD} = "IGNORE"; defined(my $pid = fork) or die; exec @ARGV or die if !$pid; open(my $f, ">", "pid"); print $f $pid;
	close $f; wait' ./jit 'read -r _ <go_on' >map &
wait_until 30 sh -c '[ -s pid ] && [ $(($(date +%s) - $(stat -c %Y begun))) -gt 4 ]'
"$COUNTERSINK" attach -F 1000 -o warm.pb.gz -p "$(cat pid)" >out 2>err &
attach=$!
wait_until 30 grep -q 'attached to' err
echo >go_on
wait $attach
like "$("$COUNTERSINK" report warm.pb.gz)" 'made_at_run_time$' 'a map that was written before an attach is read, though its process has ended'
unlike "$(cat err)" 'was written before' 'the report does not call it older than the process'
rm -f "$(cat map)"
# ---- files that are no profile ----
printf 'PERFILE2........' >perf.data
printf '<!doctype html><p>' >page.html
foreign() { # FILE PATTERN
	"$COUNTERSINK" report "$1" >out 2>err
	is "$? $(wc -l <err)" '1 1' "$1 is refused in a line"
	like "$(cat err)" "^countersink: .*$1: not a profile, but $2" "$1 is named by its kind"
}
foreign perf.data 'a perf.data file: `perf report'
foreign page.html 'a page'
foreign /bin/sh 'a program'
mkdir run
COUNTERSINK_RUN_DIR=$PWD/run LD_PRELOAD=$LIB /bin/true
cp run/*.rec one.rec
foreign one.rec 'a recording: give its directory'

done_testing
