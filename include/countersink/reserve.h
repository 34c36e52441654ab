/*
 * countersink/reserve.h - ask the daemon that holds the hardware counters to back off, and know whether it did.
 *
 * The daemon is PCP's agent pmdaperfevent: it disables its events while anybody holds a shared lock on byte 0 of its
 * lock file. The agent looks at the lock every 100 ms and never answers; that it complied shows in its own metric
 * perfevent.active, the number of events it could read, which anybody may ask PCP's daemon pmcd for.
 *
 *     csink_reserve_acquire   what did the agent count before? then lock
 *     csink_reserve_confirm   wait until the agent counts nothing any more
 *     csink_reserve_probe     let the kernel say whether a group of events fits on the counters now, agent or not
 *     csink_reserve_verify    at the end: has it stayed so?
 *     csink_reserve_release   unlock
 *
 * What "confirmed" rests on. While an agent that has events backs off, perfevent.active is 0; but a 0 alone proves
 * nothing: an agent without events always says 0, and so does the first answer after it has enabled its events again,
 * or one that it gives between looking at the lock and acting on it. So: more than 0 before the lock, and three zeros
 * in a row after it (two can be false in the same moment, three cannot, since the agent acts every 100 ms at most).
 * Where another holder had the lock before us there was no "before"; then an agent that has events, and three zeros,
 * must do, and .shared says so.
 *
 * Absence is never proof: no agent that answers does not mean that nobody holds counters. That is what the probe is
 * for. And a confirmation speaks of the past: from confirmed_from_ns to confirmed_to_ns, never more.
 *
 * The lock belongs to the open lock file (an OFD lock): threads share it; a child made by fork holds it as well until
 * it execs or ends; the kernel drops it when the last of them is gone, whatever they died of. The fd is CLOEXEC.
 *
 * To ask pmcd, PCP's own pmprobe(1) is run, as a grandchild: wait(2) in this process never sees it, and no SIGCHLD
 * comes. errno is kept. Context of everything here: init, thread; one struct is used by one thread at a time.
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

/* How it stands with a reservation; the higher, the better. */
enum csink_reserve_state {
	CSINK_RESERVE_NONE,      /* nothing is held */
	CSINK_RESERVE_LOCKED,    /* held; whether anybody complied is not known, or somebody did not: see cause */
	CSINK_RESERVE_CONFIRMED, /* held, and the agent counted nothing from confirmed_from_ns to confirmed_to_ns */
};

/* Why it is not confirmed. */
enum csink_reserve_cause {
	CSINK_RESERVE_OK,
	CSINK_RESERVE_NO_LOCK_FILE, /* there is no agent that would look at a lock */
	CSINK_RESERVE_DENIED,       /* this user may not read the lock file */
	CSINK_RESERVE_WRITE_LOCKED, /* somebody holds it for himself alone */
	CSINK_RESERVE_LOCK_FAILED,  /* the lock file could not be opened or locked, for another reason */
	CSINK_RESERVE_NO_PMCD,      /* no process listens where pmcd should */
	CSINK_RESERVE_NO_PMPROBE,   /* there is no pmprobe to ask it with */
	CSINK_RESERVE_NO_AGENT,     /* pmcd answers, and has no agent that does */
	CSINK_RESERVE_SILENT,       /* no answer in time */
	CSINK_RESERVE_NO_EVENTS,    /* the agent has no events: nothing of its own stands in the way */
	CSINK_RESERVE_NEVER_ACTIVE, /* it has events, but counted none before the lock either */
	CSINK_RESERVE_STILL_ACTIVE, /* it counts in spite of the lock */
	CSINK_RESERVE_REPLACED,     /* so it does, and has another file open than the one that is locked */
	CSINK_RESERVE_CANCELED,     /* by cancel_fd */
	CSINK_RESERVE_NR_CAUSES
};

/* csink_reserve_config_init gives the defaults. */
struct csink_reserve_config {
	const char *
		lock_file; /* NULL: $PCP_PMDAS_DIR/perfevent/perflock, the directory from the environment or pcp.conf */
	uint64_t timeout_ns; /* acquire and the first confirm together, or a later call; 0: 1 s; UINT64_MAX: none */
	int wait_for_lock;   /* wait that long for a write lock to go, too; else it is an error at once */
	int cancel_fd;       /* when it becomes readable the call gives up (-ECANCELED); -1: none */
};

