/*
 * Opening the counters on all threads of the targets while these are stopped, or on a control group; notes for the
 * report on what could not be attached to: see attach_target.h. Runs in the attach command's one thread and, as long
 * as the targets are stopped, in the thread that stops them.
 */
#include "launcher/attach/attach_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/session/alone.h"
#include "launcher/session/outside.h"

/* A call of csink_attach_begin(). */
struct beginning {
	struct csink_attach_target *target;
	struct csink_attach_follow *follow;
	char *why;
	size_t why_size;
};

void csink_attach_name(struct csink_attach_target *target)
{
	struct csink_task task;

	if (target->choice.nr && !csink_task_read(target->choice.at[0], &task))
		memcpy(target->name, task.comm, sizeof(target->name));
}

/* "process 1234 (redis-server)" */
static const char *describe(const struct csink_attach_target *target, char *text, size_t size)
{
	snprintf(text, size, *target->name ? "process %d (%s)" : "process %d", target->choice.at[0], target->name);
	return text;
}

/* ---- processes ---- */

/* What the threads' events refused. */
struct refusals {
	struct csink_attach_event *last;
	uint32_t nr_denied;
	char denied[sizeof(((struct csink_attach_event *)0)->reason)];
};

/* Returns 0, or the first error that ends the attempt. */
static int open_threads(struct beginning *b, const struct csink_targets *threads, struct refusals *refusals)
{
	struct csink_attach_target *target = b->target;
	int32_t last_pid = 0;
	int err = 0;

	for (uint32_t i = 0; i < threads->nr; i++) {
		const struct csink_target *thread = &threads->at[i];

		if (target->tid && thread->tid != target->tid)
			continue;
		err = csink_attach_counters_open(&b->follow->counters, thread->pid, thread->tid, &refusals->last);
		if (err == -ESRCH)
			continue;
		/* Some of several targets, or of descendants, may belong to another user. */
		if ((err == -EACCES || err == -EPERM) &&
		    (target->choice.nr > 1 || thread->pid != target->choice.at[0])) {
			if (!refusals->nr_denied++)
				memcpy(refusals->denied, refusals->last->reason, sizeof(refusals->denied));
			continue;
		}
		if (err)
			break;
		target->nr_threads++;
		target->nr_processes += thread->pid != last_pid;
		last_pid = thread->pid;
	}
	return err;
}

/* Zombies have a clock, and no event: who waits for them has their time from before, too. */
static void take_clocks(struct beginning *b, const struct csink_targets *threads)
{
	for (uint32_t i = 0; i < threads->nr; i++)
		if (!i || threads->at[i].pid != threads->at[i - 1].pid)
			csink_attach_clock_add(&b->follow->clock, threads->at[i].pid);
}

static void take_images(struct beginning *b)
{
	const struct csink_attach_counters *c = &b->follow->counters;

	for (uint32_t i = 0; i < c->nr_lineages; i++) {
		if (i && c->lineages[i].pid == c->lineages[i - 1].pid)
			continue;
		csink_attach_images_take(&b->follow->images, c->lineages[i].pid, b->target->from_ns);
	}
}

/* Called while the targets stand still. */
static int open_all(struct csink_targets *threads, void *arg)
{
	struct beginning *b = arg;
	struct refusals refusals = {0};
	struct csink_spare_fds spare;
	char text[64];
	int err;

	/* What reads /proc and makes the profile needs some, too: what was measured must not be lost for lack of them.
	 */
	csink_spare_fds_take(&spare);
	err = open_threads(b, threads, &refusals);
	csink_spare_fds_release(&spare);
	b->follow->clock.lacks_children = refusals.nr_denied;
	b->follow->outside->attached_gap_has_more |= refusals.nr_denied != 0;
	if (refusals.nr_denied)
		csink_outside_note(b->follow->outside, "%u thread%s could not be attached to: %s", refusals.nr_denied,
				   refusals.nr_denied == 1 ? "" : "s", refusals.denied);
	b->target->from_ns = csink_monotonic_ns();
	csink_attach_clock_begin(&b->follow->clock, b->target->tid, -1);
	take_clocks(b, threads);
	take_images(b);
	if (err && err != -ESRCH && err != -EACCES && err != -EPERM)
		return csink_why(err, b->why, b->why_size, "%s: %s", refusals.last->spec.rec.name,
				 refusals.last->reason);
	if (!b->target->nr_threads || (err && err != -ESRCH && b->target->choice.nr == 1))
		return csink_why(err ? err : -ESRCH, b->why, b->why_size, "cannot attach to %s: %s",
				 describe(b->target, text, sizeof(text)),
				 refusals.last && err != -ESRCH ? refusals.last->reason : "ESRCH: it has ended");
	return 0;
}

