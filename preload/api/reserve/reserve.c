/*
 * The reservation: see countersink/reserve.h for what is promised and why three zeros are needed.
 *
 * Order: ask what the agent counts, lock, ask until it counts nothing. Everything waits on a descriptor with a
 * deadline, and gives up when cancel_fd is readable.
 */
#include "include/countersink/reserve.h"
#include "include/internal/base.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/api/reserve/reserve_impl.h"
#include "preload/core/own_fd.h"

#define NS_PER_MS 1000000ULL
#define DEFAULT_TIMEOUT_NS CSINK_NS_PER_S
#define ZEROS 3
/* The agent tests every 100 ms and its first answer after that is a false 0: by then it has answered. */
#define SETTLE_NS (300 * NS_PER_MS)
#define LOCK_POLL_NS (10 * NS_PER_MS)
#define ASK_POLL_NS (5 * NS_PER_MS) /* between two answers: about what pmprobe itself takes */
#define MAX_REOPENS 8

static uint64_t add_ns(uint64_t time_ns, uint64_t ns)
{
	return ns > CSINK_NEVER_NS - time_ns ? CSINK_NEVER_NS : time_ns + ns;
}

static uint64_t deadline_of(const struct csink_reserve *r)
{
	return add_ns(csink_monotonic_ns(), r->config.timeout_ns);
}

/* ---- asking ---- */

/* Ask once. Returns 0 with r->active, or as csink_reserve_because. */
static int ask(struct csink_reserve *r, uint64_t deadline_ns)
{
	char words[256];
	int value = csink_pcp_active(deadline_ns, r->config.cancel_fd, words, sizeof(words));

	r->nr_asked++;
	r->active = value < 0 ? -1 : value;
	return value < 0 ? csink_reserve_cannot_ask(r, value, words) : 0;
}

