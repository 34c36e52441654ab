/*
 * Requests of injected processes that start programs that cannot be injected, and what their events sample: see
 * boundary_samples.h; which events are open is in boundary_sources.c. Runs in the launcher's one thread.
 */
#include "launcher/attach/boundary_impl.h"

#include <errno.h>
#include <fcntl.h>
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
#include "preload/core/event/event_spec.h"
#include "preload/core/names_match.h"
#include "preload/core/perf_system.h"

/*
 * Of each CPU's ring. Others than root share what may be locked with the injected processes: where RLIMIT_MEMLOCK does
 * not pay for the large ones, they leave half of the user's share; where it pays for far more, larger ones take a
 * quarter of it. At high rates a launcher that waits for a CPU would lose records with large copies.
 */
#define RING_BYTES_ROOT (2U << 20)
#define RINGS_BYTES_ROOT (64U << 20) /* of all CPUs */
#define RING_BYTES_MORE (1U << 20)
#define MEMLOCK_SHARE 4
#define RING_BYTES (512U << 10)
#define RING_BYTES_SMALL (256U << 10)
#define RING_BYTES_FOR_COPIES (64U << 10)
#define STACK_BYTES 8192
#define STACK_BYTES_SMALL 1024
#define HIGH_RATE 5000

#define BACKLOG 4096

/* Processes wait for requests to be taken: between parts of the rings they are. No process can keep the launcher with
 * its own. */
#define STEP_BYTES (1U << 20)
#define MESSAGES_AT_ONCE 1024 /* of one connection */
#define CONNECTIONS_AT_ONCE 256
#define ROUNDS_AT_ONCE 16

/* An exec follows its request at once, and its records are taken when they have settled. */
#define LOOK_AGAIN_NS 4000000

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
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur / RING_BYTES < nr_cpus)
		return RING_BYTES_SMALL;
	return limit.rlim_cur / MEMLOCK_SHARE / RING_BYTES_MORE >= nr_cpus ? RING_BYTES_MORE : RING_BYTES;
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
	b->sweep_at = CSINK_BOUNDARY_LEAST_SWEEP;
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
	if (b->is_mapped)
		csink_cpu_samples_open(&b->follow.cpus, c);
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

