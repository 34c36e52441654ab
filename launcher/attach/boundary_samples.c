/*
 * Events that are opened where injected processes start programs that cannot be injected, and what they sample: see
 * boundary_samples.h. Runs in the launcher's one thread.
 */
#include "launcher/attach/boundary_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/collect/run_directory.h"
#include "launcher/session/outside.h"
#include "preload/api/pmc/targets.h"
#include "preload/core/event/event_spec.h"
#include "preload/core/names_match.h"
#include "preload/core/perf_system.h"

/*
 * Of each CPU's ring. Others than root share what may be locked with the injected processes: where RLIMIT_MEMLOCK does
 * not pay for the large ones, they leave half of the user's share. At high rates a launcher that waits for a CPU would
 * lose records with large copies.
 */
#define RING_BYTES_ROOT (2U << 20)
#define RINGS_BYTES_ROOT (64U << 20) /* of all CPUs */
#define RING_BYTES (512U << 10)
#define RING_BYTES_SMALL (256U << 10)
#define RING_BYTES_FOR_COPIES (64U << 10)
#define STACK_BYTES 8192
#define STACK_BYTES_SMALL 1024
#define HIGH_RATE 5000

#define LEAST_SWEEP 16
#define BACKLOG 4096

/* Processes wait for requests to be taken: between parts of the rings they are. No process can keep the launcher with
 * its own. */
#define STEP_BYTES (1U << 20)
#define MESSAGES_AT_ONCE 1024 /* of one connection */
#define CONNECTIONS_AT_ONCE 256
#define ROUNDS_AT_ONCE 16

/* ---- begin ---- */

/* How large a CPU's ring may be. */
static uint32_t ring_bytes(uint32_t nr_cpus)
{
	uint32_t bytes = RING_BYTES_ROOT;
	struct csink_perf_system system;
	struct rlimit limit;

	csink_perf_system_read(&system);
	if (csink_perf_system_allows(&system, -1) || system.has_ipc_lock) {
		while (bytes > RING_BYTES && bytes > RINGS_BYTES_ROOT / nr_cpus)
			bytes /= 2;
		return bytes;
	}
	return !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur / RING_BYTES >= nr_cpus ? RING_BYTES
											    : RING_BYTES_SMALL;
}

/* Of a group that leads: samples in a second of CPU time; of other events than clocks it is not known. */
static bool is_fast(const struct csink_event_spec *spec)
{
	if (spec->attr.freq)
		return spec->attr.sample_freq > HIGH_RATE;
	return spec->rec.flags & CSINK_EVENT_CPU_NS && spec->attr.sample_period &&
	       CSINK_NS_PER_S / spec->attr.sample_period > HIGH_RATE;
}

/* The run's events, and CPU time, which totals are checked against, where none of them is: in the first group. */
static void take_events(struct csink_attach_counters *c, const struct csink_boundary_how *how)
{
	bool has_time = false;
	uint32_t first = 1;

	for (uint32_t i = 0; i < how->nr_specs; i++)
		has_time |= (how->specs[i].rec.flags & CSINK_EVENT_CPU_NS) != 0;
	while (first < how->nr_specs && how->specs[first].group == how->specs[0].group)
		first++;
	for (uint32_t i = 0; i < how->nr_specs; i++) {
		if (i == first && !has_time)
			c->nr_events++;
		c->events[c->nr_events++].spec = how->specs[i];
	}
	if (has_time)
		return;
	c->nr_events = how->nr_specs + 1;
	csink_event_named("task-clock", &c->events[first].spec);
	c->events[first].spec.rec.flags |= CSINK_EVENT_IMPLIED;
	c->events[first].spec.group = how->specs[0].group;
}

/*
 * The CPUs of the cpuset: what a process may bind itself to at most. No call returns them, but the kernel cuts each
 * mask to them: so this thread is bound to all CPUs for a moment, and reads which of them it got.
 */
