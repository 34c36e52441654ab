/* Handles, states and errors of PMCs: see countersink/pmc.h. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/api/pmc/pmc_impl.h"
#include "preload/core/timer/queue.h"

enum { MAX_PMCS = 4096, GENERATIONS = 1 << 19 };
#define TAKING_OVER UINT32_C(0x80000000) /* in epoch: a thread of that process is */

/* All of them, by slot; a handle is a generation and a slot. lock serves everything here. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CSINK_COLD struct csink_pmc *pmcs[MAX_PMCS];
static uint32_t nr_owned, next_generation;
static pid_t owner;            /* of those in pmcs */
static _Atomic uint32_t epoch; /* of the owner: what csink_timerq_process_epoch() said there; 0: none yet */
static char last_reason[CSINK_PMC_REASON];

/* Say why, as "ERRNO: ...". Returns err. */
__attribute__((format(printf, 2, 3))) static int fail(int err, const char *fmt, ...)
{
	int used = snprintf(last_reason, sizeof(last_reason), "%s: ", csink_pmc_errno_name(err));
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_reason + used, sizeof(last_reason) - (size_t)used, fmt, ap);
	va_end(ap);
	return err;
}

/* In a child of a fork the parent's are unknown: our copies of its events are closed, its own go on. */
static void close_parents(void)
{
	bool shares = csink_own_fd_shares_table(owner); /* what we close would be closed there, too */

	for (uint32_t i = 0; i < MAX_PMCS; i++) {
		struct csink_pmc_target *next;

		for (struct csink_pmc_target *target = pmcs[i] ? pmcs[i]->targets : NULL; target; target = next) {
			next = target->next;
			target->page = NULL; /* the kernel does not copy it, and the address may be the program's now */
			if (shares)
				csink_pmc_target_free(target);
			else
				csink_pmc_target_close(target);
		}
		free(pmcs[i]);
		pmcs[i] = NULL;
	}
	nr_owned = 0;
	*last_reason = '\0';
}

/* One thread of a forked child takes over; the others wait for it, since it initializes the lock again. */
static bool claims_child(void)
{
	uint32_t now = csink_timerq_process_epoch(), seen = atomic_load(&epoch);

	while (seen && seen != now) {
		if (seen != (now | TAKING_OVER) && atomic_compare_exchange_strong(&epoch, &seen, now | TAKING_OVER))
			return true;
		sched_yield();
		seen = atomic_load(&epoch);
	}
	return false;
}

static void enter(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	bool forked = claims_child();

	/* Another thread of the parent may have held the lock at the fork. */
	if (forked)
		lock = fresh;
	pthread_mutex_lock(&lock);
	if (forked && nr_owned)
		close_parents();
	if (forked || !owner) {
		csink_timerq_watch_forks();
		owner = getpid();
		/* Pairs with the loads of claims_child: with the number, the lock is there. */
		atomic_store(&epoch, csink_timerq_process_epoch());
	}
}

static int leave(int result)
{
	pthread_mutex_unlock(&lock);
	return result;
}

/* Enter, and find the PMC of a handle; NULL and *err: -ESRCH or -EINVAL. To be left in any case. */
static struct csink_pmc *enter_of(csink_pmc_id_t id, int *err)
{
	struct csink_pmc *pmc;

	enter();
	pmc = id > 0 ? pmcs[id % MAX_PMCS] : NULL;
	*err = 0;
	if (!nr_owned)
		*err = fail(-ESRCH, "this process owns no PMC; allocate one first (a child of a fork has none of its "
				    "parent's)");
	else if (!pmc || pmc->id != id)
		*err = fail(-EINVAL, "this process owns no PMC of handle %d", id);
	return *err ? NULL : pmc;
}

/* Enter, do @call with `pmc`, which has that handle, and leave. Its result, or -errno where there is no such PMC. */
#define ON_PMC(id, call)                                                                                               \
	({                                                                                                             \
		CSINK_KEEP_ERRNO;                                                                                      \
		int err;                                                                                               \
		struct csink_pmc *pmc = enter_of(id, &err);                                                            \
		leave(pmc ? (call) : err);                                                                             \
	})