int csink_boundary_open_self(struct csink_boundary *b)
{
	struct csink_attach_counters *c = &b->follow.counters;
	struct csink_attach_event *refused = NULL;
	uint32_t number;
	int err = map(b);

	if (err)
		return err;
	number = csink_boundary_source_of(b, UINT64_MAX, getpid(), true);
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
	uint32_t number = is_of_us && !(message->token & CSINK_BOUNDARY_PARENT_TOKEN) && !map(b)
				  ? csink_boundary_source_of(b, message->token, message->pid, may_add)
				  : 0;

	b->nr_elsewhere += !is_of_us && message->kind == CSINK_BOUNDARY_LAST;
	for (uint32_t i = 0; i < nr; i++) {
		if (number && i < message->nr && may_add)
			csink_boundary_source_adopt(b, number, fds[i], message->at[i].event, message->at[i].cpu);
		else
			close(fds[i]);
	}
	if (number && !may_add)
		csink_boundary_source_close(b, number, 0);
	if (message->kind != CSINK_BOUNDARY_LAST)
		return;
	if (number) {
		b->sources[number - 1].is_whole = true;
		csink_boundary_count_request(b, message->parent, message->pid);
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
			csink_boundary_sources_sweep(b);
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
		csink_boundary_sources_sweep(b);
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
	csink_boundary_sources_replace(b, step.before_ns);
	csink_boundary_forget_parents(b);
	now_ns = csink_monotonic_ns();
	if (b->can_look_again && csink_boundary_awaits_exec(b, now_ns))
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

/* Of a program that is left out, its own samples have the CPU time. */
static bool is_of_cpu_left_out(void *arg, const struct csink_attach_row *row)
{
	const struct csink_boundary *b = arg;

	return row->is_by_cpu && b->follow.images.at[row->image]->is_left_out;
}

static void leave_out_others(struct csink_boundary *b)
{
	struct csink_attach_images *images = &b->follow.images;

	for (uint32_t i = 0; i < images->nr; i++)
		images->at[i]->is_left_out = !is_followed(b, images->at[i]);
	csink_attach_images_remove(images, is_of_cpu_left_out, b);
}

bool csink_boundary_has_samples(const struct csink_boundary *b)
{
	return b->follow.images.nr_rows;
}

/*
 * An exec maps the program: where its records end before that, the kernel has ended the events, since the process may
 * not be observed any more.
 */
static bool has_lost_events(const struct csink_boundary *b, const struct csink_attach_image *image)
{
	return image->is_exec && !image->has_mapped && image->state == CSINK_REC_EXITED &&
	       !b->follow.counters.rings.nr_lost;
}

/* What is known of the processes that the kernel listed; tables have indices + 1. */
struct listed {
	const struct csink_attach_images *images;
	struct csink_outside *out;
	struct csink_table by_pid;
	uint64_t *nr_own; /* each process's own samples */
	/* Of brief processes, by the name that they had last: how many samples of CPUs they have. */
	struct program {
		char comm[16];
		uint64_t nr_hits;
	} * programs;
	uint32_t nr_programs, cap_programs;
};

/* From so many samples of CPUs on, a program's brief processes are shown by these alone. */
#define MANY_HITS 30

static struct csink_outside_process *process_of(const struct listed *listed, int32_t pid)
{
	struct csink_slot *slot;

	if (!listed->by_pid.slots)
		return NULL;
	CSINK_TABLE_PROBE(listed->by_pid, csink_hash_number((uint32_t)pid), slot,
			  listed->out->processes[id - 1].pid == pid);
	return slot->id ? &listed->out->processes[slot->id - 1] : NULL;
}

/* Of processes that had the same PID, the last one is found. */
static void list_processes(struct listed *listed)
{
	struct csink_outside *out = listed->out;
	struct csink_slot *slot;

	for (uint32_t i = 0; i < out->nr_processes && !csink_table_room(&listed->by_pid); i++) {
		struct csink_outside_process *process = &out->processes[i], *former = process_of(listed, process->pid);
		uint32_t hash = csink_hash_number((uint32_t)process->pid);

		process->is_unseen = process->has_cpu && !process->still_running && !former;
		if (former)
			former->is_unseen = 0;
		CSINK_TABLE_PROBE(listed->by_pid, hash, slot, out->processes[id - 1].pid == process->pid);
		csink_table_set(&listed->by_pid, slot, hash, i + 1);
	}
}

static struct program *program_of(struct listed *listed, const char *comm)
{
	struct program program = {.nr_hits = 0};

	for (uint32_t i = 0; i < listed->nr_programs; i++)
		if (!strncmp(listed->programs[i].comm, comm, sizeof(program.comm)))
			return &listed->programs[i];
	memcpy(program.comm, comm, sizeof(program.comm));
	return CSINK_APPEND(listed->programs, listed->nr_programs, listed->cap_programs, program)
		       ? &listed->programs[listed->nr_programs - 1]
		       : NULL;
}

/* How many samples of its own a process has; UINT64_MAX: it is not to be shown by others. */
static uint64_t own_samples(const struct listed *listed, const struct csink_outside_process *process)
{
	return process && process->is_unseen ? listed->nr_own[process - listed->out->processes] : UINT64_MAX;
}

static void count_samples(struct listed *listed)
{
	const struct csink_attach_images *images = listed->images;
	struct csink_outside_process *process;
	struct program *program;

	for (uint32_t i = 0; i < images->nr; i++) {
		process = process_of(listed, images->at[i]->pid);
		if (process)
			listed->nr_own[process - listed->out->processes] += images->at[i]->nr_own_samples;
	}
	for (uint32_t i = 0; i < images->nr_rows; i++) {
		process = process_of(listed, images->at[images->rows[i].image]->pid);
		if (!images->rows[i].is_by_cpu || own_samples(listed, process) >= CSINK_BRIEF_SAMPLES)
			continue;
		program = program_of(listed, process->comm);
		if (program)
			program->nr_hits += images->rows[i].nr_samples;
	}
}

/*
 * Leave those that samples of CPUs show: without a sample of their own, or brief ones of a program that has many. Where
 * other events are counted, only their own samples have these.
 */
static void settle_unseen(const struct csink_boundary *b, struct listed *listed)
{
	bool has_time_alone = b->follow.counters.nr_columns == 1;

	for (uint32_t i = 0; i < listed->out->nr_processes; i++) {
		struct csink_outside_process *process = &listed->out->processes[i];
		uint64_t nr_own = own_samples(listed, process);
		const struct program *program;

		if (!nr_own)
			continue;
		program = nr_own < CSINK_BRIEF_SAMPLES && has_time_alone ? program_of(listed, process->comm) : NULL;
		process->is_unseen = program && program->nr_hits >= MANY_HITS;
	}
}

/* Rows of a process that the others show. */
static bool is_superseded(void *arg, const struct csink_attach_row *row)
{
	const struct listed *listed = arg;
	const struct csink_outside_process *process = process_of(listed, listed->images->at[row->image]->pid);

	return row->is_by_cpu != (process && process->is_unseen);
}

/*
 * Which of the processes that the kernel listed inherited such events: what is not covered there was not sampled. Of
 * brief ones samples of CPUs count.
 */
static void mark_processes(struct csink_boundary *b, struct csink_outside *out)
{
	struct csink_attach_images *images = &b->follow.images;
	struct listed listed = {
		.images = images, .out = out, .nr_own = calloc(out->nr_processes + 1UL, sizeof(uint64_t))};
	struct csink_outside_process *process;

	list_processes(&listed);
	for (uint32_t i = 0; i < images->nr; i++) {
		const struct csink_attach_image *image = images->at[i];
		bool has_lost = has_lost_events(b, image);

		process = process_of(&listed, image->pid);
		if (!process)
			continue;
		process->is_sampled = !image->is_left_out && !has_lost; /* what it became last counts */
		if (has_lost && !process->reason)
			process->reason = CSINK_SPAWN_EVENTS_ENDED;
		if (image->is_injected || image->is_left_out)
			process->is_unseen = 0;
	}
	for (uint32_t i = 0; i < out->nr_processes; i++)
		out->processes[i].is_unseen &= out->processes[i].is_sampled && listed.nr_own;
	if (listed.nr_own) {
		count_samples(&listed);
		settle_unseen(b, &listed);
	}
	csink_attach_images_remove(images, is_superseded, &listed);
	csink_table_free(&listed.by_pid);
	free(listed.nr_own);
	free(listed.programs);
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

static void note_cpu_samples(const struct csink_boundary *b, struct csink_outside *out)
{
	const struct csink_attach_images *images = &b->follow.images;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < images->nr; i++)
		nr += images->at[i]->nr_rows && !images->at[i]->nr_own_rows;
	if (nr)
		csink_outside_note(out,
				   "brief processes are shown by %u of them, which samples of the CPUs (every %.3f ms) "
				   "have hit: these share their program's CPU time, since the own samples of such "
				   "processes, if any, are all taken at the same moments",
				   nr, (double)b->follow.cpus.period_ns / 1e6);
}

void csink_boundary_stop(struct csink_boundary *b, struct csink_outside *out)
{
	take_requests(b);
	if (b->is_mapped) {
		csink_attach_counters_stop(&b->follow.counters);
		csink_cpu_samples_stop(&b->follow.cpus);
		csink_attach_follow_drain(&b->follow, true);
	}
	note_failures(b, out);
	leave_out_others(b);
}

int csink_boundary_finish(struct csink_boundary *b, const char *directory, const struct csink_attach_starts *starts,
			  struct csink_outside *out)
{
	csink_attach_images_settle(&b->follow.images, starts);
	mark_processes(b, out);
	note_cpu_samples(b, out);
	csink_cpu_samples_give_ends(&b->follow.cpus, out);
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
