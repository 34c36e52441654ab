#!/bin/bash
# Programs that cannot be injected, where they are not sampled from outside (outside.t): they run unchanged, are counted,
# and named with the reason.
. "$(dirname "$0")/lib.sh"
export COUNTERSINK_OUTSIDE=no

countersink -o s.pb.gz -- "$TARGETS/static_spin" 0.2 2>err
is $? 0 "a static program runs"
like "$(cat err)" 'unprofiled +static_spin' "a static program is named in the report"
like "$(cat err)" 'static' "a static program is named with the reason"
like "$(cat err)" 'static_spin\]' "a static program's time is in the table"
like "$(cat err)" 'counted +task-clock [1-9][0-9]+\.' "a static program's time is counted"

countersink -o s.pb.gz -- sh -c '"$0" 0.2; exit 3' "$TARGETS/static_spin" 2>err
is $? 3 "a static program below another program: status 3"
like "$(cat err)" 'unprofiled.*static_spin \(static' "a static program below another program is named with the reason"
like "$(cat err)" 'static_spin\]' "a static program below another program has its time in the table"

is "$(countersink -q -o s.pb.gz -- "$TARGETS/static_spin" 0 sh -c 'echo "$LD_PRELOAD"')" "$ENTRY" \
	"a program that a static program execs is injected"

# Every way to start a program: $1 the program, $2 its status, $3 its words, $4 how the report names it, $5 for the points.
starters='
import os, subprocess, sys
program, status, words = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def check(way, code, out=words, err=""):
    if (code, out, err) != (status, words, ""):
        print(way, code, out, err)
def run(**how):
    done = subprocess.run([program], capture_output=True, text=True, **how)
    return done.returncode, done.stdout.strip(), done.stderr
def forked(way, start):
    pid = os.fork()
    if not pid:
        start()
        os._exit(99)
    check(way, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
check("vfork", *run())
check("fork", *run(preexec_fn=lambda: None))
check("by PATH", *run(executable=os.path.basename(program), env={**os.environ, "PATH": os.path.dirname(program)}))
check("an empty environment", *run(env={}))
os.dup2(os.open("others", os.O_CREAT | os.O_WRONLY), 1)
check("system", os.waitstatus_to_exitcode(os.system(program)))
check("popen", os.waitstatus_to_exitcode(os.popen(program).close()))
check("posix_spawn", os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(program, [program], os.environ), 0)[1]))
forked("execv", lambda: os.execv(program, [program]))
forked("fexecve", lambda: os.execve(os.open(program, os.O_RDONLY), [program], os.environ))
libc = __import__("ctypes").CDLL(None)
argv = (__import__("ctypes").c_char_p * 2)(program.encode(), None)
envp = (__import__("ctypes").c_char_p * 2)(b"LD_PRELOAD=" + os.environ["LD_PRELOAD"].encode(), None)
number = {"x86_64": 59, "aarch64": 221}[os.uname().machine]
forked("syscall", lambda: libc.syscall(number, program.encode(), argv, envp))
try:
    os.execv(program, [program, "x" * 3000000])
except OSError as e:
    sys.exit(0 if e.errno == 7 else 1)
'
started_by_others() {
	: >others
	COUNTERSINK_REPORT=1 COUNTERSINK_OUTPUT=o.pb.gz LD_PRELOAD=$LIB \
		/usr/bin/python3 -c "$starters" "$PWD/${1#./}" "$2" "$3" >out 2>err
	is "$? $(cat out)" "0 " "$5 started in ten ways is itself"
	unlike "$(cat err)" 'ld\.so:|Error (loading|relocating)|relocation error|error while loading|symbol lookup error|version .* not found' "$5: the loader does not complain"
	like "$(cat err)" "$4 \(10 times\)" "$5 is named for each start without a launcher"
	countersink -o l.pb.gz -- sh -c "$1 & $1; wait; exec $1" >out 2>err
	is $? "$2" "$5 below a program that can be injected: status $2"
	like "$(cat err)" "unprofiled.*$4 \(3 times\)" "$5 is named for each start and for the command's exec"
	like "$(cat err)" "\[not injected: ${1#./}\]" "$5: its time is in the table"
}

# Another C library: its loader would fail on ours.
sed 's,/lib64/ld-linux-x86-64\.so\.2\x00,/tmp/ld-musl-x86_64.so.1\x00\x00\x00,' /bin/true >musl_like
chmod +x musl_like
if [ "$(uname -m)" = x86_64 ] && grep -aq ld-musl musl_like; then
	countersink -q -- ./musl_like 2>err
	is $? 127 "a program whose loader is missing ends as it would: 127"
else
	skip "a program whose loader is missing" "the loader has another name here"
fi
if have musl-gcc; then
	echo '#include <stdio.h>
	int main(void) { puts("from musl"); return 5; }' >m.c
	musl-gcc -o musl m.c
	countersink -o m.pb.gz -- ./musl >out 2>err
	is "$? $(cat out)" "5 from musl" "a musl program runs"
	like "$(cat err)" 'unprofiled.*musl' "a musl program is named in the report"
	started_by_others ./musl 5 "from musl" 'musl \(of another architecture or C library\)' "a musl program"
	like "$(LD_PRELOAD=$LIB:/usr/lib/none.so COUNTERSINK_QUIET=1 sh -c './musl; exit' 2>&1)" 'none\.so' \
		"another library in LD_PRELOAD is left to a musl program"
else
	skip "a musl program" "no musl-gcc here"
fi
if have_32_bit_program m32; then
	countersink -o m.pb.gz -- ./m32 >out 2>err
	is $? 6 "a 32-bit program runs"
	unlike "$(cat err)" 'ld\.so' "a 32-bit program's loader does not complain about our library"
	like "$(cat err)" 'unprofiled.*m32' "a 32-bit program is named in the report"
	started_by_others ./m32 6 "" 'm32 \(of another architecture or C library\)' "a 32-bit program"
else
	skip "a 32-bit program" "no 32-bit compiler here"
fi

# Setuid: the loader ignores LD_PRELOAD, and the kernel removes an unprivileged user's counters.
if [ "$(id -u)" = 0 ]; then
	cp "$TARGETS/static_spin" suid_spin
	cp /usr/bin/id suid_id
	chmod 4755 suid_id
	mkdir theirs
	chmod 777 theirs
	cd theirs || exit 1
	unprivileged countersink -- ../suid_id -u >out 2>err
	is "$? $(cat out)" "0 0" "a setuid program runs with its rights"
	like "$(cat err)" 'unprofiled.*suid_id' "a setuid program is named in the report"
	like "$(cat err)" '(set-user-id|capabilities)' "a setuid program is named with the reason"
	cd ..
else
	skip "a setuid program" "only root can make one"
fi

done_testing
