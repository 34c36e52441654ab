/* Making the runs of a gate: see series.h. */
#include "launcher/gate/series.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/gate/callgrind.h"
#include "launcher/gate/keep.h"
#include "launcher/profile/facts.h"

#define MAX_PADDING 4096 /* a page: the stack's place within it is what matters */
#define LOOK_GROWTH 1.5  /* between looks */
#define MAX_RUNS 1000    /* of a side, however much time there is */

static const char *const side_words[] = {"the command to compare with", "the command"};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

void csink_gate_note(struct csink_gate_series *series, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	for (uint32_t i = 0; i < series->nr_notes; i++) {
		if (!strcmp(series->notes[i], text)) {
			free(text);
			return;
		}
	}
	if (series->nr_notes == CSINK_GATE_MAX_NOTES)
		free(text);
	else
		series->notes[series->nr_notes++] = text;
}

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

/* own_rss_bytes: of the launcher as it forked. */
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
	if (rss > own_rss_bytes + own_rss_bytes / 20)
		set_metric(series, run, "max-rss", "max RSS", "bytes", (double)rss);
	else
		csink_gate_note(series,
				"max RSS is not judged: the command's is less than countersink's own, which hides it");
	set_metric(series, run, "page-faults", "page faults", "count", (double)(usage->ru_minflt + usage->ru_majflt));
	take_counts(series, run, &outcome->outside);
	if (*outcome->why)
		csink_gate_note(series, "functions are not known: %s", outcome->why);
	if (!outcome->profile)
		return 0;
	learn_engine(series, outcome->profile);
	return csink_gate_take(&series->data->functions, outcome->profile, -1, run->side, &run->weights);
}

static uint64_t own_rss(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
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
	size_t len = strlen(outcome->said);

	series->signal = csink_gate_interrupted(series->runner, outcome);
	if (series->signal)
		return -EINTR;
	if (outcome->exec_errno) {
		snprintf(series->error, sizeof(series->error), "%s cannot be executed: %s", who,
			 strerror(outcome->exec_errno));
		return -ECHILD;
	}
	if (!outcome->status)
		return 0;
	describe_status(outcome->status, ended, sizeof(ended));
	snprintf(series->error, sizeof(series->error), "%s failed: %s%s%.*s", who, ended, len ? "; it said: " : "",
		 (int)(len && outcome->said[len - 1] == '\n' ? len - 1 : len), outcome->said);
	return -ECHILD;
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
	err = csink_gate_run(series->runner, argv, 0, false, &outcome);
	if (err)
		snprintf(series->error, sizeof(series->error), "%s: %s", who, outcome.why);
	else
		err = csink_gate_check(series, &outcome, who);
	csink_gate_outcome_release(&outcome);
	unsetenv("COUNTERSINK_SIDE");
	return err;
}

static int keep(struct csink_gate_series *series, enum csink_gate_side side, const struct csink_profile *profile,
		uint32_t number)
{
	if (!series->plan->keep || !profile)
		return 0;
	if (!series->kept[side])
		series->kept[side] = csink_profile_create();
	return series->kept[side] ? csink_gate_keep(series->kept[side], profile, number) : -ENOMEM;
}

/* number: of the run on its side; < 0 is a warm-up, which leaves nothing. */
static int take(struct csink_gate_series *series, enum csink_gate_side side, int32_t number,
		const struct csink_gate_outcome *outcome, uint64_t own_rss_bytes)
{
	struct csink_gate_run *run;
	int err;

	if (number < 0)
		return 0;
	run = csink_gate_run_add(series->data, side);
	if (!run)
		return -ENOMEM;
	err = take_outcome(series, run, outcome, own_rss_bytes);
	return err ? err : keep(series, side, outcome->profile, (uint32_t)number);
}

static int run_measured(struct csink_gate_series *series, enum csink_gate_side side, int32_t number)
{
	uint64_t own_rss_bytes = own_rss();
	struct csink_gate_outcome outcome;
	char who[96];
	int err;

	if (number < 0)
		snprintf(who, sizeof(who), "a warm-up of %s", side_words[side]);
	else
		snprintf(who, sizeof(who), "run %d of %s", number + 1, side_words[side]);
	err = csink_gate_run(series->runner, series->plan->argv[side], csink_random_below(&series->random, MAX_PADDING),
			     number >= 0, &outcome);
	if (err)
		snprintf(series->error, sizeof(series->error), "%s: %s", who, outcome.why);
	else
		err = csink_gate_check(series, &outcome, who);
	if (!err)
		err = take(series, side, number, &outcome, own_rss_bytes);
	if (err == -ENOMEM)
		snprintf(series->error, sizeof(series->error), "%s: no memory for what it measured", who);
	csink_gate_outcome_release(&outcome);
	return err;
}

static int run_simulated(struct csink_gate_series *series, enum csink_gate_side side)
{
	struct csink_gate_run *run = csink_gate_run_add(series->data, side);

	return run ? csink_gate_callgrind_run(series, run) : -ENOMEM;
}

static int run_one(struct csink_gate_series *series, enum csink_gate_side side, int32_t number)
{
	int err, cleaned;

	series->signal = csink_gate_interrupted(series->runner, NULL);
	if (series->signal)
		return -EINTR;
	err = run_hook(series, series->plan->prepare, "--prepare", side);
	if (err)
		return err;
	err = series->plan->simulate ? run_simulated(series, side) : run_measured(series, side, number);
	if (err == -EINTR)
		return err;
	/* What prepare made is cleaned up after a failure, too, whose reason is the one to tell. */
	if (err) {
		char error[sizeof(series->error)];

		memcpy(error, series->error, sizeof(error));
		run_hook(series, series->plan->cleanup, "--cleanup", side);
		memcpy(series->error, error, sizeof(error));
		return err;
	}
	cleaned = run_hook(series, series->plan->cleanup, "--cleanup", side);
	return cleaned;
}

