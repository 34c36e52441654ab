/*
 * Opening and closing a thread's group of counters: see group.h. By the thread itself, in its handler too if it has to
 * be opened anew. Raw calls only: errno stays what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "include/internal/rawcall.h"
#include "preload/agent/sampler/fd_guard.h"
#include "preload/agent/sampler/group.h"

/*
 * A group of one event runs from the moment it is opened, which saves a thread that starts a call that costs as much as
 * the opening. An overflow before the ring is mapped is not lost: the next one has what it counted.
 */
static bool starts_enabled(const struct csink_group_open *open)
{
	return open->how == CSINK_GROUP_SIGTRAP && open->members == 1u << open->leader;
}

/* Before Linux 5.13. Set by the thread that finds it; others may find it as well. */
static _Atomic bool lacks_remove_on_exec;

static void leader_attr(struct perf_event_attr *attr, const struct csink_group_open *open)
{
	attr->disabled = !starts_enabled(open);
	attr->sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
	attr->read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	/* The mapping may outlive the image: by a process that shares the memory, or while one reads it by /proc. */
	attr->remove_on_exec = !lacks_remove_on_exec;
	if (open->how == CSINK_GROUP_SETSIG) {
		attr->wakeup_events = 1; /* the signal is the wake-up */
		/*
		 * A signal that is raised inside a system call would interrupt it. The kernel's clocks count all of the
		 * time even so, and the next sample carries it.
		 */
		if (attr->type == PERF_TYPE_SOFTWARE &&
		    (attr->config == PERF_COUNT_SW_TASK_CLOCK || attr->config == PERF_COUNT_SW_CPU_CLOCK))
			attr->exclude_kernel = 1;
	} else {
		/* No code polls the ring. A wake-up would cost an interrupt of its own, more than all the rest. */
		attr->watermark = 1;
		attr->wakeup_watermark = UINT32_MAX;
		attr->sigtrap = 1;
		attr->sig_data = CSINK_GROUP_SIG_DATA;
	}
}

static int open_one(const struct csink_group_open *open, uint32_t i, int leader_fd)
{
	struct perf_event_attr attr = open->events[i].attr;
	int fd;

	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	if (leader_fd < 0) {
		leader_attr(&attr, open);
	} else {
		attr.sample_period = 0;
		attr.freq = 0;
		attr.pinned = 0;
		attr.exclusive = 0;
		attr.precise_ip = 0;
	}
	fd = csink_perf_open(&attr, open->tid, -1, leader_fd, PERF_FLAG_FD_CLOEXEC);
	if (fd == -EINVAL && attr.remove_on_exec && !attr.sigtrap) {
		attr.remove_on_exec = 0;
		fd = csink_perf_open(&attr, open->tid, -1, leader_fd, PERF_FLAG_FD_CLOEXEC);
		lacks_remove_on_exec = fd >= 0;
	}
	return fd;
}

/* A leader's user page has its ring behind it. */
static size_t map_bytes(const struct csink_group *group, uint32_t i)
{
	size_t page = group->mask + 1;

	return i == group->leader ? 2 * page : page;
}

static int map_one(struct csink_group *group, uint32_t i, int fd)
{
	size_t bytes = map_bytes(group, i);
	long map = csink_rawcall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (csink_raw_failed(map))
		return map == -EPERM ? -ENOBUFS : (int)map;
	group->pages[i] = (struct perf_event_mmap_page *)map;
	return 0;
}

static int send_signal(int fd, int signo, int32_t tid)
{
	struct f_owner_ex owner = {F_OWNER_TID, tid};

	/* The signal outlives the fd: the kernel keeps it with the open file, and the mapping keeps the file. */
	long err = csink_rawcall(SYS_fcntl, fd, F_SETSIG, signo);

	if (!err)
		err = csink_rawcall(SYS_fcntl, fd, F_SETOWN_EX, &owner);
	return err ? (int)err : (int)csink_rawcall(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK);
}

/* An opening on its way: in the thread itself, or in one that opens for it. */
struct opening {
	struct csink_group *group;
	const struct csink_group_open *open;
	uint32_t *failed;
	int fds[CSINK_MAX_EVENTS];
	uint64_t ids[CSINK_MAX_EVENTS];
	bool shared; /* the table is the program's: other threads may close or replace what is opened */
	int err;
};

