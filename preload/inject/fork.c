/*
 * Forks that run no pthread_atfork(3) handlers: clone(2) as libc offers it, and _Fork(3). A clone that shares memory
 * makes a thread or a vfork child and goes by unseen; a fork by number is in syscalls.c.
 */
#include <sched.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/inject/image.h"
#include "preload/inject/real.h"

struct clone_start {
	int (*fn)(void *);
	void *arg;
};

/* On the new stack, in the child's copy of memory: what its parent's caller had on its own is there as well. */
static int run_clone(void *arg)
{
	const struct clone_start *start = arg;

	csink_image_begin_child();
	return start->fn(start->arg);
}

CSINK_EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct clone_start start = {fn, arg};
	pid_t *parent_tid, *child_tid;
	void *tls;
	va_list ap;

	va_start(ap, arg);
	parent_tid = va_arg(ap, pid_t *);
	tls = va_arg(ap, void *);
	child_tid = va_arg(ap, pid_t *);
	va_end(ap);
	if (flags & CLONE_VM || !fn || !stack)
		return REAL(clone)(fn, stack, flags, arg, parent_tid, tls, child_tid);
	return REAL(clone)(run_clone, stack, flags, &start, parent_tid, tls, child_tid);
}

CSINK_EXPORT pid_t _Fork(void)
{
	pid_t pid = REAL(_Fork)();

	if (pid == 0)
		csink_image_begin_child();
	return pid;
}
