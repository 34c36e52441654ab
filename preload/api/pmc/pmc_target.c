/* The events of a PMC on one target. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/countersink/reserve.h"
#include "include/internal/grow.h"
#include "preload/api/pmc/pmc_impl.h"
#include "preload/api/pmc/stop_targets.h"

#define ARM_USER_ACCESS 2 /* format/rdpmc of arm64's PMU: config1:1 */

void csink_pmc_attr(const struct csink_pmc *pmc, struct perf_event_attr *attr)
{
	bool system = pmc->flags & CSINK_PMC_SYSTEM;

	*attr = pmc->spec.attr;
	attr->size = sizeof(*attr);
	attr->disabled = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr->precise_ip = 0;
	attr->pinned = !csink_event_is_kernel_counted(&pmc->spec);
	/* What is inherited has no page that could be read. */
	attr->inherit = !system && !(pmc->flags & CSINK_PMC_SELF) && !pmc->is_by_thread;
	attr->inherit_thread = attr->inherit && !(pmc->flags & CSINK_PMC_DESCENDANTS);
	if (pmc->asks_access)
		attr->config1 |= ARM_USER_ACCESS;
}

const char *csink_pmc_errno_name(int err)
{
	/* Those that perf_event_open(2) does not give. */
	switch (err) {
	case -EEXIST:
		return "EEXIST";
	case -EBADF:
		return "EBADF";
	default:
		return csink_errno_name(-err);
	}
}

/* perf_event_open(2) has more errors than pmc_attach(3), and uses other ones for some of these. */
static int pmc_errno(int err, bool allocating)
{
	switch (err) {
	case -EACCES:
		return -EPERM;
	case -ENOENT:
	case -ENODEV:
		return allocating ? -EOPNOTSUPP : err;
	case -ESRCH:
		return allocating ? -EINVAL : err; /* there is no such CPU */
	case -ENOSPC:                              /* all slots of hardware breakpoints */
		return -EBUSY;
	case -E2BIG:
		return -EINVAL;
	default:
		return err;
	}
}

int csink_pmc_explain(const struct csink_pmc *pmc, int32_t tid, int err, bool allocating, char *reason)
{
	struct csink_explanation why;
	struct perf_event_attr attr;
	struct csink_perf_call call = {&attr, tid, pmc->cpu, -1, PERF_FLAG_FD_CLOEXEC};

	csink_pmc_attr(pmc, &attr);
	csink_explain_open(&call, -err, &why, 1);
	err = pmc_errno(err, allocating);
	why.err = -err;
	csink_explain_print(&why, reason, CSINK_PMC_REASON);
	return err;
}

struct opening {
	const struct csink_pmc *pmc;
	struct csink_pmc_target *target;
	char *reason;
	uint32_t nr_gone;
};

/* Returns 0 or -errno; then the fd is closed. */
static int add_fd(struct csink_pmc_target *target, int fd)
{
	struct csink_own_fd own;
	int err = csink_own_fd_note(fd, true, &own);

	if (!err)
		err = CSINK_GROW(target->fds, target->nr_fds, target->cap_fds);
	if (err)
		close(fd);
	else
		target->fds[target->nr_fds++] = own;
	return err;
}

/* On each thread. One that has ended is no error unless all have. */
static int open_threads(struct csink_targets *threads, void *arg)
{
	struct opening *o = arg;
	struct perf_event_attr attr;

	csink_pmc_attr(o->pmc, &attr);
	for (uint32_t i = 0; i < threads->nr; i++) {
		int fd = csink_perf_open(&attr, threads->at[i].tid, -1, -1, PERF_FLAG_FD_CLOEXEC), err;

		if (fd == -ESRCH) {
			o->nr_gone++;
			continue;
		}
		if (fd < 0)
			return csink_pmc_explain(o->pmc, threads->at[i].tid, fd, false, o->reason);
		err = add_fd(o->target, fd);
		if (err)
			return err;
	}
	return o->target->nr_fds ? 0 : -ESRCH;
}

/* Does its counter count at all, now? */
static int probe(const struct csink_pmc *pmc, char *reason)
{
	struct csink_reserve_probe found;
	struct perf_event_attr attr;
	char text[256];

	if (csink_event_is_kernel_counted(&pmc->spec))
		return 0;
	csink_pmc_attr(pmc, &attr);
	attr.inherit = attr.inherit_thread = 0;
	if (!csink_reserve_probe(&attr, 1, &found) || found.fit == CSINK_RESERVE_REFUSED)
		return 0; /* a refusal comes again where it is opened, and is explained there */
	snprintf(reason, CSINK_PMC_REASON,
		 "EBUSY: %s; countersink reserve --status reports the holders of the counters",
		 csink_reserve_probe_print(&found, text, sizeof(text)));
	return -EBUSY;
}

static int open_cpu(const struct csink_pmc *pmc, struct csink_pmc_target *target, char *reason)
{
	struct perf_event_attr attr;
	int fd;

	csink_pmc_attr(pmc, &attr);
	fd = csink_perf_open(&attr, -1, pmc->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return csink_pmc_explain(pmc, -1, fd, true, reason);
	return add_fd(target, fd);
}

/* The calling thread alone, since it can read no other's counters. Without a page it is read as others are. */
static int open_self(const struct csink_pmc *pmc, struct csink_pmc_target *target, char *reason)
{
	struct csink_target self = {.pid = getpid(), .tid = 0};
	struct csink_targets threads = {.at = &self, .nr = 1};
	struct opening o = {pmc, target, reason, 0};
	int err = probe(pmc, reason);
	void *page;

	if (!err)
		err = open_threads(&threads, &o);
	if (err)
		return err;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, target->fds[0].fd, 0);
	target->page = page == MAP_FAILED ? NULL : page;
	target->thread = pthread_self();
	return 0;
}

