/* The kernel's CPU time of what is attached to: see attach_clock.h. */
#include "launcher/attach/attach_clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "preload/core/sysfs.h"
#include "preload/core/task_stat.h"

#define LEAST_APART_NS 50000000
#define LEAST_PARTS_APART 100 /* of the time that the last reading took: with many processes it is no more of a CPU */
#define MOST_APART_NS 1000000000
#define MOST_READINGS 4 /* in a row, as long as processes end meanwhile */

/* ---- one clock ---- */

static int64_t tick_ns(void)
{
	return (int64_t)CSINK_NS_PER_S / sysconf(_SC_CLK_TCK);
}

/* The clock of any process, as the kernel's CPUCLOCK_SCHED has it: also of threads that have ended, and until its
 * parent has waited for it. It needs neither rights nor /proc. */
static bool read_process(int32_t pid, uint64_t *ns)
{
	struct timespec now;

	if (clock_gettime((clockid_t)(~(uint32_t)pid << 3 | 2), &now))
		return false;
	*ns = (uint64_t)now.tv_sec * CSINK_NS_PER_S + (uint64_t)now.tv_nsec;
	return true;
}

/* Threads of other processes have no such clock. Kernels without scheduler statistics have 0 here. */
static bool read_thread(int32_t tid, uint64_t *ns)
{
	char text[128];

	return csink_sysfs_read(text, sizeof(text), "/proc/%d/schedstat", tid) > 0 &&
	       sscanf(text, "%" SCNu64, ns) == 1 && *ns;
}

/* Version 2 alone has it where the events' group is. */
static bool read_cgroup(int cgroup_fd, uint64_t *ns)
{
	CSINK_AUTO_CLOSE int fd = openat(cgroup_fd, "cpu.stat", O_RDONLY | O_CLOEXEC);
	char text[4096], *usage;
	ssize_t nr = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (nr <= 0)
		return false;
	text[nr] = 0;
	usage = strstr(text, "usage_usec ");
	if (!usage || sscanf(usage, "usage_usec %" SCNu64, ns) != 1)
		return false;
	*ns *= 1000;
	return true;
}

static bool read_clock(const struct csink_attach_clock *c, const struct csink_attach_clock_of *of, uint64_t *ns)
{
	if (of->is_self) {
		*ns = 0;
		return true;
	}
	return c->cgroup_fd >= 0 ? read_cgroup(c->cgroup_fd, ns)
	       : c->tid          ? read_thread(c->tid, ns)
				 : read_process(of->pid, ns);
}

/* False: it has ended, and its PID has another owner. Where /proc does not show it, nothing is known of its children.
 */
static bool read_children(const struct csink_attach_clock *c, struct csink_attach_clock_of *of,
			  struct csink_attach_clock_children *now)
{
	struct csink_task_stat stat;
	struct rusage usage;

	*now = of->children;
	if (c->tid || c->cgroup_fd >= 0)
		return true;
	if (of->is_self) {
		getrusage(RUSAGE_CHILDREN, &usage);
		now->ns = csink_timeval_ns(&usage.ru_utime) + csink_timeval_ns(&usage.ru_stime);
		now->faults = (uint64_t)usage.ru_minflt;
		return true;
	}
	if (csink_task_stat_read(of->pid, &stat))
		return true;
	if (of->start_ticks && of->start_ticks != stat.start_ticks)
		return false;
	of->start_ticks = stat.start_ticks;
	of->ppid = stat.ppid;
	if (c->lacks_children)
		return true;
	now->ns = CSINK_MAX(now->ns, stat.children_ticks * (CSINK_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)));
	now->faults = CSINK_MAX(now->faults, stat.children_faults);
	return true;
}

/* A thread that execs takes over the first one's TID, with its own time: more than can have passed. */
static bool is_another(const struct csink_attach_clock *c, uint64_t more_ns)
{
	return c->tid && more_ns > csink_monotonic_ns() - c->read_ns + (uint64_t)tick_ns();
}

/* ---- all of them ---- */

