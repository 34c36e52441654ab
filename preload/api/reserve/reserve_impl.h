/*
 * What the parts of the reservation share: where PCP keeps its things (reserve_pcp.c), how its daemon is asked
 * (reserve_ask.c), which processes are its agent (reserve_agent.c), and its wording (reserve_words.c). Used by
 * reserve.c and by the launcher's --status.
 */
#ifndef CSINK_RESERVE_IMPL_H
#define CSINK_RESERVE_IMPL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "include/countersink/reserve.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"

#define CSINK_AGENT_NAME "pmdaperfevent" /* also as the kernel has it in comm: 13 of 15 characters */
#define CSINK_NEVER_NS UINT64_MAX

/* ---- words (reserve_words.c) ---- */

/** What acquire and confirm return for a cause. Context: any. */
int csink_reserve_errno(enum csink_reserve_cause cause);

/** Set the cause and say it in r->text. Returns its errno. Context of this and the next four: thread. */
__attribute__((format(printf, 3, 4))) int csink_reserve_because(struct csink_reserve *r, enum csink_reserve_cause cause,
								const char *fmt, ...);

/** The agent has nothing to count. */
int csink_reserve_no_events(struct csink_reserve *r);

/** The agent cannot be asked: err of csink_pcp_active, an error that no repetition mends; words: its text. */
int csink_reserve_cannot_ask(struct csink_reserve *r, int err, const char *words);

/** It counts in spite of the lock, or too few zeros came. */
int csink_reserve_still_active(struct csink_reserve *r);

/** Time is over (err), or the agent is there no more: say what /proc knows of it. */
int csink_reserve_explain_failure(struct csink_reserve *r, int err);

/* ---- time ---- */

/** Milliseconds until a deadline for poll(2), rounded up; -1: never. Context: any. */
int csink_reserve_poll_ms(uint64_t deadline_ns);

/**
 * Wait until then, or until cancel_fd (-1: none) is readable. Returns 0 or -ECANCELED. Context: thread.
 */
int csink_reserve_sleep(uint64_t until_ns, int cancel_fd);

/** The agent's lock file. Returns 0 or -ENAMETOOLONG. */
int csink_pcp_lock_file(char *out, size_t size);

/** Does a process listen on pmcd's address? Connects and closes; some 100 us. Context: thread. */
bool csink_pcp_is_reachable(void);

/**
 * The value of perfevent.active.
 * @words on error its text, one line; at least 160 bytes.
 * Returns it, or -ENOENT (no pmprobe), -ENOTCONN (no pmcd), -ESRCH (pmcd has no agent that answers), -ENODATA
 * (it has one, which found no event to count), -ETIMEDOUT, -ECANCELED, or -errno of pipe or clone.
 */
int csink_pcp_active(uint64_t deadline_ns, int cancel_fd, char *words, size_t size);

/** Has the agent any events configured? 1, 0, or as csink_pcp_active. */
int csink_pcp_has_events(uint64_t deadline_ns, int cancel_fd);

struct csink_agent {
	int32_t pid;  /* 0: none found */
	char state;   /* of /proc/PID/stat: 'T' is stopped */
	int has_lock; /* has this lock file open: 1 yes, 0 no, -1 this user may not look */
};

/**
 * Look for agents among all processes: one that has the lock file open, else any. Some milliseconds.
 * @lock  NULL: do not look at files.
 */
void csink_agent_find(const struct stat *lock, struct csink_agent *agent);

#endif
