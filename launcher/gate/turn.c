/* A turn of a series: one run of a side, with what is done before and after it, and what it gave: see series.h. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"
#include "launcher/gate/counting.h"
#include "launcher/gate/reported.h"
#include "launcher/gate/series.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/own_types.h"
#include "launcher/profile/profile.h"
#include "launcher/session/spawn.h"

#define RSS_NOISE (128 << 10) /* of a child before it is the command */
#define MAX_PADDING 4096      /* a page: the stack's place within it is what matters */

static const char *const side_words[] = {"the command to compare with", "the command"};

/* ---- what a run gave ---- */

static int set_metric(struct csink_gate_series *series, struct csink_gate_run *run, const char *name, const char *title,
		      const char *unit, double value)
{
	int index = csink_gate_metric_find(series->data, name, title, unit);

	if (index >= 0)
		run->metrics[index] = value;
	return index < 0 ? index : 0;
}

static void take_counts(struct csink_gate_series *series, struct csink_gate_run *run,
			const struct csink_outside *outside)
{
	for (uint32_t i = 0; outside->has_counts && i < outside->nr_counts; i++) {
		/* It is CPU time again. */
		if (!strcmp(outside->counts[i].name, "task-clock"))
			continue;
		set_metric(series, run, outside->counts[i].name, outside->counts[i].name,
			   *outside->counts[i].unit ? outside->counts[i].unit : "count",
			   (double)outside->counts[i].value);
	}
	if (!outside->has_counts && *outside->counts_reason)
		csink_gate_note(series, "nothing was counted from outside: %s", outside->counts_reason);
}

/* "timer (2 processes): why": its first word. */
static void learn_engine(struct csink_gate_series *series, const struct csink_profile *profile)
{
	const char *engine = csink_profile_fact(profile, CSINK_FACT_ENGINE, 0);

	if (engine)
		snprintf(series->engine, sizeof(series->engine), "%.*s", (int)CSINK_MIN(strcspn(engine, " :"), 60UL),
			 engine);
}

/* Allocations are counted, not estimated: equal programs have equal figures. */
static int take_allocations(struct csink_gate_series *series, struct csink_gate_run *run, const struct csink_profile *p)
{
	static const char *const titles[] = {"allocated bytes", "allocated objects"};
	int err = 0;

	for (int is_objects = 0; is_objects < 2 && !err; is_objects++) {
		int type = csink_own_type(p, CSINK_OWN_ALLOCATED, is_objects);

		if (type >= 0)
			err = set_metric(series, run, csink_profile_text(p, p->types[type].name), titles[is_objects],
					 is_objects ? "count" : "bytes", (double)csink_profile_sum(p, (uint32_t)type));
	}
	return err;
}

/* What the run spent in each function. */
static int take_profile(struct csink_gate_series *series, struct csink_gate_run *run,
			const struct csink_gate_outcome *outcome, const struct csink_gate_scope *scope)
{
	if (*outcome->why)
		csink_gate_note(series, "functions are not known: %s", outcome->why);
	if (!outcome->profile)
		return 0;
	learn_engine(series, outcome->profile);
	if (csink_gate_placement_learn(&series->placement, run->side, outcome->profile))
		return -ENOMEM;
	if (!scope && take_allocations(series, run, outcome->profile))
		return -ENOMEM;
	series->data->functions.folds_native = series->rules->folds_native;
	if (csink_gate_take(&series->data->functions, outcome->profile, scope, -1, run->side, &run->weights))
		return -ENOMEM;
	return csink_gate_merge_places(series->data);
}

/* own_rss_bytes: of a child before it is the command. */
static int take_outcome(struct csink_gate_series *series, struct csink_gate_run *run,
			const struct csink_gate_outcome *outcome, uint64_t own_rss_bytes)
{
	const struct rusage *usage = &outcome->usage;
	double cpu = ((double)usage->ru_utime.tv_sec + (double)usage->ru_stime.tv_sec) * 1e9 +
		     ((double)usage->ru_utime.tv_usec + (double)usage->ru_stime.tv_usec) * 1e3;
	uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;

	set_metric(series, run, "wall", "wall time", "nanoseconds", (double)outcome->wall_ns);
	set_metric(series, run, "cpu", "CPU time", "nanoseconds", cpu);
	/* The kernel counts what the child was before it became the command. */
	if (rss > own_rss_bytes + own_rss_bytes / 20 + RSS_NOISE)
		set_metric(series, run, "max-rss", "max RSS", "bytes", (double)rss);
	else
		csink_gate_note(series,
				"max RSS is not judged: the command's is less than countersink's own, which hides it");
	set_metric(series, run, "page-faults", "page faults", "count", (double)(usage->ru_minflt + usage->ru_majflt));
	take_counts(series, run, &outcome->outside);
	return take_profile(series, run, outcome, NULL);
}

