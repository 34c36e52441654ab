/* The processes of the command's tree: events and rings. What the records mean is in process_table.c. */
#include "launcher/session/process_tree.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/session/outside.h"
#include "launcher/session/process_table.h"
#include "launcher/session/rings.h"

/*
 * A process leaves 120 bytes in the rings of births and ends, and 32 in that of counts. The unprivileged share mlock'ed
 * pages with the injected library, so they get the smaller rings; half of one holds some hundred processes while the
 * launcher waits for a CPU.
 */
#define RING_PAGES_ROOT 32
#define RING_PAGES 8
#define SETTLE_NS 1000000
#define MAX_SETTLE_NS (100 * SETTLE_NS)

/*
 * A ring takes writers on one CPU at a time: two lose records, and may leave it in a state in which it reports nothing.
 * Births, names and ends are written on the CPU where they happen, into the ring of that CPU. What a task leaves of an
 * event is written on whichever CPU it ends on, under a lock of the event: so its counts have an event and a ring of
 * their own.
 */

struct csink_process_tree {
	int anchor_fd;
	int counts_fd; /* the event whose counts tasks leave */
	struct csink_process_table table;
	struct csink_rings rings; /* by CPU; the last one is that of the counts */
};

static void add_ring(struct perf_event_attr *attr, void *arg)
{
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	csink_rings_attr(attr, arg);
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

static int open_owner(void *arg, uint32_t i)
{
	struct csink_rings *rings = arg;
	bool has_lives = i < rings->nr - 1;
	const struct csink_outside_how how = {has_lives ? (int)i : -1, -1, has_lives ? add_lives : add_ring, rings};

	return csink_outside_open_dummy(&how);
}

static int open_rings(struct csink_process_tree *tree, uint32_t pages)
{
	const struct csink_outside_how how = {-1, -1, add_counts, &tree->rings};
	int err = csink_rings_map(&tree->rings, pages * tree->rings.page_bytes, open_owner, &tree->rings);

	if (err)
		return err;
	tree->counts_fd = csink_outside_open_dummy(&how);
	return tree->counts_fd < 0 ? tree->counts_fd
				   : csink_rings_add(&tree->rings, tree->rings.nr - 1, tree->counts_fd);
}

int csink_process_tree_open(struct csink_process_tree **out)
{
	const uint32_t pages[] = {geteuid() ? RING_PAGES : RING_PAGES_ROOT, 2, 1};
	struct csink_process_tree *tree = calloc(1, sizeof(*tree));
	int err;

	if (!tree)
		return -ENOMEM;
	tree->counts_fd = -1;
	tree->anchor_fd = csink_outside_open_anchor();
	/* The last word of each record is its time (sample_id_all). */
	err = csink_rings_init(&tree->rings, (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L) + 1, 8);
	if (tree->anchor_fd < 0)
		err = tree->anchor_fd;
	if (!err)
		err = -ENOBUFS;
	/* The user's share of locked memory is used up, but small rings may fit, and leave some to samples. */
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(pages) && err == -ENOBUFS; i++)
		err = open_rings(tree, pages[i]);
	if (err) {
		csink_process_tree_close(tree);
		return err;
	}
	csink_process_table_init(&tree->table, 1);
	*out = tree;
	return 0;
}

int csink_process_tree_fd(const struct csink_process_tree *tree)
{
	return tree->rings.epoll_fd;
}

int csink_process_tree_clock_fd(const struct csink_process_tree *tree)
{
	return tree->counts_fd;
}

/* Larger ones are none of those that are understood. */
static void take(void *arg, const struct perf_event_header *record, uint64_t time_ns)
{
	struct csink_process_tree *tree = arg;

	(void)time_ns; /* the table reads it itself */
	if (record->size <= sizeof(union csink_process_record))
		csink_process_table_feed(&tree->table, (const union csink_process_record *)record);
}

void csink_process_tree_drain(struct csink_process_tree *tree)
{
	csink_rings_drain(&tree->rings, csink_monotonic_ns() - SETTLE_NS, take, tree);
}

void csink_process_tree_settle(struct csink_process_tree *tree)
{
	const struct timespec step = {.tv_nsec = SETTLE_NS};
	uint64_t end_ns = csink_monotonic_ns() + MAX_SETTLE_NS;
	int nr_quiet = 0;

	/* A process may have forked between a look at the rings and one at the processes: two looks. */
	while (nr_quiet < 2 && csink_monotonic_ns() < end_ns) {
		csink_rings_drain(&tree->rings, UINT64_MAX, take, tree);
		nr_quiet = csink_process_table_is_busy(&tree->table) ? 0 : nr_quiet + 1;
		if (!nr_quiet)
			nanosleep(&step, NULL);
	}
}

int csink_process_tree_finish(struct csink_process_tree *tree, struct csink_process_tree_result *result)
{
	enum { ROUNDS = 8 };

	/* A process may fork and end between a look at the rings and one at the processes: its child is found by
	 * another look. Not for ever: of some programs (setuid) the kernel reports no exit. */
	for (int i = 0; i < ROUNDS; i++) {
		csink_rings_drain(&tree->rings, UINT64_MAX, take, tree);
		if (!csink_process_table_is_behind(&tree->table))
			break;
	}
	return csink_process_table_finish(&tree->table, result);
}

void csink_process_tree_close(struct csink_process_tree *tree)
{
	if (!tree)
		return;
	if (tree->counts_fd >= 0)
		close(tree->counts_fd);
	csink_rings_free(&tree->rings);
	csink_process_table_free(&tree->table);
	if (tree->anchor_fd >= 0)
		close(tree->anchor_fd);
	free(tree);
}