/* ---- allocating ---- */

static int parse(const char *event, struct csink_pmc *pmc)
{
	static const struct csink_event_roots roots; /* the system's own */
	struct csink_event_spec specs[2];
	struct csink_event_error err;
	const char *why;
	int nr = csink_events_parse(event, specs, 2, &err);

	if (nr == 1)
		nr = csink_events_bind(&roots, specs, 1, 2, &err);
	if (nr < 0)
		return fail(nr == -E2BIG ? -EINVAL : nr == -EACCES ? -EPERM : nr, "%s", err.line);
	if (nr == 1 && csink_event_check_count(specs, &why))
		return fail(-EOPNOTSUPP, "'%s': %s", specs[0].rec.name, why);
	if (nr > 1)
		return fail(-EINVAL, "'%s' is more than one event (of several kinds of CPUs: name one PMU's)", event);
	if (specs[0].attr.sample_period || specs[0].attr.freq)
		return fail(-EINVAL, "'%s' has a period or a frequency, but a PMC takes no samples", event);
	pmc->spec = specs[0];
	return 0;
}

static int check_flags(unsigned flags, int cpu)
{
	bool system = flags & CSINK_PMC_SYSTEM;

	if (flags & ~(unsigned)(CSINK_PMC_DESCENDANTS | CSINK_PMC_SYSTEM | CSINK_PMC_SELF))
		return fail(-EINVAL, "unknown flags 0x%x", flags);
	if (flags & CSINK_PMC_SELF && flags & CSINK_PMC_DESCENDANTS)
		return fail(-EINVAL, "a PMC for measuring oneself (CSINK_PMC_SELF) counts one thread, no descendants");
	if (system && (flags & (CSINK_PMC_DESCENDANTS | CSINK_PMC_SELF)))
		return fail(-EINVAL, "a PMC of system scope has no targets: neither descendants nor itself");
	if (system ? cpu < 0 : cpu != -1)
		return fail(-EINVAL, system ? "a PMC of system scope needs a CPU"
					    : "a PMC of process scope counts on all CPUs: "
					      "-1");
	return 0;
}

/* Reading in user space has to be asked for on arm64; elsewhere the event's page says whether it may be. */
static bool wants_access(const struct csink_pmc *pmc)
{
#ifdef __aarch64__
	return pmc->flags & CSINK_PMC_SELF && csink_event_takes_counter(&pmc->spec);
#else
	(void)pmc;
	return false;
#endif
}

/* Open it once, to learn now what would fail later: without the kernel where that must not be observed. */
static int try_event(struct csink_pmc *pmc)
{
	bool system = pmc->flags & CSINK_PMC_SYSTEM;
	struct perf_event_attr attr;
	int fd;

	if (pmc->spec.cpu_wide && !system)
		return fail(-EOPNOTSUPP, "%s counts whole CPUs: it is for CSINK_PMC_SYSTEM", pmc->spec.rec.name);
	pmc->asks_access = wants_access(pmc);
	for (;;) {
		csink_pmc_attr(pmc, &attr);
		fd = csink_perf_open(&attr, system ? -1 : 0, pmc->cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && pmc->asks_access) { /* kernel.perf_user_access, or another PMU's config1 */
			pmc->asks_access = false;
			continue;
		}
		if (fd == -EINVAL && attr.inherit_thread) {
			pmc->is_by_thread = true;
			continue;
		}
		if ((fd != -EACCES && fd != -EPERM) || system || pmc->spec.attr.exclude_kernel ||
		    csink_event_is_kernels_own(&pmc->spec))
			break;
		csink_event_set_user_only(&pmc->spec);
	}
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	return csink_pmc_explain(pmc, system ? -1 : 0, fd, true, last_reason);
}

