/* Counts of single threads: see stat_threads.h. */
#include "launcher/commands/stat/stat_threads_impl.h"

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
#include "include/internal/grow.h"
#include "launcher/session/outside.h"

/* How much memory the rings of a CPU may have together; each has a page more, for its head. */
#define CPU_PAGES_ROOT 256
#define CPU_PAGES 64
#define RING_PAGES_MAX 64
#define RING_PAGES_MIN 1

/* ---- opening ---- */

static void add_ring(struct perf_event_attr *attr, const struct csink_stat_threads *threads)
{
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	attr->wakeup_watermark = threads->ring_bytes / 4;
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

static int map_ring(struct csink_stat_threads *threads, int fd)
{
	struct csink_stat_ring *ring = &threads->rings[threads->nr_rings];
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = threads->nr_rings};
	void *map = mmap(NULL, threads->ring_bytes + threads->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	ring->page = map;
	threads->nr_rings++;
	return epoll_ctl(threads->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* The event that reports births, names and exits on one CPU. Returns 0, -ENODEV (no such CPU) or -errno. */
static int open_lives(struct csink_stat_threads *threads, int cpu)
{
	const struct csink_outside_how how = {cpu, -1, add_lives, threads};
	int fd = csink_outside_open_dummy(&how);

	if (fd < 0)
		return fd;
	threads->lives_fds[threads->nr_lives++] = fd;
	return map_ring(threads, fd);
}

/* One event on one CPU, with its ring. Returns its fd, -ENODEV (no such CPU) or -errno. */
static int open_one(struct csink_stat_threads *threads, struct csink_stat_counter *counter, int cpu, int group_fd)
{
	struct csink_outside_how how = {cpu, group_fd, add_read, threads};
	struct perf_event_attr attr;
	int fd = csink_outside_open_event(&counter->spec, &how, &attr), err;

	if (fd < 0) {
		if (fd != -ENODEV)
			csink_stat_counter_refuse(counter, &attr, cpu, group_fd, fd);
		return fd;
	}
	err = map_ring(threads, fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* All events of a CPU. Where none may be opened at all, each of the counters says why. */
static int open_cpu(struct csink_stat_threads *threads, int cpu)
{
	int leader_fd = -1, err = open_lives(threads, cpu);
	uint32_t group = UINT32_MAX;

	if (err == -ENODEV)
		return 0;
	if (err == -ENOBUFS || err == -EMFILE)
		return err;
	for (uint32_t i = 0; i < threads->counters->nr; i++) {
		struct csink_stat_counter *counter = &threads->counters->counters[i];
		bool leads = counter->spec.group != group;
		int fd;

		if (counter->err || !csink_event_is_on(&counter->spec, (uint32_t)cpu))
			continue;
		fd = open_one(threads, counter, cpu, leads ? -1 : leader_fd);
		if (fd == -ENOBUFS || fd == -EMFILE)
			return fd;
		group = counter->spec.group;
		if (leads)
			leader_fd = fd < 0 ? -1 : fd;
		if (fd < 0)
			continue;
		ioctl(fd, PERF_EVENT_IOC_ID, &threads->ids[i * threads->nr_cpus + (uint32_t)cpu]);
		counter->fds[counter->nr_fds++] = fd;
		threads->nr_reads++;
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

/* Room for what the fields say. Returns 0 or -errno. */
static int alloc(struct csink_stat_threads *threads, uint32_t nr_counters)
{
	threads->ids = calloc((size_t)nr_counters * threads->nr_cpus, sizeof(*threads->ids));
	threads->lives_fds = calloc(threads->nr_cpus, sizeof(*threads->lives_fds));
	threads->rings = calloc((size_t)(nr_counters + 1) * threads->nr_cpus, sizeof(*threads->rings));
	if (!threads->ids || !threads->lives_fds || !threads->rings)
		return -ENOMEM;
	threads->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return threads->epoll_fd < 0 ? -errno : 0;
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
	threads->epoll_fd = -1;
	threads->nr_cpus = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	threads->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	threads->ring_bytes = pages * threads->page_bytes;
	threads->anchor_fd = csink_outside_open_anchor();
	err = alloc(threads, counters->nr);
	if (!err)
		err = prepare(counters, threads->nr_cpus);
	for (uint32_t cpu = 0; !err && cpu < threads->nr_cpus; cpu++)
		err = open_cpu(threads, (int)cpu);
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
	return threads->epoll_fd;
}

static struct csink_stat_thread_note *new_note(struct csink_stat_threads *threads)
{
	if (CSINK_GROW(threads->notes, threads->nr_notes, threads->cap_notes)) {
		threads->no_memory = true;
		return NULL;
	}
	return &threads->notes[threads->nr_notes++];
}

/* One record, whole and in one piece. */
static void take(struct csink_stat_threads *threads, const char *record)
{
	struct perf_event_header head;
	uint32_t ids[4]; /* of FORK and EXIT: pid, ppid, tid, ptid; of the others: pid, tid */
	bool is_task;
	struct csink_stat_thread_note *note;

	memcpy(&head, record, sizeof(head));
	if (head.type == PERF_RECORD_LOST) {
		uint64_t lost[2]; /* id, number */

		memcpy(lost, record + sizeof(head), sizeof(lost));
		threads->nr_lost += lost[1];
		return;
	}
	if (head.type != PERF_RECORD_FORK && head.type != PERF_RECORD_COMM && head.type != PERF_RECORD_READ &&
	    head.type != PERF_RECORD_EXIT)
		return;
	note = new_note(threads);
	if (!note)
		return;
	memset(note, 0, sizeof(*note));
	memcpy(ids, record + sizeof(head), sizeof(ids));
	memcpy(&note->time_ns, record + head.size - sizeof(note->time_ns), sizeof(note->time_ns));
	note->type = head.type;
	note->pid = ids[0];
	is_task = head.type == PERF_RECORD_FORK || head.type == PERF_RECORD_EXIT;
	note->tid = is_task ? ids[2] : ids[1];
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
	for (uint32_t i = 0; i < threads->nr_lives; i++)
		close(threads->lives_fds[i]);
	if (threads->epoll_fd >= 0)
		close(threads->epoll_fd);
	if (threads->anchor_fd >= 0)
		close(threads->anchor_fd);
	free(threads->rings);
	free(threads->lives_fds);
	free(threads->ids);
	free(threads->notes);
	free(threads);
}
