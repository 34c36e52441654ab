#!/bin/bash
# Our entry in LD_PRELOAD reaches programs that no hook of ours sees: below a static program, or one that makes raw system
# calls. Whatever their loader is, it neither fails nor complains: status, stdout and stderr are as without us.
. "$(dirname "$0")/lib.sh"

STATIC="$TARGETS/static_spin 0" # executes the rest of its words, with the environment that it has

# same NAME COMMAND...: the same with us as without, byte by byte.
same() {
	same_name=$1
	shift
	"$@" >plain.out 2>plain.err
	same_status=$?
	countersink -q -o p.pb.gz -- "$@" >out 2>err
	is "$? $(cmp out plain.out 2>&1) $(cmp err plain.err 2>&1)" "$same_status  " "$same_name" || diag "$(cat err)"
}

go_exec=
if have go; then
	cat >raw.go <<-'END'
		package main
		import ("os"; "syscall")
		func main() { syscall.Exec(os.Args[1], os.Args[1:], os.Environ()); os.Exit(99) }
	END
	GOCACHE=$(go_cache) CGO_ENABLED=0 GO111MODULE=off timeout 300 go build -o raw raw.go 2>go.err && go_exec=./raw
fi

chains() { # $1 the kind of program, $2 the program
	same "$1: alone" "$2"
	# shellcheck disable=SC2086 # words
	same "$1: below a static program" $STATIC "$2"
	# shellcheck disable=SC2086
	same "$1: below two static programs" $STATIC $STATIC "$2"
	# shellcheck disable=SC2086
	same "$1: a shell, a static program, a shell" sh -c "$STATIC sh -c '$2; exec $2'"
	# shellcheck disable=SC2086
	same "$1: below a static program that env -i starts" env -i $STATIC "$2"
	for how in vfork spawn popen system at thread; do
		same "$1: below a static program that $how starts" "$TARGETS/chain" 0 $how "$TARGETS/static_chain" 0 exec "$2"
		same "$1: that $how starts below a static program" "$TARGETS/static_chain" 0 $how "$2"
	done
	# shellcheck disable=SC2086
	same "$1: below a launcher in a launcher" "$COUNTERSINK" -q -o q.pb.gz -- $STATIC "$2"
	# shellcheck disable=SC2086
	LD_PRELOAD=$ENTRY COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=e.pb.gz $STATIC "$2" >out 2>err
	is "$? $(cmp out plain.out 2>&1) $(cmp err plain.err 2>&1)" "$same_status  " "$1: with the environment alone"
	if [ "$go_exec" ]; then
		same "$1: below Go's raw execve" "$go_exec" "$2"
	else
		skip "$1: below Go's raw execve" "no go here"
	fi
}

if have musl-gcc; then
	echo '#include <stdio.h>
	int main(void) { puts("from musl"); fputs("its stderr\n", stderr); return 5; }' >m.c
	musl-gcc -o musl m.c
	chains "a musl program" ./musl
	# The environment way, as countersink-environment(7) has it.
	./musl >plain.out 2>plain.err
	LD_PRELOAD=$ENTRY COUNTERSINK_OUTPUT=$TMP/none.pb.gz ./musl >out 2>err
	is "$?:$(cmp out plain.out 2>&1):$(cmp err plain.err 2>&1):$(ls none.pb.gz 2>/dev/null)" "5:::" \
		"with \$PLATFORM in the environment's entry a musl program goes as without, and is not profiled"
	LD_PRELOAD=$BUILD/lib/countersink/libcountersink.so ./musl >out 2>err
	is "$?:$(cat out)" "127:" "with the plain path in the environment a musl program does not start"
else
	skip "a musl program" "no musl-gcc here"
fi
if have_32_bit_program m32; then
	chains "a 32-bit program" ./m32
else
	skip "a 32-bit program" "none can be built or started here"
fi
printf '#include <stdio.h>\nint main(void) { puts("from glibc"); return 4; }\n' >g.c
cc -o glibc g.c
chains "a glibc program" ./glibc
# shellcheck disable=SC2086
countersink -o p.pb.gz -- $STATIC "$TARGETS/burn" 60 >out 2>err
like "$(cat err)" ' burn_60' "a program below a static program is profiled"

# A shell that evaluates the entry as text of its own puts nothing in place of $PLATFORM.
# shellcheck disable=SC2016 # the shell below is to expand it
twice='sh -c "LD_PRELOAD=$LD_PRELOAD exec $0"'
same "an entry that is evaluated twice" sh -c "$twice" ./glibc
countersink -o p.pb.gz -- sh -c "$twice \"\$0\"" "$TARGETS/burn 60" >out 2>err
like "$(cat err)" ' burn_60' "an entry that is evaluated twice still names the library"

