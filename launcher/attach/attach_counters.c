/*
 * Opening, enabling and reading the counters of an attach, one event for each thread and CPU: see attach_counters.h.
 * Runs in the attach command's one thread; opening, while the targets are stopped, in the thread that stops them.
 */
#include "launcher/attach/attach_counters.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/attach/walk_copied.h"
#include "launcher/session/outside.h"
#include "preload/core/perf_system.h"

/*
 * A sample with a copy of the stack has 16 KiB or more, and a launcher that waits for a CPU reads nothing: the more
 * room the better, up to what a large machine can spare. Others than root have what may be locked
 * (perf_event_mlock_kb).
 */
#define RING_BYTES (8U << 20)
#define RINGS_BYTES (256U << 20)
#define RING_BYTES_LEAST (32U << 10) /* however many CPUs there are */

/* ---- attributes ---- */

static void ask_for_stack(struct perf_event_attr *attr, const struct csink_attach_counters *c)
{
	enum csink_attach_stacks stacks = c->stacks;

	attr->sample_type |= PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = stacks == CSINK_ATTACH_COPY ? csink_walk_regs_mask : csink_walk_pc_mask;
	if (stacks == CSINK_ATTACH_COPY) {
		attr->sample_type |= PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = c->stack_bytes;
	}
	if (stacks != CSINK_ATTACH_LEAF) {
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr->exclude_callchain_kernel = 1;
	}
}

static void make_attr(const struct csink_attach_counters *c, struct csink_attach_event *event, bool leads, bool first)
{
	struct perf_event_attr *attr = &event->attr;

	*attr = event->spec.attr;
	attr->size = sizeof(*attr);
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr->inherit = c->inherit;
	attr->disabled = c->at_exec && leads;
	attr->enable_on_exec = c->at_exec && leads;
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = 1; /* CLOCK_MONOTONIC */
	/* One event reports forks, execs and mappings; others would only report them again. */
	attr->task = attr->comm = attr->comm_exec = attr->mmap = attr->mmap2 = first;
	if (!event->samples) {
		attr->precise_ip = 0;
		attr->freq = 0;
		attr->sample_period = 0;
		return;
	}
	if (c->has_period)
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	if (c->has_read) {
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format |= PERF_FORMAT_GROUP; /* the others of the group, too, in the order of opening */
	}
	ask_for_stack(attr, c);
}

static bool leads_group(const struct csink_attach_counters *c, uint32_t i)
{
	return !i || c->events[i].spec.group != c->events[i - 1].spec.group;
}

/* Is it the first one that opens, of those that count on the same CPUs? */
static bool is_first(const struct csink_attach_counters *c, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (!c->events[k].err &&
		    (!c->events[k].spec.cpus[0] || !strcmp(c->events[k].spec.cpus, c->events[i].spec.cpus)))
			return false;
	return !c->events[i].err;
}

static void make_attrs(struct csink_attach_counters *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		make_attr(c, &c->events[i], leads_group(c, i), is_first(c, i));
}

/* ---- what opens at all ---- */

/* A CPU to try an event on. */
static int first_cpu(const struct csink_attach_event *event)
{
	int cpu = 0, nr = (int)sysconf(_SC_NPROCESSORS_CONF);

	while (cpu < nr - 1 && !csink_event_is_on(&event->spec, (uint32_t)cpu))
		cpu++;
	return cpu;
}

/* Opens it on ourselves, or with a control group on the first CPU, and closes it. Returns 0 or -errno. */
static int try_event(const struct csink_attach_counters *c, const struct csink_attach_event *event)
{
	unsigned long flags = PERF_FLAG_FD_CLOEXEC | (c->cgroup_fd >= 0 ? PERF_FLAG_PID_CGROUP : 0);
	struct perf_event_attr attr = event->attr;
	CSINK_AUTO_CLOSE int fd = -1;

	attr.disabled = 1;
	fd = csink_perf_open(&attr, c->cgroup_fd >= 0 ? c->cgroup_fd : 0, first_cpu(event), -1, flags);
	return CSINK_MIN(fd, 0);
}

static void explain(const struct csink_attach_counters *c, struct csink_attach_event *event, int32_t tid, int cpu,
		    int err)
{
	struct csink_perf_call call = {&event->attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC};
	struct csink_explanation why;

	if (c->cgroup_fd >= 0)
		call.flags |= PERF_FLAG_PID_CGROUP;
	csink_event_explain(&event->spec, &call, -err, &why);
	csink_explain_print(&why, event->reason, sizeof(event->reason));
}

/* Without the kernel where it must not be observed; counts in samples where the kernel has them for what is inherited.
 */
