/*
 * countersink/persist.h - perf events that outlive the process that opened them, and are opened again by their id.
 *
 * ioctls for this were proposed for Linux in 2013 (PERF_EVENT_IOC_DETACH and _ATTACH), but never merged. Here a keeper
 * process of the same user holds the events' fds, maps their rings, and passes the fds to other processes:
 *
 *     csink_persist_detach   the event continues when its fds are closed and its opener has ended
 *     csink_persist_open     a new fd of the event, by its id, on the same CPU
 *     csink_persist_read     its count, also for users who may not have the fd
 *     csink_persist_list     all persistent events
 *     csink_persist_attach   the event ends again with its last fd
 *
 * csink_persist_detach_set and csink_persist_open_member do the same with several events under one id.
 *
 * The keeper starts with the first event and ends with the last one. Each user has one for each run directory. If it is
 * killed (SIGKILL, out of memory, a reboot), all its events end: csink_persist_lost counts them. The keeper has a
 * session of its own, but the limits, the priority and the control group of the process that started it: if a service
 * manager kills all processes of a service's control group, start the keeper elsewhere.
 *
 * Run directory: "countersink-persist" in @base, else in $COUNTERSINK_PERSIST_DIR, else in $XDG_RUNTIME_DIR; else
 * /tmp/countersink-persist-UID. Its mode is 0700. It has the keeper's socket (0600) and the directory "events" with a
 * file for each persistent event, named by its id, that describes it. All are private unless an event's mode lets other
 * users read: then they may search the directory (0711), list that event and read its values, but never get its fd,
 * with which the event could be reset, disabled and sampled. Other users can never reach a directory below
 * $XDG_RUNTIME_DIR.
 *
 * Ids are the kernel's own (PERF_EVENT_IOC_ID): unique on the machine until it reboots.
 *
 * The kernel writes to a ring only while it is mapped, so the keeper maps it, with the number of pages in the
 * description. A ring that is written backward (attr.write_backward, mapped without PROT_WRITE) always has the latest
 * records; any other ring fills up.
 *
 * Every function waits for the keeper, at most 10 s (-ETIMEDOUT). Nothing is printed. errno is preserved; fds are
 * CLOEXEC. The caller's wait(2) sees no additional child. Context of all functions: thread; not async-signal-safe.
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
	uint64_t id;                 /* out */
	int64_t since_ns;            /* out: when it was detached, CLOCK_REALTIME */
	int32_t pid, cpu;            /* as they were given to perf_event_open */
	uint32_t pages;              /* of data in its ring, a power of two; 0: no ring is kept */
	uint32_t mode;               /* of the values: 0600 the owner, 0640 and the group, 0644 and others; 0 is 0600 */
	uint32_t uid;                /* out: the owner */
	int32_t opener;              /* out: the process that detached it */
	uint32_t nr_members;         /* out: how many events are counted under this id; 1, but for a set */
	uint32_t reserved;           /* 0 */
	char name[64];               /* for users; may be empty */
	struct perf_event_attr attr; /* as it was opened; in: size says how much of it is set */
};

/* One event of a set. All events of a set have the same attr, and are counted under one id. */
struct csink_persist_member {
	int32_t fd, cpu; /* cpu: as it was given to perf_event_open */
	uint32_t pages;  /* of data in its ring; 0: it has none of its own */
};

struct csink_persist_value {
	uint64_t value;
	uint64_t enabled_ns, running_ns; /* ns; 0 if attr.read_format does not include them */
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
 * @fd     of the event; may be closed afterwards.
 * @event  in: attr, pid, cpu, pages, mode, name; the rest is set.
 * Returns 0, or
 *   -EBADF      fd is not open;
 *   -E2BIG      attr has a field set that this library does not know;
 *   -EINVAL     fd is not a perf event; attr.read_format does not match a read of the event; mode has bits other than
 *               0666; pages is not a power of two, or not the size of the ring that is mapped; cpu or pid is below -1;
 *   -EEXIST     the event is persistent already;
 *   -EACCES     the run directory belongs to another user;
 *   -EPERM      the run directory is not safe: a directory of another user, or one that other users can write;
 *   -ENOBUFS    the ring exceeds the memory that this user may lock (RLIMIT_MEMLOCK, kernel.perf_event_mlock_kb);
 *   -EMFILE     the keeper has no file descriptor left (RLIMIT_NOFILE);
 *   -ENOEXEC    the program countersink, which runs as the keeper, was not found;
 *   -ETIMEDOUT  the keeper did not answer in 10 s;
 * or an error of mkdir(2), mmap(2) or socket(2).
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
 * @member  receives the fd, the CPU and the pages.
 * Returns 0, -ENOENT (no such event), or as csink_persist_open.
 */
int csink_persist_open_member(uint64_t id, uint32_t nth, struct csink_persist_member *member, const char *base);

/**
 * Open a persistent event again; for a set, its first event.
 * @cpu    the CPU with which the event was opened (-1: any, for a task's event).
 * @event  receives its description; may be NULL.
 * Returns an fd, or
 *   -ENOENT  there is no such persistent event (and perhaps no keeper);
 *   -EINVAL  the event is on another CPU;
 *   -EACCES  the event belongs to another user: see csink_persist_read;
 *   -E2BIG   its attr has a field set that this program's struct does not have: pass NULL for @event;
 *   -EPERM, -EMFILE, -ETIMEDOUT.
 */
static inline int csink_persist_open(uint64_t id, int cpu, struct csink_persist_event *event, const char *base)
{
	return csink_persist_open_sized(id, cpu, event, sizeof(*event), base);
}

/**
 * Read a persistent event's count; for a set, the sums. Exception: if the set has events of the same tasks on several
 * CPUs, enabled_ns is the mean over these CPUs.
 * Returns 0, -ENOENT (no such event), -EACCES (its mode does not allow it), -ENODATA (a pinned event that lost its
 * counter), -EPERM (the run directory is not safe) or -ETIMEDOUT.
 */
int csink_persist_read(uint64_t id, struct csink_persist_value *value, const char *base);

/**
 * End the persistence of an event: the keeper closes it, and it ends with its last fd. An fd of any event of a set
 * releases the entire set.
 * Returns 0, or -EBADF (not open), -EINVAL (not a perf event), -ENOENT (not persistent), -EACCES (of another user),
 * -EPERM (the run directory is not safe) or -ETIMEDOUT.
 */
int csink_persist_attach(int fd, const char *base);

/**
 * Call each() for the persistent events that this user may see, by ascending ids, until it returns a value other than
 * 0. If attr.size is larger than sizeof(attr), the event has fields set that this program's struct does not have.
 * Returns the number of events, or the value that each() returned, or -EPERM (the run directory is not safe) or
 * -ETIMEDOUT. Without a keeper the number is 0.
 */
static inline int csink_persist_list(int (*each)(const struct csink_persist_event *event, void *data), void *data,
				     const char *base)
{
	return csink_persist_list_sized(each, data, sizeof(struct csink_persist_event), base);
}

/**
 * Count the events that ended because their keeper was killed; the next keeper starts from 0.
 * Returns the number, or -EPERM (the run directory is not safe).
 */
int csink_persist_lost(const char *base);

#ifdef __cplusplus
}
#endif

#endif
