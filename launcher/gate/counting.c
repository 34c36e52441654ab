/* The tools that count instructions: see counting.h. In the launcher's one thread. */
#include "launcher/gate/counting.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/collect/run_directory.h"
#include "launcher/gate/callgrind.h"
#include "launcher/gate/qemu_read.h"
#include "launcher/gate/series.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/find_program.h"
#include "preload/core/event/event_spec.h"

#define CALLS "system calls"

/* By enum csink_gate_tool. */
static const struct {
	const char *word;
	const char *mode; /* as a baseline has it; callgrind's is that of baselines of earlier versions */
	const char *what; /* that counts */
} tools[CSINK_GATE_NR_TOOLS] = {
	[CSINK_GATE_MEASURED] = {"no", "measured", ""},
	[CSINK_GATE_PMU] = {"pmu", "counted by hardware", "the hardware (" CSINK_GATE_PMU_EVENT ")"},
	[CSINK_GATE_QEMU] = {"qemu", "simulated by qemu-user", "qemu-user"},
	[CSINK_GATE_CALLGRIND] = {"callgrind", "simulated", "valgrind's callgrind"},
};

/* ---- the choice ---- */

void csink_gate_ask_version(const char *program, char *version, size_t size)
{
	char command[PATH_MAX + 32] = "exec ";
	FILE *f;

	csink_append_word(command, sizeof(command), program);
	csink_append(command, sizeof(command), " --version 2>&1");
	f = popen(command, "re");
	*version = '\0';
	if (!f)
		return;
	if (fgets(version, (int)size, f))
		version[strcspn(version, "(\n")] = '\0';
	/* "version 7.2 " */
	for (size_t len = strlen(version); len && version[len - 1] == ' '; len--)
		version[len - 1] = '\0';
	pclose(f);
}

static int find_pmu(struct csink_gate_counting *counting, char **const *argv, char *why, size_t why_size)
{
	static struct csink_event_spec spec;
	struct csink_event_error error;
	int ret = csink_choose_listed(CSINK_GATE_PMU_EVENT, &spec, 1, &error);

	(void)counting, (void)argv;
	if (ret < 0)
		return csink_why(-ENOENT, why, why_size, "no hardware counter here: %s", error.line);
	ret = csink_event_does_count(&spec);
	if (ret == 1)
		return 0;
	return csink_why(-ENOENT, why, why_size, "no hardware counter counts " CSINK_GATE_PMU_EVENT " here%s%s%s",
			 ret < 0 ? " (perf_event_open: " : "", ret < 0 ? strerror(-ret) : "", ret < 0 ? ")" : "");
}

static int find_qemu(struct csink_gate_counting *counting, char **const *argv, char *why, size_t why_size)
{
	for (int side = CSINK_GATE_NR_SIDES - 1; side >= 0; side--) {
		if (argv[side] &&
		    csink_gate_qemu_find(argv[side][0], counting->version[CSINK_GATE_QEMU],
					 sizeof(counting->version[CSINK_GATE_QEMU]), counting->plugin, why, why_size))
			return -ENOENT;
	}
	return 0;
}

static int find_callgrind(struct csink_gate_counting *counting, char **const *argv, char *why, size_t why_size)
{
	static struct csink_program valgrind;

	(void)argv;
	if (csink_program_find("valgrind", &valgrind))
		return csink_why(-ENOENT, why, why_size, "there is no valgrind here (Debian's package: valgrind)");
	csink_gate_ask_version(valgrind.path, counting->version[CSINK_GATE_CALLGRIND], sizeof(counting->version[0]));
	return 0;
}

int csink_gate_counting_choose(struct csink_gate_counting *counting, const char *word, char **const *argv, char *why,
			       size_t why_size)
{
	static int (*const find[CSINK_GATE_NR_TOOLS])(struct csink_gate_counting *, char **const *, char *, size_t) = {
		[CSINK_GATE_PMU] = find_pmu,
		[CSINK_GATE_QEMU] = find_qemu,
		[CSINK_GATE_CALLGRIND] = find_callgrind,
	};
	char one[CSINK_WHY_BYTES];

	*why = '\0';
	counting->is_auto = !strcmp(word, "auto");
	for (int tool = 0; tool < CSINK_GATE_NR_TOOLS; tool++) {
		if (!counting->is_auto && strcmp(word, tools[tool].word))
			continue;
		if (counting->is_auto && !find[tool])
			continue;
		counting->tool = (enum csink_gate_tool)tool;
		if (!find[tool] || !find[tool](counting, argv, one, sizeof(one)))
			return 0;
		csink_append(why, why_size, "%s%s", *why ? "; " : "", one);
		snprintf(counting->why, sizeof(counting->why), "%s", why);
	}
	return -ENOENT;
}

void csink_gate_counting_follow(struct csink_gate_counting *counting, const char *mode)
{
	for (int tool = 0; tool < CSINK_GATE_NR_TOOLS && counting->is_auto; tool++) {
		if (strcmp(mode, tools[tool].mode) || tool == CSINK_GATE_MEASURED)
			continue;
		counting->tool = (enum csink_gate_tool)tool;
		counting->is_auto = false;
		*counting->why = '\0';
	}
}

