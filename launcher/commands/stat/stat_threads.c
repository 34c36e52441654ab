/* Counts of single threads: see stat_threads.h. */
#include "launcher/commands/stat/stat_threads_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/session/outside.h"

/* How much memory the rings of a CPU may have together; each has a page more, for its head. */
#define CPU_PAGES_ROOT 256
#define CPU_PAGES 64
#define RING_PAGES_MAX 64
#define RING_PAGES_MIN 1
#define SETTLE_NS 1000000 /* so old are records that none older than them comes after */

/* ---- opening ---- */

static void add_ring(struct perf_event_attr *attr, struct csink_stat_threads *threads)
{
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	csink_rings_attr(attr, &threads->rings);
	attr->wakeup_watermark = threads->rings.ring_bytes / 4;
}

static void add_read(struct perf_event_attr *attr, void *arg)
{
	attr->inherit_stat = 1;
	attr->read_format |= PERF_FORMAT_ID;
	add_ring(attr, arg);
}

static void add_lives(struct perf_event_attr *attr, void *arg)
{
	attr->inherit = attr->enable_on_exec = 1;
	attr->task = attr->comm = attr->comm_exec = 1;
	add_ring(attr, arg);
}

/* The event that reports births, names and exits on one CPU. Returns its fd, -ENODEV (no such CPU) or -errno. */
static int open_lives(struct csink_stat_threads *threads, int cpu)
{
	const struct csink_outside_how how = {cpu, -1, add_lives, threads};

	return csink_outside_open_dummy(&how);
}

/* The fd that leads the counter's group on a CPU: of the first one that opened; -1: none has. */
static int leader_of(const struct csink_stat_threads *threads, uint32_t i, uint32_t cpu)
{
	const struct csink_stat_counter *counters = threads->counters->counters;
	const struct csink_ring *rings = &threads->rings.at[cpu * (threads->counters->nr + 1) + 1];
	int leader = -1;

	for (; i && counters[i - 1].spec.group == counters[i].spec.group; i--)
		leader = rings[i - 1].fd >= 0 ? rings[i - 1].fd : leader;
	return leader;
}

/* One event on one CPU. Where none may be opened at all, each of the counters says why. */
static int open_counter(struct csink_stat_threads *threads, uint32_t i, uint32_t cpu)
{
	struct csink_stat_counter *counter = &threads->counters->counters[i];
	const struct csink_outside_how how = {(int)cpu, leader_of(threads, i, cpu), add_read, threads};
	struct perf_event_attr attr;
	int fd;

	if (counter->err || !csink_event_is_on(&counter->spec, cpu))
		return -ENODEV;
	fd = csink_outside_open_event(&counter->spec, &how, &attr);
	if (fd < 0) {
		if (fd != -ENODEV)
			csink_stat_counter_refuse(counter, &attr, how.cpu, how.group_fd, fd);
		return fd;
	}
	ioctl(fd, PERF_EVENT_IOC_ID, &threads->ids[i * threads->nr_cpus + cpu]);
	counter->fds[counter->nr_fds++] = fd;
	threads->nr_reads++;
	return fd;
}

static int open_owner(void *arg, uint32_t i)
{
	struct csink_stat_threads *threads = arg;
	uint32_t each = threads->counters->nr + 1, cpu = i / each;
	int fd = i % each ? open_counter(threads, i % each - 1, cpu) : open_lives(threads, (int)cpu);

	/* What is refused has no ring. */
	return fd < 0 && fd != -EMFILE ? -ENODEV : fd;
}

static int prepare(struct csink_stat_counters *counters, uint32_t nr_cpus)
{
	for (uint32_t i = 0; i < counters->nr; i++) {
		struct csink_stat_counter *counter = &counters->counters[i];

		counter->nr_fds = 0;
		counter->fds = malloc(nr_cpus * sizeof(*counter->fds));
		if (!counter->fds)
			return -ENOMEM;
		csink_stat_counter_check(counter, "threads");
	}
	return 0;
}

/* With rings of so many pages. */
static int open_all(struct csink_stat_threads **out, struct csink_stat_counters *counters, uint32_t pages)
{
	struct csink_stat_threads *threads = calloc(1, sizeof(*threads));
	const struct csink_clocks_how how = {.inherit = true, .at_exec = true};
	int err;

	if (!threads)
		return -ENOMEM;
	threads->counters = counters;
	threads->nr_cpus = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	threads->anchor_fd = csink_outside_open_anchor();
	threads->ids = calloc((size_t)counters->nr * threads->nr_cpus, sizeof(*threads->ids));
	/* The last word of each record is its time (sample_id_all). */
	err = csink_rings_init(&threads->rings, (counters->nr + 1) * threads->nr_cpus, 8);
	if (!err)
		err = threads->ids ? prepare(counters, threads->nr_cpus) : -ENOMEM;
	if (!err)
		err = csink_rings_map(&threads->rings, pages * threads->rings.page_bytes, open_owner, threads);
	csink_clocks_open(&counters->clocks, &how);
	if (err) {
		csink_stat_threads_close(threads);
		return err;
	}
	*out = threads;
	return 0;
}

int csink_stat_threads_open(struct csink_stat_threads **out, struct csink_stat_counters *counters)
{
	uint32_t pages = RING_PAGES_MAX, most = geteuid() ? CPU_PAGES : CPU_PAGES_ROOT;
	int err;

	while (pages > RING_PAGES_MIN && (counters->nr + 1) * (pages + 1) > most)
		pages /= 2;
	/* The user's share of locked memory is used up, but smaller rings may fit. */
	for (;; pages /= 2) {
		err = open_all(out, counters, pages);
		if (err != -ENOBUFS || pages <= RING_PAGES_MIN)
			return err;
		csink_stat_counters_close(counters);
	}
}

/* ---- reading ---- */

int csink_stat_threads_fd(const struct csink_stat_threads *threads)
{
	return threads->rings.epoll_fd;
}

static void take(void *arg, const struct perf_event_header *record, uint64_t time_ns)
{
	(void)time_ns;
	csink_stat_threads_feed(arg, record);
}

void csink_stat_threads_drain(struct csink_stat_threads *threads)
{
	csink_rings_drain(&threads->rings, csink_monotonic_ns() - SETTLE_NS, take, threads);
}

int csink_stat_threads_finish(struct csink_stat_threads *threads, struct csink_stat_threads_result *result)
{
	csink_rings_drain(&threads->rings, UINT64_MAX, take, threads);
	return csink_stat_threads_settle(threads, result);
}

void csink_stat_threads_close(struct csink_stat_threads *threads)
{
	if (!threads)
		return;
	for (uint32_t i = 0; i < threads->counters->nr; i++)
		threads->counters->counters[i].nr_fds = 0; /* they are the rings' */
	csink_rings_free(&threads->rings);
	if (threads->anchor_fd >= 0)
		close(threads->anchor_fd);
	csink_table_free(&threads->tids);
	free(threads->threads);
	free(threads->ids);
	free(threads);
}
