#!/bin/bash
# Programs that cannot be injected are sampled from outside, in the profile of the run, whichever program starts them and
# by whichever call, with each program's CPU time in the profile once.
. "$(dirname "$0")/lib.sh"

needs_events

cp "$TARGETS/chain" dynamic
cp "$TARGETS/static_chain" static
export CHAIN_LOG=$TMP/log
WORK=0.1
# What a start takes here, which a program's log does not have, ns.
START=$(CHAIN_LOG=/dev/null; start_ns ./static 0)

# judge.py PROFILE STOLEN: what is wrong with it, if anything. Each program's samples have as much CPU time as it has logged; leaf
# has three times as much as other; all rows add up to what wait4(2) says.
cat >judge.py <<'P'
import collections, json, os, subprocess, sys
report = json.loads(subprocess.check_output(['countersink', 'report', '-j', '-a', '--no-pager', sys.argv[1]]))
facts = collections.defaultdict(list)
for fact in report['facts']:
    key, text = fact.split(': ', 1)
    facts[key].append(text)
logged, shown, parts = collections.Counter(), collections.Counter(), collections.Counter()
nr = collections.Counter()
def program(name): # readers of 32-bit symbols name these
    return 'm32' if name.startswith('m32') else name
for line in open('log'):
    name, seconds = line.split()
    name = program(name)
    logged[name] += float(seconds) * 1e9
    nr[name] += 1
left_out = collections.Counter() # --follow
for row in report['rows']:
    shown[program(row['module'])] += row['self']
    if row['name'].startswith('[not followed: '):
        left_out[row['name'][15:-1]] += row['self']
    parts[row['module'], row['name'].removeprefix('main.')] += row['self'] # Go's are of a package
usage = int(facts['user_ns'][0]) + int(facts['sys_ns'][0])
total = sum(row['self'] for row in report['rows'])
# CPU time that the machine's host took away: perf's clock goes on meanwhile, the programs' and wait4's do not.
stolen = int(sys.argv[2])
start = max(4e6, 1.5 * int(os.environ['START']))
# The kernel's two clocks differ by a millisecond a process.
if not -0.01 * usage - 1e6 * sum(nr.values()) <= total - usage <= 0.01 * usage + 1e6 * sum(nr.values()) + stolen:
    print('all rows are', total / usage, 'of the CPU time')
for name in logged:
    unnamed = name == 'm32'
    got = shown[name] + left_out[name] + (shown['[anon]'] if unnamed else 0)
    if not 0.95 * logged[name] <= got <= 1.05 * logged[name] + start * nr[name] + stolen:
        print('short:' if got < logged[name] else 'more:', name, 'has', got / 1e6, 'ms of', logged[name] / 1e6)
    share = parts[name, 'leaf'] / ((parts[name, 'leaf'] + parts[name, 'other']) or 1)
    if not unnamed and not left_out[name] and not 0.6 < share < 0.9:
        print(name, 'has a share of', share, 'in leaf')
for text in facts['unprofiled']:
    if text.split(' (not followed)')[0] not in left_out:
        print('unprofiled', text)
follow = os.environ.get('COUNTERSINK_FOLLOW')
others = set(logged) - set(follow.split(',')) if follow else set()
if set(left_out) != others:
    print('not followed:', sorted(left_out), 'instead of', sorted(others))
for name in left_out:
    if shown[name] or not any(text.startswith(name + ' (not followed)') for text in facts['unprofiled']):
        print(name, 'is not to be shown')
P

chain_stolen=$(steal_counter)
judge() {
	START=$START python3 judge.py "$1" "$(stolen_since "$chain_stolen")" || echo "judge.py failed"
}