static bool has_other_holder(const struct csink_reserve *r)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

	return !fcntl(r->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/*
 * What does the agent count, before the lock? Zero can be a lie, so ask for as long as it takes the agent to come back
 * from another process's reservation; unless that one still lasts.
 */
static int ask_before(struct csink_reserve *r, uint64_t deadline_ns)
{
	uint64_t now = csink_monotonic_ns();
	uint64_t until_ns = CSINK_MIN(add_ns(now, SETTLE_NS), deadline_ns);
	/* Half of the time is kept for after the lock. */
	uint64_t answer_ns = deadline_ns == CSINK_NEVER_NS ? deadline_ns : now + (deadline_ns - now) / 2;
	bool asked_for_events = false;
	int err;

	if (!csink_pcp_is_reachable())
		return csink_reserve_because(r, CSINK_RESERVE_NO_PMCD,
					     "no process listens where PCP's pmcd should: no agent to ask");
	for (;;) {
		err = ask(r, answer_ns);
		if (err)
			return err;
		r->active_before = r->active;
		r->shared = has_other_holder(r);
		if (r->active || r->shared || csink_monotonic_ns() >= until_ns)
			return 0;
		if (asked_for_events) {
			err = csink_reserve_sleep(add_ns(csink_monotonic_ns(), ASK_POLL_NS), r->config.cancel_fd);
			if (err)
				return csink_reserve_cannot_ask(r, err, "");
			continue;
		}
		asked_for_events = true;
		err = csink_pcp_has_events(answer_ns, r->config.cancel_fd);
		if (err < 0)
			return csink_reserve_cannot_ask(r, err, "");
		if (!err)
			return csink_reserve_no_events(r);
	}
}

/* ---- the lock ---- */

static int note_lock_file(struct csink_reserve *r)
{
	struct csink_own_fd own;
	int err = csink_own_fd_note(r->fd, false, &own);

	r->file_dev = own.dev;
	r->file_ino = own.ino;
	return err;
}

/* Is the lock file still open under its number? */
static bool holds(const struct csink_reserve *r)
{
	const struct csink_own_fd own = {.fd = r->fd, .dev = r->file_dev, .ino = r->file_ino};

	return csink_own_fd_is(&own);
}

static int open_lock_file(struct csink_reserve *r)
{
	r->fd = open(r->lock_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (r->fd >= 0)
		return note_lock_file(r);
	if (errno == ENOENT || errno == ENOTDIR)
		return csink_reserve_because(r, CSINK_RESERVE_NO_LOCK_FILE,
					     "there is no lock file %.150s: no PCP agent holds counters here",
					     r->lock_file);
	if (errno == EACCES)
		return csink_reserve_because(
			r, CSINK_RESERVE_DENIED,
			"this user may not read the lock file %.150s: chmod a+r it, and a+x the directories above",
			r->lock_file);
	csink_reserve_because(r, CSINK_RESERVE_LOCK_FAILED, "cannot open the lock file %.150s: %s", r->lock_file,
			      strerror(errno));
	return -errno;
}

static int lock(struct csink_reserve *r, uint64_t deadline_ns)
{
	struct flock how = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int err;

	while (fcntl(r->fd, F_OFD_SETLK, &how)) {
		if (errno == EINTR)
			continue;
		err = errno;
		if (err != EAGAIN && err != EACCES) {
			csink_reserve_because(r, CSINK_RESERVE_LOCK_FAILED, "cannot lock %.150s: %s", r->lock_file,
					      strerror(err));
			return -err;
		}
		if (!r->config.wait_for_lock || csink_monotonic_ns() >= deadline_ns)
			return csink_reserve_because(
				r, CSINK_RESERVE_WRITE_LOCKED,
				"another process holds a write lock on %.150s, which excludes all others",
				r->lock_file);
		err = csink_reserve_sleep(CSINK_MIN(add_ns(csink_monotonic_ns(), LOCK_POLL_NS), deadline_ns),
					  r->config.cancel_fd);
		if (err)
			return csink_reserve_cannot_ask(r, err, "");
	}
	r->locked_ns = csink_monotonic_ns();
	return 0;
}

/* Is what we have open what the name leads to? An agent that is started now would open that one. */
static bool is_current(const struct csink_reserve *r)
{
	struct stat ours, named;

	return !fstat(r->fd, &ours) && !stat(r->lock_file, &named) && ours.st_dev == named.st_dev &&
	       ours.st_ino == named.st_ino;
}

static void close_lock_file(struct csink_reserve *r)
{
	if (holds(r))
		close(r->fd); /* no other process has this open file: the lock goes with it */
	r->fd = -1;
}

/* The file may be made again between open and lock. */
static int lock_current(struct csink_reserve *r, uint64_t deadline_ns)
{
	for (int i = 0;; i++) {
		int err = lock(r, deadline_ns);

		if (err || i == MAX_REOPENS || is_current(r))
			return err;
		close_lock_file(r);
		err = open_lock_file(r);
		if (err)
			return err;
	}
}

static int prepare(struct csink_reserve *r, const struct csink_reserve_config *config)
{
	int n = 0;

	memset(r, 0, sizeof(*r));
	r->fd = r->active = r->active_before = -1;
	csink_reserve_config_init(&r->config);
	if (config)
		r->config = *config;
	if (!r->config.timeout_ns)
		r->config.timeout_ns = DEFAULT_TIMEOUT_NS;
	if (r->config.lock_file)
		n = snprintf(r->lock_file, sizeof(r->lock_file), "%s", r->config.lock_file);
	if (n < 0 || n >= (int)sizeof(r->lock_file) ||
	    (!r->config.lock_file && csink_pcp_lock_file(r->lock_file, sizeof(r->lock_file)))) {
		csink_reserve_because(r, CSINK_RESERVE_LOCK_FAILED, "the name of the lock file is too long");
		return -ENAMETOOLONG;
	}
	return open_lock_file(r);
}

CSINK_EXPORT void csink_reserve_config_init(struct csink_reserve_config *config)
{
	memset(config, 0, sizeof(*config));
	config->cancel_fd = -1;
}

static int acquire(struct csink_reserve *r, const struct csink_reserve_config *config)
{
	uint64_t deadline_ns;
	int err = prepare(r, config);

	if (err)
		return err;
	deadline_ns = deadline_of(r);
	err = ask_before(r, deadline_ns);
	/* A daemon that cannot be asked may look at the lock all the same. */
	if (err != -ECANCELED) {
		enum csink_reserve_cause asked = r->cause;

		err = lock_current(r, deadline_ns);
		if (!err)
			r->cause = asked;
	}
	if (err) {
		close_lock_file(r);
		return err;
	}
	r->state = CSINK_RESERVE_LOCKED;
	r->deadline_ns = deadline_ns;
	if (!r->cause)
		snprintf(r->text, sizeof(r->text), "locked %.150s, and not confirmed yet", r->lock_file);
	return 0;
}

CSINK_EXPORT int csink_reserve_acquire(struct csink_reserve *r, const struct csink_reserve_config *config)
{
	CSINK_KEEP_ERRNO;

	return acquire(r, config);
}

CSINK_EXPORT void csink_reserve_release(struct csink_reserve *r)
{
	CSINK_KEEP_ERRNO;

	close_lock_file(r);
	r->state = CSINK_RESERVE_NONE;
}

/* ---- confirmation ---- */

/* Three zeros came: do they mean something? */
static int judge(struct csink_reserve *r, bool was_active, uint64_t from_ns, uint64_t deadline_ns)
{
	uint64_t ms10 = (csink_monotonic_ns() - r->locked_ns) / (NS_PER_MS / 10);
	char was[64] = "with another holder before us";
	int err;

	if (!was_active) {
		err = csink_pcp_has_events(deadline_ns, r->config.cancel_fd);
		if (err < 0)
			return csink_reserve_cannot_ask(r, err, "");
		if (!err)
			return csink_reserve_no_events(r);
		if (!r->shared)
			return csink_reserve_because(
				r, CSINK_RESERVE_NEVER_ACTIVE,
				"PCP's perfevent agent counts nothing, but did not before the lock either");
	} else {
		snprintf(was, sizeof(was), "down from %d", r->active_before > 0 ? r->active_before : r->peak);
	}
	r->state = CSINK_RESERVE_CONFIRMED;
	r->confirmed_from_ns = from_ns;
	r->confirmed_to_ns = csink_monotonic_ns();
	snprintf(r->text, sizeof(r->text),
		 "PCP's perfevent agent counts nothing now, %s: confirmed %llu.%llu ms after the lock", was,
		 (unsigned long long)(ms10 / 10), (unsigned long long)(ms10 % 10));
	r->cause = CSINK_RESERVE_OK;
	return 0;
}

static int confirm(struct csink_reserve *r, uint64_t deadline_ns)
{
	uint64_t from_ns = 0;
	int zeros = 0, err;

	for (;;) {
		err = ask(r, deadline_ns);
		/* pmcd's own patience may end before ours. */
		if (err == -ETIMEDOUT && csink_monotonic_ns() < deadline_ns) {
			zeros = 0;
			continue;
		}
		/* A missing last answer matters less than the earlier answers. */
		if (err == -ETIMEDOUT && r->peak) {
			r->active = r->peak;
			return csink_reserve_still_active(r);
		}
		if (err)
			return err;
		if (r->active) {
			r->peak = r->active;
			zeros = 0;
		} else if (!zeros++) {
			from_ns = csink_monotonic_ns();
		}
		if (zeros == ZEROS)
			return judge(r, r->active_before > 0 || r->peak, from_ns, deadline_ns);
		if (csink_monotonic_ns() >= deadline_ns)
			return csink_reserve_still_active(r);
		/* Zeros are gathered as fast as they come. */
		err = zeros ? 0 : csink_reserve_sleep(add_ns(csink_monotonic_ns(), ASK_POLL_NS), r->config.cancel_fd);
		if (err)
			return csink_reserve_cannot_ask(r, err, "");
	}
}

/* What acquire could not ask cannot be asked now. But a pmcd that listens may be too busy for one more query: with an
 * agent that is stopped, for instance. */
static bool cannot_be_asked(const struct csink_reserve *r)
{
	return (r->cause == CSINK_RESERVE_NO_PMCD && !r->nr_asked) || r->cause == CSINK_RESERVE_NO_PMPROBE ||
	       r->cause == CSINK_RESERVE_NO_EVENTS;
}

CSINK_EXPORT int csink_reserve_confirm(struct csink_reserve *r)
{
	CSINK_KEEP_ERRNO;
	uint64_t deadline_ns = r->deadline_ns ? r->deadline_ns : deadline_of(r);
	int err;

	if (!holds(r))
		return -EBADF;
	r->state = CSINK_RESERVE_LOCKED; /* what was confirmed before may be over */
	if (r->deadline_ns && cannot_be_asked(r)) {
		err = csink_reserve_errno(r->cause);
	} else {
		err = confirm(r, deadline_ns);
		if (err)
			err = csink_reserve_explain_failure(r, err);
	}
	r->deadline_ns = 0; /* the next call has its own time */
	return err;
}

CSINK_EXPORT int csink_reserve_verify(struct csink_reserve *r)
{
	CSINK_KEEP_ERRNO;
	int err;

	if (!holds(r) || r->state != CSINK_RESERVE_CONFIRMED)
		return -EBADF;
	err = ask(r, deadline_of(r));
	if (!err && !r->active)
		r->confirmed_to_ns = csink_monotonic_ns();
	if (!err && r->active) {
		r->state = CSINK_RESERVE_LOCKED;
		csink_reserve_still_active(r);
		csink_reserve_explain_failure(r, -EBUSY);
		err = -EBUSY;
	}
	return err;
}
