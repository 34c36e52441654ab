/* Counts of single threads: see threads.h. */
#include "launcher/stat/threads.h"

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

/* A record that says something, cut to what is of use. */
struct note {
	uint64_t time_ns;
	uint32_t type, pid, tid, parent; /* parent: the thread that forked it */
	union {
		char comm[16];
		struct {
			uint64_t value, enabled_ns, running_ns, id;
		} read;
	};
};

struct ring {
	int fd; /* of the CPU's first event, which owns the ring; not ours to close */
	struct perf_event_mmap_page *page;
};

struct csink_stat_threads {
	int epoll_fd, anchor_fd;
	uint32_t page_bytes, ring_bytes;
	struct csink_stat_counters *counters;
	uint64_t *ids; /* of counter i on CPU number k of those that are there: ids[i * nr_rings + k] */
	struct note *notes;
	uint32_t nr_notes, cap_notes;
	uint64_t nr_lost;
	bool no_memory;
	uint32_t nr_rings;
	struct ring rings[];
};

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
	struct ring *ring = &threads->rings[threads->nr_rings];
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = threads->nr_rings};
	uint32_t pages = geteuid() ? RING_PAGES : RING_PAGES_ROOT;
	void *map = MAP_FAILED;

	/* The rings are of one size; the first one finds out which. */
	if (threads->nr_rings)
		pages = threads->ring_bytes / threads->page_bytes;
	for (; pages >= RING_PAGES_MIN; pages /= 2) {
		map = mmap(NULL, (pages + 1) * threads->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED || errno != EPERM || threads->nr_rings)
			break;
	}
	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	threads->ring_bytes = pages * threads->page_bytes;
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

		if (counter->err)
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

		counter->err = 0;
		counter->nr_fds = 0;
		counter->fds = malloc(nr_cpus * sizeof(*counter->fds));
		if (!counter->fds)
			return -ENOMEM;
		if (counter->spec.cpu_wide) {
			counter->err = -EOPNOTSUPP;
			snprintf(counter->reason, sizeof(counter->reason), "%s counts whole CPUs, not threads",
				 counter->spec.pmu[0] ? counter->spec.pmu : "its PMU");
		}
	}
	return 0;
}