/* /proc did not show the process: because there is none, or for another reason? */
static int judge_unseen(int32_t pid, char *reason)
{
	int fd;

	if (kill(pid, 0) && errno == ESRCH) {
		snprintf(reason, CSINK_PMC_REASON, "ESRCH: there is no process %d", pid);
		return -ESRCH;
	}
	fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return -errno;
	if (fd >= 0)
		close(fd);
	snprintf(reason, CSINK_PMC_REASON,
		 "EPERM: /proc does not show process %d to this user (hidepid, or not mounted)", pid);
	return -EPERM;
}

static int open_process(const struct csink_pmc *pmc, struct csink_pmc_target *target, char *reason)
{
	bool descendants = pmc->flags & CSINK_PMC_DESCENDANTS;
	struct opening o = {pmc, target, reason, 0};
	struct csink_task task;
	struct csink_stop stop;
	int err;

	if (csink_task_read(target->pid, &task))
		return judge_unseen(target->pid, reason);
	target->start_ticks = task.start_ticks;
	if (pmc->flags & CSINK_PMC_SELF)
		return open_self(pmc, target, reason);
	err = probe(pmc, reason);
	if (err)
		return err;
	/* We cannot stand still ourselves; our children can. */
	err = csink_stop_targets(&target->pid, 1, descendants, target->pid != getpid() || descendants, open_threads, &o,
				 &stop);
	csink_targets_free(&stop.targets);
	if (err == -ESRCH && csink_task_read(target->pid, &task))
		err = judge_unseen(target->pid, reason);
	else if (err == -ESRCH)
		snprintf(reason, CSINK_PMC_REASON, "ESRCH: process %d has ended, or is a thread of another process",
			 target->pid);
	else if (err == -ENOMEM || err == -EAGAIN)
		snprintf(reason, CSINK_PMC_REASON, "%s: no %s left", err == -ENOMEM ? "ENOMEM" : "EAGAIN",
			 err == -ENOMEM ? "memory" : "threads");
	if (err)
		return err;
	if (pmc->is_by_thread)
		snprintf(reason, CSINK_PMC_REASON,
			 "EINVAL: inherit_thread " CSINK_SINCE_5_13
			 ": each thread of process %d has an event, and those that "
			 "it makes from now on have none; CSINK_PMC_DESCENDANTS counts them, and children",
			 target->pid);
	return pmc->is_by_thread || (stop.err && target->pid != getpid());
}

int csink_pmc_target_open(const struct csink_pmc *pmc, int32_t pid, struct csink_pmc_target **out, char *reason)
{
	struct csink_pmc_target *target = calloc(1, sizeof(*target));
	int err;

	if (!target) {
		snprintf(reason, CSINK_PMC_REASON, "ENOMEM: no memory left");
		return -ENOMEM;
	}
	target->pid = pid;
	*reason = '\0';
	err = pid < 0 ? open_cpu(pmc, target, reason) : open_process(pmc, target, reason);
	if (err < 0 && !*reason)
		snprintf(reason, CSINK_PMC_REASON, "%s: %s", csink_pmc_errno_name(err), strerror(-err));
	if (err < 0) { /* with descendants: those that were opened already, too */
		csink_pmc_target_close(target);
		return err;
	}
	*out = target;
	return err;
}

bool csink_pmc_target_is_whole(const struct csink_pmc_target *target)
{
	for (uint32_t i = 0; i < target->nr_fds; i++)
		if (!csink_own_fd_is(&target->fds[i]))
			return false;
	return true;
}

void csink_pmc_target_switch(const struct csink_pmc_target *target, bool on)
{
	for (uint32_t i = 0; i < target->nr_fds; i++)
		if (csink_own_fd_is(&target->fds[i]))
			ioctl(target->fds[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

int csink_pmc_target_read(const struct csink_pmc_target *target, struct csink_pmc_value *value)
{
	uint64_t sums[3]; /* value, time enabled, time running */
	int err = 0;

	if (target->page && pthread_equal(target->thread, pthread_self()) &&
	    csink_pmc_self_read(target->page, &csink_pmc_self_counters, value)) {
		value->how = CSINK_PMC_BY_RDPMC;
		return 0;
	}
	for (uint32_t i = 0; i < target->nr_fds; i++) {
		if (!csink_own_fd_is(&target->fds[i])) {
			err = -EBADF;
			continue;
		}
		/* A pinned event that lost its counter is in an error state, in which there is nothing to read. */
		if (read(target->fds[i].fd, sums, sizeof(sums)) != sizeof(sums)) {
			err = err ? err : -EBUSY;
			continue;
		}
		value->value += sums[0];
		value->enabled_ns += sums[1];
		value->running_ns += sums[2];
	}
	return err;
}

bool csink_pmc_target_lives(const struct csink_pmc_target *target)
{
	struct csink_task task;

	if (target->pid < 0 || target->page || target->pid == getpid())
		return true;
	if (csink_task_read(target->pid, &task)) /* no file may be left to look at it */
		return !kill(target->pid, 0) || errno == EPERM;
	return task.start_ticks == target->start_ticks && !task.is_ending;
}

void csink_pmc_target_close(struct csink_pmc_target *target)
{
	for (uint32_t i = 0; i < target->nr_fds; i++)
		csink_own_fd_close(&target->fds[i]);
	if (target->page)
		munmap(target->page, (size_t)sysconf(_SC_PAGESIZE));
	csink_pmc_target_free(target);
}

void csink_pmc_target_free(struct csink_pmc_target *target)
{
	free(target->fds);
	free(target);
}