static int settle_event(struct csink_attach_counters *c, uint32_t i)
{
	struct csink_attach_event *event = &c->events[i];
	int err;

	if (event->spec.cpu_wide) {
		snprintf(event->reason, sizeof(event->reason), "it counts whole CPUs, not processes");
		return -EOPNOTSUPP;
	}
	make_attr(c, event, leads_group(c, i), !i);
	err = try_event(c, event);
	if ((err == -EACCES || err == -EPERM) && !event->spec.attr.exclude_kernel && c->cgroup_fd < 0 &&
	    !csink_event_is_kernels_own(&event->spec)) {
		csink_event_set_user_only(&event->spec);
		make_attr(c, event, leads_group(c, i), !i);
		err = try_event(c, event);
	}
	if (err == -EINVAL && c->has_read && event->samples) {
		c->has_read = false;
		make_attr(c, event, leads_group(c, i), !i);
		err = try_event(c, event);
	}
	if (err)
		explain(c, event, c->cgroup_fd >= 0 ? c->cgroup_fd : 0, first_cpu(event), err);
	return err;
}

/* The library has CPU time that was not asked for in the last column; it is here among the first event's group. */
static void move_implied_last(struct csink_attach_counters *c)
{
	int from = -1;

	for (uint32_t i = 0; i < c->nr_events; i++) {
		struct csink_attach_event *event = &c->events[i];

		if (event->spec.rec.flags & CSINK_EVENT_IMPLIED && event->column >= 0) {
			from = event->column;
			event->column = (int)c->nr_columns - 1;
		} else if (from >= 0 && event->column > from) {
			event->column--;
		}
	}
}

/*
 * Does what was sampled need the counts of its group, or is its period enough? Others of the group are known by counts
 * alone, and so is the time of a clock that must not sample the kernel. Where events that samples carry counts of are
 * inherited, a switch between threads of a process takes them off one and puts them on the other, and programs a timer
 * twice; without, the threads swap them.
 */
static bool needs_read(const struct csink_attach_counters *c)
{
	if (!c->in_run) /* its sum is that of the counts */
		return true;
	for (uint32_t i = 0; i < c->nr_events; i++) {
		const struct csink_event_spec *spec = &c->events[i].spec;

		if (c->events[i].err)
			continue;
		if (!c->events[i].samples || (spec->rec.flags & CSINK_EVENT_CPU_NS && spec->attr.exclude_kernel))
			return true;
	}
	return false;
}

/* What samples carry: where they have no counts, their own event's only. Where there are none, all have a column. */
static void give_columns(struct csink_attach_counters *c)
{
	bool leader_opens = false;

	for (uint32_t i = 0; i < c->nr_events; i++) {
		struct csink_attach_event *event = &c->events[i];

		if (event->samples)
			leader_opens = !event->err;
		if (!event->err && (c->no_rings || (leader_opens && (event->samples || c->has_read))))
			event->column = (int)c->nr_columns++;
	}
	move_implied_last(c);
}

/* The event of our own that a CPU's ring belongs to. It never counts, and stays where targets come and go. */
static int open_owner(void *arg, uint32_t cpu)
{
	const struct csink_outside_how how = {(int)cpu, -1, csink_rings_attr, arg};

	return csink_outside_open_dummy(&how);
}

/* As large as may be, from so many bytes on. */
static int map_rings(struct csink_rings *rings, uint32_t bytes)
{
	int err;

	while (bytes > RING_BYTES_LEAST && bytes > RINGS_BYTES / rings->nr)
		bytes /= 2;
	do
		err = csink_rings_map(rings, bytes, open_owner, rings);
	while (err == -ENOBUFS && (bytes /= 2) >= rings->page_bytes);
	return err;
}

/* A record with a copy of the stack has to fit twice, at least, and one with a larger copy than the default's four
 * times, or most samples are lost: else less is copied, or nothing. */
static void fit_copies(struct csink_attach_counters *c, char *less, size_t size)
{
	uint32_t wanted = c->stack_bytes;

	while (c->stack_bytes > CSINK_ATTACH_STACK_BYTES && c->rings.ring_bytes < 4 * c->stack_bytes)
		c->stack_bytes = CSINK_MAX(c->stack_bytes / 2 & ~7U, (uint32_t)CSINK_ATTACH_STACK_BYTES);
	if (c->rings.ring_bytes < 2 * c->stack_bytes) {
		c->stacks = CSINK_ATTACH_FP;
		snprintf(less, size,
			 "stacks are walked by frame pointers, since %u KiB for each CPU are too little for copies of "
			 "them: %s",
			 c->rings.ring_bytes / 1024, CSINK_NO_LOCKED_MEMORY);
	} else if (c->stack_bytes < wanted) {
		snprintf(less, size,
			 "of stacks %u bytes are copied instead of %u, since %u KiB for each CPU are too little: %s",
			 c->stack_bytes, wanted, c->rings.ring_bytes / 1024, CSINK_NO_LOCKED_MEMORY);
	}
}

