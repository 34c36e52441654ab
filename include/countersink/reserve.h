/*
 * countersink/reserve.h - ask PCP's agent to release the hardware counters, and check whether it did.
 *
 * PCP's agent pmdaperfevent disables its events while any process holds a shared lock on byte 0 of its lock file. The
 * agent tests the lock every 100 ms and does not reply. Its metric perfevent.active, the number of events it could
 * read, shows whether it complied; any user may ask PCP's daemon pmcd for it.
 *
 *     csink_reserve_acquire   read perfevent.active, then lock
 *     csink_reserve_confirm   wait until the agent counts nothing
 *     csink_reserve_probe     test whether a group of events fits on the counters now, with or without an agent
 *     csink_reserve_verify    at the end: check that the agent still counts nothing
 *     csink_reserve_release   unlock
 *
 * A confirmation takes a value above 0 before the lock, and three zeros in a row after it. One 0 proves nothing: an
 * agent without events always reports 0, and so may the first answer after it has enabled its events again, or an
 * answer between its test of the lock and its reaction. Two zeros can be wrong at one moment; three cannot, since the
 * agent acts at most every 100 ms. If another process held the lock before, there is no value from before the lock:
 * then an agent with events and three zeros are sufficient, and .shared is set.
 *
 * A missing agent is no confirmation: other programs may hold counters. csink_reserve_probe tests that. A confirmation
 * covers the time from confirmed_from_ns to confirmed_to_ns only.
 *
 * The lock belongs to the open lock file (an OFD lock): threads share it; a child of fork(2) holds it, too, until it
 * execs or ends; the kernel releases it when the last of them has ended, by a crash as well. The fd is CLOEXEC.
 *
 * pmcd is asked by PCP's pmprobe(1), run as a grandchild: wait(2) in this process never returns it, and there is no
 * SIGCHLD. errno is preserved. Context of all functions: init, thread; not async-signal-safe. A struct is used by one
 * thread at a time.
 */
#ifndef COUNTERSINK_RESERVE_H
#define COUNTERSINK_RESERVE_H

#include <countersink/version.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CSINK_RESERVE_PATH 4096 /* the kernel's PATH_MAX, which strict C does not have */

/* States of a reservation; a larger value is a better state. */
enum csink_reserve_state {
	CSINK_RESERVE_NONE,      /* not locked */
	CSINK_RESERVE_LOCKED,    /* locked; not confirmed that the agent complied: see cause */
	CSINK_RESERVE_CONFIRMED, /* locked, and the agent counted nothing from confirmed_from_ns to confirmed_to_ns */
};

/* Why a reservation is not confirmed. */
enum csink_reserve_cause {
	CSINK_RESERVE_OK,
	CSINK_RESERVE_NO_LOCK_FILE, /* no lock file: no agent tests it */
	CSINK_RESERVE_DENIED,       /* this user may not read the lock file */
	CSINK_RESERVE_WRITE_LOCKED, /* another process holds a write lock */
	CSINK_RESERVE_LOCK_FAILED,  /* the lock file could not be opened or locked, for another reason */
	CSINK_RESERVE_NO_PMCD,      /* no process listens where pmcd should */
	CSINK_RESERVE_NO_PMPROBE,   /* pmprobe(1) is not in $PATH */
	CSINK_RESERVE_NO_AGENT,     /* pmcd answers, but no perfevent agent */
	CSINK_RESERVE_SILENT,       /* no answer in time */
	CSINK_RESERVE_NO_EVENTS,    /* the agent has no events, and holds no counter */
	CSINK_RESERVE_NEVER_ACTIVE, /* the agent has events, but counted none before the lock */
	CSINK_RESERVE_STILL_ACTIVE, /* the agent counts in spite of the lock */
	CSINK_RESERVE_REPLACED,     /* the same; it has a different file open than the locked one */
	CSINK_RESERVE_CANCELED,     /* canceled by cancel_fd */
	CSINK_RESERVE_NR_CAUSES
};

/* csink_reserve_config_init gives the defaults. */
struct csink_reserve_config {
	const char *
		lock_file; /* NULL: $PCP_PMDAS_DIR/perfevent/perflock, the directory from the environment or pcp.conf */
	uint64_t timeout_ns; /* of acquire with the first confirm, and of each later call; 0: 1 s; UINT64_MAX: no limit
			      */
	int wait_for_lock;   /* also wait that long for a write lock; else -EAGAIN at once */
	int cancel_fd;       /* the call returns -ECANCELED when this fd becomes readable; -1: none */
};

