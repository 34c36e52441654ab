#!/bin/sh
# Stacks of programs by Go that the library is injected into: every frame as Go's runtime reports it, and calls in samples at any
# moment, on stacks of goroutines, of threads and of C; stripped, and loaded anywhere. Then the same from outside.
. "$(dirname "$0")/lib.sh"

FRAMES=$SRC/tests/frames
[ "$(uname -m)" = x86_64 ] || skip_all "stacks of Go are walked by its tables on x86-64"
have go || skip_all "go is not installed"
have python3 || skip_all "python3 is not installed"
needs_events
GOCACHE=$(go_cache)
export GO111MODULE=off CGO_ENABLED=1 GOFLAGS='' GOCACHE

build() { # FILE SOURCE OPTIONS...
	file=$1
	source=$2
	shift 2
	go build -o "$file" "$@" "$FRAMES/$source" >build.log 2>&1 || {
		cat build.log
		return 1
	}
}
build truth truth.go || skip_all "go builds no programs with C here"
build truth-pie truth.go -buildmode=pie
build truth-stripped truth.go -ldflags='-s -w' -trimpath
build work work.go
build work-pie work.go -buildmode=pie

for program in truth truth-pie truth-stripped; do
	countersink -e page-faults:u -c 8 -o truth.pb.gz -- ./$program truth.json 600 >out 2>err </dev/null
	is "$?:$(cat out)" "0:done" "$program runs as without countersink"
	python3 -B "$FRAMES/compare_go.py" truth.json truth.pb.gz >compared
	# On a busy machine one of the 600 had no sample, in 2 of some 30 runs; none was ever wrong.
	like "$(cat compared)" '^600 stacks, [0-9]+ frames, [0-3] missing, 0 false, 0 without a root$' \
		"$program: every function, file and line of every frame is right, down to the goroutine's beginning"
done

calls() { # TITLE PROGRAM [outside]
	python3 -B "$FRAMES/calls_go.py" "$2" async.pb.gz $3 >judged 2>&1
	is "$?:$(grep -c '^[0-9]* stacks judged' judged)" 0:1 "$1: $(head -n 1 judged)"
	[ "$(wc -l <judged)" = 1 ] || diag "$(cat judged)"
}
for program in work work-pie; do
	for rate in 1000 20000; do
		countersink -F $rate -o async.pb.gz -- ./$program 1 16 >out 2>err </dev/null
		is "$?:$(cat out)" "0:done" "$program at $rate Hz: output and status are as without countersink"
		calls "$program at $rate Hz: calls are those of its code, and stacks are whole" ./$program
	done
done
go=$(readlink -f "$(command -v go)")
if readelf -lW "$go" | grep -q INTERP; then
	go list std >want
	countersink -F 2000 -o async.pb.gz -- go list std >out 2>err
	is "$?:$(cmp want out 2>&1)" "0:" "go itself: output and status are as without countersink"
	calls "go itself: calls are those of its code, and stacks are whole" "$go"
else
	skip "go itself: calls are those of its code, and stacks are whole" "go is not injected here: it is static"
fi

# Stripped, in a program of another language, whose stack is below that of Go.
if build libwork.so library.go -buildmode=c-shared -ldflags='-s -w'; then
	countersink -F 1000 -o lib.pb.gz -- python3 -c "import ctypes; print(ctypes.CDLL('$PWD/libwork.so').Work(5))" >out 2>err </dev/null
	is "$?:$(cat out)" "0:10" "a library by Go in Python: output and status are as without countersink"
	countersink export -f folded -e samples lib.pb.gz | grep ';main\.deep' >stacks
	calls='main\.deep;main\.deep;main\.deep;main\.deep;main\.deep;main\.deep'
	like "$(grep -cE "^(.*;)?_start;.*;<module>;.*;Work;.*;main\.Work;$calls" stacks):$(grep -c "runtime\.goexit;main\.Work\.func1;$calls" stacks)" \
		'^[1-9][0-9]*:[1-9]' "a library by Go is called by Python, and by a goroutine of its own"
	whole=$(awk '{ all += $NF; if (/(^|;)_start;|runtime\.goexit;/) whole += $NF } END { print all ? 100 * whole / all : 0 }' stacks)
	ok "98 % of its stacks or more reach that ($whole %)" awk "BEGIN { exit !($whole >= 98) }"
else
	skip "a library by Go in Python" "go builds none here"
fi

# New stacks of goroutines have no room for a signal: all must come on the alternate stack, which beside AddressSanitizer is not
# used otherwise.
cat >sanitized.c <<'C'
#include <dlfcn.h>
int main(void)
{
	void *library = dlopen("./libnew.so", RTLD_NOW);
	long (*work)(long) = (long (*)(long))dlsym(library, "Work");

	return work(60000) != 60000;
}
C
if build libnew.so new_stacks.go -buildmode=c-shared -ldflags='-s -w' &&
	cc -fsanitize=address -o sanitized sanitized.c -ldl 2>cc.err; then
	for engine in sigtrap signal timer; do
		ASAN_OPTIONS=detect_leaks=1 countersink -q -F 5000 --engine=$engine -o new.pb.gz -- ./sanitized >out 2>err </dev/null
		is "$?:$(head -c 200 err)" "0:" "goroutines on new stacks, with AddressSanitizer, $engine: the program runs"
		like "$(countersink report --all new.pb.gz)" ' main\.descend' "goroutines on new stacks, with AddressSanitizer, $engine: they are sampled"
	done
else
	skip "goroutines on new stacks, with AddressSanitizer" "go or cc builds none here"
fi

countersink attach -F 1000 -o async.pb.gz -- ./work 1 16 >out 2>err </dev/null
is "$?:$(cat out)" "0:done" "attach: output and status are as without countersink"
calls "attach: calls are those of its code, and stacks are whole" ./work outside
done_testing