/* The rings, and what can be done with those that there are. */
static int prepare_rings(struct csink_attach_counters *c, char *less, size_t size)
{
	int err = map_rings(&c->rings, RING_BYTES);

	c->no_rings = err == -ENOBUFS;
	if (c->no_rings)
		snprintf(less, size, "no samples, the counts alone: %s", CSINK_NO_LOCKED_MEMORY);
	else if (!err && c->stacks == CSINK_ATTACH_COPY)
		fit_copies(c, less, size);
	return c->no_rings ? 0 : err;
}

int csink_attach_counters_map(struct csink_attach_counters *c, uint32_t most)
{
	return map_rings(&c->rings, most);
}

int csink_attach_counters_init(struct csink_attach_counters *c, char *less, size_t size)
{
	/* Of records other than samples, the last but one word is the time: behind it is the event's id. */
	int err = csink_rings_init(&c->rings, (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L), 16),
	    first_err = 0;
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	uint32_t nr_samplers = 0;
	bool needs;

	*less = 0;
	c->anchor_fd = c->at_exec && !c->in_run ? csink_outside_open_anchor() : -1;
	c->has_read = true;
	c->stack_bytes = c->stack_bytes ? c->stack_bytes : CSINK_ATTACH_STACK_BYTES;
	for (uint32_t i = 0; !err && i < c->nr_events; i++) {
		c->events[i].column = -1;
		c->events[i].samples = leads_group(c, i);
		c->events[i].err = settle_event(c, i);
		if (c->events[i].err && !first_err)
			first_err = c->events[i].err;
		nr_samplers += !c->events[i].err && c->events[i].samples;
	}
	if (err || !nr_samplers)
		return err ? err : first_err;
	needs = needs_read(c);
	c->lacks_read = needs && !c->has_read;
	c->has_read = needs && c->has_read;
	/* The kernel samples a software event whose period is asked for each time that it occurs. */
	for (uint32_t i = 0; i < c->nr_events && !c->has_read; i++)
		c->has_period |= c->events[i].samples && !c->events[i].err && c->events[i].spec.attr.freq;
	err = c->in_run ? 0 : prepare_rings(c, less, size);
	for (uint32_t i = 0; c->no_rings && i < c->nr_events; i++)
		c->events[i].samples = false;
	make_attrs(c);
	give_columns(c);
	for (uint32_t i = 0; i < c->nr_events; i++)
		specs[i] = c->events[i].spec;
	if (!c->in_run)
		csink_clocks_init(&c->clocks, specs, c->nr_events);
	return err;
}

/* ---- opening ---- */

static int add_fd(struct csink_attach_counters *c, int fd, uint32_t event)
{
	if (CSINK_GROW(c->fds, c->nr_fds, c->cap_fds))
		return -ENOMEM;
	c->fds[c->nr_fds] = (struct csink_attach_fd){.fd = fd, .event = event};
	if (ioctl(fd, PERF_EVENT_IOC_ID, &c->fds[c->nr_fds].id) < 0)
		return -errno;
	c->nr_fds++;
	return 0;
}

/* Ids grow, and mostly come in their order. */
static void sort_last(struct csink_attach_counters *c)
{
	struct csink_attach_fd last = c->fds[c->nr_fds - 1];
	uint32_t at = c->nr_fds - 1;

	for (; at && c->fds[at - 1].id > last.id; at--)
		c->fds[at] = c->fds[at - 1];
	c->fds[at] = last;
}

int csink_attach_counters_adopt(struct csink_attach_counters *c, int fd, uint32_t event, uint32_t cpu, uint32_t source,
				uint64_t *id)
{
	int err = -EINVAL;

	if (event < c->nr_events && !c->events[event].err && cpu < c->rings.nr && c->rings.at[cpu].fd >= 0)
		err = csink_rings_add(&c->rings, cpu, fd);
	if (!err)
		err = add_fd(c, fd, event);
	if (err) {
		close(fd);
		return err;
	}
	c->fds[c->nr_fds - 1].source = source;
	*id = c->fds[c->nr_fds - 1].id;
	sort_last(c);
	return 0;
}

static int add_lineage(struct csink_attach_counters *c, int32_t pid, int32_t tid, int fd)
{
	struct csink_attach_lineage lineage = {pid, tid, fd, false};

	return CSINK_APPEND(c->lineages, c->nr_lineages, c->cap_lineages, lineage) ? 0 : -ENOMEM;
}

/* All events of a thread on one CPU. */
static int open_on_cpu(struct csink_attach_counters *c, int32_t pid, int32_t tid, uint32_t cpu,
		       struct csink_attach_event **refused)
{
	unsigned long flags = PERF_FLAG_FD_CLOEXEC | (c->cgroup_fd >= 0 ? PERF_FLAG_PID_CGROUP : 0);
	int leader = -1;

