/* Who was in the command's tree: rings and their reading. What the records mean is in process_table.c. */
#include "launcher/session/process_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/event.h"
#include "launcher/session/outside.h"
#include "launcher/session/process_table.h"

/*
 * A process leaves 120 bytes in the rings of births and ends, and 32 in that of counts. The unprivileged share mlock'ed
 * pages with the injected library, so they get the smaller rings; half of one holds some hundred processes while the
 * launcher waits for a CPU.
 */
#define RING_PAGES_ROOT 32
#define RING_PAGES 8
#define SETTLE_NS 1000000

/*
 * A ring takes writers on one CPU at a time: two lose records, and may leave it in a state in which it reports nothing.
 * Births, names and ends are written on the CPU where they happen, into the ring of that CPU. What a task leaves of an
 * event is written on whichever CPU it ends on, under a lock of the event: so its counts have an event and a ring of
 * their own.
 */

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	const char *data;
	uint64_t head; /* as read at the start of a drain */
	uint64_t tail;
	uint64_t next_ns;               /* time of the record at tail; UINT64_MAX: none */
	union csink_tree_record record; /* a copy of it: in the ring it may wrap */
};

struct csink_tree {
	int epoll_fd;
	int anchor_fd;
	int counts_fd; /* the event whose counts tasks leave */
	uint32_t nr_rings;
	uint32_t ring_bytes;
	struct csink_tree_table table;
	struct ring rings[];
};

static void add_ring(struct perf_event_attr *attr, void *arg)
{
	const struct csink_tree *tree = arg;

	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->watermark = 1;
	attr->wakeup_watermark = tree->ring_bytes / 2;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

static void add_lives(struct perf_event_attr *attr, void *arg)
{
	attr->inherit = attr->enable_on_exec = 1;
	attr->task = attr->comm = attr->comm_exec = 1;
	add_ring(attr, arg);
}

/* A task's count comes out at its exit, as a PERF_RECORD_READ. An inherited event on all CPUs cannot have a ring: it
 * writes to the ring of another event. */
static void add_counts(struct perf_event_attr *attr, void *arg)
{
	attr->config = PERF_COUNT_SW_TASK_CLOCK;
	attr->inherit = attr->enable_on_exec = 1;
	attr->inherit_stat = 1;
	add_ring(attr, arg);
}

static int ring_open(struct csink_tree *tree, struct ring *ring, int cpu)
{
	const struct csink_outside_how how = {cpu, -1, cpu < 0 ? add_ring : add_lives, tree};
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	void *map;

	ring->fd = csink_outside_open_dummy(&how);
	if (ring->fd < 0)
		return ring->fd;
	map = mmap(NULL, tree->ring_bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED) {
		int err = errno == EPERM ? -ENOBUFS : -errno;

		close(ring->fd);
		ring->fd = -1;
		return err;
	}
	ring->page = map;
	ring->data = (const char *)map + page;
	return 0;
}

static void ring_close(struct ring *ring, uint32_t ring_bytes)
{
	if (ring->page)
		munmap(ring->page, ring_bytes + (size_t)(ring->data - (const char *)ring->page));
	if (ring->fd >= 0)
		close(ring->fd);
	ring->page = NULL;
	ring->fd = -1;
}

/* Open a ring and watch it. cpu -1: that of the counts. Returns 0, -ENODEV (the CPU is offline) or -errno. */
static int ring_add(struct csink_tree *tree, int cpu)
{
	struct ring *ring = &tree->rings[tree->nr_rings];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = tree->nr_rings};
	int err;

	ring->page = NULL;
	err = ring_open(tree, ring, cpu);
	if (err)
		return err;
	tree->nr_rings++;
	return epoll_ctl(tree->epoll_fd, EPOLL_CTL_ADD, ring->fd, &ev) < 0 ? -errno : 0;
}

static int counts_open(struct csink_tree *tree)
{
	const struct csink_outside_how how = {-1, -1, add_counts, tree};
	int err = ring_add(tree, -1);

	if (err)
		return err;
	tree->counts_fd = csink_outside_open_dummy(&how);
	if (tree->counts_fd < 0)
		return tree->counts_fd;
	return ioctl(tree->counts_fd, PERF_EVENT_IOC_SET_OUTPUT, tree->rings[tree->nr_rings - 1].fd) < 0 ? -errno : 0;
}

static void rings_close(struct csink_tree *tree)
{
	if (tree->counts_fd >= 0)
		close(tree->counts_fd);
	tree->counts_fd = -1;
	while (tree->nr_rings)
		ring_close(&tree->rings[--tree->nr_rings], tree->ring_bytes);
}