# chain NAME STATUS COMMAND...: run it, and judge.
chain() {
	chain_name=$1 chain_status=$2
	shift 2
	for chain_try in 1 2 3; do
		: >log
		chmod 666 log
		chain_stolen=$(steal_counter)
		"${AS[@]}" "${BOUND[@]}" countersink -o c.pb.gz -- "$@" >out 2>err
		chain_ended="$? $(cat out)"
		chain_wrong=$(judge c.pb.gz)
		# A launcher without a CPU answers late, once, or after a program has waited long enough, which then is not
		# sampled; and the host's theft of less than a tick is not seen: what is sampled too little, too much or
		# not at all every time is wrong.
		{ [ "$chain_ended" = "$chain_status " ] && [ "$chain_wrong" ] && ! grep -qvE '^(short:|all rows|unprofiled static \(static, cannot be preloaded into\))' <<<"$chain_wrong"; } || break
		diag "try $chain_try: $chain_wrong"
	done
	is "$chain_ended" "$chain_status " "$chain_name: status and output are the program's own"
	is "$chain_wrong" "" "$chain_name: each program has its CPU time, once" || diag "$(cat err)"
}
AS=() BOUND=()

chain "a static command" 3 ./static 0.3 3
like "$(cat err)" 'engine +from outside' "a static command: the engine's line says how it is sampled"
like "$(cat err)" 'outside .*: static$' "a static command: the line outside names it"
chain "static, dynamic" 4 ./static $WORK exec ./dynamic $WORK 4
chain "dynamic, static, dynamic, static by exec" 5 \
	./dynamic $WORK exec ./static $WORK exec ./dynamic $WORK exec ./static $WORK 5
for how in fork vfork spawn popen system; do
	chain "dynamic, static, dynamic, static by $how" 6 \
		./dynamic $WORK $how ./static $WORK $how ./dynamic $WORK $how ./static $WORK 6
done
chain "execveat" 7 ./dynamic $WORK at ./static $WORK 7
chain "exec from a second thread" 7 ./dynamic $WORK thread ./static $WORK 7
chain "an exec that fails, then one that does not" 7 ./dynamic $WORK fail ./static $WORK 7
chain "a child of a program whose exec failed" 0 \
	sh -c "./dynamic $WORK fail ./dynamic $WORK fork ./static $WORK; ./static $WORK"
chain "a second child of a thread that posix_spawn(3) has armed" 0 \
	python3 -c 'import os
for program in ["./static", "./dynamic", "./static"]:
    os.waitpid(os.posix_spawn(program, [program, "0.1"], os.environ), 0)
os.waitpid(os.fork() or os.execv("./static", ["./static", "0.1"]), 0)'
printf '#!%s %s\n' "$TMP/static" $WORK >script
chmod +x script
chain "#! with a static interpreter" 0 ./dynamic $WORK fork ./script
chain "sixteen at a time" 0 sh -c 'seq 160 | xargs -P 16 -I {} sh -c "./static 0.005; ./dynamic 0.005"'
chain "--outside=auto is the default, and a process without exec is not sampled twice" 0 \
	sh -c "./dynamic $WORK & ./dynamic $WORK & ./static $WORK & wait"

# What a program below a boundary opens once more is closed again: each fork, exec and exit would pay for it. The last
# program of a chain counts the events that the launcher has open, until there are as few as after a short chain.
cat >opened.py <<'P'
import os, sys, time
def opened():
    directory, nr = '/proc/%d/fd/' % os.getppid(), 0
    for name in os.listdir(directory):
        try:
            nr += 'perf_event' in os.readlink(directory + name)
        except OSError:
            pass
    return nr
enough, end = int(sys.argv[1]), time.time() + 20
least = opened()
while least > enough and time.time() < end:
    os.waitpid(os.posix_spawn('./static', ['static', '0'], os.environ), 0) # the launcher has something to do
    least = min(least, opened())
print(least)
P
links=() python=$(command -v python3)
for _ in {1..20}; do
	links+=(./static 0 exec ./dynamic 0 exec)
done
few=$(countersink -o e.pb.gz -- ./dynamic 0 exec "${links[@]:0:6}" "$python" opened.py 1000 2>err)
like "$few" '^[1-9]' "the events that a launcher has open are counted" || diag "$(cat err)"
is "$(countersink -o e.pb.gz -- ./dynamic 0 exec "${links[@]}" "$python" opened.py "$few" 2>err)" "$few" \
	"static and dynamic programs in turn, twenty of each: events are open for the first static one alone" || diag "$(cat err)"
