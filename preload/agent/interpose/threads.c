/*
 * Threads from their first instruction to their last. A new thread starts in run_thread(), which opens its counters,
 * calls the program's function, and flushes on every way out: return, pthread_exit, cancellation.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/interpose/sanitizer.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

/* Above a thread's first frame lies its control block, so a walk may read this much beyond it. */
enum { ABOVE_FIRST_FRAME = 512, DEFAULT_STACK = 8 << 20 };

static void end_thread(void *arg)
{
	struct csink_thread *thread = arg;

	/* After a fork in this thread, the state is the child's and still ours; after a failure there is none. */
	if (csink_self != thread)
		return;
	if (csink_calls_are_off(CSINK_CALLS_LIFE)) {
		csink_self = NULL; /* its last samples find no thread */
		return;
	}
	csink_thread_stop(thread);
	csink_masks_reveal(thread);
	csink_thread_end(thread);
}

static void *run_thread(void *arg)
{
	struct csink_thread *thread = arg;
	void *(*start)(void *) = thread->start;
	void *start_arg = thread->arg;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	void *result;

	thread->stack.high = here + ABOVE_FIRST_FRAME;
	thread->stack.low = here - thread->stack_bytes;
	csink_thread_enter(thread);
	csink_masks_hide(thread, csink_signals_taken(), thread->inherited_mask);
	csink_thread_start(thread, 0);
	pthread_cleanup_push(end_thread, thread);
	result = start(start_arg);
	pthread_cleanup_pop(1);
	return result;
}

/* Our signals that the program has blocked in the new thread from the start. 0 where the attributes have a mask: then
 * csink_masks_hide() finds them in the kernel's mask of the thread. */
static uint64_t inherited_mask(const pthread_attr_t *attr)
{
	__typeof__(&pthread_attr_getsigmask_np) get = attr ? REAL(pthread_attr_getsigmask_np) : NULL;
	sigset_t set;

	return get && get(attr, &set) == 0 ? 0 : csink_masks_own_blocked();
}

/*
 * Start the thread with @blocked blocked by the kernel, too, until it has hidden them: a signal that came before would
 * be delivered although the program blocks it.
 */
static int start_blocked(pthread_t *id, const pthread_attr_t *attr, struct csink_thread *thread, uint64_t blocked)
{
	uint64_t before;
	int err;

	csink_raw_mask(SIG_BLOCK, blocked, &before);
	err = REAL(pthread_create)(id, attr, run_thread, thread);
	csink_raw_mask(SIG_UNBLOCK, blocked & ~before, NULL);
	return err;
}

/* What is left of a stack below the first frame, to be on the safe side of its guard. */
static size_t usable_stack(const pthread_attr_t *attr)
{
	size_t bytes = 0, margin = 16384;
	struct rlimit lim;

	if (attr)
		pthread_attr_getstacksize(attr, &bytes);
	else if (getrlimit(RLIMIT_STACK, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY)
		bytes = lim.rlim_cur;
	else
		bytes = 2 << 20;
	return bytes > 2 * margin ? bytes - margin : bytes / 2;
}

CSINK_EXPORT int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	struct csink_thread *thread = NULL;
	uint64_t blocked;
	int err;

	if (csink_calls_are_off(CSINK_CALLS_LIFE))
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_THREADS, 1);
	/* Not by a handler of fork(2) that comes before ours, as a runtime of ThreadSanitizer in the program has it. */
	else if (atomic_load_explicit(&csink_process.active, memory_order_relaxed) && CSINK_HAS_LIBPTHREAD &&
		 csink_process.pid == getpid())
		thread = csink_thread_get();
	if (!thread)
		return REAL(pthread_create)(id, attr, start, arg);
	thread->start = start;
	thread->arg = arg;
	memset(&thread->hidden, 0, sizeof(thread->hidden));
	thread->inherited_mask = blocked = inherited_mask(attr);
	thread->stack_bytes = usable_stack(attr);
	csink_tsan_enter(__builtin_return_address(0));
	err = CSINK_UNLIKELY(blocked) ? start_blocked(id, attr, thread, blocked)
				      : REAL(pthread_create)(id, attr, run_thread, thread);
	csink_tsan_leave();
	if (err)
		csink_thread_put(thread);
	return err;
}

/* C11's function returns an int; pthread's value carries it. */
struct c11_start {
	thrd_start_t start;
	void *arg;
};

static void *run_c11(void *arg)
{
	struct c11_start from = *(struct c11_start *)arg;

	__atomic_store_n(&((struct c11_start *)arg)->start, NULL, __ATOMIC_RELEASE);
	return (void *)(intptr_t)from.start(from.arg);
}

CSINK_EXPORT int thrd_create(thrd_t *id, thrd_start_t start, void *arg)
{
	struct c11_start pass = {start, arg};
	int err;

	if (!atomic_load_explicit(&csink_process.active, memory_order_relaxed))
		return REAL(thrd_create)(id, start, arg);
	err = CSINK_ALLOW(pthread_create)(id, NULL, run_c11, &pass);
	/* Its few words are on our stack: wait until the thread has taken them. */
	while (!err && __atomic_load_n(&pass.start, __ATOMIC_ACQUIRE))
		csink_rawcall(SYS_sched_yield);
	return err == 0 ? thrd_success : err == ENOMEM ? thrd_nomem : thrd_error;
}

CSINK_EXPORT __attribute__((noreturn)) void pthread_exit(void *value)
{
	struct csink_thread *thread = csink_self;

	/* The main thread has no function of ours around it. Others end in end_thread(). */
	if (thread && getpid() == (pid_t)csink_rawcall(SYS_gettid) && !thread->start)
		end_thread(thread);
	REAL(pthread_exit)(value);
	__builtin_unreachable();
}