struct csink_reserve {
	int fd; /* of the lock file; -1: not locked */
	enum csink_reserve_state state;
	enum csink_reserve_cause cause;
	int shared;            /* another process held the lock before */
	int32_t active_before; /* perfevent.active before the lock, and its last value; -1: unknown */
	int32_t active;
	uint32_t nr_asked;                           /* number of queries to the agent */
	uint64_t locked_ns;                          /* CLOCK_MONOTONIC; 0: not locked */
	uint64_t confirmed_from_ns, confirmed_to_ns; /* 0: not confirmed */
	int32_t agent_pid; /* of the agent's process, if it was looked for and found; else 0 */
	char lock_file[CSINK_RESERVE_PATH];
	char text[320]; /* the state, one line for users, without a full stop */
	struct csink_reserve_config config;
	uint64_t deadline_ns;        /* internal, as the following: of acquire, until the first confirm returns */
	int32_t peak;                /* the last value above 0 since the lock */
	uint64_t file_dev, file_ino; /* of the file of fd: the program may close fd and reuse the number */
};

/** Set the defaults: nothing set, no cancel_fd. */
void csink_reserve_config_init(struct csink_reserve_config *config);

/**
 * Read how many events the agent counts, then lock.
 * @config  copied, except the string lock_file, which must stay valid; NULL: the defaults.
 * Returns 0 (locked); or nothing is locked, and
 *   -ENOENT     there is no lock file: no agent;
 *   -EACCES     this user may not read the lock file;
 *   -EAGAIN     another process holds a write lock (with wait_for_lock: until the timeout);
 *   -ECANCELED  by cancel_fd;
 * or an error of open(2), fstat(2) or fcntl(2). r is filled in any case. Takes some 20 us without a lock file, 200 us
 * without pmcd.
 */
int csink_reserve_acquire(struct csink_reserve *r, const struct csink_reserve_config *config);

/**
 * Wait until the agent counts nothing.
 * Returns 0 (confirmed); or the lock is kept, and
 *   -ENOTCONN   pmcd, pmprobe or the agent is missing;
 *   -ENODATA    the agent counted nothing before the lock, so that a 0 confirms nothing;
 *   -ETIMEDOUT  the agent still counts, or does not answer;
 *   -ECANCELED  by cancel_fd;
 *   -EBADF      nothing is locked (the program may have closed r->fd).
 * r->cause has the cause, r->text the same in words. After -ETIMEDOUT it may be called again.
 */
int csink_reserve_confirm(struct csink_reserve *r);

/**
 * Check that the agent of a confirmed reservation still counts nothing.
 * Returns 0 (confirmed_to_ns is now), -EBUSY (the agent counts: confirmed_to_ns is unchanged), or an error of
 * csink_reserve_confirm.
 */
int csink_reserve_verify(struct csink_reserve *r);

/** Unlock, if locked. The other members of r stay as they are. */
void csink_reserve_release(struct csink_reserve *r);

/* The outcome of counting a group of events, opened pinned, for a moment. */
enum csink_reserve_fit {
	CSINK_RESERVE_FITS,        /* counted all the time */
	CSINK_RESERVE_HELD,        /* no room: the group went into the error state, or is too large */
	CSINK_RESERVE_NEVER_RAN,   /* enabled, but never on the PMU */
	CSINK_RESERVE_MULTIPLEXED, /* counted only part of the time */
	CSINK_RESERVE_REFUSED,     /* an event does not open: err */
};

struct csink_reserve_probe {
	enum csink_reserve_fit fit;
	uint32_t nr, nr_fit; /* events of the call; how many of them fit, from the first one on */
	int err;             /* REFUSED: -errno, of event number `refused` */
	uint32_t refused;
	uint64_t enabled_ns, running_ns; /* of the whole group */
	uint64_t from_ns, to_ns;         /* CLOCK_MONOTONIC: the time of counting */
};

/* Internal: call the function below instead. @attr_bytes: sizeof(struct perf_event_attr) of the caller. */
int csink_reserve_probe_sized(const struct perf_event_attr *attrs, size_t attr_bytes, uint32_t nr,
			      struct csink_reserve_probe *out);

/**
 * Test whether events fit on the counters now: open them as one pinned group on this thread, and count while spinning
 * for two multiplex intervals (mostly 8 ms). If they do not fit, the group is shortened from its end until it does. All
 * fds are closed again.
 * @attrs  as they will be used; sampling is removed. Of each, attr.size bytes are read.
 * @nr     1 to 32.
 * Returns 0 if all events fit, else -EBUSY (see fit and nr_fit), -EINVAL (nr), -E2BIG (an attr has a field set that
 * this library does not know), or an error of perf_event_open(2) (CSINK_RESERVE_REFUSED).
 */
static inline int csink_reserve_probe(const struct perf_event_attr *attrs, uint32_t nr, struct csink_reserve_probe *out)
{
	return csink_reserve_probe_sized(attrs, sizeof(*attrs), nr, out);
}

/** Write the result of a probe as one line. @size: of buf, bytes. Returns buf. Context: any. */
char *csink_reserve_probe_print(const struct csink_reserve_probe *probe, char *buf, size_t size);

/** Returns the name of a state, such as "confirmed". Context: any. */
const char *csink_reserve_state_name(enum csink_reserve_state state);

/** Returns the name of a cause, such as "write-locked". Context: any. */
const char *csink_reserve_cause_name(enum csink_reserve_cause cause);

#ifdef __cplusplus
}
#endif

#endif