static struct csink_slot *slot_of(const struct csink_attach_clock *c, int32_t pid)
{
	uint32_t hash = csink_hash_number((uint32_t)pid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(c->by_pid, hash, slot, c->at[id - 1].pid == pid);
	return slot;
}

static struct csink_attach_clock_of *find(const struct csink_attach_clock *c, int32_t pid)
{
	const struct csink_slot *slot = c->by_pid.slots ? slot_of(c, pid) : NULL;

	return slot && slot->id ? &c->at[slot->id - 1] : NULL;
}

static void set_number(struct csink_attach_clock *c, uint32_t number)
{
	int32_t pid = c->at[number - 1].pid;

	csink_table_set(&c->by_pid, slot_of(c, pid), csink_hash_number((uint32_t)pid), number);
}

/*
 * To wait for a child, it would have had to run. With thousands of processes that wait, /proc would take most of a
 * reading. Where its parent is not read, or has ended, only /proc has another one. The clock of a process that runs is
 * behind by up to a tick: one whose child has just ended may have waited for it.
 */
static bool has_not_run(const struct csink_attach_clock *c, const struct csink_attach_clock_of *of)
{
	uint64_t ns;

	return of->start_ticks && !of->is_parent && find(c, of->ppid) && read_process(of->pid, &ns) && ns == of->cpu_ns;
}

/*
 * A child that was waited for is in its parent's children: so these are read before any clock. What ends in between is
 * missing from both, and found to have ended. Returns whether a process has.
 */
static bool read_all(struct csink_attach_clock *c)
{
	struct csink_attach_clock_children now;
	bool have_ended = false;
	uint64_t ns;

	for (uint32_t i = 0; i < c->nr; i++) {
		struct csink_attach_clock_of *of = &c->at[i];

		of->has_ended = false;
		if (has_not_run(c, of))
			continue;
		of->has_ended = !read_children(c, of, &now);
		c->waited_ns += (int64_t)(now.ns - of->children.ns);
		of->children = now;
	}
	for (uint32_t i = 0; i < c->nr; i++) {
		struct csink_attach_clock_of *of = &c->at[i];

		of->has_ended |= !read_clock(c, of, &ns) || ns < of->cpu_ns || is_another(c, ns - of->cpu_ns);
		have_ended |= of->has_ended;
		if (of->has_ended)
			continue;
		c->is_known = true;
		c->used_ns += ns - of->cpu_ns;
		of->cpu_ns = ns;
	}
	return have_ended;
}

static void compact(struct csink_attach_clock *c)
{
	uint32_t before = c->nr;

	c->nr = 0;
	for (uint32_t i = 0; i < before; i++)
		if (!c->at[i].has_ended)
			c->at[c->nr++] = c->at[i];
	if (c->nr == before)
		return;
	csink_table_clear(&c->by_pid);
	for (uint32_t i = 0; i < c->nr; i++)
		set_number(c, i + 1);
}

/* What waited for them has all that they used, of which readings of themselves had this. Parents that have ended, too,
 * are still there: theirs have it then. */
static void remove_ended(struct csink_attach_clock *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		const struct csink_attach_clock_of *ended = &c->at[i];
		struct csink_attach_clock_of *parent = ended->has_ended ? find(c, ended->ppid) : NULL;

		if (!ended->has_ended)
			continue;
		if (parent) {
			parent->is_parent = true;
			c->waited_ns -= (int64_t)(ended->cpu_ns + ended->children.ns);
		}
		c->nr_unread += !parent;
		c->nr_unsure += !parent || ended->is_parent;
	}
	compact(c);
}

/*
 * /proc has whole ticks, of user and system time: that is off by two at most, however many children. What lacks more
 * was waited for by a process that is not read, or by none. Of what is less, page faults show whether it was waited
 * for: a process that has ended had some.
 */
static void settle(struct csink_attach_clock *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		struct csink_attach_clock_of *of = &c->at[i];

		c->nr_unsure += of->is_parent && of->children.faults == of->faults_before;
		of->is_parent = false;
		of->faults_before = of->children.faults;
	}
	if (c->waited_ns < -2 * tick_ns() * ((int64_t)c->nr + 1)) {
		c->nr_unread++;
		c->nr_unsure++;
		c->waited_ns = 0;
	}
}