static void find_cpus(uint64_t *cpus)
{
	uint64_t before[CSINK_BOUNDARY_MAX_CPUS / 64], all[CSINK_BOUNDARY_MAX_CPUS / 64];
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(before), before);

	if (bytes <= 0)
		return;
	memset(all, -1, sizeof(all));
	memcpy(cpus, before, (size_t)bytes);
	if (syscall(SYS_sched_setaffinity, 0, (size_t)bytes, all))
		return; /* a seccomp filter: as far as is known */
	if (syscall(SYS_sched_getaffinity, 0, sizeof(before), cpus) <= 0)
		memcpy(cpus, before, (size_t)bytes);
	/* A mask that is all of the cpuset now would bind the command to that when the cpuset grows. */
	if (memcmp(cpus, before, (size_t)bytes))
		syscall(SYS_sched_setaffinity, 0, (size_t)bytes, before);
}

static void describe(struct csink_boundary *b)
{
	const struct csink_attach_counters *c = &b->follow.counters;
	struct csink_boundary_file *file = &b->file;
	bool leads = true;

	*file = (struct csink_boundary_file){
		.magic = CSINK_BOUNDARY_MAGIC, .bytes = sizeof(*file), .needs_anchor = !c->has_read};
	memcpy(file->cpus, b->cpus, sizeof(file->cpus));
	for (uint32_t i = 0; i < c->nr_events; i++) {
		leads |= !i || c->events[i].spec.group != c->events[i - 1].spec.group;
		if (c->events[i].err)
			continue;
		file->events[file->nr_events++] =
			(struct csink_boundary_event){.attr = c->events[i].attr, .number = i, .leads = leads};
		leads = false;
	}
}

static int write_file(struct csink_boundary *b)
{
	char path[CSINK_RUN_DIRECTORY_PATH + 32];

	snprintf(path, sizeof(path), "%s/" CSINK_BOUNDARY_FILE, b->how.directory);
	b->file_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (b->file_fd < 0)
		return -errno;
	return pwrite(b->file_fd, &b->file, sizeof(b->file), 0) == (ssize_t)sizeof(b->file) ? 0 : -EIO;
}

/* Not again for the same ones: where no descriptor is left, they cannot be accepted. */
#define CONNECTIONS_COME ((uint32_t)EPOLLIN | (uint32_t)EPOLLET)

static int listen_at(struct csink_boundary *b)
{
	struct epoll_event event = {.events = CONNECTIONS_COME};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int len = snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CSINK_BOUNDARY_SOCKET, b->how.directory);

	if (len >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	b->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	event.data.fd = b->listen_fd;
	return b->listen_fd < 0 || bind(b->listen_fd, (struct sockaddr *)&address, sizeof(address)) ||
			       listen(b->listen_fd, BACKLOG) ||
			       epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, b->listen_fd, &event)
		       ? -errno
		       : 0;
}

int csink_boundary_begin(struct csink_boundary *b, const struct csink_boundary_how *how, struct csink_outside *out)
{
	struct csink_attach_counters *c = &b->follow.counters;
	char less[CSINK_WHY_BYTES];
	int err;

	memset(b, 0, sizeof(*b));
	b->epoll_fd = b->listen_fd = b->file_fd = -1;
	b->how = *how;
	b->sweep_at = LEAST_SWEEP;
	b->follow.outside = out;
	b->follow.max_depth = how->max_depth;
	b->follow.walk_by = how->walk_by;
	b->follow.leave_out = getpid();
	b->follow.pythons.frames = CSINK_ATTACH_FRAMES_NATIVE;
	take_events(c, how);
	c->stacks = how->stacks;
	c->inherit = c->at_exec = c->in_run = true;
	c->cgroup_fd = -1;
	c->stack_bytes = STACK_BYTES_SMALL;
	if (ring_bytes((uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L)) >= RING_BYTES &&
	    !is_fast(&c->events[0].spec))
		c->stack_bytes = STACK_BYTES;
	err = csink_attach_counters_init(c, less, sizeof(less));
	if (err)
		return err;
	find_cpus(b->cpus);
	describe(b);
	b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll_fd < 0)
		return -errno;
	if (!how->directory)
		return 0;
	err = listen_at(b); /* first: processes look for the file */
	return err ? err : write_file(b);
}

/* ---- rings ---- */