cat >threads.py <<'P'
import os, sys, threading
def nested(depth):
    os.waitpid(os.posix_spawn('./static', ['static', '0'], os.environ), 0)
    if depth:
        thread = threading.Thread(target=nested, args=(depth - 1,))
        thread.start()
        thread.join()
    else:
        exec(open('opened.py').read())
nested(int(sys.argv[2]))
P
few=$(countersink -o e.pb.gz -- python3 threads.py 1000 0 2>err)
is "$(countersink -o e.pb.gz -- python3 threads.py "$few" 20 2>err)" "${few:-some}" \
	"a thread has the events of the one that created it, and opens no others" || diag "$(cat err)"

# A thread that starts many has the events itself, by the launcher: its later children inherit them, and ask for none.
cat >many.py <<'P'
import os, struct, subprocess, sys, time
def start(program, seconds, many=1): # at a time: it is their rate that counts, which where a start is dear depends on the waits
    if sys.argv[1] == 'vfork':
        return [child.wait() for child in [subprocess.Popen([program, seconds]) for _ in range(many)]]
    pids = []
    for _ in range(many):
        pids.append(os.fork())
        if not pids[-1]:
            os.execv(program, [program, seconds])
    for pid in pids:
        os.waitpid(pid, 0)
def is_armed():
    with open(os.environ['COUNTERSINK_RUN_DIR'] + '/boundary', 'rb') as file:
        parents = file.read()[-64 * 16:] # none before the first
    return os.getpid() in [struct.unpack_from('i', parents, at)[0] for at in range(0, len(parents) - 15, 16)]
before, end = is_armed(), time.time() + 20
while not is_armed() and time.time() < end:
    start('./static', '0', 16)
print(before, is_armed())
for program in ['./static'] * 20 + ['./dynamic'] * 10 + ['./static'] * 20:
    start(program, '0.02')
P
for how in fork vfork; do
	for chain_try in 1 2 3; do
		: >log
		chain_stolen=$(steal_counter)
		armed=$(countersink -o m.pb.gz -- python3 many.py $how 2>err)
		chain_wrong=$(judge m.pb.gz)
		[ "$chain_wrong" ] || break
		diag "try $chain_try: $chain_wrong"
	done
	is "$armed" "False True" "$how: a thread that starts many static programs has events of its own after some" || diag "$(cat err)"
	is "$chain_wrong" "" "$how: before and after, each program has its CPU time, once" || diag "$(cat err)"
done

# The library is mapped before all else of a dynamic program, and called last: what the loader does meanwhile is known from
# outside.
cat >resolved.c <<'END'
	static int resolved(void) { return 0; }
	__attribute__((used)) static int (*resolve_slowly(void))(void)
	{
		for (volatile long i = 0; i < 400000000; i++) { } /* at 4 kHz more samples than have a moment of their own, 512, and fewer than have one, 16,384 */
		return resolved;
	}
	int slow(void) __attribute__((ifunc("resolve_slowly")));
	int spin(void) { for (volatile long i = 0; i < 50000000; i++) { } return 0; }
END
echo 'int slow(void), spin(void); int main(void) { return slow() + spin(); }' >calls_resolved.c
gcc -O1 -fPIC -shared -Wl,--build-id -o libresolved.so.1 resolved.c && ln -s libresolved.so.1 libresolved.so &&
	gcc -O1 -Wl,-z,now -o calls_resolved calls_resolved.c ./libresolved.so