/* ---- the order of things ---- */

static void show_progress(const struct csink_gate_series *series, uint32_t made, uint32_t planned)
{
	double spent = (double)(now_ns() - series->start_ns) / 1e9;
	double left = made ? spent / made * (planned - made) : 0;

	if (!series->plan->progress)
		return;
	if (made)
		fprintf(stderr, "\r\033[Kgate: %u of %u%s, %.0f s left", made, planned,
			series->plan->look_again ? " or more" : "", left);
	else
		fprintf(stderr, "\r\033[Kgate: warming up");
	fflush(stderr);
}

static void end_progress(const struct csink_gate_series *series)
{
	if (series->plan->progress)
		fputs("\r\033[K", stderr);
}

static int warm_up(struct csink_gate_series *series)
{
	int err = 0;

	for (uint32_t i = 0; i < series->plan->warmup; i++) {
		for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++) {
			if (series->plan->argv[side])
				err = run_one(series, (enum csink_gate_side)side, -1);
		}
	}
	return err;
}

/* The nth pair. Two pairs are ABBA or BAAB, as a coin falls for the first. */
static int make_pair(struct csink_gate_series *series, uint32_t n, bool *new_first)
{
	int err;

	if (!series->plan->argv[CSINK_GATE_OLD])
		return run_one(series, CSINK_GATE_NEW, (int32_t)n);
	if (n & 1)
		*new_first = !*new_first;
	else
		*new_first = csink_random_below(&series->random, 2);
	err = run_one(series, *new_first ? CSINK_GATE_NEW : CSINK_GATE_OLD, (int32_t)n);
	return err ? err : run_one(series, *new_first ? CSINK_GATE_OLD : CSINK_GATE_NEW, (int32_t)n);
}

static bool is_out_of_time(const struct csink_gate_series *series, uint32_t made)
{
	uint64_t spent = now_ns() - series->start_ns;

	return made >= 2 && spent + spent / made > series->plan->max_time_ns;
}

/* How many more pairs would settle the first open question; 0: none is open. UINT32_MAX: too many. */
static int find_need(struct csink_gate_series *series, uint32_t *need)
{
	struct csink_gate_verdicts verdicts;
	int err = csink_gate_judge(series->data, series->rules, ++series->look, &verdicts);

	*need = 0;
	if (err)
		return err;
	for (uint32_t i = 0; i < verdicts.nr_rows; i++) {
		const struct csink_gate_row *row = &verdicts.rows[i];
		uint32_t needed = row->runs_needed ? row->runs_needed : UINT32_MAX;

		if (row->verdict == CSINK_GATE_INCONCLUSIVE && row->can_regress)
			*need = *need ? CSINK_MIN(*need, needed) : needed;
	}
	csink_gate_verdicts_release(&verdicts);
	return 0;
}

/* Time that would not settle anything is not spent. */
static bool is_hopeless(struct csink_gate_series *series, uint32_t made, uint32_t need)
{
	uint64_t spent = now_ns() - series->start_ns;
	double left = (double)series->plan->max_time_ns - (double)spent;

	if (is_out_of_time(series, made)) {
		csink_gate_note(series, "the time (--max-time) was spent before every question was settled");
		return true;
	}
	if ((double)spent / made * need <= left)
		return false;
	csink_gate_note(series, "no open question would have been settled in the %.0f s that were left (--max-time)",
			fmax(left, 0) / 1e9);
	return true;
}

static int make_as_needed(struct csink_gate_series *series)
{
	uint32_t made = 0, next = CSINK_GATE_FIRST_LOOK, need;
	bool new_first = false;
	int err = 0;

	while (!err && made < MAX_RUNS) {
		for (; !err && made < next && !is_out_of_time(series, made); made++) {
			show_progress(series, made, next);
			err = make_pair(series, made, &new_first);
		}
		if (!err)
			err = find_need(series, &need);
		if (err || !need || is_hopeless(series, made, need))
			break;
		next = CSINK_MIN((uint32_t)ceil(made * LOOK_GROWTH), (uint32_t)MAX_RUNS);
	}
	return err;
}

static int make_planned(struct csink_gate_series *series)
{
	bool new_first = false;
	int err = 0;

	for (uint32_t i = 0; i < series->plan->runs && !err; i++) {
		show_progress(series, i, series->plan->runs);
		err = make_pair(series, i, &new_first);
	}
	return err;
}

static int pin(struct csink_gate_series *series)
{
	cpu_set_t set;

	if (series->plan->cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(series->plan->cpu, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	snprintf(series->error, sizeof(series->error), "--pin: CPU %d cannot be used: %s", series->plan->cpu,
		 strerror(errno));
	return -EINVAL;
}

int csink_gate_series_make(struct csink_gate_series *series)
{
	int err = pin(series);

	csink_random_init(&series->random, series->rules->seed);
	if (err)
		return err;
	show_progress(series, 0, 1);
	err = warm_up(series);
	series->start_ns = now_ns();
	if (!err)
		err = series->plan->runs ? make_planned(series) : make_as_needed(series);
	end_progress(series);
	if (err && err != -EINTR && !*series->error)
		snprintf(series->error, sizeof(series->error), "%s", strerror(-err));
	return err;
}

void csink_gate_series_release(struct csink_gate_series *series)
{
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		csink_profile_destroy(series->kept[side]);
	for (uint32_t i = 0; i < series->nr_notes; i++)
		free(series->notes[i]);
}