/* At the first boundary: most trees have none. */
static int map(struct csink_boundary *b)
{
	struct csink_attach_counters *c = &b->follow.counters;
	struct epoll_event event = {.events = EPOLLIN, .data.fd = c->rings.epoll_fd};

	if (b->is_mapped || b->map_err)
		return b->map_err;
	b->map_err = csink_attach_counters_map(c, ring_bytes(c->rings.nr));
	if (!b->map_err && epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, c->rings.epoll_fd, &event))
		b->map_err = -errno;
	b->is_mapped = !b->map_err;
	b->can_look_again = b->is_mapped && !csink_rings_share(&c->rings);
	b->follow.outside->samples_outside = b->is_mapped;
	if (b->map_err || c->rings.ring_bytes >= RING_BYTES_FOR_COPIES)
		return b->map_err;
	/* What was opened for this first one has its copies. */
	for (uint32_t i = 0; i < c->nr_events; i++)
		c->events[i].attr.sample_stack_user = 0;
	describe(b);
	if (b->file_fd >= 0 && pwrite(b->file_fd, &b->file, sizeof(b->file), 0) < 0)
		return -errno;
	return 0;
}

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

/* Returns its number; 0: no memory, or with !may_add none. */
static uint32_t source_of(struct csink_boundary *b, uint64_t token, int32_t pid, bool may_add)
{
	return CSINK_TABLE_INTERN(b->by_token, csink_hash_number(token), b->sources[id - 1].token == token,
				  may_add ? add_source(b, token, pid) : 0);
}

/* @by  the source whose samples are taken in place of its own; 0: none */
static void close_source(struct csink_boundary *b, uint32_t number, uint32_t by)
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

/* Close the events that no task has any more. */
static void sweep(struct csink_boundary *b)
{
	for (uint32_t i = b->nr_open; i-- > 0;) { /* what takes the place of a closed one has been looked at */
		struct pollfd poll_fd = {.fd = b->sources[b->open[i] - 1].first_fd};

		if (poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLHUP)
			close_source(b, b->open[i], 0);
	}
	b->sweep_at = CSINK_MAX(LEAST_SWEEP, 2 * b->nr_open);
}

static bool is_same(const struct csink_boundary_id *a, const struct csink_boundary_id *b)
{
	return a->event == b->event && a->cpu == b->cpu;
}

#define SLOW_EXEC_NS (CSINK_NS_PER_S / 10) /* from a request to the record of the exec that it is about */

/* Has the first one all events of the second? Both have them in one order. */
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
 * The rings still have samples of both. Those of the replaced one that were taken are followed by the other one's,
 * which count from there on.
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
 * @settled_ns  the records before that have been taken.
 */
static void close_second_ones(struct csink_boundary *b, uint64_t settled_ns)
{
	uint32_t first = b->nr_looked_at;
	bool is_replaced = false;

	for (uint32_t i = first; i < b->nr_sources; i++) {
		const struct csink_boundary_source *source = &b->sources[i];
		bool is_decided = source->is_closed || !source->is_whole;
		uint32_t older = is_decided ? 0 : csink_attach_images_source_of(&b->follow.images, source->pid);

		if (older && older <= i && !b->sources[older - 1].is_closed &&
		    has_all_of(&b->sources[older - 1], source)) {
			close_source(b, i + 1, older);
			is_replaced = true;
		}
		if (i == b->nr_looked_at && (source->is_closed || source->come_ns + SLOW_EXEC_NS < settled_ns))
			b->nr_looked_at++;
	}
	if (is_replaced)
		hand_over(b);
}

#define LOOK_AGAIN_NS                                                                                                  \
	4000000 /* an exec follows its request at once, and its records are taken when they have settled */

/* Has one that asked not been seen to execute a program? Its file may be replaced as soon as it has ended. */
static bool awaits_exec(const struct csink_boundary *b, uint64_t now_ns)
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

static void adopt(struct csink_boundary *b, uint32_t number, int fd, uint16_t event, uint16_t cpu)
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