const char *csink_gate_counting_mode(const struct csink_gate_counting *counting)
{
	return tools[counting->tool].mode;
}

const char *csink_gate_counting_word(const struct csink_gate_counting *counting)
{
	return tools[counting->tool].word;
}

void csink_gate_counting_describe(const struct csink_gate_counting *counting, char *out, size_t size)
{
	const char *version = counting->version[counting->tool];

	snprintf(out, size, "instructions, counted by %s%s%s%s", tools[counting->tool].what, *version ? " (" : "",
		 version, *version ? ")" : "");
}

/* ---- a run ---- */

static int set_count(struct csink_gate_series *series, struct csink_gate_run *run, const char *name, const char *title,
		     double value)
{
	int index = csink_gate_metric_find(series->data, name, title, "count");

	if (index >= 0)
		run->metrics[index] = value;
	return index < 0 ? index : 0;
}

/* Without the library, and with its output where the runner keeps it. */
static int run_counted_command(struct csink_gate_runner *runner, char **argv, struct csink_gate_outcome *outcome)
{
	int err;

	runner->is_counted = true;
	err = csink_gate_run(runner, argv, 0, false, outcome);
	runner->is_counted = false;
	return err;
}

int csink_gate_run_under(struct csink_gate_series *series, char **argv, const char *tool)
{
	static struct csink_gate_outcome outcome;
	char who[64];
	int err = run_counted_command(series->runner, argv, &outcome);

	snprintf(who, sizeof(who), "a run under %s", tool);
	if (err)
		snprintf(series->error, sizeof(series->error), "%s: %s", tool, outcome.why);
	else
		err = csink_gate_check(series, &outcome, who);
	csink_gate_outcome_free(&outcome);
	return err;
}

/* The command as it is, without the library: its instructions alone are counted, from outside. */
static int run_counted(struct csink_gate_series *series, struct csink_gate_run *run)
{
	static struct csink_gate_outcome outcome;
	const struct csink_outside *outside = &outcome.outside;
	int err = run_counted_command(series->runner, series->plan->argv[run->side], &outcome);

	if (err)
		snprintf(series->error, sizeof(series->error), "a counted run: %s", outcome.why);
	else
		err = csink_gate_check(series, &outcome, "a counted run");
	if (!err && (!outside->has_counts || !outside->nr_counts || !outside->counts[0].time_running_ns))
		err = csink_why(-ENODATA, series->error, sizeof(series->error),
				CSINK_GATE_PMU_EVENT " was not counted: %s",
				*outside->counts_reason ? outside->counts_reason : "no counter was free");
	else if (!err)
		err = set_count(series, run, "instructions", "instructions", (double)outside->counts[0].value);
	if (!err && outside->counts[0].time_running_ns < outside->counts[0].time_enabled_ns)
		csink_gate_note(series, CSINK_GATE_PMU_EVENT
				" had a counter for a part of the time only (others use them): its "
				"counts are estimates, not exact");
	csink_gate_outcome_free(&outcome);
	return err;
}

static void note_uncounted(struct csink_gate_series *series, const struct csink_gate_uncounted *uncounted)
{
	if (uncounted->nr_programs)
		csink_gate_note(series,
				"NOT counted: %u program%s that the command executes (%s), since qemu-user simulates "
				"the command alone; --deterministic=callgrind counts them",
				uncounted->nr_programs, uncounted->nr_programs > 1 ? "s" : "", uncounted->programs);
	if (uncounted->nr_processes)
		csink_gate_note(series,
				"NOT counted: %u forked process%s, for which no file could be made (disk full?)",
				uncounted->nr_processes, uncounted->nr_processes > 1 ? "es" : "");
	if (uncounted->nr_blocks)
		csink_gate_note(series, "NOT counted: %u blocks of code, for which there was no room",
				uncounted->nr_blocks);
	if (uncounted->has_threads)
		csink_gate_note(series, "the command has several threads, whose instructions qemu-user counts without "
					"atomic additions: some are lost where two threads run the same code");
}

bool csink_gate_counting_give_way(struct csink_gate_counting *counting, const char *error, const char *programs)
{
	char none[CSINK_WHY_BYTES];

	if (!counting->is_auto || counting->tool != CSINK_GATE_QEMU ||
	    find_callgrind(counting, NULL, none, sizeof(none)))
		return false;
	if (*counting->why)
		csink_append(counting->why, sizeof(counting->why), "; ");
	if (error)
		csink_append(counting->why, sizeof(counting->why), "under qemu-user it fails (%.300s)", error);
	else
		csink_append(counting->why, sizeof(counting->why),
			     "it executes other programs (%.300s), which qemu-user does not count", programs);
	counting->tool = CSINK_GATE_CALLGRIND;
	return true;
}

/* That is decided before the first counted run. */
static bool give_way(struct csink_gate_series *series, int err, const struct csink_gate_uncounted *uncounted)
{
	if (series->data->nr_runs || (!err && !uncounted->nr_programs) || err == -EINTR ||
	    !csink_gate_counting_give_way(series->plan->counting, err ? series->error : NULL, uncounted->programs))
		return false;
	*series->error = '\0';
	return true;
}