/* The figure of a part of a run is what its samples weigh: the others are of the whole. */
static int take_inside(struct csink_gate_series *series, struct csink_gate_run *run,
		       const struct csink_gate_outcome *outcome, const struct csink_gate_scope *scope)
{
	const struct csink_profile *p = outcome->profile;
	int err = take_profile(series, run, outcome, scope);
	const char *name, *unit;

	if (err || !p || !run->weights.nr_samples)
		return err;
	name = csink_profile_text(p, p->types[p->default_type].name);
	unit = csink_profile_text(p, p->types[p->default_type].unit);
	if (!strcmp(unit, "nanoseconds"))
		return set_metric(series, run, "cpu", "CPU time", unit, run->weights.sum);
	return set_metric(series, run, name, name, unit, run->weights.sum);
}

/* What the kernel says of a child that never became a command: the memory that it was forked with. */
static uint64_t measure_own_rss(const struct csink_gate_runner *runner)
{
	static const int own[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	char root[] = "/", *argv[] = {root, NULL};
	struct rusage usage = {0};
	struct csink_child child;

#ifdef __GLIBC__
	/* Reading symbols has left much memory that is free: forked with it, a child would seem to have used it. */
	malloc_trim(0);
#endif
	if (csink_spawn_with(argv, environ, &runner->inherited, own, &child))
		return 0;
	close(child.exec_fd);
	while (wait4(child.pid, NULL, 0, &usage) < 0 && errno == EINTR)
		;
	return (uint64_t)usage.ru_maxrss * 1024;
}

/* ---- one run, with what is around it ---- */

static void describe_status(int status, char *out, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(out, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(out, size, "status %d", WEXITSTATUS(status));
}

int csink_gate_check(struct csink_gate_series *series, const struct csink_gate_outcome *outcome, const char *who)
{
	char ended[64];
	size_t len = strlen(outcome->stderr_end);

	series->signal = csink_gate_interrupted(series->runner, outcome);
	if (series->signal)
		return -EINTR;
	if (outcome->exec_errno)
		return csink_why(-ECHILD, series->error, sizeof(series->error), "%s cannot be executed: %s", who,
				 strerror(outcome->exec_errno));
	if (!outcome->status)
		return 0;
	describe_status(outcome->status, ended, sizeof(ended));
	return csink_why(-ECHILD, series->error, sizeof(series->error), "%s failed: %s%s%.*s", who, ended,
			 len ? "; its standard error: " : "",
			 (int)(len && outcome->stderr_end[len - 1] == '\n' ? len - 1 : len), outcome->stderr_end);
}

/* A run of a side, or a hook. Free the outcome in any case. */
static int run_checked(struct csink_gate_series *series, char **argv, uint32_t padding, bool profile, const char *who,
		       struct csink_gate_outcome *outcome)
{
	int err = csink_gate_run(series->runner, argv, padding, profile, outcome);

	if (!err)
		return csink_gate_check(series, outcome, who);
	return csink_why(err, series->error, sizeof(series->error), "%s: %s", who, outcome->why);
}

static int run_hook(struct csink_gate_series *series, char *hook, const char *option, enum csink_gate_side side)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", hook, NULL}, who[64];
	struct csink_gate_outcome outcome;
	int err;

	if (!hook)
		return 0;
	setenv("COUNTERSINK_SIDE", side == CSINK_GATE_OLD ? "old" : "new", 1);
	snprintf(who, sizeof(who), "the shell command of %s", option);
	err = run_checked(series, argv, 0, false, who, &outcome);
	csink_gate_outcome_free(&outcome);
	unsetenv("COUNTERSINK_SIDE");
	return err;
}

static int keep(struct csink_gate_series *series, enum csink_gate_side side, const struct csink_profile *profile,
		uint32_t number)
{
	if (!series->plan->keep || !profile)
		return 0;
	if (!series->merges[side])
		series->merges[side] = csink_merge_create(0);
	return series->merges[side] ? csink_merge_add_run(series->merges[side], profile, number) : -ENOMEM;
}

/* Returns NULL without memory. */
static struct csink_gate_run *begin_run(const struct csink_gate_series *series, struct csink_gate_data *data,
					enum csink_gate_side side, int32_t number)
{
	struct csink_gate_run *run = csink_gate_run_add(data, side);

	if (run) {
		run->number = number;
		run->cpu = series->pin.cpu;
	}
	return run;
}

static int take_scopes(struct csink_gate_series *series, enum csink_gate_side side, int32_t number,
		       const struct csink_gate_outcome *outcome)
{
	struct csink_gate_data *data = series->data;
	int err = 0;

	for (uint32_t i = 0; i < series->plan->nr_scopes && !err; i++) {
		const struct csink_gate_scope *scope = &series->plan->scopes[i];
		struct csink_gate_run *run = begin_run(series, scope->data, side, number);

		series->data = scope->data;
		err = run ? take_inside(series, run, outcome, scope) : -ENOMEM;
	}
	series->data = data;
	return err;
}

/* number: of the run on its side; < 0 is a warm-up, which leaves nothing. */
static int take(struct csink_gate_series *series, enum csink_gate_side side, int32_t number,
		const struct csink_gate_outcome *outcome, uint64_t own_rss_bytes, int figures)
{
	struct csink_gate_run *run;
	int err;

	csink_gate_pin_learn(&series->pin, outcome->profile);
	if (number < 0)
		return 0;
	if (series->plan->nr_scopes) {
		err = take_scopes(series, side, number, outcome);
		return err ? err : keep(series, side, outcome->profile, (uint32_t)number);
	}
	run = begin_run(series, series->data, side, number);
	if (!run)
		return -ENOMEM;
	err = take_outcome(series, run, outcome, own_rss_bytes) ?: csink_gate_reported_take(series, run, figures);
	return err ? err : keep(series, side, outcome->profile, (uint32_t)number);
}

static int run_measured(struct csink_gate_series *series, enum csink_gate_side side, int32_t number)
{
	uint64_t own_rss_bytes = measure_own_rss(series->runner);
	struct csink_gate_outcome outcome;
	const char *program = series->plan->argv[side][0];
	char who[320];
	int figures, err;

	if (number < 0)
		snprintf(who, sizeof(who), "a warm-up of %s (%.200s)", side_words[side], program);
	else
		snprintf(who, sizeof(who), "run %d of %s (%.200s)", number + 1, side_words[side], program);
	figures = csink_gate_reported_begin();
	err = run_checked(series, series->plan->argv[side], csink_random_below(&series->random, MAX_PADDING),
			  number >= 0 || series->pin.may_draw, who, &outcome);
	if (!err)
		err = take(series, side, number, &outcome, own_rss_bytes, figures);
	csink_gate_reported_end(figures);
	if (err == -ENOMEM)
		snprintf(series->error, sizeof(series->error), "%s: not enough memory for its figures", who);
	csink_gate_outcome_free(&outcome);
	return err;
}

static int run_counted(struct csink_gate_series *series, enum csink_gate_side side, int32_t number)
{
	struct csink_gate_run unused = {.side = side}, *run = &unused;
	int err;

	if (number >= 0)
		run = begin_run(series, series->data, side, number);
	err = run ? csink_gate_counting_run(series, run, number < 0) : -ENOMEM;
	csink_gate_weights_free(&unused.weights);
	return err;
}

int csink_gate_turn(struct csink_gate_series *series, enum csink_gate_side side, int32_t number)
{
	char error[sizeof(series->error)];
	int err, cleaned;

	series->signal = csink_gate_interrupted(series->runner, NULL);
	if (series->signal)
		return -EINTR;
	err = run_hook(series, series->plan->prepare, "--prepare", side);
	if (err && err != -EINTR)
		return err;
	if (!err && series->plan->move)
		csink_gate_placement_move(&series->placement, side, &series->random);
	csink_gate_pin_begin(&series->pin, &series->runner->inherited);
	if (!err)
		err = series->plan->counting ? run_counted(series, side, number) : run_measured(series, side, number);
	csink_gate_pin_end(&series->runner->inherited);
	/* What prepare made is cleaned up after a failure, too, and if a signal ends the gate; the first reason is
	 * the one to report. */
	memcpy(error, series->error, sizeof(error));
	series->runner->relay.holds_first = true;
	cleaned = run_hook(series, series->plan->cleanup, "--cleanup", side);
	series->runner->relay.holds_first = false;
	if (err)
		memcpy(series->error, error, sizeof(error));
	return err ? err : cleaned;
}
