/*
 * Opening events for programs that cannot be injected, and sending them to the launcher: see arm_thread.h. Runs on the
 * thread that calls exec or posix_spawn, in a vfork child too, or in the constructor; never in a handler. Everything is
 * on the stack; the calls are the kernel's own.
 */
#include "preload/agent/lifecycle/arm_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "include/internal/boundary.h"
#include "include/internal/event.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/sampler/fd_guard.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/core/calls_off.h"
#include "preload/core/names_match.h"

enum { STACK_BYTES = 16 * 1024 };

/* One request, on its way. */
struct request {
	enum csink_boundary_kind kind;
	bool needs_anchor;
	int32_t tid;
	uint64_t token;
	int err; /* 0: the launcher has the events */
	int file_fd, socket_fd;
	bool is_connected;
	struct csink_boundary_file file;
	/* What is opened and not sent. */
	struct csink_boundary_message message;
	int fds[CSINK_BOUNDARY_BATCH];
};

/* ---- the launcher ---- */

static long open_in_run(const char *name, int flags)
{
	char path[sizeof(csink_config.run_dir) + 32];
	size_t n = strlen(csink_config.run_dir);

	memcpy(path, csink_config.run_dir, n);
	path[n] = '/';
	strcpy(path + n + 1, name);
	return csink_rawcall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

static int read_file(struct request *r)
{
	long n;

	r->file_fd = (int)open_in_run(CSINK_BOUNDARY_FILE, O_RDWR);
	if (r->file_fd < 0)
		return r->file_fd;
	n = csink_rawcall(SYS_pread64, r->file_fd, &r->file, sizeof(r->file), 0);
	return n == (long)sizeof(r->file) && r->file.magic == CSINK_BOUNDARY_MAGIC &&
			       r->file.bytes == sizeof(r->file) && r->file.nr_events <= CSINK_MAX_EVENTS
		       ? 0
		       : -ENOEXEC;
}

/*
 * Has this child inherited events that the launcher has opened on the thread that made it? It must have begun so late
 * that its fork came after them: the launcher may open them between a fork and this.
 */
static bool is_parent_armed(const struct request *r)
{
	const uint64_t late_ns = CSINK_BOUNDARY_WAIT_MS * 1000000ULL;
	uint64_t begin_ns = csink_in_vfork_child() ? csink_now_ns() : csink_own_recording.header->start_monotonic_ns;
	struct csink_boundary_parent parent;
	long n = csink_rawcall(SYS_pread64, r->file_fd, &parent, sizeof(parent),
			       csink_boundary_parent_at(r->message.parent));

	return n == (long)sizeof(parent) && parent.tid == r->message.parent && begin_ns > parent.armed_ns + late_ns;
}

static int connect_launcher(struct request *r)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(csink_config.run_dir);

	if (n + sizeof("/" CSINK_BOUNDARY_SOCKET) > sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, csink_config.run_dir, n);
	strcpy(address.sun_path + n, "/" CSINK_BOUNDARY_SOCKET);
	r->is_connected = true;
	return (int)csink_rawcall(SYS_connect, r->socket_fd, &address, sizeof(address));
}

static void close_events(struct request *r)
{
	while (r->message.nr)
		csink_rawcall(SYS_close, r->fds[--r->message.nr]);
}

/* Send what is opened, and close it: the message on its way keeps it. Connects first where that is to be done: the
 * launcher is woken once, with the message. */
static int flush(struct request *r, enum csink_boundary_kind kind)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(r->fds))];
	} control;
	struct iovec data = {&r->message, sizeof(r->message)};
	struct msghdr head = {.msg_iov = &data, .msg_iovlen = 1};
	uint32_t nr = r->message.nr;
	long err = r->is_connected ? 0 : connect_launcher(r);

	r->message.kind = kind;
	if (nr) {
		head.msg_control = control.bytes;
		head.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		memset(&control, 0, sizeof(control));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(&control.head), r->fds, nr * sizeof(int));
	}
	if (!err)
		err = csink_rawcall(SYS_sendmsg, r->socket_fd, &head, MSG_NOSIGNAL);
	close_events(r);
	return err < 0 ? (int)err : 0;
}

/* Writing past RLIMIT_FSIZE would raise SIGXFSZ in the program. */
static void set_do_not_wait(struct request *r)
{
	const uint64_t at = offsetof(struct csink_boundary_file, do_not_wait);
	uint32_t word = 1;
	uint64_t limit[2]; /* struct rlimit64 */

	if (!csink_rawcall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, limit) && limit[0] >= at + sizeof(word))
		csink_rawcall(SYS_pwrite64, r->file_fd, &word, sizeof(word), at);
}

/* Samples before the answer are lost, since the launcher has not connected the events to its rings. A process that
 * got no answer sets do_not_wait for the others. */
