/*
 * Samples from outside: see top_attach.h. The event is task-clock, which needs no hardware counter, so that none has to
 * be reserved. What was sampled is written as recordings into directories of our own, which are read and removed.
 */
#include "launcher/commands/top/top_attach.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/shared_options.h"
#include "launcher/attach/attach_target.h"
#include "launcher/attach/follow.h"
#include "launcher/base/message.h"
#include "launcher/collect/run_directory.h"
#include "launcher/commands/top/top_source.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/inherited.h"
#include "launcher/session/outside.h"
#include "launcher/session/rate.h"

struct csink_top_attach {
	struct csink_attach_follow follow;
	struct csink_attach_target target;
	struct csink_attach_base base;
	struct csink_outside outside;
	uint64_t before_ns; /* of the last sight; 0: there was none */
	bool is_prepared, is_attached;
	bool is_over; /* the last process has ended, and the last sight has all of it */
};

/* ---- attaching ---- */

static int choose_event(struct csink_top_attach *a, char *why, size_t why_len)
{
	struct csink_attach_counters *c = &a->follow.counters;
	struct csink_event_error wrong;
	char reason[256];
	int nr = csink_choose_sampling("task-clock", &c->events[0].spec, 1, reason, sizeof(reason), &wrong);

	if (nr < 0)
		return csink_why(nr, why, why_len, "%s", wrong.line);
	c->nr_events = 1;
	c->events[0].spec.attr.sample_period =
		CSINK_NS_PER_S / csink_rate_allowed(CSINK_DEFAULT_FREQUENCY, true, reason, sizeof(reason));
	return 0;
}

static int choose_target(struct csink_top_attach *a, int32_t pid, const char *cgroup, char *why, size_t why_len)
{
	struct csink_attach_target *target = &a->target;
	int err;

	target->cgroup_fd = -1;
	if (cgroup) {
		target->cgroup = cgroup;
		target->cgroup_fd = csink_attach_open_cgroup(cgroup, why, why_len);
		err = target->cgroup_fd < 0 ? target->cgroup_fd
					    : csink_attach_choose_cgroup(target->cgroup_fd, &target->choice);
	} else {
		a->follow.counters.inherit = true;
		err = csink_pids_add(&target->choice, pid);
	}
	a->follow.counters.cgroup_fd = target->cgroup_fd;
	csink_attach_name(target);
	return err;
}

static int attach(struct csink_top_attach *a, char *why, size_t why_len)
{
	struct csink_attach_counters *c = &a->follow.counters;
	char less[256];
	int err;

	a->is_prepared = true;
	err = csink_attach_counters_init(c, less, sizeof(less));
	if (err && c->events[0].err)
		return csink_why(err, why, why_len, "%s: %s", c->events[0].spec.rec.name, c->events[0].reason);
	if (err)
		return csink_why(err, why, why_len, "cannot prepare to attach: %s",
				 csink_explain_brief(-err, less, sizeof(less)));
	if (c->no_rings)
		return csink_why(-ENOBUFS, why, why_len, "%s", less);
	if (*less)
		csink_say("%s", less);
	err = csink_attach_begin(&a->target, &a->follow, why, why_len);
	a->is_attached = !err;
	return err;
}

int csink_top_attach_open(struct csink_top_attach **out, int32_t pid, const char *cgroup, char *why, size_t why_len)
{
	struct csink_top_attach *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return csink_why(-ENOMEM, why, why_len, "no memory");
	*why = 0;
	a->follow.outside = &a->outside;
	a->follow.counters.stacks = CSINK_ATTACH_COPY;
	a->follow.walk_by = CSINK_WALK_BY_EITHER;
	a->follow.max_depth = CSINK_MAX_DEPTH;
	a->follow.pythons.frames = CSINK_ATTACH_FRAMES_AUTO;
	err = choose_target(a, pid, cgroup, why, why_len);
	if (!err)
		err = choose_event(a, why, why_len);
	if (!err)
		err = attach(a, why, why_len);
	if (err) {
		if (!*why)
			csink_why(err, why, why_len, "%s", strerror(-err));
		csink_top_attach_close(a);
		return err;
	}
	snprintf(a->outside.command, sizeof(a->outside.command), "%s%s", cgroup ? "control group " : a->target.name,
		 cgroup ? cgroup : "");
	if (!cgroup)
		snprintf(a->outside.command, sizeof(a->outside.command), "%s (%d)", a->target.name, pid);
	*out = a;
	return 0;
}