static int rings_open(struct csink_tree *tree, uint32_t nr_cpus, uint32_t pages)
{
	int err = 0;

	tree->ring_bytes = pages * (uint32_t)sysconf(_SC_PAGESIZE);
	tree->nr_rings = 0;
	for (int cpu = 0; !err && cpu < (int)nr_cpus; cpu++) {
		err = ring_add(tree, cpu);
		if (err == -ENODEV)
			err = 0;
	}
	if (!err)
		err = tree->nr_rings ? counts_open(tree) : -ENODEV;
	if (err)
		rings_close(tree);
	return err;
}

int csink_tree_open(struct csink_tree **out)
{
	uint32_t max = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	struct csink_tree *tree = calloc(1, sizeof(*tree) + (max + 1) * sizeof(tree->rings[0]));
	const uint32_t pages[] = {geteuid() ? RING_PAGES : RING_PAGES_ROOT, 2, 1};
	int err = -ENOBUFS;

	if (!tree)
		return -ENOMEM;
	tree->counts_fd = -1;
	tree->anchor_fd = csink_outside_open_anchor();
	tree->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tree->anchor_fd < 0 || tree->epoll_fd < 0) {
		err = tree->anchor_fd < 0 ? tree->anchor_fd : -errno;
		csink_tree_close(tree);
		return err;
	}
	/* The user's share of locked memory is used up, but small rings may fit, and leave some to samples. */
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(pages) && err == -ENOBUFS; i++)
		err = rings_open(tree, max, pages[i]);
	if (err) {
		csink_tree_close(tree);
		return err;
	}
	csink_tree_table_init(&tree->table, 1);
	*out = tree;
	return 0;
}

int csink_tree_fd(const struct csink_tree *tree)
{
	return tree->epoll_fd;
}

/* Copy the record at tail out of the ring, and learn its time: the last word of each (sample_id_all). */
static void ring_peek(struct csink_tree *tree, struct ring *ring)
{
	uint32_t mask = tree->ring_bytes - 1, at = (uint32_t)ring->tail & mask;
	struct perf_event_header head;
	uint32_t size, first;

	ring->next_ns = UINT64_MAX;
	while (ring->tail < ring->head) {
		/* Records are multiples of 8 bytes, so that their head never wraps. */
		memcpy(&head, ring->data + at, sizeof(head));
		size = head.size;
		if (size < sizeof(head) || size > ring->head - ring->tail) {
			ring->tail = ring->head; /* not a ring as we know it */
			return;
		}
		if (size <= sizeof(ring->record) && size >= sizeof(head) + 8)
			break;
		ring->tail += size; /* none of those that are understood */
		at = (uint32_t)ring->tail & mask;
	}
	if (ring->tail >= ring->head)
		return;
	first = CSINK_MIN(size, tree->ring_bytes - at);
	memcpy(&ring->record, ring->data + at, first);
	memcpy((char *)&ring->record + first, ring->data, size - first);
	memcpy(&ring->next_ns, (char *)&ring->record + size - 8, 8);
}

/* Feed the records of all rings to the table, oldest first, up to those of before_ns. */
static void drain(struct csink_tree *tree, uint64_t before_ns)
{
	for (uint32_t i = 0; i < tree->nr_rings; i++) {
		struct ring *ring = &tree->rings[i];

		/* Pairs with the kernel's barrier between a record and data_head. */
		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		ring_peek(tree, ring);
	}
	for (;;) {
		struct ring *oldest = &tree->rings[0];

		for (uint32_t i = 1; i < tree->nr_rings; i++) {
			if (tree->rings[i].next_ns < oldest->next_ns)
				oldest = &tree->rings[i];
		}
		if (oldest->next_ns >= before_ns)
			break;
		csink_tree_table_feed(&tree->table, &oldest->record);
		oldest->tail += oldest->record.head.size;
		ring_peek(tree, oldest);
	}
	for (uint32_t i = 0; i < tree->nr_rings; i++) {
		/* Pairs with the kernel's acquire of data_tail before it writes over what was read. */
		__atomic_store_n(&tree->rings[i].page->data_tail, tree->rings[i].tail, __ATOMIC_RELEASE);
	}
}

void csink_tree_drain(struct csink_tree *tree)
{
	drain(tree, csink_monotonic_ns() - SETTLE_NS);
}

int csink_tree_finish(struct csink_tree *tree, struct csink_tree_result *result)
{
	enum { ROUNDS = 8 };

	/* A process may fork and end between a look at the rings and one at the processes: its child is found by
	 * another look. Not for ever: of some programs (setuid) the kernel tells no exit. */
	for (int i = 0; i < ROUNDS; i++) {
		drain(tree, UINT64_MAX);
		if (!csink_tree_table_is_behind(&tree->table))
			break;
	}
	return csink_tree_table_finish(&tree->table, result);
}

void csink_tree_close(struct csink_tree *tree)
{
	if (!tree)
		return;
	rings_close(tree);
	csink_tree_table_free(&tree->table);
	if (tree->epoll_fd >= 0)
		close(tree->epoll_fd);
	if (tree->anchor_fd >= 0)
		close(tree->anchor_fd);
	free(tree);
}