# Each directory holds a file that its machine's loader takes.
if have readelf; then
	for file in "$BUILD"/lib/countersink/*/libcountersink.so; do
		readelf -Wa "$file" >/dev/null
	done 2>err
	is "$(cat err)" "" "the stubs are well-formed"
	like "$(readelf -h "$BUILD/lib/countersink/i686/libcountersink.so")" 'Class: +ELF32' "i686 is 32-bit"
else
	skip "the stubs are well-formed" "no readelf here"
fi

# ---- earlier entries of LD_PRELOAD are kept in order; ours is there once, under either of its paths
libz=$(ldd "$COUNTERSINK" | sed -n 's/.*libz\.so\.1 => \([^ ]*\).*/\1/p')
preload_of() { # what LD_PRELOAD held
	LD_PRELOAD=$1 countersink -q -o p.pb.gz -- sh -c 'echo "$LD_PRELOAD"'
}
is "$(preload_of "$libz")" "$libz:$ENTRY" "another library stays in front"
is "$(preload_of "$libz $LIB")" "$libz $ENTRY" "LD_PRELOAD with a blank as separator has our entry once"
is "$(preload_of "$LIB:$libz")" "$ENTRY:$libz" "our entry keeps its place in LD_PRELOAD"
is "$(preload_of "$ENTRY:$libz:$LIB")" "$ENTRY:$libz:" "our entry is there once although LD_PRELOAD had both of its paths"
ln -s "$BUILD/lib" link
is "$(preload_of "$TMP/link/libcountersink.so")" "$ENTRY" "our entry is there once although LD_PRELOAD had a link to it"
is "$(LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=p.pb.gz env -i sh -c 'echo "$LD_PRELOAD"')" "$LIB" \
	"without a launcher the plain path stays as it is"

# ---- the entry outlives the run
# shellcheck disable=SC2016
countersink -q -o p.pb.gz -- sh -c '(i=0; until test -e over || test $((i += 1)) = 3000; do sleep 0.02; done
	"$0" >late.out 2>late.err; echo $? >late) >/dev/null 2>&1 &' ./glibc
: >over
wait_until 60 test -s late
is "$(cat late late.out late.err)" "4
from glibc" "a process started after the run prints nothing of ours"

# ---- moved installations
mkdir moved
cp -r "$BUILD/bin" "$BUILD/lib" moved
chmod -R a-w moved
moved/bin/countersink -o p.pb.gz -- sh -c 'echo "$LD_PRELOAD"; "$0" 60' "$TARGETS/burn" >out 2>err
is "$(head -n 1 out)" "$TMP/moved"'/lib/countersink/$PLATFORM/libcountersink.so' "a moved, read-only installation has its entry"
like "$(cat err)" ' burn_60' "a moved, read-only installation profiles"
LD_PRELOAD=$TMP'/moved/lib/countersink/$PLATFORM/libcountersink.so' COUNTERSINK_OUTPUT=a.pb.gz "$TARGETS/burn" 60 >out 2>err
like "$(cat err; countersink report a.pb.gz)" ' burn_60' "with the environment alone a moved installation profiles"
chmod -R u+w moved
mkdir plain
cp -rL "$BUILD/bin" "$BUILD/lib" plain
LD_PRELOAD=$TMP'/plain/lib/countersink/$PLATFORM/libcountersink.so' COUNTERSINK_OUTPUT=b.pb.gz "$TARGETS/burn" 60 >out 2>err
is "$?:$(cat err):$(ls b.pb.gz)" "0::b.pb.gz" "the library of a copy without links finds its countersink"

