/*
 * An armed queue's timer and signal: a one-shot POSIX timer on CLOCK_MONOTONIC, set to the absolute time of the next
 * event, and a handler that is there only while there are events. The owner sets them; the handler only asks for a
 * dispatch.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/internal/alignment_check.h"
#include "include/internal/rawcall.h"
#include "preload/core/timer/queue.h"

/* sigaction under libc's other name: by the usual one the library that is injected would call its own wrapper. */
int __sigaction(int sig, const struct sigaction *restrict action, struct sigaction *restrict old);

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Which queue has which signal, and how many threads are in our handler for it. */
static struct {
	_Atomic(struct csink_timerq *) queue;
	_Atomic uint32_t nr_inside;
} signals[_NSIG];

/* Signals of that number that are not our timer's. The program's own handler, if it had one, is their addressee. */
static void pass_on(const struct csink_timerq *q, int sig, siginfo_t *info, void *context)
{
	if (q->old.sa_handler == SIG_DFL || q->old.sa_handler == SIG_IGN)
		return;
	if (q->old.sa_flags & SA_SIGINFO)
		q->old.sa_sigaction(sig, info, context);
	else
		q->old.sa_handler(sig);
}

static void on_timer(int sig, siginfo_t *info, void *context)
{
	CSINK_KEEP_ERRNO;
	uint32_t epoch = csink_timerq_process_epoch();
	struct csink_timerq *q;

	csink_alignment_check_off();
	/* Before the queue is looked up: alarm_release takes the queue away first and then looks at this. */
	atomic_fetch_add(&signals[sig].nr_inside, 1);
	q = atomic_load(&signals[sig].queue);
	if (q && info->si_code == SI_TIMER && info->si_value.sival_ptr == q) {
		csink_timerq_ensure(q);
		/* If another thread is the owner, it sees these after its release, and sets the alarm again. */
		atomic_store(&q->fired, 1);
		atomic_store(&q->again, 1);
		csink_timerq_dispatch(q, csink_timerq_now(q));
	} else if (q) {
		pass_on(q, sig, info, context);
	}
	/* A callback that forked returns in the child as well, where the count starts at 0 again. */
	if (csink_timerq_process_epoch() == epoch)
		atomic_fetch_sub(&signals[sig].nr_inside, 1);
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_timer;
}

/* The old disposition is saved before ours is set, so that a fork in between finds it whole. */
static void install(struct csink_timerq *q)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	size_t i;

	if (q->is_installed)
		return;
	/* All signals: none of the program's handlers can jump out of a callback. */
	sigfillset(&action.sa_mask);
	for (i = 0; i < CSINK_ARRAY_SIZE(faults); i++)
		sigdelset(&action.sa_mask, faults[i]);
	__sigaction(q->signal, NULL, &q->old);
	q->is_installed = true;
	__sigaction(q->signal, &action, NULL);
}

/*
 * Wait until no thread is in the middle of taking a signal. Kernels since 6.13 check that a timer's signal is still
 * valid, and look its handler up a moment later, with interrupts off: so an interrupt on each CPU that runs one of our
 * threads, which is what membarrier is, comes after both or before. (Not if a tracer holds a thread between the two.)
 */
static void wait_for_deliveries(void)
{
	if (!csink_rawcall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	/* A child or a kernel that does not know us yet; older kernels than 4.14 do not need it either. */
	csink_rawcall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	csink_rawcall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/*
 * The timer is disarmed, but its last signal may be on its way, and the old disposition of a real-time signal is death
 * as a rule. Kernels before 6.13 deliver what is pending from a disarmed timer; but when a signal is ignored, whatever
 * is pending of it is dropped.
 */
static void uninstall(struct csink_timerq *q)
{
	static const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction current;

	if (!q->is_installed)
		return;
	__sigaction(q->signal, NULL, &current);
	if (is_ours(&current)) {
		wait_for_deliveries();
		__sigaction(q->signal, &ignore, NULL);
		__sigaction(q->signal, &q->old, NULL);
	}
	q->is_installed = false;
}

static void set_timer(struct csink_timerq *q, uint64_t when_ns)
{
	struct itimerspec spec = {0}; /* disarms */
	timer_t timer = atomic_load(&q->timer);

	if (timer == CSINK_TIMERQ_NO_TIMER)
		return;
	if (when_ns != CSINK_TIMERQ_NEVER) {
		spec.it_value.tv_sec = (time_t)(when_ns / CSINK_NS_PER_S);
		spec.it_value.tv_nsec = (long)(when_ns % CSINK_NS_PER_S);
	}
	timer_settime(timer, TIMER_ABSTIME, &spec, NULL);
	q->armed_ns = when_ns;
}

static void set(struct csink_timerq *q, uint64_t next_ns, bool has_fired)
{
	if (q->nr_heap)
		install(q);
	if (has_fired || next_ns != q->armed_ns)
		set_timer(q, next_ns);
	if (!q->nr_heap)
		uninstall(q);
}

static int ready(struct csink_timerq *q)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = q->signal, .sigev_value.sival_ptr = q};
	timer_t none = CSINK_TIMERQ_NO_TIMER, timer;

	if (atomic_load(&q->timer) != none)
		return 0;
	if (q->tid) {
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_notify_thread_id = q->tid;
	}
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return -EAGAIN;
	/* Another thread may have been here at the same time; one timer is enough. */
	if (!atomic_compare_exchange_strong(&q->timer, &none, timer))
		timer_delete(timer);
	return 0;
}

static bool take_signal(struct csink_timerq *q, int sig)
{
	struct csink_timerq *none = NULL;

	if (!atomic_compare_exchange_strong(&signals[sig].queue, &none, q))
		return false;
	q->signal = sig;
	return true;
}

static int claim(struct csink_timerq *q)
{
	struct sigaction current;
	int sig;

	if (q->tid && csink_rawcall(SYS_tgkill, getpid(), q->tid, 0))
		return -ESRCH;
	/* Now rather than in a handler: with threads it takes milliseconds, once in a process. */
	csink_rawcall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	if (q->signal)
		return take_signal(q, q->signal) ? 0 : -EBUSY;
	for (sig = SIGRTMAX; sig >= SIGRTMIN; sig--) {
		if (!__sigaction(sig, NULL, &current) && current.sa_handler == SIG_DFL && take_signal(q, sig))
			return 0;
	}
	return -EBUSY;
}

const struct csink_timerq_alarm csink_timerq_alarm = {claim, ready, set};

void csink_timerq_alarm_reset(struct csink_timerq *q)
{
	atomic_store(&q->timer, CSINK_TIMERQ_NO_TIMER);
	atomic_store(&q->fired, 0);
	q->armed_ns = CSINK_TIMERQ_NEVER;
	if (q->tid)
		q->tid = (int)csink_rawcall(SYS_gettid); /* the only thread there is */
	if (q->signal)
		atomic_store(&signals[q->signal].nr_inside, 0);
}

void csink_timerq_alarm_release(struct csink_timerq *q)
{
	static const struct timespec nap = {0, 100000};
	timer_t timer = atomic_exchange(&q->timer, CSINK_TIMERQ_NO_TIMER);

	if (!q->signal)
		return;
	if (timer != CSINK_TIMERQ_NO_TIMER)
		timer_delete(timer);
	uninstall(q);
	atomic_store(&signals[q->signal].queue, NULL);
	while (atomic_load(&signals[q->signal].nr_inside))
		nanosleep(&nap, NULL);
}

struct csink_timerq *csink_timerq_alarm_owner(int sig)
{
	return atomic_load(&signals[sig].queue);
}
