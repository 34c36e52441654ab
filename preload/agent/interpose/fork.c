/*
 * Forks that are interposed because they run no pthread_atfork(3) handlers: clone(2) as libc offers it, and
 * _Fork(3). A clone that shares memory makes a thread or a vfork child and goes by unseen; a fork by number is in
 * syscalls.c.
 */
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/image.h"
#include "preload/agent/lifecycle/own_run.h"
#include "preload/agent/lifecycle/real.h"

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

/*
 * clone(), whatever the caller means by it: for a function of another library's, which has that name by chance,
 * arguments and result go through as they are.
 */
CSINK_EXPORT long csink_clone(long a, long b, long c, long d, long e, long f, long g) __asm__("clone");

CSINK_EXPORT long csink_clone(long a, long b, long c, long d, long e, long f, long g)
{
	struct clone_start start = {(int (*)(void *))a, (void *)d};
	long (*other)(long, long, long, long, long, long, long) = csink_real_other_clone();
	__typeof__(&clone) real = REAL(clone);

	if (other)
		return other(a, b, c, d, e, f, g);
	if (c & CLONE_VM || !a || !b)
		return real(start.fn, (void *)b, (int)c, start.arg, (pid_t *)e, (void *)f, (pid_t *)g);
	return real(run_clone, (void *)b, (int)c, &start, (pid_t *)e, (void *)f, (pid_t *)g);
}

CSINK_EXPORT pid_t _Fork(void)
{
	pid_t pid = REAL(_Fork)();

	if (pid == 0)
		csink_image_begin_child();
	return pid;
}

/*
 * daemon(3), or whatever another library calls so (as clone above). Libc's ends the parent by a call that is not
 * interposed: the child makes the profile that the parent owed.
 */
CSINK_EXPORT long csink_daemon(long a, long b, long c, long d, long e, long f) __asm__("daemon");

CSINK_EXPORT long csink_daemon(long a, long b, long c, long d, long e, long f)
{
	long (*other)(long, long, long, long, long, long) = csink_real_other_daemon();
	pid_t parent = getpid();
	int ret;

	if (other)
		return other(a, b, c, d, e, f);
	csink_config.becomes_daemon = true;
	ret = REAL(daemon)((int)a, (int)b);
	csink_config.becomes_daemon = false;
	if (getpid() != parent)
		csink_own_run_take_over(parent);
	return ret;
}