# ---- programs that other users put above the library
# run_planted DIRECTORY: profile with a library that lies there, below directories with a countersink and an API library
# of somebody else's, and print what of these ran.
run_planted() {
	rm -rf planted ran
	mkdir -p "planted/$1"
	cp -L "$LIB" "planted/$1/libcountersink.so"
	for dir in planted planted/a planted/a/countersink planted/a/countersink/other; do
		mkdir -p $dir/bin
		printf '#!/bin/sh\necho "$0" >>%s/ran\n' "$TMP" >$dir/bin/countersink
		chmod +x $dir/bin/countersink
		test "$dir" = "planted/$1" || cp "$TARGETS/old_names.so" $dir/libcountersink-api.so.0
	done
	LD_PRELOAD=$TMP/planted/$1/libcountersink.so COUNTERSINK_EVENTS=page-faults:u,minor-faults:u COUNTERSINK_OUTPUT=n.pb.gz \
		"$TARGETS/burn" 30 >out 2>err
	echo "$?:$(cat ran 2>&1)"
	left=$(sed -n 's/.*`countersink report -o [^ ]* \([^ `]*\)`.*/\1/p' err)
	test -z "$left" || countersink report -o n.pb.gz "$left" >report 2>&1
	rm -rf "$left"
}
for dir in a/b/c a/countersink/other a/countersink; do
	is "$(run_planted $dir)" "0:cat: ran: No such file or directory" "a library in $dir does not run a countersink of a directory above"
	like "$(cat err)" 'no countersink beside the library: .countersink report -o ' "a library in $dir: the missing countersink is reported"
	like "$(cat report)" 'which is not beside libcountersink' "a library in $dir does not load an API library of a directory above"
done

