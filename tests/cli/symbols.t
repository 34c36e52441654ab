#!/bin/sh
# The signal handler calls no function that locks, allocates or prints: the undefined symbols of the handler's
# objects, and all functions that it can reach, are on the list below. The Makefile names the objects and functions
# of the handler (HANDLER_OBJS, HANDLER_ROOTS). What has no unwind tables is reached from the handler
# (HANDLER_ONLY) or the constructor (START_ONLY) alone.
. "$(dirname "$0")/lib.sh"

# SYMBOL, and why it may be called in a handler. posix: on POSIX's list of async-signal-safe functions. syscall: in libc it
# is only that system call. A function that is missing here fails the test: add it with its reason, or avoid it.
sed 's/[[:space:]].*//' >allowed <<'END'
__clone                      libc's clone(2): syscall
__errno_location             the address of a thread's own variable
__libc_current_sigrtmax      a constant
__libc_current_sigrtmin      a constant
__sigaction                  posix; sigaction by libc's other name
__stack_chk_fail             ends a process whose stack is broken
__udivti3                    arithmetic
_GLOBAL_OFFSET_TABLE_        no function
_dl_find_object              glibc's manual: AS-Safe, lock-free
_r_debug                     no function
clock_gettime                posix
fcntl                        posix
getauxval                    reads a table
getpid                       posix
gettid                       syscall
ioctl                        syscall
madvise                      syscall
memchr                       posix
memcpy                       posix
memmove                      posix
memset                       posix
mmap                         syscall
munmap                       syscall
nanosleep                    syscall
pthread_getspecific          a table of the thread's own: glibc and musl neither lock nor allocate for it
pthread_self                 posix
readlink                     posix
sigaction                    posix
sigaddset                    posix
sigdelset                    posix
sigfillset                   posix
sigismember                  posix
strcmp                       posix
strlen                       posix
syscall                      syscall
timer_create                 syscall, but for SIGEV_THREAD, which is not used
timer_delete                 syscall, but for SIGEV_THREAD
timer_settime                posix
END

# forbidden FILE: the lines whose first word is not allowed.
forbidden() {
	while read -r symbol way; do
		grep -qxF -- "$symbol" allowed || echo "$symbol ($way)"
	done <"$1"
}

# In a sanitized tree, too: the injected library is always the plain one.
show() {
	env -u MAKEFLAGS -u MAKELEVEL make -s --no-print-directory -C "$SRC" "$1"
}
roots=$(show show-handler-roots)
cd "$SRC" || exit 1
# Lists of objects, split into words.
library=$(show show-library-objs)
objects=$(show show-handler-objs)
# shellcheck disable=SC2086
{
	ok "the library's objects are built" ls $library
	nm -g $objects | awk '$2 ~ /^[A-TV-Z]$/ { print $3 }' | sort -u >"$TMP/defined"
	nm -u -A $objects | awk '{ print $NF, $1 }' | sort -u >"$TMP/used"
	tests/cli/handler_calls "$roots" $library >"$TMP/reached" 2>"$TMP/reached.err"
	is "$?:$(cat "$TMP/reached.err")" "0:" "every handler function named in the Makefile exists"
}

# From what a program calls, the interposed functions, no way leads to code without unwind tables, unless by the pointers
# of the plan, of the languages, of the list of modules (on_module) and of the timer queue (refresh_modules). Those are used
# in the handler, and where the list of modules is brought up to date at fork, exec and exit: then the thread takes no
# samples, and nothing there calls the program or waits. The same holds for csink_jit_begin and csink_interp_begin, which start
# and fork call before the thread's counters, and for csink_engine_choose, which the first thread that is sampled comes to, mute.
# __gmon_start__ runs where the constructor would, or before it.
entries=$(nm -D --defined-only "$LIB" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | grep -v '^__gmon_start__$' | sort -u | paste -sd,)
untabled=$(show show-untabled-objs)
# shellcheck disable=SC2086
outside_handler() {
	tests/cli/handler_calls --until "$1" --into "$(echo $untabled | tr ' ' ,)" \
		"$entries,csink_loader_dlopen,csink_loader_dlmopen,csink_syscall_watched" $library
}
# shellcheck disable=SC2086
is "$(readelf -SW $untabled | grep '\.eh_frame')" "" "objects of the handler alone, and of the constructor, have no unwind tables"
is "$(outside_handler csink_signal_entry,csink_sample_handler,csink_walk_dwarf,csink_walk_fp,on_module,refresh_modules,csink_jit_begin,csink_interp_begin,csink_engine_choose)" "" \
	"no call of a program leads to code without unwind tables"
like "$(outside_handler csink_sample_handler)" 'csink_image_begin_child > csink_walk_dwarf > csink_row_find' \
	"such a way is found: by the walker"
cd "$TMP" || exit 1
# A function that another of these objects defines is checked there.
join -v 1 used defined >outside
ok "the handler's objects call functions of other objects" test -s outside
is "$(forbidden outside)" "" "the handler's objects call only permitted functions"
is "$(forbidden reached)" "" "the handler's call graph reaches only permitted functions"

# The audit itself, on known code: a root calls malloc through a static function, a cold path prints, another
# function that is not reached opens a file.
cat >known.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
void *last;
static __attribute__((noinline)) void inner(long n) { last = malloc(n); }
static __attribute__((noinline, cold)) void complain(void) { puts("cold"); }
static __attribute__((noinline)) void by_address(int n) { exit(n); }
void (*hook)(int);
void root(long n)
{
	if (__builtin_expect(n < 0, 0))
		complain();
	hook = by_address;
	inner(n);
}
void elsewhere(void) { last = (void *)(long)open("x", O_RDONLY); }
END
ok "the audit's known object compiles" ${CC:-cc} -O2 -fPIC -c known.c
"$SRC/tests/cli/handler_calls" root known.o >reached
is "$(cut -f1 reached | grep -v GLOBAL | tr '\n' ' ')" "exit malloc puts " \
	"the walk finds static, cold and address-taken functions, and no unreached function"
like "$(forbidden reached)" "malloc \(root > inner > malloc\)" "the audit refuses malloc, with the path to it"
ok "the audit refuses a missing root" sh -c '! "$0" "$@"' "$SRC/tests/cli/handler_calls" no_such_root known.o

done_testing