for chain_try in 1 2 3; do # beside load a process may wait, and the launcher, too
	countersink -F 4000 -o c.pb.gz -- ./static 0.01 fork ./calls_resolved 2>err
	loaded=$(countersink report -x -a c.pb.gz | awk -F, '
		/,libresolved.so,/ && !/^spin,/ { named += $3 }
		/^"?\[start-up/ { start = $3 }
		END { print (named > 9 * start ? "named" : named " of " named + start) }')
	[ "$loaded" = named ] && break
	diag "try $chain_try: $loaded"
done
is "$loaded" named "below a static program, what the loader does before it calls the library is sampled" || diag "$(cat err)"
is "$(countersink report -x -a c.pb.gz | awk -F, '$2 ~ /resolved.so/ && $3 { print $2 }' | sort -u)" libresolved.so \
	"a file that the kernel names otherwise than the loader is one module"

# ---- kinds of programs ----

if have musl-gcc; then
	musl-gcc -O1 -fno-inline -o musl "$SRC/tests/targets/chain.c" -I"$SRC" 2>/dev/null
fi
if [ -x musl ]; then
	chain "musl below static" 3 ./static $WORK fork ./musl $WORK vfork ./dynamic $WORK spawn ./musl $WORK 3
	chain "musl itself" 3 ./musl $WORK fork ./dynamic $WORK exec ./musl $WORK 3
else
	skip "musl" "no musl-gcc here"
fi
gcc -m32 -O1 -fno-inline -static -o m32 "$SRC/tests/targets/chain.c" -I"$SRC" 2>/dev/null
gcc -m32 -O1 -fno-inline -o m32_dynamic "$SRC/tests/targets/chain.c" -I"$SRC" 2>/dev/null
if [ -x m32 ] && [ -x m32_dynamic ]; then
	chain "32-bit below static" 3 ./static $WORK fork ./m32 $WORK vfork ./dynamic $WORK spawn ./m32_dynamic 0 exec ./m32 $WORK 3
else
	skip "32-bit" "gcc -m32 has no C library here"
fi
if have go; then
	cat >start.go <<-'END'
		package main
		import ("os"; "os/exec"; "net"; "fmt")
		func main() {
			sum, _, _ := net.ParseCIDR("10.0.0.1/8")
			command := exec.Command(os.Args[1], os.Args[2:]...)
			command.Stdout, command.Stderr = os.Stdout, os.Stderr
			if err := command.Run(); err == nil || sum == nil { os.Exit(0) }
			if command.ProcessState == nil { fmt.Println("not started"); os.Exit(99) }
			os.Exit(command.ProcessState.ExitCode())
		}
	END
	export GOCACHE=$TMP/go GO111MODULE=off
	CGO_ENABLED=0 timeout 300 go build -o go_static start.go 2>go.err
	CGO_ENABLED=1 timeout 300 go build -o go_dynamic start.go 2>>go.err
fi
if [ -x go_static ] && [ -x go_dynamic ] && ldd go_dynamic >/dev/null 2>&1; then
	chain "shell, injected Go, static" 3 sh -c "./go_dynamic ./static $WORK; ./go_dynamic ./dynamic $WORK fork ./static $WORK 3"
	chain "shell, static Go, injected, static" 3 sh -c "./go_static ./dynamic $WORK spawn ./static $WORK 3"
	like "$(cat err)" 'outside .*go_static' "a Go program is named as sampled from outside"
	chain "injected Go, a second child" 0 sh -c "./go_dynamic sh -c './static $WORK; ./static $WORK; ./dynamic $WORK; true'"
	cat >chain.go <<-'END'
		package main
		import ("fmt"; "net"; "os"; "path/filepath"; "strconv"; "syscall")
		var sink int
		// In registers: what a loop in memory takes depends on where processors see its address, by a factor of four.
		//go:noinline
		func leaf(n int) { s := sink; for i := 0; i < n; i++ { s = s * 5 + i }; sink = s }
		//go:noinline
		func other(n int) { s := sink; for i := 0; i < n; i++ { s = s * 5 - i }; sink = s }
		func cpu() float64 {
			var u syscall.Rusage
			syscall.Getrusage(0, &u)
			return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
		}
		func main() {
			from := cpu()
			seconds, _ := strconv.ParseFloat(os.Args[1], 64)
			net.ParseIP("10.0.0.1")
			for cpu() < from+seconds { leaf(300000); other(100000) }
			log, _ := os.OpenFile(os.Getenv("CHAIN_LOG"), os.O_WRONLY|os.O_APPEND, 0)
			fmt.Fprintf(log, "%s %.6f\n", filepath.Base(os.Args[0]), cpu()-from)
		}
	END
	{
		CGO_ENABLED=0 timeout 300 go build -o go_plain chain.go
		CGO_ENABLED=0 timeout 300 go build -ldflags='-s -w' -o go_stripped chain.go
		CGO_ENABLED=0 timeout 300 go build -buildmode=pie -o go_pie chain.go
		CGO_ENABLED=1 timeout 300 go build -ldflags='-linkmode external -extldflags -static' -o go_cgo chain.go
	} 2>go.err
	# That for any address has a loader, and uses no C library; a static one with cgo does.
	for kind in plain stripped pie cgo; do
		chain "Go, $kind, below static and injected" 0 sh -c "./static 0.05 fork ./go_$kind 0.2; ./go_$kind 0.2"
	done
else
	skip "Go" "no go with cgo here"
fi

# ---- files that are gone ----

cat >version.c <<'END'
	#include <time.h>
	static volatile unsigned long sink;
	/* 0.2 s: the launcher looks at a program's file when it takes the first samples from the ring. */
	__attribute__((noinline)) void NAME(void)
	{
		do
			for (long i = 0; i < 10000000; i++) sink += i;
		while (clock() < CLOCKS_PER_SEC / 5);
	}
	#ifdef MORE
	__attribute__((noinline, used)) void more(void) { for (long i = 0; i < 100; i++) sink *= i; sink++; }
	#endif
	int main(void) { NAME(); return 0; }
END
countersink -o c.pb.gz -- sh -c 'gcc -O1 -static -Wl,--build-id=none -DNAME=first version.c -o version && ./version
	gcc -O1 -static -Wl,--build-id=none -DMORE -DNAME=second version.c -o version && ./version; cp static gone
	./gone 0.5 & while kill -0 $! 2>/dev/null && ! grep -q gone /proc/$!/comm; do :; done; rm gone version; wait' 2>err
# named FUNCTION MODULES: whether a function has time, in one of the modules, whatever the unit that a report has it in.
named() {
	countersink report -x -a c.pb.gz | awk -F, -v function_="$1" -v modules="^($2)$" \
		'$1 == function_ && $2 ~ modules && $3 > 0 { found = 1 } END { print found ? "named" : "missing" }'
}
for name in first second leaf; do
	is "$(named $name 'version|gone')" named "$name() of a file that was removed or replaced has its name"
done
if [ -x go_static ]; then
	cat >turn.go <<-'END'
		package main
		func turn(n int) int { s := 0; for i := 0; i < n; i++ { s = s*31 + i ^ s>>3 }; return s }
		func main() { s := 0; for k := 0; k < 3000; k++ { s += turn(100000) }; if s == 1 { println(s) } }
	END
	CGO_ENABLED=0 countersink -o c.pb.gz -- go run turn.go 2>err
	is "$(named main.turn turn)" named "go run: functions of the program, which go removes, have names" || diag "$(cat err)"
else
	skip "go run" "no go here"
fi

# ---- limits ----

if have taskset && [ "$(nproc)" -gt 1 ]; then
	# What is bound when it starts may free itself, or a child.
	cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
	chain "bound to one CPU" 3 taskset -c "${cpus% *}" ./static $WORK 3
	chain "bound to one CPU, static, and bound to another" 3 \
		taskset -c "${cpus% *}" ./static $WORK exec "$(command -v taskset)" -c "${cpus#* }" ./static $WORK 3
	BOUND=(taskset -c "${cpus% *}")
	chain "a launcher that is bound to one CPU, and a program to another" 3 \
		./dynamic $WORK fork ./static $WORK exec "$(command -v taskset)" -c "${cpus#* }" ./static $WORK 3
	BOUND=()
else
	skip "bound to CPUs" "no taskset, or one CPU"
fi
chain "few file descriptors" 8 bash -c "ulimit -n 8; exec ./dynamic $WORK spawn ./static $WORK 8"
countersink -o c.pb.gz -- bash -c "ulimit -n 8; exec 3<. 4<. 5<.; exec ./dynamic 0 exec ./static 0.05 8" >out 2>err
is "$? $(cat out)" "8 " "no file descriptor left: the program runs"
like "$(cat err)" '\[not injected: static\]' "no file descriptor left: it is counted"
like "$(cat err)" 'note .*were not sampled: their starter has no file descriptor left' \
	"no file descriptor left: the report gives the reason"
countersink -o c.pb.gz -- ./dynamic 0 confine ./static $WORK 9 >out 2>err
is "$? $(cat out)" "9 " "a seccomp filter that kills for socket(2): the program runs"
like "$(cat err)" '\[not injected: static\]' "a seccomp filter that kills for socket(2): it is counted"
like "$(cat err)" 'filter that kills for socket: programs that cannot be injected are not sampled' \
	"a seccomp filter that kills for socket(2): the report says so"
for call in socket bind recvmsg; do
	"$TARGETS/static_cage" kill $call countersink -o c.pb.gz -- sh -c "./static $WORK 9" >out 2>err
	is "$? $(cat out)" "9 " "an earlier filter that kills for $call: command and programs run"
	like "$(cat err)" 'note .*kills processes that call socket: programs that cannot be injected are not sampled' \
		"an earlier filter that kills for $call: the report says what is not sampled"
	"$TARGETS/static_cage" kill $call countersink -o c.pb.gz -- ./static $WORK 9 >out 2>err
	is "$? $(cat out)" "9 " "an earlier filter that kills for $call: a static command runs"
	like "$(cat err)" 'ms +static +leaf' "an earlier filter that kills for $call: a static command is sampled"
done
# The library watches, and takes no samples.
for how in exec fork; do
	chain "the library does not sample below static ($how)" 0 \
		./static $WORK $how /usr/bin/env COUNTERSINK_ENGINE=none ./dynamic $WORK $how ./static $WORK
done
# shellcheck disable=SC2016 # $PPID is the launcher, below
{
	: >log
	countersink -o c.pb.gz -- sh -c 'kill -STOP $PPID; ./static 0.1; ./static 0.1; kill -CONT $PPID
		./static 0.1; ./static 0.1; exit 3' >out 2>err
	is "$? $(cat out)" "3 " "the launcher is stopped: the programs run"
	like "$(cat err)" 'ms +static +leaf' "the launcher is stopped: once it goes on, programs are sampled"
	mkdir runs
	XDG_RUNTIME_DIR=$TMP/runs countersink -o c.pb.gz -- \
		sh -c 'kill -KILL $PPID; ./static 0.1; ./static 0.1 && echo both >done' >out 2>err
}
ok "the launcher is killed: the programs run" wait_until 60 grep both "done"
is "$(cat out)" "" "the launcher is killed: they print nothing of ours"
if [ "$(id -u)" = 0 ]; then
	chmod 777 .
	AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chain "another user than root" 9 ./dynamic $WORK fork ./static $WORK vfork ./dynamic $WORK spawn ./static $WORK 9
	chain "another user than root: 100 static programs" 0 \
		sh -c 'i=0; while [ $i -lt 100 ]; do ./static 0.003; i=$((i + 1)); done'
	AS=()
	mkdir jail
	cp static jail/
	countersink -o c.pb.gz -- sh -c "chroot jail /static $WORK; true" 2>err
	like "$(cat err)" '\[not injected: static\]' "after chroot(2) the launcher is out of reach: counted only"
	if unshare --pid --fork true 2>/dev/null; then
		countersink -o c.pb.gz -- sh -c "unshare --pid --fork ./static $WORK; ./dynamic $WORK" 2>err
		like "$(cat err)" '\[not injected: static\]' "below a PID namespace of its own: counted only"
		like "$(cat err)" 'note .*1 programs .*not sampled: they were started in a PID namespace' \
			"below a PID namespace of its own: the report gives the reason"
	else
		skip "a PID namespace" "no PID namespaces here"
	fi
	if have busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1 && unshare -m true 2>/dev/null; then
		AS=(unshare -m sh -c "mount --bind $(command -v busybox) /bin/sh && exec \"\$@\"" sh)
		for how in system popen; do
			chain "$how where /bin/sh is static" 3 ./dynamic $WORK $how ./static $WORK 3
		done
		AS=()
	else
		skip "system(3) where /bin/sh is static" "no static busybox, or no mount namespaces"
	fi
	cp static suid_static
	chown 65534 suid_static
	chmod 4755 suid_static
	: >log
	countersink -o c.pb.gz -- sh -c './suid_static 0.1; ./static 0.1' 2>err
	like "$(cat err)" 'unprofiled.*suid_static' "a set-user-ID program is named, and counted only"
	like "$(cat err)" 'outside .*: static$' "what is started beside it is sampled"
else
	skip "another user than root" "only root can become one"
fi

: >log
countersink --outside=no -o c.pb.gz -- sh -c "./static $WORK; true" 2>err
like "$(cat err)" '\[not injected: static\]' "--outside=no: a static program is counted only"
COUNTERSINK_OUTSIDE=no countersink -o c.pb.gz -- ./static $WORK 2>err
like "$(cat err)" '\[not injected: static\]' "COUNTERSINK_OUTSIDE=no: a static command is counted only"
countersink --engine=timer -o c.pb.gz -- sh -c "./static $WORK; true" 2>err
like "$(cat err)" '\[not injected: static\]' "--engine=timer: a static program is counted only"
cp static elsewhere
countersink --follow=dynamic,static -o c.pb.gz -- ./dynamic $WORK fork ./static $WORK fork ./elsewhere $WORK 2>err
like "$(cat err)" 'ms +static +leaf' "--follow: a static program whose name is listed is sampled"
like "$(cat err)" '\[not followed: elsewhere\]' "--follow: what it starts, with another name, is not"
# A process whose programs are followed and not followed in turn: each has its own time.
export COUNTERSINK_FOLLOW=dynamic,static
for last in static dynamic elsewhere; do
	chain "--follow: programs that are followed, and one that is not, by exec; then $last" 3 \
		./static $WORK exec ./elsewhere 0.2 exec ./static $WORK exec ./elsewhere 0.2 exec ./$last $WORK 3
done
chain "--follow: injected, static, not followed by exec" 3 ./dynamic $WORK fork ./static $WORK exec ./elsewhere $WORK 3
unset COUNTERSINK_FOLLOW
countersink --follow=dynamic -o c.pb.gz -- ./dynamic $WORK fork ./static $WORK 2>err
like "$(cat err)" '\[not injected: static\]' "--follow: a static program with another name is not sampled"
countersink --follow=none -o c.pb.gz -- ./static $WORK fork ./elsewhere $WORK 2>err
like "$(cat err)" 'ms +static +leaf' "--follow=none: a static command is sampled"
like "$(cat err)" '\[not followed: elsewhere\]' "--follow=none: what it starts is not"
: >log
countersink -e task-clock,page-faults -o c.pb.gz -- ./dynamic $WORK fork ./static $WORK 2>err
is "$(judge c.pb.gz)" "" "several events: the CPU time is right"
like "$(countersink report -x -a -e page-faults c.pb.gz)" '^[^,]*,static,[1-9]' "several events: each is in the profile"
: >log
countersink -e page-faults -c 10 -o c.pb.gz -- ./dynamic $WORK fork ./static $WORK 2>err
is "$(countersink report -j c.pb.gz | python3 -c 'import json, sys
report = json.load(sys.stdin)
print([type["name"] for type in report["types"]])')" "['samples', 'page-faults', 'task-clock']" \
	"an event that is no clock: CPU time is counted beside it, once"

done_testing
