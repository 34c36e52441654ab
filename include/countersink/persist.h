/*
 * countersink/persist.h - perf events that outlive the process that opened them, and are opened again by their id.
 *
 * Linux was once to have this as an ioctl (PERF_EVENT_IOC_DETACH and _ATTACH, 2013); it has not. Here a keeper does it,
 * a process of the same user that holds the events' fds, maps their rings and hands them out again:
 *
 *     csink_persist_detach   the event goes on when its fds are closed, whoever dies
 *     csink_persist_open     a new fd of it, by id, on the same CPU
 *     csink_persist_read     its count, for those who may not have the fd
 *     csink_persist_list     which there are
 *     csink_persist_attach   the event ends again with its last fd, as events do
 *
 * csink_persist_detach_set and csink_persist_open_member do so with several events under one id.
 *
 * The keeper starts with the first event and ends with the last one. There is one for each user and run directory.
 * Whatever kills it (SIGKILL, out of memory, a reboot) ends all of its events: csink_persist_lost tells of them. It is
 * in a session of its own, but has the limits, the priority and the control group of the process that started it: where
 * a service manager ends whatever is in a service's control group, the keeper should be started elsewhere.
 *
 * Run directory: "countersink-persist" in @base, else in $COUNTERSINK_PERSIST_DIR, else in $XDG_RUNTIME_DIR; else
 * /tmp/countersink-persist-UID. It is 0700, with the keeper's socket (0600) and "events", in which each persistent
 * event is a file that is named by its id and describes it. Event and directory are private unless an event's mode lets
 * others read: then they may pass through the directory (0711), list that event and have its values; never its fd, with
 * which the event could be reset, disabled and sampled. Note that others cannot reach below $XDG_RUNTIME_DIR in any
 * case.
 *
 * Ids are the kernel's own (PERF_EVENT_IOC_ID): unique on the machine until it reboots.
 *
 * A ring collects on only while it is mapped, so the keeper maps it: say how many pages. A ring that is written
 * backward (attr.write_backward, mapped without PROT_WRITE) always has the latest records; another one is full at some
 * time.
 *
 * Every function waits for the keeper, 10 s at most (-ETIMEDOUT). Nothing is printed. errno is kept; fds are CLOEXEC.
 * No child of the caller's appears in its wait(2). Context of everything here: thread.
 */
#ifndef COUNTERSINK_PERSIST_H
#define COUNTERSINK_PERSIST_H

#include <countersink/version.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Description of an event. The kernel does not report one for an open fd: the caller of detach fills it in, and open
 * and list return it. The size of attr depends on the kernel headers, so it is the last member, and the functions below
 * pass the size that this program was compiled with: no more of it is read or written. Bytes of attr that this program
 * or the library does not know must be 0.
 */
struct csink_persist_event {
	uint64_t id;         /* out */
	int64_t since_ns;    /* out: when, on CLOCK_REALTIME */
	int32_t pid, cpu;    /* as they were given to perf_event_open */
	uint32_t pages;      /* of data in its ring, a power of two; 0: no ring is kept */
	uint32_t mode;       /* who may read values: 0600 the owner, 0640 his group, 0644 everybody; 0 is 0600 */
	uint32_t uid;        /* out: the owner */
	int32_t opener;      /* out: the process that detached it */
	uint32_t nr_members; /* out: how many events are counted under this id; 1, but for a set */
	uint32_t reserved;   /* 0 */
	char name[64];       /* for people; may be empty */
	struct perf_event_attr attr; /* as it was opened; in: size says how much of it is set */
};

/* One event of a set. All events of a set have the same attr, and are counted under one id. */
struct csink_persist_member {
	int32_t fd, cpu; /* cpu: as it was given to perf_event_open */
	uint32_t pages;  /* of data in its ring; 0: it has none of its own */
};

struct csink_persist_value {
	uint64_t value;
	uint64_t enabled_ns, running_ns; /* 0 if attr.read_format has them not */
};

/* Internal: call the functions below instead. @event_bytes: sizeof(struct csink_persist_event) of the caller. */
int csink_persist_detach_sized(int fd, struct csink_persist_event *event, size_t event_bytes, const char *base);
int csink_persist_open_sized(uint64_t id, int cpu, struct csink_persist_event *event, size_t event_bytes,
			     const char *base);
int csink_persist_detach_set_sized(const struct csink_persist_member *members, uint32_t nr,
				   struct csink_persist_event *event, size_t event_bytes, const char *base);
int csink_persist_list_sized(int (*each)(const struct csink_persist_event *event, void *data), void *data,
			     size_t event_bytes, const char *base);