static void note_stop(const struct csink_attach_target *target, struct csink_outside *outside)
{
	const struct csink_stop *stop = &target->stop;
	char how[256];

	outside->attached_gap_has_more |= stop->err != 0;
	if (!stop->err && stop->stopped_ns)
		snprintf(how, sizeof(how),
			 stop->nr_asleep ? "all of them were stopped for %.1f ms, %u without being woken"
					 : "all of them were stopped for %.1f ms",
			 (double)stop->stopped_ns / 1e6, stop->nr_asleep);
	else if (stop->err == -ECANCELED)
		snprintf(how, sizeof(how),
			 "they were not stopped: threads and processes that they started meanwhile may be missing");
	else if (stop->err == -EBUSY)
		snprintf(how, sizeof(how),
			 "they could not be stopped, since process %d traces them: threads and processes that they "
			 "started meanwhile may be missing",
			 stop->tracer);
	else
		snprintf(how, sizeof(how),
			 "they could not all be stopped (%s): threads and processes that they started meanwhile may be "
			 "missing",
			 stop->err == -EPERM
				 ? "EPERM: no right to trace them; Yama's kernel.yama.ptrace_scope, or seccomp"
			 : stop->err == -ETIMEDOUT ? "ETIMEDOUT: a thread did not stop in a second"
			 : stop->err == -EAGAIN    ? "EAGAIN: a sleeping thread woke, and started a thread or process"
						   : strerror(-stop->err));
	csink_outside_note(outside, "attached to %u thread%s of %u process%s; %s", target->nr_threads,
			   target->nr_threads == 1 ? "" : "s", target->nr_processes,
			   target->nr_processes == 1 ? "" : "es", how);
}

/* What takes long is done before they stand. */
static void prepare(struct beginning *b)
{
	struct csink_attach_follow *follow = b->follow;
	struct csink_targets threads = {0};

	csink_attach_follow_begin(follow);
	for (uint32_t i = 0; i < b->target->choice.nr; i++)
		csink_targets_scan(&threads, b->target->choice.at[i], !b->target->tid && b->target->cgroup_fd < 0);
	for (uint32_t i = 0; i < threads.nr; i++) {
		if (!i || threads.at[i].pid != threads.at[i - 1].pid)
			csink_attach_images_prepare(&follow->images, threads.at[i].pid);
	}
	csink_targets_free(&threads);
	csink_attach_pythons_start(&follow->pythons, &follow->counters, false);
}

static int begin_processes(struct beginning *b)
{
	struct csink_attach_target *target = b->target;
	char text[64];
	int err;

	prepare(b);
	err = csink_stop_targets(target->choice.at, target->choice.nr, !target->tid, target->may_stop && !target->tid,
				 open_all, b, &target->stop);
	if (err && !*b->why)
		snprintf(b->why, b->why_size, err == -ESRCH ? "ESRCH: %s has ended" : "cannot attach to %s: %s",
			 describe(target, text, sizeof(text)), strerror(-err));
	if (err)
		return err;
	if (target->tid)
		csink_outside_note(b->follow->outside,
				   "attached to thread %d of %s alone: its other threads, and threads and processes "
				   "that it starts, are not included",
				   target->tid, describe(target, text, sizeof(text)));
	else
		note_stop(target, b->follow->outside);
	return 0;
}

/* ---- a control group ---- */

static int begin_cgroup(struct beginning *b)
{
	struct csink_attach_target *target = b->target;
	struct csink_attach_event *refused = NULL;
	struct csink_spare_fds spare;
	int err;

	prepare(b);
	csink_spare_fds_take(&spare);
	err = csink_attach_counters_open(&b->follow->counters, -1, -1, &refused);
	csink_spare_fds_release(&spare);
	if (err)
		return csink_why(err, b->why, b->why_size, "%s: %s", refused->spec.rec.name, refused->reason);
	target->from_ns = csink_monotonic_ns();
	csink_attach_clock_begin(&b->follow->clock, 0, target->cgroup_fd);
	for (uint32_t i = 0; i < target->choice.nr; i++)
		csink_attach_images_take(&b->follow->images, target->choice.at[i], target->from_ns);
	target->nr_processes = target->choice.nr;
	csink_outside_note(b->follow->outside, "attached to the control group %s: %u process%s are in it",
			   target->cgroup, target->choice.nr, target->choice.nr == 1 ? "" : "es");
	return 0;
}

int csink_attach_begin(struct csink_attach_target *target, struct csink_attach_follow *follow, char *why,
		       size_t why_size)
{
	struct beginning b = {target, follow, why, why_size};
	struct csink_spare_fds spare;
	bool has_spare = csink_spare_fds_take(&spare);
	int err;

	csink_spare_fds_release(&spare);
	if (!has_spare)
		return csink_why(
			-EMFILE, why, why_size,
			"EMFILE: too few file descriptors are left to attach with: raise ulimit -n; about %d more "
			"will do",
			4 * CSINK_SPARE_FDS);
	why[0] = 0;
	err = target->cgroup_fd >= 0 ? begin_cgroup(&b) : begin_processes(&b);
	csink_attach_counters_opened(&follow->counters);
	return err;
}