int csink_boundary_open_self(struct csink_boundary *b)
{
	struct csink_attach_counters *c = &b->follow.counters;
	struct csink_attach_event *refused = NULL;
	uint32_t number;
	int err = map(b);

	if (err)
		return err;
	number = source_of(b, UINT64_MAX, getpid(), true);
	if (!number)
		return -ENOMEM;
	/* Beside inherited events: csink_outside_open_anchor(). */
	b->sources[number - 1].anchor_fd = csink_outside_open_anchor();
	err = csink_attach_counters_open(c, getpid(), 0, &refused);
	for (uint32_t i = 0; i < c->nr_fds; i++)
		c->fds[i].source = number;
	/* They stay open to the end: the command's. */
	b->sources[number - 1].first_fd = -1;
	b->sources[number - 1].is_everywhere = true;
	csink_attach_counters_opened(c);
	return err;
}

/* ---- threads whose children ask ---- */

/* After so many requests in so short a time, the events are opened on the parent, and its later children inherit them.
 * Injected children inherit them, too, and are sampled twice then: a few requests are cheaper. */
#define MANY_REQUESTS 16
#define SHORT_NS (CSINK_NS_PER_S / 4)

#define TOKEN_OF_PARENTS (1ULL << 63) /* the launcher's own: what processes send has none of these */

static void write_parent(const struct csink_boundary *b, int32_t tid, const struct csink_boundary_parent *parent)
{
	if (pwrite(b->file_fd, parent, sizeof(*parent), (off_t)csink_boundary_parent_at(tid)) < 0)
		return; /* its children ask, as before */
}

/* What was opened from this place on belongs to a source. */
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
	number = source_of(b, TOKEN_OF_PARENTS | b->nr_sources, task.tgid, true);
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
		close_source(b, number, 0);
	return !err;
}

/* Is it a child of the thread's process, and that is another one than this? A process could name any thread. */
static bool is_child_of(int32_t pid, int32_t tid)
{
	struct csink_task child, parent;

	return !csink_task_read(pid, &child) && !csink_task_read(tid, &parent) && child.ppid == parent.tgid &&
	       parent.tgid != getpid();
}

/* A process has asked that names the thread as the one that made it. */
static void count_request(struct csink_boundary *b, int32_t tid, int32_t pid)
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
	/* Read before, so that it is the one that is armed, or an earlier one that is forgotten. */
	if (csink_task_read(tid, &task))
		return;
	asking->start_ticks = task.start_ticks;
	asking->is_armed = is_child_of(pid, tid) && arm_parent(b, tid);
	if (asking->is_armed)
		write_parent(b, tid, &(struct csink_boundary_parent){.tid = tid, .armed_ns = csink_monotonic_ns()});
}

/* Forget those that have ended: others will have their TIDs, or have them already. */
static void forget_parents(struct csink_boundary *b)
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

/* ---- requests ---- */

static uint32_t take_fds(struct msghdr *head, int *fds)
{
	uint32_t nr = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		nr = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), nr * sizeof(int));
	}
	return nr;
}

/* In another PID namespace records would have numbers that mean other processes here. */
static bool is_of_here(int fd, const struct csink_boundary_message *message)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == message->pid;
}