/* Returns the handle or -ENOSPC. */
static csink_pmc_id_t give_id(struct csink_pmc *pmc)
{
	for (uint32_t i = 0; i < MAX_PMCS; i++) {
		if (pmcs[i] || !(next_generation % GENERATIONS * MAX_PMCS + i))
			continue; /* 0 is none */
		pmc->id = (csink_pmc_id_t)(next_generation++ % GENERATIONS * MAX_PMCS + i);
		pmcs[i] = pmc;
		nr_owned++;
		return pmc->id;
	}
	return fail(-ENOSPC, "%d PMCs are allocated: release some", MAX_PMCS);
}

static csink_pmc_id_t allocate(const char *event, unsigned flags, int cpu)
{
	struct csink_pmc *pmc;
	int err = check_flags(flags, cpu);

	if (err)
		return err;
	pmc = calloc(1, sizeof(*pmc));
	if (!pmc)
		return fail(-ENOMEM, "no memory left");
	pmc->flags = flags;
	pmc->cpu = cpu;
	err = parse(event, pmc);
	if (!err)
		err = try_event(pmc);
	if (!err && flags & CSINK_PMC_SYSTEM)
		err = csink_pmc_target_open(pmc, -1, &pmc->targets, last_reason);
	if (!err)
		err = give_id(pmc);
	if (err < 0) {
		if (pmc->targets)
			csink_pmc_target_close(pmc->targets);
		free(pmc);
	}
	return err;
}

CSINK_EXPORT csink_pmc_id_t csink_pmc_allocate(const char *event, unsigned flags, int cpu)
{
	CSINK_KEEP_ERRNO;

	enter();
	return leave(allocate(event, flags, cpu));
}

/* ---- targets ---- */

