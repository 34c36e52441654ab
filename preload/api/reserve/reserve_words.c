/* The state of a reservation in words: causes, their errnos and texts. See reserve_impl.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "include/countersink/reserve.h"
#include "preload/api/reserve/reserve_impl.h"

static const struct {
	const char *name;
	int err; /* what acquire or confirm return for it */
} causes[CSINK_RESERVE_NR_CAUSES] = {
	[CSINK_RESERVE_OK] = {"none", 0},
	[CSINK_RESERVE_NO_LOCK_FILE] = {"no-lock-file", -ENOENT},
	[CSINK_RESERVE_DENIED] = {"denied", -EACCES},
	[CSINK_RESERVE_WRITE_LOCKED] = {"write-locked", -EAGAIN},
	[CSINK_RESERVE_LOCK_FAILED] = {"lock-failed", -EIO},
	[CSINK_RESERVE_NO_PMCD] = {"no-pmcd", -ENOTCONN},
	[CSINK_RESERVE_NO_PMPROBE] = {"no-pmprobe", -ENOTCONN},
	[CSINK_RESERVE_NO_AGENT] = {"no-agent", -ENOTCONN},
	[CSINK_RESERVE_SILENT] = {"silent", -ETIMEDOUT},
	[CSINK_RESERVE_NO_EVENTS] = {"no-events", -ENODATA},
	[CSINK_RESERVE_NEVER_ACTIVE] = {"never-active", -ENODATA},
	[CSINK_RESERVE_STILL_ACTIVE] = {"still-active", -ETIMEDOUT},
	[CSINK_RESERVE_REPLACED] = {"replaced", -ETIMEDOUT},
	[CSINK_RESERVE_CANCELED] = {"canceled", -ECANCELED},
};

int csink_reserve_errno(enum csink_reserve_cause cause)
{
	return causes[cause].err;
}

CSINK_EXPORT const char *csink_reserve_cause_name(enum csink_reserve_cause cause)
{
	return (unsigned)cause < CSINK_RESERVE_NR_CAUSES ? causes[cause].name : "unknown";
}

CSINK_EXPORT const char *csink_reserve_state_name(enum csink_reserve_state state)
{
	static const char *const names[] = {"none", "locked", "confirmed"};

	return (unsigned)state < CSINK_ARRAY_SIZE(names) ? names[state] : "unknown";
}

int csink_reserve_because(struct csink_reserve *r, enum csink_reserve_cause cause, const char *fmt, ...)
{
	va_list ap;

	r->cause = cause;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	return causes[cause].err;
}

int csink_reserve_no_events(struct csink_reserve *r)
{
	return csink_reserve_because(
		r, CSINK_RESERVE_NO_EVENTS,
		"PCP's perfevent agent has no events to count (see its perfevent.conf): it holds no counter, and "
		"its silence is no confirmation");
}

int csink_reserve_cannot_ask(struct csink_reserve *r, int err, const char *words)
{
	switch (err) {
	case -ENOENT:
		return csink_reserve_because(r, CSINK_RESERVE_NO_PMPROBE,
					     "the result cannot be confirmed: pmprobe(1) of PCP is not in $PATH");
	case -ENOTCONN:
		return csink_reserve_because(r, CSINK_RESERVE_NO_PMCD, "PCP's pmcd does not answer: %.200s", words);
	case -ESRCH:
		return csink_reserve_because(r, CSINK_RESERVE_NO_AGENT,
					     "PCP's pmcd has no perfevent agent that answers: %.200s", words);
	case -ENODATA:
		return csink_reserve_no_events(r);
	case -ECANCELED:
		return csink_reserve_because(r, CSINK_RESERVE_CANCELED, "given up by request");
	case -ETIMEDOUT:
		return csink_reserve_because(r, CSINK_RESERVE_SILENT, "PCP's perfevent agent did not answer in time");
	default:
		csink_reserve_because(r, CSINK_RESERVE_NO_PMPROBE, "pmprobe(1) could not be run: %s", strerror(-err));
		return err;
	}
}

int csink_reserve_explain_failure(struct csink_reserve *r, int err)
{
	struct csink_agent agent;
	struct stat ours;
	bool have_file = !fstat(r->fd, &ours);
	char who[64];
	size_t len;

	if (r->cause != CSINK_RESERVE_STILL_ACTIVE && r->cause != CSINK_RESERVE_SILENT &&
	    r->cause != CSINK_RESERVE_NO_AGENT && r->cause != CSINK_RESERVE_NO_PMCD)
		return err;
	csink_agent_find(have_file ? &ours : NULL, &agent);
	r->agent_pid = agent.pid;
	if (!agent.pid)
		return err;
	snprintf(who, sizeof(who), "PCP's perfevent agent (process %d)", agent.pid);
	if (agent.state == 'T' || agent.state == 't')
		return csink_reserve_because(r, CSINK_RESERVE_SILENT,
					     "%s is stopped, and keeps its counters: kill -CONT %d continues it", who,
					     agent.pid);
	if (r->cause == CSINK_RESERVE_STILL_ACTIVE && agent.has_lock == 0)
		return csink_reserve_because(r, CSINK_RESERVE_REPLACED,
					     "%s still counts %d event%s: it has a different file open than %.80s, "
					     "which was deleted and made "
					     "again; restart it",
					     who, r->active, r->active == 1 ? "" : "s", r->lock_file);
	len = strlen(r->text);
	snprintf(r->text + len, sizeof(r->text) - len, "; its process is %d", agent.pid);
	return err;
}

int csink_reserve_still_active(struct csink_reserve *r)
{
	/* Zeros came, but not enough of them in a row. */
	if (!r->active)
		return csink_reserve_because(r, CSINK_RESERVE_SILENT,
					     "PCP's perfevent agent did not answer often enough in time");
	return csink_reserve_because(r, CSINK_RESERVE_STILL_ACTIVE,
				     "PCP's perfevent agent still counts %d event%s in spite of the lock", r->active,
				     r->active == 1 ? "" : "s");
}
