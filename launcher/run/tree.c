/* Who was in the command's tree: rings and their reading. What the records mean is in tree_table.c. */
#include "launcher/run/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/event.h"
#include "launcher/run/outside.h"
#include "launcher/run/tree_table.h"

/*
 * A process leaves 120 bytes in the rings of births and ends, and 32 in each of counts. The unprivileged share mlock'ed
 * pages with the injected library, so they get the smaller rings; half of one holds some hundred processes while the
 * launcher waits for a CPU.
 */
#define RING_PAGES_ROOT 32
#define RING_PAGES 8
#define RING_PAGES_MIN 1
#define SETTLE_NS 1000000

/*
 * What a ring tells of. A ring takes writers on one CPU only. Births, names and ends are written where they happen; but
 * what a task leaves of an event on CPU 0 is written on the CPU that it ends on, under a lock of that event. So they
 * have rings of their own: two CPUs that write to one at a time lose records, and may leave it so that it tells nothing
 * any more.
 */
enum ring_kind { RING_LIVES, RING_COUNTS, NR_RING_KINDS };

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
	uint32_t nr_rings;
	uint32_t ring_bytes;
	struct csink_tree_table table;
	struct ring rings[];
};

static int ring_open(struct ring *ring, int cpu, enum ring_kind kind, uint32_t pages)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = kind == RING_COUNTS ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
		/* A task's count comes out at its exit, as a PERF_RECORD_READ. */
		.inherit_stat = kind == RING_COUNTS,
		.task = kind == RING_LIVES,
		.comm = kind == RING_LIVES,
		.comm_exec = kind == RING_LIVES,
		.sample_id_all = 1,
		/* Costs nothing (a clock counts the kernel's time all the same), and spares the unprivileged a refusal.
		 */
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = pages * page / 2,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	void *map;

	ring->fd = csink_perf_open(&attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return ring->fd;
	map = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
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

/* Open a ring and watch it. Returns 0, -ENODEV (the CPU is offline) or -errno. */
static int ring_add(struct csink_tree *tree, int cpu, enum ring_kind kind, uint32_t pages)
{
	struct ring *ring = &tree->rings[tree->nr_rings];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = tree->nr_rings};
	int err;

	ring->page = NULL;
	err = ring_open(ring, cpu, kind, pages);
	if (err)
		return err;
	tree->nr_rings++;
	return epoll_ctl(tree->epoll_fd, EPOLL_CTL_ADD, ring->fd, &ev) < 0 ? -errno : 0;
}

static int rings_open(struct csink_tree *tree, uint32_t max, uint32_t pages)
{
	int err = 0;

	tree->ring_bytes = pages * (uint32_t)sysconf(_SC_PAGESIZE);
	tree->nr_rings = 0;
	for (uint32_t i = 0; !err && i < max * NR_RING_KINDS; i++) {
		err = ring_add(tree, (int)(i / NR_RING_KINDS), i % NR_RING_KINDS, pages);
		if (err == -ENODEV)
			err = 0;
	}
	if (!err && !tree->nr_rings)
		err = -ENODEV;
	if (!err)
		return 0;
	while (tree->nr_rings)
		ring_close(&tree->rings[--tree->nr_rings], tree->ring_bytes);
	return err;
}

int csink_tree_open(struct csink_tree **out)
{
	uint32_t max = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	struct csink_tree *tree = calloc(1, sizeof(*tree) + max * NR_RING_KINDS * sizeof(tree->rings[0]));
	uint32_t pages = geteuid() ? RING_PAGES : RING_PAGES_ROOT;
	int err;

	if (!tree)
		return -ENOMEM;
	tree->anchor_fd = csink_outside_open_anchor();
	tree->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tree->anchor_fd < 0 || tree->epoll_fd < 0) {
		err = tree->anchor_fd < 0 ? tree->anchor_fd : -errno;
		csink_tree_close(tree);
		return err;
	}
	/* The user's share of locked memory is used up, but a smaller ring may fit. */
	do
		err = rings_open(tree, max, pages);
	while (err == -ENOBUFS && (pages /= 2) >= RING_PAGES_MIN);
	if (err) {
		csink_tree_close(tree);
		return err;
	}
	csink_tree_table_init(&tree->table, tree->nr_rings / NR_RING_KINDS);
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
	drain(tree, UINT64_MAX);
	return csink_tree_table_finish(&tree->table, result);
}

void csink_tree_close(struct csink_tree *tree)
{
	if (!tree)
		return;
	while (tree->nr_rings)
		ring_close(&tree->rings[--tree->nr_rings], tree->ring_bytes);
	csink_tree_table_fini(&tree->table);
	if (tree->epoll_fd >= 0)
		close(tree->epoll_fd);
	if (tree->anchor_fd >= 0)
		close(tree->anchor_fd);
	free(tree);
}
