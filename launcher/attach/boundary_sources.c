/*
 * Which events are open for programs that cannot be injected: each request's are a source, until no task has them, or
 * an older source has them, too; and threads whose children ask so often that the events are opened on them. Runs in
 * the launcher's one thread.
 */
#include "launcher/attach/boundary_impl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "preload/api/pmc/targets.h"
#include "preload/core/perf_system.h"

/* ---- sources ---- */

static uint32_t add_source(struct csink_boundary *b, uint64_t token, int32_t pid)
{
	struct csink_boundary_source source = {.token = token,
					       .pid = pid,
					       .come_ns = csink_monotonic_ns(),
					       .anchor_fd = -1,
					       .first_fd = -1,
					       .place = b->nr_open};

	if (CSINK_GROW(b->sources, b->nr_sources, b->cap_sources) || CSINK_GROW(b->open, b->nr_open, b->cap_open))
		return 0;
	b->sources[b->nr_sources++] = source;
	b->open[b->nr_open++] = b->nr_sources;
	return b->nr_sources;
}

uint32_t csink_boundary_source_of(struct csink_boundary *b, uint64_t token, int32_t pid, bool may_add)
{
	return CSINK_TABLE_INTERN(b->by_token, csink_hash_number(token), b->sources[id - 1].token == token,
				  may_add ? add_source(b, token, pid) : 0);
}

void csink_boundary_source_close(struct csink_boundary *b, uint32_t number, uint32_t by)
{
	struct csink_boundary_source *source = &b->sources[number - 1];

	if (source->is_closed)
		return;
	for (uint32_t i = 0; i < source->nr_ids; i++)
		csink_attach_counters_drop(&b->follow.counters, source->ids[i].id, by ? CSINK_SOURCE_REPLACED : number);
	source->replaced_by = by;
	free(source->ids);
	source->ids = NULL;
	source->nr_ids = source->cap_ids = 0;
	if (source->anchor_fd >= 0)
		close(source->anchor_fd);
	source->anchor_fd = -1;
	source->is_closed = true;
	b->open[source->place] = b->open[--b->nr_open];
	b->sources[b->open[source->place] - 1].place = source->place;
}

void csink_boundary_sources_sweep(struct csink_boundary *b)
{
	for (uint32_t i = b->nr_open; i-- > 0;) { /* what takes the place of a closed one has been looked at */
		struct pollfd poll_fd = {.fd = b->sources[b->open[i] - 1].first_fd};

		if (poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLHUP)
			csink_boundary_source_close(b, b->open[i], 0);
	}
	b->sweep_at = CSINK_MAX(CSINK_BOUNDARY_LEAST_SWEEP, 2 * b->nr_open);
}

static bool is_same(const struct csink_boundary_id *a, const struct csink_boundary_id *b)
{
	return a->event == b->event && a->cpu == b->cpu;
}

#define SLOW_EXEC_NS (CSINK_NS_PER_S / 10) /* from a request to the record of the exec that it is about */

/* Has the first source all events of the second? Both have their events in the same order. */
static bool has_all_of(const struct csink_boundary_source *first, const struct csink_boundary_source *second)
{
	uint32_t at = 0;

	if (first->is_everywhere)
		return true;
	for (uint32_t i = 0; i < first->nr_ids && at < second->nr_ids; i++)
		at += is_same(&first->ids[i], &second->ids[at]);
	return at == second->nr_ids;
}

/*
 * Let processes of a replaced source be of the source that replaces it. The rings still have samples of both: from here
 * on, those of the replacing source are taken.
 */
static void hand_over(struct csink_boundary *b)
{
	for (uint32_t i = 0; i < b->follow.images.nr_living; i++) {
		struct csink_attach_living *living = &b->follow.images.living[i];

		if (living->source && b->sources[living->source - 1].replaced_by)
			living->source = b->sources[living->source - 1].replaced_by;
	}
}

/*
 * A process below a boundary may open events again, since it cannot know that it has inherited some: after an exec that
 * the library did not see, and below a static program. Were they kept, a program by Go that is replaced a thousand
 * times would have a thousand events at the end, each of which costs every fork, exec and exit. The records of
 * fork and exec have the source: they come after the request.
 */
void csink_boundary_sources_replace(struct csink_boundary *b, uint64_t settled_ns)
{
	uint32_t first = b->nr_looked_at;
	bool is_replaced = false;

	for (uint32_t i = first; i < b->nr_sources; i++) {
		const struct csink_boundary_source *source = &b->sources[i];
		bool is_decided = source->is_closed || !source->is_whole;
		uint32_t older = is_decided ? 0 : csink_attach_images_source_of(&b->follow.images, source->pid);

		if (older && older <= i && !b->sources[older - 1].is_closed &&
		    has_all_of(&b->sources[older - 1], source)) {
			csink_boundary_source_close(b, i + 1, older);
			is_replaced = true;
		}
		if (i == b->nr_looked_at && (source->is_closed || source->come_ns + SLOW_EXEC_NS < settled_ns))
			b->nr_looked_at++;
	}
	if (is_replaced)
		hand_over(b);
}

bool csink_boundary_awaits_exec(const struct csink_boundary *b, uint64_t now_ns)
{
	for (uint32_t i = b->nr_looked_at; i < b->nr_sources; i++) {
		const struct csink_boundary_source *source = &b->sources[i];

		if (source->is_whole && !source->is_closed && !source->is_everywhere &&
		    source->come_ns + SLOW_EXEC_NS > now_ns &&
		    !csink_attach_images_has_program(&b->follow.images, source->pid, source->come_ns))
			return true;
	}
	return false;
}

