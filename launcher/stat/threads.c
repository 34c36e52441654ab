/* Counts of single threads: see threads.h. */
#include "launcher/stat/threads_impl.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/run/outside.h"

#define RING_PAGES_ROOT 64
#define RING_PAGES 16
#define RING_PAGES_MIN 2

/* ---- opening ---- */

static void add_records(struct perf_event_attr *attr, void *arg)
{
	const bool *owns_ring = arg;

	attr->inherit_stat = 1;
	attr->read_format |= PERF_FORMAT_ID;
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	attr->wakeup_watermark = 16384;
	attr->task = attr->comm = attr->comm_exec = *owns_ring;
}

static int map_ring(struct csink_stat_threads *threads, int fd)
{
	struct csink_stat_ring *ring = &threads->rings[threads->nr_rings];
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = threads->nr_rings};
	void *map = mmap(NULL, threads->ring_bytes + threads->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	ring->fd = fd;
	ring->page = map;
	threads->nr_rings++;
	return epoll_ctl(threads->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* One event on one CPU, its records going to the CPU's ring. Returns its fd, -ENODEV (no such CPU) or -errno. */
static int open_one(struct csink_stat_threads *threads, struct csink_stat_counter *counter, int cpu, int ring_fd,
		    int group_fd)
{
	bool owns_ring = ring_fd < 0;
	struct csink_outside_how how = {cpu, group_fd, add_records, &owns_ring};
	struct perf_event_attr attr;
	int fd = csink_outside_open_event(&counter->spec, &how, &attr), err = 0;

	if (fd < 0) {
		if (fd != -ENODEV)
			csink_stat_counter_refuse(counter, &attr, cpu, group_fd, fd);
		return fd;
	}
	if (!owns_ring && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) < 0)
		err = -errno;
	else if (owns_ring)
		err = map_ring(threads, fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* All events of a CPU. */
static int open_cpu(struct csink_stat_threads *threads, int cpu)
{
	int ring_fd = -1, leader_fd = -1;
	uint32_t group = UINT32_MAX;

	for (uint32_t i = 0; i < threads->counters->nr; i++) {
		struct csink_stat_counter *counter = &threads->counters->counters[i];
		bool leads = counter->spec.group != group;
		int fd;

		if (counter->err || !csink_event_is_on(&counter->spec, (uint32_t)cpu))
			continue;
		fd = open_one(threads, counter, cpu, ring_fd, leads ? -1 : leader_fd);
		if (fd == -ENODEV)
			return 0;
		if (fd == -ENOBUFS || fd == -EMFILE)
			return fd;
		group = counter->spec.group;
		if (leads)
			leader_fd = fd < 0 ? -1 : fd;
		if (fd < 0)
			continue;
		if (ring_fd < 0)
			ring_fd = fd;
		ioctl(fd, PERF_EVENT_IOC_ID,
		      &threads->ids[i * (uint32_t)sysconf(_SC_NPROCESSORS_CONF) + (uint32_t)cpu]);
		counter->fds[counter->nr_fds++] = fd;
	}
	return 0;
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
	uint32_t nr_cpus = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	struct csink_stat_threads *threads = calloc(1, sizeof(*threads) + nr_cpus * sizeof(threads->rings[0]));
	int err = threads ? prepare(counters, nr_cpus) : -ENOMEM;

	if (!threads)
		return err;
	threads->counters = counters;
	threads->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	threads->ring_bytes = pages * threads->page_bytes;
	threads->ids = calloc((size_t)counters->nr * nr_cpus, sizeof(*threads->ids));
	threads->anchor_fd = csink_outside_open_anchor();
	threads->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!err && (!threads->ids || threads->epoll_fd < 0))
		err = -ENOMEM;
	for (uint32_t cpu = 0; !err && cpu < nr_cpus; cpu++)
		err = open_cpu(threads, (int)cpu);
	if (err) {
		csink_stat_threads_close(threads);
		return err;
	}
	*out = threads;
	return 0;
}

int csink_stat_threads_open(struct csink_stat_threads **out, struct csink_stat_counters *counters)
{
	uint32_t pages = geteuid() ? RING_PAGES : RING_PAGES_ROOT;
	int err;

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
	return threads->epoll_fd;
}

static struct csink_stat_thread_note *new_note(struct csink_stat_threads *threads)
{
	if (threads->nr_notes == threads->cap_notes) {
		uint32_t cap = threads->cap_notes ? 2 * threads->cap_notes : 256;
		struct csink_stat_thread_note *notes = reallocarray(threads->notes, cap, sizeof(*notes));

		if (!notes) {
			threads->no_memory = true;
			return NULL;
		}
		threads->notes = notes;
		threads->cap_notes = cap;
	}
	return &threads->notes[threads->nr_notes++];
}

/* One record, whole and in one piece. */
static void take(struct csink_stat_threads *threads, const char *record)
{
	struct perf_event_header head;
	uint32_t ids[4]; /* of FORK: pid, ppid, tid, ptid; of the others: pid, tid */
	struct csink_stat_thread_note *note;

	memcpy(&head, record, sizeof(head));
	if (head.type == PERF_RECORD_LOST) {
		uint64_t lost[2]; /* id, number */

		memcpy(lost, record + sizeof(head), sizeof(lost));
		threads->nr_lost += lost[1];
		return;
	}
	if (head.type != PERF_RECORD_FORK && head.type != PERF_RECORD_COMM && head.type != PERF_RECORD_READ)
		return;
	note = new_note(threads);
	if (!note)
		return;
	memset(note, 0, sizeof(*note));
	memcpy(ids, record + sizeof(head), sizeof(ids));
	memcpy(&note->time_ns, record + head.size - sizeof(note->time_ns), sizeof(note->time_ns));
	note->type = head.type;
	note->pid = ids[0];
	note->tid = head.type == PERF_RECORD_FORK ? ids[2] : ids[1];
	note->parent = ids[3];
	if (head.type == PERF_RECORD_COMM)
		snprintf(note->comm, sizeof(note->comm), "%.15s", record + sizeof(head) + 8);
	else if (head.type == PERF_RECORD_READ)
		memcpy(&note->read, record + sizeof(head) + 8, sizeof(note->read));
}

static void drain_ring(struct csink_stat_threads *threads, struct csink_stat_ring *ring)
{
	const char *data = (const char *)ring->page + threads->page_bytes;
	uint32_t mask = threads->ring_bytes - 1;
	/* Pairs with the kernel's barrier between a record and data_head. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), tail = ring->page->data_tail;

	while (tail < head) {
		struct perf_event_header record;
		char whole[512];
		uint32_t at = (uint32_t)tail & mask, first;

		memcpy(&record, data + at, sizeof(record)); /* multiples of 8 bytes: a head never wraps */
		if (record.size < sizeof(record) || record.size > head - tail)
			break;
		first = CSINK_MIN((uint32_t)record.size, threads->ring_bytes - at);
		if (record.size >= sizeof(record) + 16 && record.size <= sizeof(whole)) {
			memcpy(whole, data + at, first);
			memcpy(whole + first, data, record.size - first);
			take(threads, whole);
		}
		tail += record.size;
	}
	/* Pairs with the kernel's acquire of data_tail before it writes over what was read. */
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

void csink_stat_threads_drain(struct csink_stat_threads *threads)
{
	for (uint32_t i = 0; i < threads->nr_rings; i++)
		drain_ring(threads, &threads->rings[i]);
}

void csink_stat_threads_close(struct csink_stat_threads *threads)
{
	if (!threads)
		return;
	for (uint32_t i = 0; i < threads->nr_rings; i++)
		munmap(threads->rings[i].page, threads->ring_bytes + threads->page_bytes);
	if (threads->epoll_fd >= 0)
		close(threads->epoll_fd);
	if (threads->anchor_fd >= 0)
		close(threads->anchor_fd);
	free(threads->ids);
	free(threads->notes);
	free(threads);
}