static struct csink_pmc_target **find_target(struct csink_pmc *pmc, int32_t pid)
{
	struct csink_pmc_target **at = &pmc->targets;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

/* What it has counted stays with the PMC. */
static void retire(struct csink_pmc *pmc, struct csink_pmc_target **at)
{
	struct csink_pmc_target *target = *at;

	csink_pmc_target_switch(target, false);
	csink_pmc_target_read(target, &pmc->retired);
	*at = target->next;
	csink_pmc_target_close(target);
}

/* What attach and detach refuse in the same way. */
static int check_target(const struct csink_pmc *pmc, pid_t pid)
{
	if (pmc->flags & CSINK_PMC_SYSTEM)
		return fail(-EINVAL, "PMC %d is of system scope: it counts a CPU, not processes", pmc->id);
	if (pid < 0)
		return fail(-EINVAL, "%d is no process number; 0 is the calling process", (int)pid);
	return 0;
}

static int attach(struct csink_pmc *pmc, pid_t pid)
{
	struct csink_pmc_target **known, *target;
	int err = check_target(pmc, pid);

	if (err)
		return err;
	if (pmc->flags & CSINK_PMC_SELF && pid && pid != getpid())
		return fail(-EPERM,
			    "PMC %d is for self-measurement (CSINK_PMC_SELF): it cannot be attached to other processes",
			    pmc->id);
	if (pmc->state == CSINK_PMC_RUNNING)
		return fail(-EBUSY, "PMC %d runs: stop it first", pmc->id);
	pid = pid ? pid : getpid();
	known = find_target(pmc, pid);
	if (*known && csink_pmc_target_lives(*known))
		return fail(-EEXIST, "process %d is tracked by PMC %d already", (int)pid, pmc->id);
	err = csink_pmc_target_open(pmc, pid, &target, last_reason);
	if (err < 0)
		return err;
	if (*known) /* an earlier process of that number */
		retire(pmc, known);
	target->next = pmc->targets;
	pmc->targets = target;
	return err;
}

CSINK_EXPORT int csink_pmc_attach(csink_pmc_id_t id, pid_t pid)
{
	return ON_PMC(id, attach(pmc, pid));
}

static bool is_attached(int32_t pid)
{
	for (uint32_t i = 0; i < MAX_PMCS; i++)
		if (pmcs[i] && *find_target(pmcs[i], pid))
			return true;
	return false;
}

static int detach(struct csink_pmc *pmc, pid_t pid)
{
	struct csink_pmc_target **known;
	bool lives;
	int err = check_target(pmc, pid);

	if (err)
		return err;
	pid = pid ? pid : getpid();
	known = find_target(pmc, pid);
	if (*known) {
		lives = csink_pmc_target_lives(*known);
		retire(pmc, known);
		return lives ? 0
			     : fail(-ESRCH, "process %d has ended; what it counted is in the value of PMC %d", (int)pid,
				    pmc->id);
	}
	if (kill(pid, 0) && errno == ESRCH)
		return fail(-ESRCH, "there is no process %d", (int)pid);
	if (is_attached(pid))
		return fail(-EINVAL, "process %d is another PMC's target, not PMC %d's", (int)pid, pmc->id);
	return fail(-ESRCH, "process %d is not monitored by any PMC", (int)pid);
}

CSINK_EXPORT int csink_pmc_detach(csink_pmc_id_t id, pid_t pid)
{
	return ON_PMC(id, detach(pmc, pid));
}

/* ---- states ---- */

static void switch_all(const struct csink_pmc *pmc, bool on)
{
	for (const struct csink_pmc_target *target = pmc->targets; target; target = target->next)
		csink_pmc_target_switch(target, on);
}

static int fail_closed(const struct csink_pmc *pmc)
{
	return fail(-EBADF, "this program has closed file descriptors of PMC %d that were not its own", pmc->id);
}

static int start(struct csink_pmc *pmc)
{
	int err = 0;

	if (pmc->state == CSINK_PMC_RUNNING)
		return 0;
	if (!pmc->targets)
		err = attach(pmc, 0);
	if (err < 0)
		return err;
	for (const struct csink_pmc_target *target = pmc->targets; target; target = target->next)
		if (!csink_pmc_target_is_whole(target))
			return fail_closed(pmc);
	switch_all(pmc, true);
	pmc->state = CSINK_PMC_RUNNING;
	return err;
}

CSINK_EXPORT int csink_pmc_start(csink_pmc_id_t id)
{
	return ON_PMC(id, start(pmc));
}

CSINK_EXPORT int csink_pmc_stop(csink_pmc_id_t id)
{
	CSINK_KEEP_ERRNO;
	int err;
	struct csink_pmc *pmc = enter_of(id, &err);

	if (pmc && pmc->state == CSINK_PMC_RUNNING) {
		switch_all(pmc, false);
		pmc->state = CSINK_PMC_STOPPED;
	}
	return leave(err);
}

static int read_all(const struct csink_pmc *pmc, struct csink_pmc_value *value)
{
	int err = 0, got;

	*value = pmc->retired;
	for (const struct csink_pmc_target *target = pmc->targets; target; target = target->next) {
		got = csink_pmc_target_read(target, value);
		if (got == -EBADF)
			err = fail_closed(pmc);
		else if (got && !err)
			err = fail(-EBUSY, "PMC %d lost its counter to another event: its value is incomplete",
				   pmc->id);
		if (csink_pmc_target_lives(target))
			value->nr_targets++;
		else
			value->nr_ended++;
	}
	if (pmc->spec.scale > 0 && pmc->spec.scale != 1)
		value->value = (uint64_t)((double)value->value * pmc->spec.scale + 0.5);
	return err;
}

CSINK_EXPORT int csink_pmc_read(csink_pmc_id_t id, struct csink_pmc_value *value)
{
	return ON_PMC(id, read_all(pmc, value));
}

CSINK_EXPORT int csink_pmc_release(csink_pmc_id_t id)
{
	CSINK_KEEP_ERRNO;
	int err;
	struct csink_pmc *pmc = enter_of(id, &err);

	if (pmc) {
		while (pmc->targets)
			retire(pmc, &pmc->targets);
		pmcs[id % MAX_PMCS] = NULL;
		nr_owned--;
		free(pmc);
	}
	return leave(err);
}

CSINK_EXPORT int csink_pmc_state(csink_pmc_id_t id)
{
	return ON_PMC(id, (int)pmc->state);
}

CSINK_EXPORT char *csink_pmc_reason(char *buf, size_t size)
{
	enter();
	snprintf(buf, size, "%s", last_reason);
	leave(0);
	return buf;
}