void csink_boundary_source_adopt(struct csink_boundary *b, uint32_t number, int fd, uint16_t event, uint16_t cpu)
{
	struct csink_boundary_source *source = &b->sources[number - 1];
	struct csink_boundary_id one = {.event = event, .cpu = cpu};

	if (source->is_closed) {
		close(fd);
		return;
	}
	if (event == CSINK_BOUNDARY_ANCHOR) {
		if (source->anchor_fd >= 0)
			close(source->anchor_fd);
		source->anchor_fd = fd;
		return;
	}
	if (CSINK_GROW(source->ids, source->nr_ids, source->cap_ids)) {
		close(fd);
		return;
	}
	if (csink_attach_counters_adopt(&b->follow.counters, fd, event, cpu, number, &one.id))
		return;
	source->ids[source->nr_ids++] = one;
	if (source->first_fd < 0)
		source->first_fd = fd;
}

/* ---- threads whose children ask ---- */

/* After so many requests in so short a time, the events are opened on the parent, and its later children inherit them.
 * Injected children inherit them, too, and are sampled twice then: a few requests are cheaper. */
#define MANY_REQUESTS 16
#define SHORT_NS (CSINK_NS_PER_S / 4)

static void write_parent(const struct csink_boundary *b, int32_t tid, const struct csink_boundary_parent *parent)
{
	if (pwrite(b->file_fd, parent, sizeof(*parent), (off_t)csink_boundary_parent_at(tid)) < 0)
		return; /* its children ask, as before */
}

/* Give a source the events that were opened: those from index first of the open ones on. */
static int give_source(struct csink_boundary *b, uint32_t first, uint32_t number)
{
	struct csink_boundary_source *source = &b->sources[number - 1];
	struct csink_attach_counters *c = &b->follow.counters;

	for (uint32_t i = first; i < c->nr_fds; i++) {
		c->fds[i].source = number;
		if (CSINK_GROW(source->ids, source->nr_ids, source->cap_ids))
			return -ENOMEM;
		source->ids[source->nr_ids++].id = c->fds[i].id;
	}
	if (c->nr_fds > first)
		source->first_fd = c->fds[first].fd;
	return 0;
}

/* Open the events on a thread: its later children inherit them, where it has not inherited some itself. */
static bool arm_parent(struct csink_boundary *b, int32_t tid)
{
	struct csink_attach_counters *c = &b->follow.counters;
	struct perf_event_attr anchor = csink_perf_least();
	struct csink_attach_event *refused = NULL;
	uint32_t first = c->nr_fds, older, number;
	struct csink_task task;
	int err;

	if (csink_task_read(tid, &task))
		return false;
	older = csink_attach_images_source_of(&b->follow.images, task.tgid);
	if (older && !b->sources[older - 1].is_closed && b->sources[older - 1].is_everywhere)
		return true;
	number = csink_boundary_source_of(b, CSINK_BOUNDARY_PARENT_TOKEN | b->nr_sources, task.tgid, true);
	if (!number)
		return false;
	b->sources[number - 1].is_everywhere = b->sources[number - 1].is_whole = true;
	if (b->file.needs_anchor)
		b->sources[number - 1].anchor_fd = csink_perf_open(&anchor, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	err = csink_attach_counters_open(c, task.tgid, tid, &refused);
	if (give_source(b, first, number))
		err = -ENOMEM;
	csink_attach_counters_opened(c);
	if (err)
		csink_boundary_source_close(b, number, 0);
	return !err;
}

/* Is the process a child of the thread's process, and the latter not the launcher? A request may name any thread. */
static bool is_child_of(int32_t pid, int32_t tid)
{
	struct csink_task child, parent;

	return !csink_task_read(pid, &child) && !csink_task_read(tid, &parent) && child.ppid == parent.tgid &&
	       parent.tgid != getpid();
}

void csink_boundary_count_request(struct csink_boundary *b, int32_t tid, int32_t pid)
{
	struct csink_boundary_asking *asking = &b->asking[(uint32_t)tid % CSINK_BOUNDARY_PARENTS];
	struct csink_task task;
	uint64_t now_ns = csink_monotonic_ns();

	if (tid <= 0 || asking->is_armed)
		return;
	if (asking->tid != tid || now_ns - asking->since_ns > SHORT_NS)
		*asking = (struct csink_boundary_asking){.tid = tid, .since_ns = now_ns};
	if (++asking->nr != MANY_REQUESTS)
		return;
	/* The start time is read before arming: if the TID changes its owner meanwhile, this one is forgotten. */
	if (csink_task_read(tid, &task))
		return;
	asking->start_ticks = task.start_ticks;
	asking->is_armed = is_child_of(pid, tid) && arm_parent(b, tid);
	if (asking->is_armed)
		write_parent(b, tid, &(struct csink_boundary_parent){.tid = tid, .armed_ns = csink_monotonic_ns()});
}

void csink_boundary_forget_parents(struct csink_boundary *b)
{
	struct csink_task task;

	for (uint32_t i = 0; i < CSINK_BOUNDARY_PARENTS; i++) {
		struct csink_boundary_asking *asking = &b->asking[i];

		/* One that cannot be read just now, for lack of a descriptor, has not ended. */
		if (!asking->is_armed ||
		    ((!kill(asking->tid, 0) || errno != ESRCH) &&
		     (csink_task_read(asking->tid, &task) || task.start_ticks == asking->start_ticks)))
			continue;
		write_parent(b, asking->tid, &(struct csink_boundary_parent){0});
		*asking = (struct csink_boundary_asking){0};
	}
}