static void answer(struct csink_boundary *b, int fd)
{
	const size_t at = offsetof(struct csink_boundary_file, do_not_wait);
	uint32_t word = 0;

	if (send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	if (pread(b->file_fd, &word, sizeof(word), (off_t)at) != sizeof(word) || !word)
		return;
	word = 0;
	if (pwrite(b->file_fd, &word, sizeof(word), (off_t)at) < 0)
		return; /* they do not wait, and lose samples of the gap */
}

static void take_message(struct csink_boundary *b, int fd, const struct csink_boundary_message *message, const int *fds,
			 uint32_t nr)
{
	bool is_of_us = is_of_here(fd, message), may_add = message->kind != CSINK_BOUNDARY_WITHDRAW;
	uint32_t number = is_of_us && !(message->token & TOKEN_OF_PARENTS) && !map(b)
				  ? source_of(b, message->token, message->pid, may_add)
				  : 0;

	b->nr_elsewhere += !is_of_us && message->kind == CSINK_BOUNDARY_LAST;
	for (uint32_t i = 0; i < nr; i++) {
		if (number && i < message->nr && may_add)
			adopt(b, number, fds[i], message->at[i].event, message->at[i].cpu);
		else
			close(fds[i]);
	}
	if (number && !may_add)
		close_source(b, number, 0);
	if (message->kind != CSINK_BOUNDARY_LAST)
		return;
	if (number) {
		b->sources[number - 1].is_whole = true;
		count_request(b, message->parent, message->pid);
	}
	answer(b, fd);
}

/* False: the connection has ended. */
static bool take_messages(struct csink_boundary *b, int fd)
{
	struct csink_boundary_message message;
	int fds[CSINK_BOUNDARY_BATCH];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control;
	struct iovec data = {&message, sizeof(message)};
	struct msghdr head;
	uint32_t nr;
	ssize_t n;

	for (uint32_t i = 0; i < MESSAGES_AT_ONCE; i++) {
		head = (struct msghdr){.msg_iov = &data,
				       .msg_iovlen = 1,
				       .msg_control = control.bytes,
				       .msg_controllen = sizeof(control.bytes)};
		n = recvmsg(fd, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (head.msg_flags & MSG_CTRUNC)
			b->sweep_at = 0; /* no descriptor is left */
		nr = take_fds(&head, fds);
		if (n == (ssize_t)sizeof(message)) {
			take_message(b, fd, &message, fds, nr);
			continue;
		}
		while (nr)
			close(fds[--nr]);
		if (!n)
			return false;
	}
	return true; /* the rest when the others have had their turn */
}

static void take_connections(struct csink_boundary *b)
{
	struct epoll_event more = {.events = CONNECTIONS_COME, .data.fd = b->listen_fd};
	bool has_swept = false;

	for (uint32_t i = 0; i < CONNECTIONS_AT_ONCE; i++) {
		int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

		if (fd < 0 && errno == EMFILE && !has_swept) {
			sweep(b);
			has_swept = true;
			continue;
		}
		if (fd < 0)
			return;
		if (!take_messages(b, fd) || epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &event))
			close(fd);
	}
	epoll_ctl(b->epoll_fd, EPOLL_CTL_MOD, b->listen_fd, &more); /* reports again those that are left */
}

static void take_requests(struct csink_boundary *b)
{
	enum { AT_ONCE = 32 };
	struct epoll_event events[AT_ONCE];
	uint32_t round = 0;
	int nr;

	do {
		nr = epoll_wait(b->epoll_fd, events, AT_ONCE, 0);
		for (int i = 0; i < nr; i++) {
			int fd = events[i].data.fd;

			if (fd == b->listen_fd)
				take_connections(b);
			else if (fd >= 0 && fd != b->follow.counters.rings.epoll_fd && !take_messages(b, fd))
				close(fd);
		}
	} while (nr == AT_ONCE && ++round < ROUNDS_AT_ONCE);
	if (b->nr_open >= b->sweep_at)
		sweep(b);
}

int csink_boundary_watch(const struct csink_boundary *b, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};

	return epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int csink_boundary_fd(const struct csink_boundary *b)
{
	return b->epoll_fd;
}

void csink_boundary_drain(struct csink_boundary *b)
{
	struct csink_attach_step step = {.bytes = STEP_BYTES};
	uint64_t now_ns;

	if (b->epoll_fd < 0)
		return;
	do
		take_requests(b);
	while (b->is_mapped && csink_attach_follow_step(&b->follow, &step));
	close_second_ones(b, step.before_ns);
	forget_parents(b);
	now_ns = csink_monotonic_ns();
	if (b->can_look_again && awaits_exec(b, now_ns))
		csink_rings_wake(&b->follow.counters.rings, now_ns + LOOK_AGAIN_NS);
}

/* ---- the end ---- */

/* Is a process to be sampled (--follow)? What a program below a boundary starts may have another name. */
static bool is_followed(const struct csink_boundary *b, const struct csink_attach_image *image)
{
	const char *follow = b->how.follow;

	if (!strcmp(follow, "all"))
		return true;
	if (!strcmp(follow, "none")) /* the command, whatever it becomes by exec */
		return image->ppid == getpid();
	return csink_names_match(follow, image->comm) || csink_names_match(follow, csink_base_name(image->exe)) ||
	       csink_names_match(follow, csink_base_name(image->cmdline));
}

static void leave_out_others(struct csink_boundary *b)
{
	struct csink_attach_images *images = &b->follow.images;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < images->nr; i++) {
		images->at[i]->is_left_out = !is_followed(b, images->at[i]);
		if (images->at[i]->is_left_out)
			images->at[i]->nr_rows = 0;
	}
	for (uint32_t i = 0; i < images->nr_rows; i++)
		if (!images->at[images->rows[i].image]->is_left_out)
			images->rows[kept++] = images->rows[i];
	images->nr_rows = kept; /* nothing is added any more */
}