void csink_top_attach_close(struct csink_top_attach *a)
{
	if (!a)
		return;
	if (a->is_attached) {
		csink_attach_counters_stop(&a->follow.counters);
		csink_attach_follow_drain(&a->follow, true);
	}
	if (a->is_prepared)
		csink_attach_follow_free(&a->follow);
	csink_targets_free(&a->target.stop.targets);
	csink_outside_free(&a->outside);
	free(a->target.choice.at);
	free(a->base.rows);
	free(a);
}

/* ---- pictures ---- */

static int make_profile(struct csink_top_attach *a, const char *directory, struct csink_profile **out)
{
	struct csink_outside outside = {.is_attached = 1,
					.attached_processes = (uint32_t)a->follow.images.nr_processes,
					.attached_threads = (uint32_t)a->follow.images.nr_threads};

	memcpy(outside.command, a->outside.command, sizeof(outside.command));
	outside.nr_attached_events = a->outside.nr_attached_events;
	memcpy(outside.attached_events, a->outside.attached_events, sizeof(outside.attached_events));
	return csink_collect(directory, &outside, out);
}

/* A signal that ends us waits until both directories are removed. */
static int look(struct csink_top_attach *a, struct csink_top_sight *sight)
{
	struct csink_run_directory all = {.fd = -1}, last = {.fd = -1};
	struct csink_attach_base now = {0};
	sigset_t ending, before;
	int err;

	csink_ending_signals(&ending);
	sigprocmask(SIG_BLOCK, &ending, &before);
	err = csink_run_directory_create(&all);
	if (!err)
		err = csink_run_directory_create(&last);
	if (!err)
		err = csink_attach_follow_write(&a->follow, all.path);
	if (!err)
		err = csink_attach_follow_since(&a->follow, last.path, &a->base, &now);
	if (!err)
		err = make_profile(a, all.path, &sight->all);
	if (!err && a->before_ns)
		err = make_profile(a, last.path, &sight->last);
	free(err ? now.rows : a->base.rows);
	if (!err)
		a->base = now;
	if (all.fd >= 0)
		csink_run_directory_remove(&all);
	if (last.fd >= 0)
		csink_run_directory_remove(&last);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

int csink_top_attach_take(struct csink_top_attach *a, struct csink_top_sight *sight)
{
	uint64_t now_ns = csink_monotonic_ns();
	bool has_ended = !csink_attach_counters_living(&a->follow.counters);
	int err;

	if (a->is_over)
		return -ESTALE;
	csink_attach_follow_drain(&a->follow, has_ended);
	err = look(a, sight);
	if (err) {
		csink_top_sight_free(sight);
		return err;
	}
	sight->ns[0] = a->before_ns ? now_ns - a->before_ns : 0;
	sight->ns[1] = now_ns - CSINK_MIN(a->target.from_ns, now_ns);
	a->before_ns = now_ns;
	a->is_over = sight->is_over = has_ended;
	return 0;
}

int csink_top_attach_fd(const struct csink_top_attach *a)
{
	return a->follow.counters.rings.epoll_fd;
}

bool csink_top_attach_drain(struct csink_top_attach *a)
{
	if (!a->is_over)
		csink_attach_follow_drain(&a->follow, false);
	return csink_attach_counters_living(&a->follow.counters);
}