void csink_attach_clock_read(struct csink_attach_clock *c)
{
	uint64_t from_ns = csink_monotonic_ns(), to_ns;
	bool have_ended = true;

	if (!c->is_wanted)
		return;
	for (uint32_t i = 0; have_ended && i < MOST_READINGS; i++) {
		have_ended = read_all(c);
		remove_ended(c);
	}
	/* At least so much was used, also where more processes end than one reading can find. */
	if (c->waited_ns > 0) {
		c->used_ns += (uint64_t)c->waited_ns;
		c->waited_ns = 0;
	}
	if (!have_ended)
		settle(c);
	to_ns = csink_monotonic_ns();
	c->read_ns = from_ns;
	c->next_ns = to_ns + CSINK_MIN(CSINK_MAX((to_ns - from_ns) * LEAST_PARTS_APART, (uint64_t)LEAST_APART_NS),
				       (uint64_t)MOST_APART_NS);
}

void csink_attach_clock_poll(struct csink_attach_clock *c)
{
	if (c->is_wanted && csink_monotonic_ns() >= c->next_ns)
		csink_attach_clock_read(c);
}

/* A thread that runs has the time of its last tick, and what was started a moment ago is not known yet. */
static int64_t resolution_ns(void)
{
	return 2 * tick_ns() * CSINK_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
}

int64_t csink_attach_clock_gap(struct csink_attach_clock *c, uint64_t event_ns, bool is_whole)
{
	int64_t gap_ns = (int64_t)(c->used_ns - event_ns) + c->shift_ns;

	if (!c->is_known)
		return 0;
	if (gap_ns < c->gap_ns && (!is_whole || c->nr_unsure != c->nr_unsure_before))
		c->shift_ns += c->gap_ns - gap_ns, gap_ns = c->gap_ns;
	c->nr_unsure_before = c->nr_unsure;
	if (c->gap_ns < 0 || gap_ns > 0 || gap_ns < -resolution_ns())
		c->gap_ns = gap_ns;
	else
		c->gap_ns = 0;
	return c->gap_ns;
}

/* ---- what there is ---- */

static void add(struct csink_attach_clock *c, const struct csink_attach_clock_of *of)
{
	/* Without memory, its time is that of its events. */
	if (!csink_table_room(&c->by_pid) && CSINK_APPEND(c->at, c->nr, c->cap, *of))
		set_number(c, c->nr);
}

void csink_attach_clock_begin(struct csink_attach_clock *c, int32_t tid, int cgroup_fd)
{
	c->tid = tid;
	c->cgroup_fd = cgroup_fd;
	c->read_ns = csink_monotonic_ns();
	if (tid || cgroup_fd >= 0)
		csink_attach_clock_add(c, tid);
}

void csink_attach_clock_add(struct csink_attach_clock *c, int32_t pid)
{
	struct csink_attach_clock_of of = {.pid = pid};

	if (!c->is_wanted || (c->nr && (c->tid || c->cgroup_fd >= 0 || find(c, pid))) ||
	    !read_children(c, &of, &of.children) || !read_clock(c, &of, &of.cpu_ns))
		return;
	c->is_known = true;
	of.faults_before = of.children.faults;
	add(c, &of);
}

void csink_attach_clock_add_self(struct csink_attach_clock *c)
{
	struct csink_attach_clock_of of = {.pid = getpid(), .is_self = true};

	c->cgroup_fd = -1;
	if (!c->is_wanted || !read_children(c, &of, &of.children))
		return;
	of.faults_before = of.children.faults;
	add(c, &of);
}

void csink_attach_clock_add_new(struct csink_attach_clock *c, int32_t pid, int32_t ppid)
{
	struct csink_attach_clock_of of = {.pid = pid, .ppid = ppid}, *known;
	struct csink_attach_clock_children now;

	if (!c->is_wanted || c->tid || c->cgroup_fd >= 0)
		return;
	known = find(c, pid);
	if (known && read_children(c, known, &now))
		return;
	if (known)
		csink_attach_clock_read(c); /* which finds that it has ended */
	add(c, &of);
}

void csink_attach_clock_free(struct csink_attach_clock *c)
{
	csink_table_free(&c->by_pid);
	free(c->at);
	c->at = NULL;
	c->nr = c->cap = 0;
}