static void wait_for_answer(struct request *r)
{
	const struct timespec limit = {0, CSINK_BOUNDARY_WAIT_MS * 1000000L};
	struct pollfd poll_fd = {.fd = r->socket_fd, .events = POLLIN};

	if (r->file.do_not_wait)
		return;
	if (csink_rawcall(SYS_ppoll, &poll_fd, 1, &limit, NULL, 0) == 0)
		set_do_not_wait(r);
}

/* ---- events ---- */

static int add(struct request *r, int fd, uint32_t event, uint32_t cpu)
{
	uint32_t nr = r->message.nr++;

	r->fds[nr] = fd;
	r->message.at[nr].event = (uint16_t)event;
	r->message.at[nr].cpu = (uint16_t)cpu;
	return 0;
}

/* Few descriptors may be left: those of other CPUs can go before. @group  the index in fds of this CPU's first. */
static int open_one(struct request *r, const struct perf_event_attr *attr, int cpu, int leader, uint32_t *group)
{
	int fd = csink_perf_open(attr, r->tid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
	int kept[CSINK_MAX_EVENTS];
	uint32_t nr = r->message.nr - *group;
	struct csink_boundary_message message = r->message;
	int err;

	if (fd != -EMFILE || !*group || nr > CSINK_MAX_EVENTS)
		return fd;
	memcpy(kept, r->fds + *group, nr * sizeof(*kept));
	r->message.nr = *group;
	err = flush(r, CSINK_BOUNDARY_SOME);
	for (uint32_t i = 0; i < nr; i++)
		add(r, kept[i], message.at[*group + i].event, message.at[*group + i].cpu);
	*group = 0;
	return err ? err : csink_perf_open(attr, r->tid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
}

/* All events on one CPU. One whose PMU is not there, or whose CPU is offline, is left out with its group. */
static int open_on(struct request *r, int cpu)
{
	uint32_t group = r->message.nr;
	int leader = -1, err = 0;

	for (uint32_t i = 0; i < r->file.nr_events; i++) {
		const struct csink_boundary_event *event = &r->file.events[i];
		int fd;

		if (event->leads)
			leader = -1;
		else if (leader < 0)
			continue;
		fd = open_one(r, &event->attr, cpu, leader, &group);
		if (fd == -ENODEV || fd == -ENOENT || fd == -EINVAL)
			continue;
		if (fd < 0)
			return fd;
		if (event->leads)
			leader = fd;
		add(r, fd, event->number, (uint32_t)cpu);
	}
	return err;
}

static int open_anchor(struct request *r)
{
	struct perf_event_attr attr = csink_perf_least();
	int fd = csink_perf_open(&attr, r->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? fd : add(r, fd, CSINK_BOUNDARY_ANCHOR, 0);
}

/*
 * One for each CPU that the thread may run on, or one below it: a program that is bound to some CPUs may free itself,
 * or a child. Only the cpuset bounds that; the launcher's and the thread's may be different ones.
 */
static int open_events(struct request *r)
{
	uint64_t cpus[CSINK_BOUNDARY_MAX_CPUS / 64];
	long bytes = csink_rawcall(SYS_sched_getaffinity, 0, sizeof(cpus), cpus);
	int err = bytes < 0 ? (int)bytes : 0;

	if (!err && r->needs_anchor && r->file.needs_anchor)
		err = open_anchor(r);
	for (int cpu = 0; cpu < CSINK_BOUNDARY_MAX_CPUS && !err; cpu++) {
		uint64_t word = r->file.cpus[cpu / 64] | (cpu < bytes * 8 ? cpus[cpu / 64] : 0);

		if (!word) /* as nearly all are */
			cpu += 63;
		if (!(word >> cpu % 64 & 1))
			continue;
		if (r->message.nr + r->file.nr_events > CSINK_BOUNDARY_BATCH)
			err = flush(r, CSINK_BOUNDARY_SOME);
		if (!err)
			err = open_on(r, cpu);
	}
	return err;
}

/* ---- a request ---- */

static void withdraw(struct request *r)
{
	close_events(r);
	if (r->is_connected)
		flush(r, CSINK_BOUNDARY_WITHDRAW);
}

static void make_request(void *arg)
{
	struct request *r = arg;

	r->socket_fd = -1;
	r->is_connected = false;
	r->err = read_file(r);
	if (!r->err && r->message.parent && is_parent_armed(r))
		r->err = -EALREADY;
	if (!r->err) { /* while there is a descriptor for it */
		r->socket_fd =
			(int)csink_rawcall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r->err = CSINK_MIN(r->socket_fd, 0);
	}
	if (!r->err && r->kind == CSINK_BOUNDARY_LAST)
		r->err = open_events(r);
	if (!r->err)
		r->err = flush(r, r->kind);
	else if (r->kind == CSINK_BOUNDARY_LAST)
		withdraw(r); /* what was sent before something failed */
	if (!r->err && r->kind == CSINK_BOUNDARY_LAST)
		wait_for_answer(r);
	if (r->socket_fd >= 0)
		csink_rawcall(SYS_close, r->socket_fd);
	if (r->file_fd >= 0)
		csink_rawcall(SYS_close, r->file_fd);
}

/* Not inlined: the stacks that programs call exec on may be small. */
static __attribute__((noinline)) void make_request_elsewhere(struct request *r)
{
	char stack[STACK_BYTES] __attribute__((aligned(16)));

	r->err = -EAGAIN;
	csink_run_elsewhere(make_request, r, stack, sizeof(stack));
}

/*
 * Other threads may close any number: then the descriptors are in a table of their own, which a thread has that lives
 * as long. A vfork child has such a table itself.
 */
static void make_request_apart(struct request *r, bool in_vfork_child)
{
	uint64_t mask;

	if (!csink_is_single_threaded() && !in_vfork_child) {
		make_request_elsewhere(r);
		return;
	}
	csink_raw_mask(SIG_BLOCK, ~0ULL, &mask);
	make_request(r);
	csink_raw_mask(SIG_SETMASK, mask, NULL);
}

static void begin(struct request *r, enum csink_boundary_kind kind, uint64_t token)
{
	r->kind = kind;
	r->needs_anchor = false;
	r->tid = (int32_t)csink_rawcall(SYS_gettid);
	r->token = token ? token : ((uint64_t)r->tid << 32 ^ csink_now_ns()) >> 1 | 1;
	r->message.pid = (int32_t)csink_rawcall(SYS_getpid);
	r->message.token = r->token;
	r->message.nr = 0;
	r->message.parent = 0;
}

static bool may_arm(void)
{
	return atomic_load(&csink_process.active) && !csink_config.standalone && csink_config.run_dir[0] &&
	       !csink_calls_are_off(CSINK_CALLS_LIFE | CSINK_CALLS_ARM);
}

/* Does --follow want it? Only its name is known. */
static bool is_followed(const struct csink_started *started)
{
	const char *slash = strrchr(started->path, '/'), *follow = csink_config.follow;

	return !strcmp(follow, "all") ||
	       (strcmp(follow, "none") && csink_names_match(follow, slash ? slash + 1 : started->path));
}

static bool is_armed(void)
{
	return csink_self && csink_self->is_armed;
}

/* Of a set-user-ID program the kernel ends the events; the launcher is as far as the library. */
static bool can_be_sampled(const struct csink_started *started)
{
	return started->reason == CSINK_SPAWN_STATIC || started->reason == CSINK_SPAWN_OTHER_ABI ||
	       started->reason == CSINK_SPAWN_OLDER_LIBC;
}

bool csink_arm_is_for(const struct csink_started *started)
{
	return can_be_sampled(started) && may_arm() && !is_armed() && is_followed(started);
}

/* NULL: the launcher has gone, or samples none, and there is nothing to report. */
static const char *reason_of(int err)
{
	switch (err) {
	case -EMFILE:
		return "their starter has no file descriptor left";
	case -ENFILE:
		return "the system has no file descriptor left";
	case -ENOMEM:
		return "the kernel has no memory left";
	case -EACCES:
	case -EPERM:
		return "the kernel refuses events to the process that starts them";
	default:
		return NULL;
	}
}

/* One line a process, whatever it starts. */
static void note_refused(int err)
{
	static const char what[] = "programs that cannot be injected were not sampled: ";
	const char *reason = reason_of(err);
	struct csink_thread *thread = csink_self;
	char text[sizeof(what) + 64];

	if (!reason || !thread || !csink_own_recording.header ||
	    atomic_flag_test_and_set(&csink_process.is_start_noted))
		return;
	memcpy(text, what, sizeof(what));
	strcat(text, reason);
	csink_recording_note_text(&csink_own_recording, &thread->writer, text);
}

uint64_t csink_arm_for_exec(const struct csink_started *started)
{
	struct request r;

	if (!csink_arm_is_for(started))
		return 0;
	begin(&r, CSINK_BOUNDARY_LAST, 0);
	if (csink_self) /* in a vfork child it is the parent's */
		r.message.parent = csink_in_vfork_child() ? csink_self->tid : csink_self->forked_by;
	make_request_apart(&r, csink_in_vfork_child());
	note_refused(r.err);
	return r.err ? 0 : r.token;
}

void csink_arm_withdraw(uint64_t token)
{
	struct request r;

	if (!token)
		return;
	begin(&r, CSINK_BOUNDARY_WITHDRAW, token);
	make_request_apart(&r, csink_in_vfork_child());
}

void csink_arm_for_children(void)
{
	struct request r;

	if (!csink_self || csink_self->is_armed || !may_arm() || csink_in_vfork_child() ||
	    !csink_config_follows_forks())
		return;
	begin(&r, CSINK_BOUNDARY_LAST, 0);
	r.needs_anchor = true;
	make_request_apart(&r, false);
	csink_self->is_armed = !r.err;
}