# ---- a C library older than our library requires
newest=$(readelf -V "$LIB" 2>/dev/null | sed -n 's/.*Name: GLIBC_2\.\([0-9]*\) .*/\1/p' | sort -n | tail -n 1)
loader=$(readelf -l ./glibc 2>/dev/null | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
libc=$(ldd ./glibc | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
# aged DIRECTORY MINOR FUNCTIONS FILE...: copies of the system's loader and libc, in which versions from GLIBC_2.MINOR on have
# other names, and so have these functions of libc.
aged() {
	mkdir "$1"
	python3 - "$@" <<-'END'
		import os, struct, sys
		def elf_hash(name):
		    h = 0
		    for c in name.encode():
		        h = (h << 4) + c
		        h = (h ^ (h & 0xf0000000) >> 24) & 0x0fffffff
		    return struct.pack('<I', h)
		directory, first, functions, *sources = sys.argv[1:]
		for source in sources:
		    data = open(source, 'rb').read()
		    for minor in range(int(first), 100):
		        was, now = 'GLIBC_2.%d' % minor, 'GLIBC_9.%d' % minor
		        data = data.replace(was.encode() + b'\0', now.encode() + b'\0').replace(elf_hash(was), elf_hash(now))
		    for name in functions.split() if 'libc.so' in source else ():
		        assert name.encode() + b'\0' in data, name
		        data = data.replace(name.encode() + b'\0', name.encode()[:-1] + b'?\0')
		    with open(directory + '/' + os.path.basename(source), 'wb') as out:
		        out.write(data)
		    os.chmod(out.name, 0o755)
	END
}
cat >older.c <<'END'
#include <stdio.h>
#include <unistd.h>
void _start(void) { puts("from an older libc"); fflush(stdout); _exit(7); }
END
if [ "$newest" ] && aged old "$newest" "" "$loader" "$libc" 2>err &&
	cc -nostartfiles -no-pie -O1 -o older older.c "-Wl,-dynamic-linker,$TMP/old/${loader##*/},-rpath,$TMP/old" 2>>err &&
	[ "$(./older)" = "from an older libc" ]; then
	LD_PRELOAD=$LIB ./older >out 2>err
	isnt $? 7 "our library keeps a program of an older C library from starting"
	same "a program of an older C library is not injected" ./older
	same "a program of an older C library is not injected below a shell" sh -c './older; ./older'
	same "a program of an older C library is not injected by posix_spawn" /usr/bin/python3 -c 'import os
p = os.posix_spawn("./older", ["./older"], os.environ)
os._exit(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))'
	same "a program of an older C library is not injected when its loader is called directly" sh -c "old/${loader##*/} --library-path old ./older"
	cp "old/${loader##*/}" old/ld-2.31.so
	same "a program of an older C library is not injected when its loader has the older name" sh -c 'old/ld-2.31.so --library-path old ./older; exit'
	printf '#!%s\n' "$TMP/older" >script
	chmod +x script
	same "a program of an older C library is not injected as a script's interpreter" sh -c './script'
	countersink --outside=no -o p.pb.gz -- sh -c './older; ./older; ./older; "$0" 60' "$TARGETS/burn" >out 2>err
	like "$(cat err)" 'unprofiled +older \(not injected: older C library\) \(3 times\)' "programs of an older C library are counted and named"
	like "$(cat err)" ' burn_60' "programs beside those of an older C library are profiled"
	countersink --outside=no -o p.pb.gz -- ./older >out 2>err
	like "$(cat err)" 'unprofiled +older \(not injected: older C library\)' "a command of an older C library is named"
	COUNTERSINK_REPORT=1 COUNTERSINK_OUTPUT=p.pb.gz LD_PRELOAD=$ENTRY sh -c './older; exit' >out 2>err
	is "$? $(cat out)" "7 from an older libc" "without a launcher a program of an older C library starts"
	like "$(cat err)" 'older \(not injected: older C library\)' "without a launcher a program of an older C library is named"
else
	skip "a C library older than our library requires" "none can be made here: $(head -n 1 err)"
fi

# ---- a glibc as that of Debian 11 and older, which has functions in libdl and libpthread, and lacks others
# The system's, in which versions after 2.17 have other names, and so have functions that are elsewhere there or absent.
absent='_dl_find_object pthread_attr_getsigmask_np dlsym dlvsym dlclose dlerror dladdr1 dlopen
	pthread_getspecific pthread_attr_getstacksize __pthread_register_cancel __pthread_unregister_cancel
	__pthread_unwind_next epoll_pwait2 close_range closefrom'
# Of functions whose versions are older than that.
cat >of_2_17.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
int pthread_create(unsigned long *id, void *attr, void *(*run)(void *), void *arg);
static volatile sig_atomic_t got;
static void handler(int signo) { got = signo; }
static void *run(void *arg) { got = 99; return arg; }
__attribute__((force_align_arg_pointer)) void _start(void)
{
	static const struct sigaction act = {.sa_handler = handler};
	unsigned long thread;
	char line[16] = "";
	FILE *pipe;

	sigaction(SIGUSR1, &act, NULL);
	raise(SIGUSR1);
	printf("signal %d\n", got == SIGUSR1);
	printf("system %d\n", system("exit 3") >> 8);
	pipe = popen("echo piped", "r");
	printf("popen %s", pipe && fgets(line, sizeof(line), pipe) ? line : "failed\n");
	printf("pclose %d\n", pipe ? pclose(pipe) : -1);
	if (fork() == 0)
		_exit(5);
	wait(NULL);
	printf("thread %d\n", pthread_create(&thread, NULL, run, NULL));
	while (got != 99)
		usleep(1000);
	for (volatile unsigned long i = 0; i < 60000000; i++)
		;
	fflush(stdout);
	execl("/bin/sh", "sh", "-c", "echo exec; exit 7", (char *)NULL);
}
END
if [ "$(uname -m)" = x86_64 ]; then
	aged debian11 18 "$absent" "$loader" "$libc"
	cc -nostartfiles -no-pie -O1 -fno-stack-protector -o of_2_17 of_2_17.c "-Wl,-dynamic-linker,$TMP/debian11/${loader##*/},-rpath,$TMP/debian11" 2>err
	like "$(LD_PRELOAD=$BUILD/lib/libcountersink-api.so ./of_2_17 2>&1)" 'version .GLIBC_2\.34. not found' \
		"a library that needs newer versions keeps a program of glibc 2.17 from starting"
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/of.pb.gz ./of_2_17 >out 2>err
	is "$?:$(cat out):$(cat err)" "7:$(printf 'signal 1\nsystem 3\npopen piped\npclose 0\nthread 0\nexec'):" "with our library a program of glibc 2.17 starts, and goes as without"
	like "$(countersink report of.pb.gz)" ' _start' "its functions are named"
	same "under the launcher a program of glibc 2.17 goes as without" ./of_2_17
	same "with event names that the API library would look up it goes as without" env COUNTERSINK_EVENTS=page-faults:u,minor-faults:u ./of_2_17
else
	skip "a program of glibc 2.17 starts" "x86-64 alone has older versions"
fi

# ---- in user space that qemu emulates, the library cannot start countersink, and leaves the recordings
qemu=qemu-$(uname -m)
if have "$qemu"; then
	"$qemu" -E LD_PRELOAD="$LIB" -E COUNTERSINK_OUTPUT="$TMP/emulated.pb.gz" "$TARGETS/burn" 100 >out 2>err
	is "$?:$(grep -c '^burn ' out)" 0:1 "an emulated program runs"
	like "$(cat err)" '^countersink: cannot run countersink in emulated user space: .countersink report -o .*emulated\.pb\.gz [^ ]*. makes the profile of the recordings$' \
		"the reason and the next command are reported"
	sh -c "$(sed -n 's/.*`\(countersink report[^`]*\)`.*/\1/p' err)" >report 2>&1
	like "$(cat report)" ' burn_60' "that command makes the profile"
else
	skip "an emulated program runs" "there is no $qemu here"
fi
done_testing