struct csink_reserve {
	int fd; /* of the lock file; -1: none is held */
	enum csink_reserve_state state;
	enum csink_reserve_cause cause;
	int shared;            /* another holder was there before us */
	int32_t active_before; /* perfevent.active before the lock, and last; -1: not known */
	int32_t active;
	uint32_t nr_asked;                           /* times that the agent was asked */
	uint64_t locked_ns;                          /* CLOCK_MONOTONIC; 0: not locked */
	uint64_t confirmed_from_ns, confirmed_to_ns; /* 0: not confirmed */
	int32_t agent_pid; /* of an agent's process, where one was looked for and found; 0: none */
	char lock_file[CSINK_RESERVE_PATH];
	char text[320]; /* how it stands, for people: one line, no full stop */
	struct csink_reserve_config config;
	uint64_t deadline_ns;        /* of acquire, until the first confirm has ended; internal, as are the next */
	int32_t peak;                /* the last value over 0 since the lock */
	uint64_t file_dev, file_ino; /* what fd is of: the program may close it, and use the number for another file */
};

/** The defaults: nothing set, no cancel_fd. */
void csink_reserve_config_init(struct csink_reserve_config *config);

/**
 * Ask what the agent counts, then lock.
 * @config  copied (lock_file must stay); NULL: the defaults.
 * Returns 0, locked; or nothing is held, and
 *   -ENOENT     there is no lock file: no agent;
 *   -EACCES     this user may not read it;
 *   -EAGAIN     write-locked by somebody (until the timeout, with wait_for_lock);
 *   -ECANCELED  cancel_fd;
 *   -errno      of open(2), fstat(2) or fcntl(2).
 * r is filled in any case. Without a lock file it takes some 20 us, without pmcd 200 us.
 */
int csink_reserve_acquire(struct csink_reserve *r, const struct csink_reserve_config *config);

/**
 * Wait until the agent counts nothing any more.
 * Returns 0, confirmed; or the lock stays held, and
 *   -ENOTCONN   there is nobody to ask: no pmcd, no pmprobe, no agent;
 *   -ENODATA    the agent counts nothing by itself, so that its silence means nothing;
 *   -ETIMEDOUT  it still counts, or does not answer;
 *   -ECANCELED  cancel_fd;
 *   -EBADF      nothing is locked (any more: the program has closed r->fd).
 * With these r->cause says which, and r->text says it in words. After -ETIMEDOUT it may be called again.
 */
int csink_reserve_confirm(struct csink_reserve *r);

/**
 * Ask once more, of a confirmed reservation: does the agent still count nothing?
 * Returns 0 with confirmed_to_ns moved to now; -EBUSY (it counts: the confirmation ends where it was); or as confirm.
 */
int csink_reserve_verify(struct csink_reserve *r);

/** Unlock, if locked. The rest of r stays to be read. */
void csink_reserve_release(struct csink_reserve *r);

/* What the kernel says of a group of events, opened pinned and made to count. */
enum csink_reserve_fit {
	CSINK_RESERVE_FITS,        /* counted all the time */
	CSINK_RESERVE_HELD,        /* there is no room: in the error state, or never so many together */
	CSINK_RESERVE_NEVER_RAN,   /* enabled, and never on the PMU */
	CSINK_RESERVE_MULTIPLEXED, /* only part of the time */
	CSINK_RESERVE_REFUSED,     /* an event does not open: err */
};

struct csink_reserve_probe {
	enum csink_reserve_fit fit;
	uint32_t nr, nr_fit; /* events asked for; how many of them fit, from the first one on */
	int err;             /* REFUSED: -errno, of event number `refused` */
	uint32_t refused;
	uint64_t enabled_ns, running_ns; /* of the whole group */
	uint64_t from_ns, to_ns;         /* CLOCK_MONOTONIC: when it was counting */
};

/* The library's own; call what is below. @attr_bytes: sizeof(struct perf_event_attr) of the caller. */
int csink_reserve_probe_sized(const struct perf_event_attr *attrs, size_t attr_bytes, uint32_t nr,
			      struct csink_reserve_probe *out);

/**
 * Open the events as one pinned group on this thread, let them count while spinning for two multiplex intervals (8 ms,
 * mostly), and see whether they did. Where they do not fit the group is shrunk from its end until it does. Nothing
 * stays open.
 * @attrs  as they will be used; sampling is taken out. Of each, attr.size bytes are looked at.
 * @nr     1 to 32.
 * Returns 0 if all fit, else -EBUSY (see fit and nr_fit), -errno of perf_event_open (REFUSED), -EINVAL, or
 * -E2BIG: one sets what this library does not know.
 */
static inline int csink_reserve_probe(const struct perf_event_attr *attrs, uint32_t nr, struct csink_reserve_probe *out)
{
	return csink_reserve_probe_sized(attrs, sizeof(*attrs), nr, out);
}

/** Say what a probe found, as one line. Returns buf. Context: any. */
char *csink_reserve_probe_print(const struct csink_reserve_probe *probe, char *buf, size_t size);

/** A word for a state ("confirmed") and for a cause ("write-locked"), for programs. Context: any. */
const char *csink_reserve_state_name(enum csink_reserve_state state);
const char *csink_reserve_cause_name(enum csink_reserve_cause cause);

#ifdef __cplusplus
}
#endif

#endif
