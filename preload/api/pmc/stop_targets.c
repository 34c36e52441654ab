/*
 * Stopping the threads of processes by ptrace(2) from a thread of its own, which the caller waits for: see
 * stop_targets.h. Any thread of the caller; not async-signal-safe.
 */
#include "preload/api/pmc/stop_targets.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"

#define STOP_NS (1 * CSINK_NS_PER_S) /* a loaded machine may need that long; then we go on without those that ran */
#define BUSY_NS (CSINK_NS_PER_S / 2) /* another attach holds its target for some ms only */
#define DEEP_NS 3000000 /* a thread in an uninterruptible wait that has not stopped by then counts as stopped */
#define POLL_NS 50000
#define OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

/* Of a target. What a traced task starts is traced and stopped from its first instruction on. */
enum state {
	FOUND,   /* by a look at /proc */
	TRACED,  /* and asked to stop */
	STOPPED, /* it cannot run before we continue it */
	ASLEEP,  /* traced, but not asked to stop: see must_not_wake() */
	GONE,    /* it has ended */
	FOREIGN, /* it cannot be traced: out->err says why */
};

struct stopping {
	const int32_t *pids;
	uint32_t nr_pids;
	bool descendants, may_stop;
	csink_stop_act act;
	void *arg;
	struct csink_stop *out;
	uint64_t start_ns; /* of the first stop */
	int result;
};

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){0, ns}, NULL);
}

/* One more look at all the trees. Returns how many threads are new, or -ESRCH where none of them is there. */
static int look(struct stopping *h)
{
	int nr_new = 0, found = 0;

	for (uint32_t i = 0; i < h->nr_pids; i++) {
		int nr = csink_targets_scan(&h->out->targets, h->pids[i], h->descendants);

		if (nr == -ENOMEM)
			return nr;
		found += nr >= 0;
		nr_new += CSINK_MAX(nr, 0);
	}
	return found || h->out->targets.nr ? nr_new : -ESRCH;
}

/* ---- stopping ---- */

/* Why it cannot be traced. FOUND: try again. */
static enum state judge_refusal(struct stopping *h, struct csink_target *target, int err)
{
	struct csink_task task;

	if (err == ESRCH || csink_task_read(target->tid, &task) || task.is_ending)
		return GONE;
	if (task.tracer == gettid())
		return TRACED; /* its parent is traced, so that it is traced from its creation on */
	if (task.tracer && csink_monotonic_ns() - h->start_ns < BUSY_NS)
		return FOUND;
	h->out->err = task.tracer ? -EBUSY : -err;
	h->out->tracer = task.tracer;
	return FOREIGN;
}

/* Calls that go on, or are begun anew, after a stop as if nothing had been. */
static const int unharmed[] = {
	SYS_nanosleep, SYS_clock_nanosleep, SYS_futex, SYS_ppoll, SYS_pselect6, SYS_wait4, SYS_waitid,
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_select
	SYS_select,
#endif
};

/*
 * A stop wakes the thread, upon which calls like epoll_wait, semop, sigtimedwait, or a recv with a time limit fail with
 * EINTR, without any signal (signal(7)). A thread that sleeps in such a call is not woken: it creates no task. If it
 * wakes and creates one, that task is traced from its first instruction on, and the trace stops both.
 */
static bool must_not_wake(int32_t tid)
{
	struct csink_task task;
	int number;

	if (csink_task_syscall(tid, &number)) /* it runs, mostly */
		return false;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(unharmed); i++)
		if (number == unharmed[i])
			return false;
	return !csink_task_read(tid, &task) && task.state == 'S';
}

static enum state seize(struct stopping *h, struct csink_target *target)
{
	if (target->pid == getpid())
		return FOREIGN; /* ourselves: it is no failure */
	if (ptrace(PTRACE_SEIZE, target->tid, NULL, OPTIONS)) {
		enum state state = judge_refusal(h, target, errno);

		/* Traced from its creation, it will stop; but not if an exec gave it the TID of another thread. */
		if (state == TRACED)
			ptrace(PTRACE_INTERRUPT, target->tid, NULL, NULL);
		return state;
	}
	if (must_not_wake(target->tid))
		return ASLEEP;
	ptrace(PTRACE_INTERRUPT, target->tid, NULL, NULL);
	return TRACED;
}

/* Returns whether some have to be tried again. */
static bool seize_found(struct stopping *h)
{
	bool again = false;

	for (uint32_t i = 0; i < h->out->targets.nr; i++) {
		struct csink_target *target = &h->out->targets.at[i];

		if (target->state == FOUND)
			target->state = seize(h, target);
		again |= target->state == FOUND;
	}
	return again;
}

/* It stopped where it had created a task, which the kernel traces for us: add that one. */
static int add_new_task(struct stopping *h, int32_t tid)
{
	struct csink_task task;
	unsigned long new_tid;
	int err;

	if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &new_tid) || csink_task_read((int32_t)new_tid, &task))
		return 0;
	err = csink_targets_add(&h->out->targets, task.tgid, (int32_t)new_tid);
	if (err > 0)
		h->out->targets.at[h->out->targets.nr - 1].state = TRACED;
	return err < 0 ? err : 0;
}

/*
 * The state of a traced task; ended ones are reaped, so that no loop waits for them. A stop is looked at only: to
 * consume the stop of a signal would be to consume the signal, which the thread must get when it continues.
 */