/**
 * Make an event persistent.
 * @fd     of the event; it may be closed after.
 * @event  in: attr, pid, cpu, pages, mode, name; the rest is set.
 * Returns 0, or
 *   -EBADF   fd is not open;
 *   -E2BIG   attr has a field set that this library does not know;
 *   -EINVAL  fd is no perf event; attr.read_format is not what reading the event gives; mode has other bits than 0666;
 *            pages is no power of two, or not the size at which the ring is mapped already; cpu or pid below -1;
 *   -EEXIST  it is persistent already;
 *   -EACCES  the run directory is another user's;
 *   -EPERM   the run directory cannot be trusted (not its owner's own, or others may write it);
 *   -ENOBUFS the ring is over what this user may lock (RLIMIT_MEMLOCK, kernel.perf_event_mlock_kb);
 *   -EMFILE  the keeper has no more fds (RLIMIT_NOFILE);
 *   -ENOEXEC there is no countersink program to be the keeper;
 *   -ETIMEDOUT, or -errno of mkdir, mmap, socket.
 */
static inline int csink_persist_detach(int fd, struct csink_persist_event *event, const char *base)
{
	return csink_persist_detach_sized(fd, event, sizeof(*event), base);
}

/**
 * Make several events persistent under one id, that of the first: one event for each thread of a process, for instance.
 * @members  an array of nr events, at least one.
 * @event    as in csink_persist_detach; attr is that of all members. Its pages are ignored: each member has its own.
 * Reading the set gives the sum. Either all events become persistent, or none. Returns as csink_persist_detach.
 */
static inline int csink_persist_detach_set(const struct csink_persist_member *members, uint32_t nr,
					   struct csink_persist_event *event, const char *base)
{
	return csink_persist_detach_set_sized(members, nr, event, sizeof(*event), base);
}

/**
 * Open one event of a set again.
 * @nth     from 0 to nr_members - 1, in the order of csink_persist_detach_set; of a single event: 0.
 * @member  set: fd and what it is.
 * Returns 0, -ENOENT (no such event), or as csink_persist_open.
 */
int csink_persist_open_member(uint64_t id, uint32_t nth, struct csink_persist_member *member, const char *base);

/**
 * Open a persistent event again; for a set, its first event.
 * @cpu    as it was opened: the event stays on its CPU (-1: a task's, on any).
 * @event  what it is, or NULL.
 * Returns an fd, or
 *   -ENOENT  there is no such persistent event (and perhaps no keeper);
 *   -EINVAL  it is on another CPU;
 *   -EACCES  it belongs to another user: see csink_persist_read;
 *   -E2BIG   its attr has a field set that this program's struct does not have: open it without @event;
 *   -EPERM, -EMFILE, -ETIMEDOUT.
 */
static inline int csink_persist_open(uint64_t id, int cpu, struct csink_persist_event *event, const char *base)
{
	return csink_persist_open_sized(id, cpu, event, sizeof(*event), base);
}

/**
 * Read a persistent event's count; for a set, the sums. Exception: if the set has events of the same tasks on several
 * CPUs, enabled_ns is the mean over these CPUs.
 * Returns 0, -ENOENT, -EACCES (its mode does not allow it), -ENODATA (a pinned event that lost its counter), -EPERM or
 * -ETIMEDOUT.
 */
int csink_persist_read(uint64_t id, struct csink_persist_value *value, const char *base);

/**
 * End the persistence of an event: the keeper closes it, and it ends with its last fd. An fd of any event of a set
 * releases the entire set.
 * Returns 0, or -EBADF, -EINVAL (no perf event), -ENOENT (not persistent), -EACCES (another user's), -EPERM,
 * -ETIMEDOUT.
 */
int csink_persist_attach(int fd, const char *base);

/**
 * Call each() for the persistent events that this user may see, by ascending ids, until it returns other than 0.
 * If attr.size is larger than sizeof(attr), the event has fields set that this program's struct does not have.
 * Returns how many there were, what each() returned, or -EPERM, -ETIMEDOUT. Without a keeper there are none.
 */
static inline int csink_persist_list(int (*each)(const struct csink_persist_event *event, void *data), void *data,
				     const char *base)
{
	return csink_persist_list_sized(each, data, sizeof(struct csink_persist_event), base);
}

/** How many events ended with a keeper that was killed; forgotten when the next one starts. 0 or more, or -EPERM. */
int csink_persist_lost(const char *base);

#ifdef __cplusplus
}
#endif

#endif