/* Programs that are executed outside a case's iterations are no part of what is judged. */
static void leave_programs(struct csink_gate_counting *counting, struct csink_gate_uncounted *uncounted)
{
	if (!counting->has_suite)
		return;
	counting->nr_programs = uncounted->nr_programs;
	snprintf(counting->programs, sizeof(counting->programs), "%s", uncounted->programs);
	uncounted->nr_programs = 0;
}

static int simulate(struct csink_gate_series *series, struct csink_gate_run *run, bool warmup, const char *directory)
{
	struct csink_gate_uncounted uncounted = {0};
	int err;

	if (series->plan->counting->tool == CSINK_GATE_CALLGRIND)
		return csink_gate_callgrind_run(series, run, directory)
			       ?: set_count(series, run, "instructions", "instructions", run->weights.sum);
	err = csink_gate_qemu_run(series, run, directory, &uncounted);
	if (warmup && give_way(series, err, &uncounted))
		return 0;
	if (err)
		return err;
	leave_programs(series->plan->counting, &uncounted);
	note_uncounted(series, &uncounted);
	err = csink_gate_merge_places(series->data);
	if (err)
		return err;
	return set_count(series, run, "instructions", "instructions", run->weights.sum)
		       ?: set_count(series, run, "syscalls", CALLS, (double)uncounted.nr_calls);
}

int csink_gate_counting_run(struct csink_gate_series *series, struct csink_gate_run *run, bool warmup)
{
	enum csink_gate_tool tool = series->plan->counting->tool;
	struct csink_run_directory directory;
	int err;

	if (tool == CSINK_GATE_PMU)
		return run_counted(series, run);
	/* A warm-up would warm nothing: callgrind counts instructions, not time. */
	if (tool == CSINK_GATE_CALLGRIND && warmup)
		return 0;
	err = csink_run_directory_create(&directory);
	if (err)
		return csink_why(err, series->error, sizeof(series->error), "no directory for the counts: %s",
				 strerror(-err));
	err = simulate(series, run, warmup, directory.path);
	csink_run_directory_remove(&directory);
	return err;
}

/* ---- notes ---- */

static void note_limits(struct csink_gate_series *series)
{
	static const char *const limits[CSINK_GATE_NR_TOOLS] = {
		[CSINK_GATE_PMU] = "hardware counts the whole command with what it starts, in user space, and no "
				   "functions: --deterministic=qemu names them",
		[CSINK_GATE_QEMU] = "qemu-user counts user space only, by an emulated CPU (libraries choose code for "
				    "that one, without AVX-512), each repetition of a string instruction as one, and "
				    "no caches or branches",
		[CSINK_GATE_CALLGRIND] = "callgrind counts user space only, by an emulated CPU (libraries choose code "
					 "for that one), and no caches or branches",
	};
	const struct csink_gate_counting *counting = series->plan->counting;

	csink_gate_note(series, "%s", limits[counting->tool]);
	if (*counting->why && counting->is_auto)
		csink_gate_note(series, "%s was chosen, since %s", tools[counting->tool].what, counting->why);
}

/* The runs of a side that have a figure: how many, and its least and greatest value. */
static uint32_t range_of(const struct csink_gate_data *data, int side, int index, double *low, double *high)
{
	uint32_t nr = 0;

	*low = INFINITY;
	*high = -INFINITY;
	for (uint32_t i = 0; i < data->nr_runs; i++) {
		double value = data->runs[i].metrics[index];

		if ((int)data->runs[i].side != side || !isfinite(value))
			continue;
		*low = fmin(*low, value);
		*high = fmax(*high, value);
		nr++;
	}
	return nr;
}

static void note_spread(struct csink_gate_series *series, int index)
{
	double low, high, most = -1, of = 0;

	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		if (range_of(series->data, side, index, &low, &high) > 1 && high - low > most) {
			most = high - low;
			of = high;
		}
	}
	if (most >= 0)
		csink_gate_note(series, "runs of one side differ by at most %.0f of %.0f instructions (%.2g %%)", most,
				of, of > 0 ? 100 * most / of : 0);
}

/* Few runs of a number that depends on time or threads can differ by chance alone. */
static void drop_varying(struct csink_gate_series *series, int index)
{
	bool varies = false;
	double low, high;

	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		varies |= range_of(series->data, side, index, &low, &high) && low < high;
	if (!varies)
		return;
	for (uint32_t i = 0; i < series->data->nr_runs; i++)
		series->data->runs[i].metrics[index] = NAN;
	csink_gate_note(series, "%s are not judged: equal runs differ in their number", CALLS);
}

void csink_gate_counting_note(struct csink_gate_series *series)
{
	int instructions = csink_gate_metric_lookup(series->data, "instructions"),
	    calls = csink_gate_metric_lookup(series->data, "syscalls");

	note_limits(series);
	if (instructions >= 0)
		note_spread(series, instructions);
	if (calls >= 0)
		drop_varying(series, calls);
}