/* Is the number still that of the event that was opened there? */
static bool is_ours(const struct opening *at, uint32_t i)
{
	uint64_t id = 0;

	return !at->shared || (csink_rawcall(SYS_ioctl, at->fds[i], PERF_EVENT_IOC_ID, &id) == 0 && id == at->ids[i]);
}

static int open_and_map(struct opening *at, uint32_t i)
{
	uint32_t leader = at->open->leader;
	int err;

	at->fds[i] = open_one(at->open, i, i == leader ? -1 : at->fds[leader]);
	if (at->fds[i] < 0)
		return at->fds[i];
	if (at->shared && csink_rawcall(SYS_ioctl, at->fds[i], PERF_EVENT_IOC_ID, &at->ids[i]) < 0)
		err = -EBADF;
	else
		err = map_one(at->group, i, at->fds[i]);
	/* Nothing of the mapping has been touched yet, whatever it is of. */
	if (err != -EBADF && is_ours(at, i))
		return err;
	at->fds[i] = -1;
	return -EBADF;
}

static void open_all(void *arg)
{
	struct opening *at = arg;
	const struct csink_group_open *open = at->open;
	uint32_t i, leader = open->leader;

	for (i = 0; i < CSINK_MAX_EVENTS; i++)
		at->fds[i] = -1;
	*at->failed = leader;
	at->err = open_and_map(at, leader);
	for (i = 0; i < CSINK_MAX_EVENTS && !at->err; i++) {
		if (i == leader || !(open->members >> i & 1))
			continue;
		*at->failed = i;
		at->err = open_and_map(at, i);
	}
	if (!at->err && open->how == CSINK_GROUP_SETSIG)
		at->err = is_ours(at, leader) ? send_signal(at->fds[leader], open->signo, open->tid) : -EBADF;
	if (!at->err && !starts_enabled(open))
		at->err = (int)csink_rawcall(SYS_ioctl, at->fds[leader], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	/* One that runs already was looked at just now. */
	for (i = 0; i < CSINK_MAX_EVENTS; i++)
		if (at->fds[i] >= 0 && (starts_enabled(open) || is_ours(at, i)))
			csink_rawcall(SYS_close, at->fds[i]); /* libc's is interposed, and watched for signs */
}

static void unmap(struct csink_group *group)
{
	for (uint32_t i = CSINK_MAX_EVENTS; i-- > 0;) {
		struct perf_event_mmap_page *map = group->pages[i];

		group->pages[i] = NULL;
		/* The handler must not find it any more: a last sample may come on the way. */
		atomic_signal_fence(memory_order_seq_cst);
		if (map)
			csink_rawcall(SYS_munmap, map, map_bytes(group, i));
	}
}

int csink_group_open(struct csink_group *group, const struct csink_group_open *open, uint32_t *failed)
{
	struct opening at = {.group = group, .open = open, .failed = failed, .shared = true};

	memset(group->pages, 0, sizeof(group->pages));
	group->mask = getauxval(AT_PAGESZ) - 1;
	group->members = open->members;
	group->leader = open->leader;
	group->elsewhere = false;
	group->rate = open->events[open->leader].attr.sample_period;
	if (!open->stack || csink_fd_guard_enter()) {
		open_all(&at);
		if (open->stack)
			csink_fd_guard_leave();
		if (at.err == -EBADF && open->stack) { /* the program closed the fd in between */
			unmap(group);
			at.err = 0;
			group->elsewhere = true;
		}
	} else {
		group->elsewhere = true;
	}
	if (group->elsewhere) {
		int err;

		at.shared = false;
		err = csink_run_elsewhere(open_all, &at, open->stack, open->stack_bytes);
		at.err = err ? err : at.err;
	}
	if (at.err)
		unmap(group);
	return at.err;
}

void csink_group_close(struct csink_group *group)
{
	uint64_t counts[CSINK_MAX_EVENTS];

	if (!csink_group_is_open(group))
		return;
	for (uint32_t i = 0; i < CSINK_MAX_EVENTS; i++)
		counts[i] = csink_group_page_count(group, i);
	unmap(group);
	memcpy(group->base, counts, sizeof(counts));
}