static int poll_target(struct stopping *h, uint32_t i)
{
	struct csink_target *target = &h->out->targets.at[i];
	siginfo_t info = {0};
	int event;

	if (waitid(P_PID, (id_t)target->tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD)) {
		target->state = GONE;
		return 0;
	}
	if (info.si_pid && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		waitpid(target->tid, NULL, __WALL | WNOHANG | __WNOTHREAD);
		target->state = GONE;
		return 0;
	}
	event = info.si_status >> 8;
	if (!info.si_pid) {
		/* A waitpid of the program may have consumed the stop. */
		if (ptrace(PTRACE_GETSIGINFO, target->tid, NULL, &info))
			return 0;
		event = info.si_code >> 8;
	}
	target->state = STOPPED;
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE)
		return add_new_task(h, target->tid);
	return 0;
}

/* In an uninterruptible wait (a vfork's parent, a slow disk) it starts nothing, and stops before it runs again. */
static bool is_deep(const struct csink_target *target)
{
	struct csink_task task;

	return !csink_task_read(target->tid, &task) && task.state == 'D';
}

static int wait_for_stops(struct stopping *h)
{
	uint64_t start_ns = csink_monotonic_ns();

	for (;;) {
		uint64_t waited_ns = csink_monotonic_ns() - start_ns;
		uint32_t nr_running = 0;

		for (uint32_t i = 0; i < h->out->targets.nr; i++) {
			struct csink_target *target = &h->out->targets.at[i];

			if (target->state != TRACED && target->state != ASLEEP)
				continue;
			if (poll_target(h, i))
				return -ENOMEM;
			target = &h->out->targets.at[i]; /* the list may have grown */
			if (target->state == TRACED && waited_ns > DEEP_NS && is_deep(target))
				continue;
			nr_running += target->state == TRACED;
		}
		if (!nr_running)
			return 0;
		if (csink_monotonic_ns() - h->start_ns > STOP_NS)
			return -ETIMEDOUT;
		pause_ns(POLL_NS);
	}
}

/* By an exec a thread has taken over the number of its process's first one, which had ended, and lost its own. */
static bool find_renumbered(struct stopping *h)
{
	bool any = false;
	struct csink_task task;

	for (uint32_t i = 0; i < h->out->targets.nr; i++) {
		struct csink_target *target = &h->out->targets.at[i];

		if (target->state != GONE || target->tid != target->pid || csink_task_read(target->tid, &task) ||
		    task.is_ending)
			continue;
		target->state = FOUND;
		any = true;
	}
	return any;
}

/* Until a look at everything finds nothing new while all that is known stands. */
static int stop_all(struct stopping *h)
{
	h->start_ns = csink_monotonic_ns();
	for (;;) {
		int nr_new = look(h), err;
		bool again;

		if (nr_new < 0)
			return nr_new;
		again = seize_found(h);
		if (h->out->err)
			return h->out->err;
		err = wait_for_stops(h);
		if (!err && find_renumbered(h))
			nr_new++;
		if (err || (!nr_new && !again))
			return err;
		if (csink_monotonic_ns() - h->start_ns > STOP_NS)
			return -ETIMEDOUT;
		if (again)
			pause_ns(1000000);
	}
}

/* Whether tasks that they started while act() ran have their counters is unknown: this is reported. */
static void count_sleepers(struct stopping *h)
{
	uint32_t nr_known = h->out->targets.nr;

	for (uint32_t i = 0; i < nr_known; i++) {
		if (h->out->targets.at[i].state != ASLEEP)
			continue;
		h->out->nr_asleep++;
		if (!poll_target(h, i) && h->out->targets.nr > nr_known && !h->out->err)
			h->out->err = -EAGAIN;
	}
}

/* ---- the tracing thread ---- */

static void *run(void *arg)
{
	struct stopping *h = arg;
	int err;

	/* While others stand still, haste is due: on a busy machine it makes the stop many times shorter. */
	if (h->may_stop)
		setpriority(PRIO_PROCESS, 0, -20);
	err = h->may_stop ? stop_all(h) : look(h);

	if (h->may_stop ? err == -ESRCH || err == -ENOMEM : err < 0) {
		h->result = err;
		return NULL;
	}
	h->out->err = h->may_stop ? err : -ECANCELED;
	h->result = h->act(&h->out->targets, h->arg);
	count_sleepers(h);
	return NULL; /* and all go on */
}

/* The agent interposes pthread_create: this thread must not count as one of the program's. */
static int create_thread(pthread_t *thread, void *(*start)(void *), void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return (create ? create : pthread_create)(thread, NULL, start, arg);
}

static bool any_traced(const struct csink_targets *targets)
{
	for (uint32_t i = 0; i < targets->nr; i++)
		if (targets->at[i].state >= TRACED && targets->at[i].state <= ASLEEP)
			return true;
	return false;
}

int csink_stop_targets(const int32_t *pids, uint32_t nr_pids, bool descendants, bool may_stop, csink_stop_act act,
		       void *arg, struct csink_stop *out)
{
	struct stopping h = {pids, nr_pids, descendants, may_stop, act, arg, out, 0, 0};
	sigset_t all, saved;
	pthread_t thread;
	int err;

	memset(out, 0, sizeof(*out));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	err = create_thread(&thread, run, &h);
	if (!err)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	if (err)
		return -EAGAIN;
	/* The thread's end lets them go a moment before it can be joined. */
	if (any_traced(&out->targets))
		out->stopped_ns = csink_monotonic_ns() - h.start_ns;
	return h.result;
}
