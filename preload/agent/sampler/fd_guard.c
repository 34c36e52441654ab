/*
 * Opening counters where the program may close any descriptor: see fd_guard.h. Any thread; async-signal-safe but for
 * the wait of at most 5 ms.
 */
#include "preload/agent/sampler/fd_guard.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/rawcall.h"

/* The longest wait: the code that holds descriptors may be what this signal handler interrupted. */
#define DEADLINE_NS (5 * 1000 * 1000)

static _Atomic uint32_t alarmed;
static _Atomic uint32_t nr_opening; /* threads with descriptors in the program's table */
static _Atomic uint32_t nr_forking;

bool csink_fd_guard_enter(void)
{
	atomic_fetch_add_explicit(&nr_opening, 1, memory_order_seq_cst);
	/* Either this thread sees the flag, or the thread that sets it sees this one and waits. */
	if (!atomic_load_explicit(&alarmed, memory_order_seq_cst) &&
	    !atomic_load_explicit(&nr_forking, memory_order_seq_cst))
		return true;
	csink_fd_guard_leave();
	return false;
}

void csink_fd_guard_leave(void)
{
	atomic_fetch_sub_explicit(&nr_opening, 1, memory_order_release);
}

static void wait_for_openers(void)
{
	uint64_t end = 0;

	while (atomic_load_explicit(&nr_opening, memory_order_seq_cst)) {
		uint64_t now = csink_monotonic_ns();

		if (!end)
			end = now + DEADLINE_NS;
		if (now >= end)
			break;
		csink_rawcall(SYS_sched_yield);
	}
}

void csink_fd_guard_alarm(void)
{
	atomic_store_explicit(&alarmed, 1, memory_order_seq_cst);
	wait_for_openers();
}

bool csink_fd_guard_is_alarmed(void)
{
	return atomic_load_explicit(&alarmed, memory_order_relaxed);
}

void csink_fd_guard_before_fork(void)
{
	atomic_fetch_add_explicit(&nr_forking, 1, memory_order_seq_cst);
	wait_for_openers();
}

void csink_fd_guard_after_fork(void)
{
	atomic_fetch_sub_explicit(&nr_forking, 1, memory_order_release);
}

void csink_fd_guard_forked(void)
{
	atomic_store(&nr_forking, 0);
	atomic_store(&nr_opening, 0);
}

/* ---- elsewhere ----------------------------------------------------------------------------------------------------
 */

struct elsewhere {
	void (*run)(void *arg);
	void *arg;
};

static int run_elsewhere(void *arg)
{
	const struct elsewhere *it = arg;

	it->run(it->arg);
	/* Not libc's: this is no thread that it knows. */
	csink_rawcall(SYS_exit, 0);
	return 0;
}

/* libc's clone(2), by the name that is never interposed: also where the library's own calls are not linked. */
int __clone(int (*run)(void *arg), void *stack, int flags, void *arg, ...);

int csink_run_elsewhere(void (*run)(void *arg), void *arg, void *stack, size_t bytes)
{
	CSINK_KEEP_ERRNO;
	struct elsewhere it = {run, arg};
	uint64_t all = ~0ULL, mask;
	int err = 0;

	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	/* A thread, so that no wait() sees it, without CLONE_FILES; CLONE_VFORK makes us wait for its end. */
	if (__clone(run_elsewhere, (char *)stack + bytes,
		    CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK, &it) < 0)
		err = -errno;
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	return err;
}