	for (uint32_t i = 0; i < c->nr_events; i++) {
		struct csink_attach_event *event = &c->events[i];
		bool leads = leads_group(c, i);
		int fd, err;

		if (leads)
			leader = -1;
		if (event->err || !csink_event_is_on(&event->spec, cpu))
			continue;
		fd = csink_perf_open(&event->attr, c->cgroup_fd >= 0 ? c->cgroup_fd : tid, (int)cpu,
				     leads ? -1 : leader, flags);
		if (fd == -ENODEV) /* the CPU is offline */
			return 0;
		if (fd < 0) {
			if (fd != -ESRCH)
				explain(c, event, c->cgroup_fd >= 0 ? c->cgroup_fd : tid, (int)cpu, fd);
			*refused = event;
			return fd;
		}
		if (leads)
			leader = fd;
		err = csink_rings_add(&c->rings, cpu, fd);
		if (!err)
			err = add_fd(c, fd, i);
		if (!err && leads && tid >= 0 && (!c->nr_lineages || c->lineages[c->nr_lineages - 1].tid != tid))
			err = add_lineage(c, pid, tid, fd);
		if (err) {
			snprintf(event->reason, sizeof(event->reason), "%s", strerror(-err));
			close(fd);
			*refused = event;
			return err;
		}
	}
	return 0;
}

int csink_attach_counters_open(struct csink_attach_counters *c, int32_t pid, int32_t tid,
			       struct csink_attach_event **refused)
{
	const struct csink_clocks_how how = {.tid = tid, .inherit = c->inherit, .at_exec = c->at_exec};
	int err = 0;

	for (uint32_t cpu = 0; !err && cpu < c->rings.nr; cpu++)
		err = open_on_cpu(c, pid, tid, cpu, refused);
	/* A control group's event is enabled only while the group is on its CPU. */
	if (!err && c->cgroup_fd < 0 && !c->in_run)
		csink_clocks_open(&c->clocks, &how);
	return err;
}

/* ---- reading ---- */

void csink_attach_counters_stop(struct csink_attach_counters *c)
{
	csink_clocks_stop(&c->clocks);
	for (uint32_t i = 0; i < c->nr_fds; i++)
		if (c->fds[i].fd >= 0)
			ioctl(c->fds[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* An event with a ring polls as hung up when all tasks that inherited it have ended. */
static bool has_ended(const struct csink_attach_counters *c, const struct csink_attach_lineage *lineage)
{
	struct pollfd poll_fd = {.fd = lineage->fd};

	if (c->no_rings)
		return tgkill(lineage->pid, lineage->tid, 0) < 0 && errno == ESRCH;
	return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLHUP;
}

uint32_t csink_attach_counters_living(struct csink_attach_counters *c)
{
	uint32_t nr = 0;

	if (c->cgroup_fd >= 0)
		return 1;
	for (uint32_t i = 0; i < c->nr_lineages; i++) {
		struct csink_attach_lineage *lineage = &c->lineages[i];

		lineage->ended = lineage->ended || has_ended(c, lineage);
		nr += !lineage->ended;
	}
	return nr;
}

void csink_attach_counters_wake(struct csink_attach_counters *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		c->events[i].attr.wakeup_events = c->events[i].samples;
}

static int by_id(const void *a, const void *b)
{
	const struct csink_attach_fd *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

void csink_attach_counters_opened(struct csink_attach_counters *c)
{
	qsort(c->fds, c->nr_fds, sizeof(*c->fds), by_id);
}

static struct csink_attach_fd *find_fd(const struct csink_attach_counters *c, uint64_t id)
{
	const struct csink_attach_fd key = {.id = id};

	return c->nr_fds ? bsearch(&key, c->fds, c->nr_fds, sizeof(*c->fds), by_id) : NULL;
}

void csink_attach_counters_drop(struct csink_attach_counters *c, uint64_t id, uint32_t source)
{
	struct csink_attach_fd *fd = find_fd(c, id);

	if (!fd || fd->fd < 0)
		return;
	close(fd->fd);
	fd->fd = -1;
	fd->source = source;
}

struct csink_attach_event *csink_attach_counters_find(struct csink_attach_counters *c, uint64_t id, uint32_t *source)
{
	const struct csink_attach_fd *fd = find_fd(c, id);

	if (fd && source)
		*source = fd->source;
	return fd ? &c->events[fd->event] : NULL;
}

void csink_attach_counters_free(struct csink_attach_counters *c)
{
	csink_rings_free(&c->rings);
	csink_clocks_close(&c->clocks);
	for (uint32_t i = 0; i < c->nr_fds; i++)
		if (c->fds[i].fd >= 0)
			close(c->fds[i].fd);
	if (c->anchor_fd >= 0)
		close(c->anchor_fd);
	free(c->fds);
	free(c->lineages);
	memset(c, 0, sizeof(*c));
}