int csink_stat_threads_open(struct csink_stat_threads **out, struct csink_stat_counters *counters)
{
	uint32_t nr_cpus = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	struct csink_stat_threads *threads = calloc(1, sizeof(*threads) + nr_cpus * sizeof(threads->rings[0]));
	int err = threads ? prepare(counters, nr_cpus) : -ENOMEM;

	if (!threads)
		return err;
	threads->counters = counters;
	threads->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
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

/* ---- reading ---- */

int csink_stat_threads_fd(const struct csink_stat_threads *threads)
{
	return threads->epoll_fd;
}

static struct note *new_note(struct csink_stat_threads *threads)
{
	if (threads->nr_notes == threads->cap_notes) {
		uint32_t cap = threads->cap_notes ? 2 * threads->cap_notes : 256;
		struct note *notes = reallocarray(threads->notes, cap, sizeof(*notes));

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
	struct note *note;

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

static void drain_ring(struct csink_stat_threads *threads, struct ring *ring)
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

/* ---- what it comes to ---- */

struct table {
	struct csink_stat_thread *threads;
	uint32_t nr, cap;
	uint32_t *slots, nr_slots; /* hash of tid -> index + 1 of its latest bearer */
};

static uint32_t *slot_of(const struct table *table, uint32_t tid)
{
	uint32_t mask = table->nr_slots - 1, at = tid * 2654435761u & mask;

	while (table->slots[at] && (uint32_t)table->threads[table->slots[at] - 1].tid != tid)
		at = (at + 1) & mask;
	return &table->slots[at];
}

/* NULL: no record can have told of so many. */
static struct csink_stat_thread *add_thread(struct table *table, const struct note *note)
{
	struct csink_stat_thread *thread = &table->threads[table->nr];

	if (table->nr == table->cap)
		return NULL;
	memset(thread, 0, sizeof(*thread));
	thread->pid = (int32_t)note->pid;
	thread->tid = (int32_t)note->tid;
	thread->start_ns = note->time_ns;
	*slot_of(table, note->tid) = ++table->nr;
	return thread;
}

static struct csink_stat_thread *find_thread(struct table *table, const struct note *note)
{
	uint32_t *slot = slot_of(table, note->tid);

	return *slot ? &table->threads[*slot - 1] : add_thread(table, note);
}

static uint32_t counter_of(const struct csink_stat_threads *threads, uint64_t id)
{
	uint32_t nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);

	for (uint32_t i = 0; i < threads->counters->nr * nr_cpus; i++)
		if (threads->ids[i] == id)
			return i / nr_cpus;
	return UINT32_MAX;
}

static void apply(const struct csink_stat_threads *threads, struct table *table, const struct note *note)
{
	struct csink_stat_thread *thread;
	struct csink_stat_value *value;
	uint32_t at;

	switch (note->type) {
	case PERF_RECORD_FORK:
		at = *slot_of(table, note->parent);
		thread = add_thread(table, note);
		if (at && thread)
			memcpy(thread->comm, table->threads[at - 1].comm, sizeof(thread->comm));
		break;
	case PERF_RECORD_COMM:
		thread = find_thread(table, note);
		if (thread)
			memcpy(thread->comm, note->comm, sizeof(note->comm));
		break;
	case PERF_RECORD_READ:
		at = counter_of(threads, note->read.id);
		if (at == UINT32_MAX)
			break;
		thread = find_thread(table, note);
		if (!thread)
			break;
		thread->has_counts = true;
		value = &thread->values[at];
		value->raw += note->read.value;
		value->enabled_ns += note->read.enabled_ns;
		value->running_ns += note->read.running_ns;
		break;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct note *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/*
 * How long an event was enabled for a thread is not known well: where the kernel switches between two threads that have
 * the same events it swaps these, and a part of one's time goes to the other. Over all threads it adds up; so each is
 * scaled by the share that was counted of them all.
 */
static void settle(const struct csink_stat_counters *counters, struct table *table)
{
	for (uint32_t i = 0; i < counters->nr; i++) {
		const struct csink_stat_counter *counter = &counters->counters[i];
		uint64_t enabled_ns = 0, running_ns = 0;

		for (uint32_t k = 0; k < table->nr; k++) {
			enabled_ns += table->threads[k].values[i].enabled_ns;
			running_ns += table->threads[k].values[i].running_ns;
		}
		enabled_ns /= CSINK_MAX(counter->nr_fds, 1u);
		for (uint32_t k = 0; k < table->nr; k++) {
			struct csink_stat_value *value = &table->threads[k].values[i];

			value->state = counter->err ? CSINK_STAT_NOT_SUPPORTED : CSINK_STAT_COUNTED;
			value->enabled_ns = value->running_ns ? value->running_ns : value->enabled_ns;
			if (running_ns < enabled_ns && value->running_ns)
				value->enabled_ns =
					(uint64_t)((double)value->running_ns * (double)enabled_ns / (double)running_ns);
			if (!counter->err)
				csink_stat_value_scale(value, counter->spec.scale);
		}
	}
}

int csink_stat_threads_finish(struct csink_stat_threads *threads, struct csink_stat_threads_result *result)
{
	struct table table = {.nr_slots = 64};

	memset(result, 0, sizeof(*result));
	csink_stat_threads_drain(threads);
	qsort(threads->notes, threads->nr_notes, sizeof(*threads->notes), by_time);
	/* Each thread has a first record that is no count; a few may be lost. */
	for (uint32_t i = 0; i < threads->nr_notes; i++)
		table.cap += threads->notes[i].type != PERF_RECORD_READ;
	table.cap += 16 + (uint32_t)CSINK_MIN(threads->nr_lost, (uint64_t)4096);
	while (table.nr_slots < 2 * table.cap)
		table.nr_slots *= 2;
	table.threads = calloc(table.cap, sizeof(*table.threads));
	table.slots = calloc(table.nr_slots, sizeof(*table.slots));
	if (!table.threads || !table.slots || threads->no_memory) {
		free(table.threads);
		free(table.slots);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < threads->nr_notes; i++)
		apply(threads, &table, &threads->notes[i]);
	settle(threads->counters, &table);
	for (uint32_t i = 0; i < table.nr; i++)
		result->has_counts |= table.threads[i].has_counts;
	free(table.slots);
	result->threads = table.threads;
	result->nr = table.nr;
	result->nr_lost = threads->nr_lost;
	return 0;
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