bool csink_boundary_has_samples(const struct csink_boundary *b)
{
	return b->follow.images.nr_rows;
}

/* Which of the processes that the kernel listed inherited such events: what is not covered there was not sampled. */
static void mark_processes(const struct csink_boundary *b, struct csink_outside *out)
{
	const struct csink_attach_images *images = &b->follow.images;
	struct csink_table by_pid = {0};
	struct csink_slot *slot;

	for (uint32_t i = 0; i < out->nr_processes && !csink_table_room(&by_pid); i++) {
		uint32_t hash = csink_hash_number((uint32_t)out->processes[i].pid);

		CSINK_TABLE_PROBE(by_pid, hash, slot, out->processes[id - 1].pid == out->processes[i].pid);
		csink_table_set(&by_pid, slot, hash, i + 1);
	}
	for (uint32_t i = 0; i < images->nr && by_pid.slots; i++) {
		CSINK_TABLE_PROBE(by_pid, csink_hash_number((uint32_t)images->at[i]->pid), slot,
				  out->processes[id - 1].pid == images->at[i]->pid);
		if (slot->id) /* what the process became last counts */
			out->processes[slot->id - 1].is_sampled = !images->at[i]->is_left_out;
	}
	csink_table_free(&by_pid);
}

static void note_failures(const struct csink_boundary *b, struct csink_outside *out)
{
	char why[CSINK_WHY_BYTES];

	if (b->map_err)
		csink_outside_note(out, "programs that cannot be injected were not sampled: %s",
				   csink_explain_brief(-b->map_err, why, sizeof(why)));
	if (b->nr_elsewhere)
		csink_outside_note(out,
				   "%u programs that cannot be injected were not sampled: they were started in a PID "
				   "namespace of their own",
				   b->nr_elsewhere);
}

int csink_boundary_finish(struct csink_boundary *b, const char *directory, const struct csink_attach_starts *starts,
			  struct csink_outside *out)
{
	if (b->epoll_fd < 0)
		return 0;
	take_requests(b);
	if (b->is_mapped) {
		csink_attach_counters_stop(&b->follow.counters);
		csink_attach_follow_drain(&b->follow, true);
	}
	note_failures(b, out);
	leave_out_others(b);
	csink_attach_images_settle(&b->follow.images, starts);
	mark_processes(b, out);
	return csink_boundary_has_samples(b) ? csink_attach_follow_save(&b->follow, directory) : 0;
}

void csink_boundary_free(struct csink_boundary *b)
{
	for (uint32_t i = 0; i < b->nr_sources; i++)
		if (b->sources[i].anchor_fd >= 0)
			close(b->sources[i].anchor_fd);
	for (uint32_t i = 0; i < b->nr_sources; i++)
		free(b->sources[i].ids);
	free(b->sources);
	free(b->open);
	csink_table_free(&b->by_token);
	csink_attach_follow_free(&b->follow);
	if (b->listen_fd >= 0)
		close(b->listen_fd);
	if (b->file_fd >= 0)
		close(b->file_fd);
	if (b->epoll_fd >= 0)
		close(b->epoll_fd);
	b->epoll_fd = b->listen_fd = b->file_fd = -1;
	b->sources = NULL;
	b->open = NULL;
	b->nr_sources = b->cap_sources = b->nr_open = b->cap_open = 0;
}
