/* `countersink gate COMMAND`: compare a command with another one, or with its own baseline, and name what got slower.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/commands.h"
#include "launcher/gate/baseline.h"
#include "launcher/gate/command.h"
#include "launcher/gate/keep.h"
#include "launcher/gate/result.h"
#include "launcher/gate/series.h"
#include "launcher/output/html.h"
#include "launcher/run/program.h"

#define MAX_LINE 2000 /* of a command, as it is shown */

struct gate {
	struct csink_options options;
	char **argv;
	char **vs; /* malloc'ed; NULL: none */
	struct csink_gate_plan plan;
	struct csink_gate_rules rules;
	struct csink_gate_runner runner;
	struct csink_gate_data data;
	struct csink_gate_series series;
	struct csink_gate_fingerprint print;
	struct csink_gate_baseline baseline;
	struct csink_gate_verdicts verdicts;
	struct csink_gate_result result;
	char lines[CSINK_GATE_NR_SIDES][MAX_LINE];
	bool update;
};

static const char *text_of(const struct gate *gate, enum csink_gate_opt option)
{
	return csink_options_text(&gate->options, option);
}

static bool flag_of(const struct gate *gate, enum csink_gate_opt option)
{
	return csink_options_bool(&gate->options, option);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* ---- what was asked for ---- */

static int refuse(const struct gate *gate, enum csink_gate_opt option, const char *what)
{
	char where[64];

	csink_options_where(&gate->options, option, where, sizeof(where));
	csink_say("%s: '%.64s' is %s", where, text_of(gate, option), what);
	return -EINVAL;
}

/* "5%", "5 %", "0.5": in percent either way. */
static int resolve_percent(const struct gate *gate, enum csink_gate_opt option, double least, double *out)
{
	const char *text = text_of(gate, option);
	char *end;
	double value = strtod(text, &end);

	while (*end == ' ')
		end++;
	if (*end == '%')
		end++;
	if (end == text || *end || !isfinite(value) || isspace((unsigned char)*text) || value < least || value >= 100)
		return refuse(gate, option, "no percentage (5%, 0.5)");
	*out = value / 100;
	return 0;
}

/* A whole number that may be 0. */
static int resolve_count(const struct gate *gate, enum csink_gate_opt option, uint32_t max, const char *what,
			 uint32_t *out)
{
	const char *text = text_of(gate, option);
	uint64_t value = 0;

	if (strcmp(text, "0") && csink_number_parse(text, &value))
		return refuse(gate, option, what);
	if (value > max)
		return refuse(gate, option, "too large");
	*out = (uint32_t)value;
	return 0;
}

static int resolve_runs(struct gate *gate)
{
	uint64_t runs;

	if (!strcmp(text_of(gate, CSINK_GATE_OPT_RUNS), "auto"))
		return 0;
	if (csink_number_parse(text_of(gate, CSINK_GATE_OPT_RUNS), &runs))
		return refuse(gate, CSINK_GATE_OPT_RUNS, "neither a number of runs (2 or more) nor auto");
	if (runs < 2 || runs > 100000)
		return refuse(gate, CSINK_GATE_OPT_RUNS,
			      runs < 2 ? "too few: one run says nothing about chance (2 or more, or auto)"
				       : "too many");
	gate->plan.runs = (uint32_t)runs;
	return 0;
}

static int resolve_numbers(struct gate *gate)
{
	uint32_t cpu = 0;

	if (resolve_percent(gate, CSINK_GATE_OPT_THRESHOLD, 0, &gate->rules.threshold) ||
	    resolve_percent(gate, CSINK_GATE_OPT_MIN_SHARE, 0, &gate->rules.min_share) ||
	    resolve_percent(gate, CSINK_GATE_OPT_ALPHA, 1e-6, &gate->rules.alpha) || resolve_runs(gate) ||
	    resolve_count(gate, CSINK_GATE_OPT_WARMUP, 1000, "not a number of runs", &gate->plan.warmup))
		return -EINVAL;
	gate->plan.cpu = -1;
	if (*text_of(gate, CSINK_GATE_OPT_PIN)) {
		if (resolve_count(gate, CSINK_GATE_OPT_PIN, 1023, "not the number of a CPU", &cpu))
			return -EINVAL;
		gate->plan.cpu = (int)cpu;
	}
	gate->plan.max_time_ns = csink_options_seconds(&gate->options, CSINK_GATE_OPT_MAX_TIME);
	gate->rules.seed = csink_options_number(&gate->options, CSINK_GATE_OPT_SEED);
	if (!gate->rules.seed)
		gate->rules.seed = (now_ns() ^ (uint64_t)getpid() << 32) % 1000000000 + 1;
	gate->rules.strict = flag_of(gate, CSINK_GATE_OPT_STRICT);
	return 0;
}

/* One of --vs, --baseline and --self-check says what to compare with. */
static int resolve_sides(struct gate *gate)
{
	bool vs = *text_of(gate, CSINK_GATE_OPT_VS), baseline = *text_of(gate, CSINK_GATE_OPT_BASELINE), shell = false;
	bool self = flag_of(gate, CSINK_GATE_OPT_SELF_CHECK);

	gate->update = flag_of(gate, CSINK_GATE_OPT_UPDATE_BASELINE);
	if (vs + baseline + self != 1) {
		csink_say(vs + baseline + self
				  ? "options --vs, --baseline and --self-check exclude each other: give one"
				  : "compare with what? --vs='COMMAND', --baseline=FILE or --self-check "
				    "(see countersink help gate)");
		return -EINVAL;
	}
	if (gate->update && !baseline) {
		csink_say("option --update-baseline: --baseline=FILE says where it goes");
		return -EINVAL;
	}
	gate->plan.argv[CSINK_GATE_NEW] = gate->argv;
	gate->result.how = vs ? "vs" : self ? "self-check" : "baseline";
	if (self)
		gate->plan.argv[CSINK_GATE_OLD] = gate->argv;
	if (!vs)
		return 0;
	gate->vs = csink_gate_command_split(text_of(gate, CSINK_GATE_OPT_VS), &shell);
	if (!gate->vs || !gate->vs[0]) {
		csink_say("option --vs: '%.200s' is no command: %s", text_of(gate, CSINK_GATE_OPT_VS),
			  gate->vs ? "it has no words" : "its quotes do not match");
		return -EINVAL;
	}
	gate->plan.argv[CSINK_GATE_OLD] = gate->vs;
	if (shell && strcmp(gate->argv[0], "/bin/sh") && strcmp(gate->argv[0], "sh"))
		csink_gate_note(&gate->series,
				"the command of --vs takes a shell, which the other one has not: give both the same "
				"(sh -c '...')");
	return 0;
}

static void resolve_runner(struct gate *gate)
{
	const char **texts = gate->runner.texts;

	for (uint32_t i = 0; i < CSINK_NR_RUN_OPTS; i++)
		texts[i] = csink_run_options[i].flags & CSINK_OPT_BOOL ? "0" : csink_run_options[i].def;
	texts[CSINK_OPT_EVENTS] = text_of(gate, CSINK_GATE_OPT_EVENTS);
	texts[CSINK_OPT_FREQUENCY] = text_of(gate, CSINK_GATE_OPT_FREQUENCY);
	texts[CSINK_OPT_ENGINE] = text_of(gate, CSINK_GATE_OPT_ENGINE);
	texts[CSINK_OPT_QUIET] = "1";
	if (*text_of(gate, CSINK_GATE_OPT_INPUT))
		gate->runner.input = text_of(gate, CSINK_GATE_OPT_INPUT);
}

static int resolve(struct gate *gate)
{
	struct csink_gate_plan *plan = &gate->plan;
	struct csink_program valgrind;
	char why[512];

	if (resolve_numbers(gate) || resolve_sides(gate))
		return -EINVAL;
	plan->prepare = *text_of(gate, CSINK_GATE_OPT_PREPARE) ? (char *)text_of(gate, CSINK_GATE_OPT_PREPARE) : NULL;
	plan->cleanup = *text_of(gate, CSINK_GATE_OPT_CLEANUP) ? (char *)text_of(gate, CSINK_GATE_OPT_CLEANUP) : NULL;
	plan->simulate = gate->data.exact = flag_of(gate, CSINK_GATE_OPT_DETERMINISTIC);
	plan->move = !plan->simulate && !strcmp(text_of(gate, CSINK_GATE_OPT_PLACEMENT), "random");
	plan->keep =
		!plan->simulate && (*text_of(gate, CSINK_GATE_OPT_BASELINE) || *text_of(gate, CSINK_GATE_OPT_HTML));
	plan->progress = !flag_of(gate, CSINK_GATE_OPT_QUIET) && isatty(STDERR_FILENO);
	gate->data.paired = plan->argv[CSINK_GATE_OLD];
	if (plan->simulate) {
		/* Two runs of each show whether the program itself does the same twice. */
		plan->runs = plan->runs ? plan->runs : 2;
		plan->warmup = 0;
		if (csink_program_find("valgrind", &valgrind)) {
			csink_say("option --deterministic: there is no valgrind here (Debian's package: valgrind)");
			return -ENOENT;
		}
	}
	/* Nothing to look at: a baseline is made of as many runs as the first look takes. */
	if (!plan->runs && gate->update)
		plan->runs = CSINK_GATE_FIRST_LOOK;
	plan->look_again = !plan->runs;
	resolve_runner(gate);
	if (csink_gate_runner_init(&gate->runner, why, sizeof(why))) {
		csink_say("%s", why);
		return -EINVAL;
	}
	return 0;
}

/* ---- the baseline ---- */

static int open_baseline(struct gate *gate)
{
	const char *path = text_of(gate, CSINK_GATE_OPT_BASELINE);
	char why[1024];

	if (csink_gate_fingerprint_take(&gate->print, gate->argv, &gate->runner, gate->plan.simulate)) {
		csink_say("no memory");
		return -ENOMEM;
	}
	snprintf(gate->lines[CSINK_GATE_OLD], MAX_LINE, "%s", path);
	if (gate->update)
		return 0;
	if (csink_gate_baseline_read(path, &gate->data, &gate->baseline, why, sizeof(why))) {
		csink_say("option --baseline: %s", why);
		return -EINVAL;
	}
	snprintf(gate->lines[CSINK_GATE_OLD], MAX_LINE, "%s, made %s", path, gate->baseline.when);
	if (!flag_of(gate, CSINK_GATE_OPT_ANY_ENVIRONMENT) &&
	    !csink_gate_baseline_fits(&gate->baseline, &gate->print, &gate->series, why, sizeof(why))) {
		csink_say("option --baseline: %s: %s", path, why);
		return -EINVAL;
	}
	return 0;
}

static int write_baseline(struct gate *gate)
{
	const char *path = text_of(gate, CSINK_GATE_OPT_BASELINE);
	int err = csink_gate_baseline_write(path, &gate->series, &gate->print);

	if (err)
		csink_say("option --baseline: %s: %s", path, strerror(-err));
	else if (!flag_of(gate, CSINK_GATE_OPT_QUIET))
		csink_say("%u runs of %s are in %s", gate->data.nr_runs, gate->print.program, path);
	return err ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

/* ---- telling ---- */

static bool write_file(const char *path, const char *mode, void (*print)(FILE *, const struct csink_gate_result *),
		       const struct csink_gate_result *result)
{
	bool is_stdout = !strcmp(path, "-");
	FILE *out = is_stdout ? stdout : fopen(path, mode);
	int err;

	if (!out) {
		csink_say("%s: %s", path, strerror(errno));
		return false;
	}
	print(out, result);
	err = fflush(out) || ferror(out) ? errno : 0;
	if (!is_stdout && fclose(out))
		err = errno;
	if (err)
		csink_say("%s: %s", path, strerror(err));
	return !err;
}

/* Both sides' runs as a differential flame graph. */
static bool write_html(struct gate *gate)
{
	const char *path = text_of(gate, CSINK_GATE_OPT_HTML);
	struct csink_html_side sides[CSINK_GATE_NR_SIDES];
	struct csink_html_options options = {.title = "countersink gate"};
	FILE *out;
	int err;

	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		sides[side] =
			(struct csink_html_side){gate->series.kept[side], gate->lines[side], gate->verdicts.runs[side]};
	if (gate->baseline.profile)
		sides[CSINK_GATE_OLD].profile = gate->baseline.profile;
	if (!sides[0].profile || !sides[1].profile) {
		csink_gate_note(&gate->series, "%s was not written: there are no samples of both sides", path);
		return true;
	}
	out = fopen(path, "we");
	err = out ? csink_html_write_diff(out, &sides[0], &sides[1], &options) : -errno;
	if (out && fclose(out) && !err)
		err = -errno;
	if (err)
		csink_say("%s: %s", path, strerror(-err));
	return !err;
}

/* Returns what to exit with. */
static int tell(struct gate *gate)
{
	static const struct {
		enum csink_gate_opt option;
		const char *mode;
		void (*print)(FILE *out, const struct csink_gate_result *r);
	} formats[] = {
		{CSINK_GATE_OPT_TAP, "we", csink_gate_print_tap},
		{CSINK_GATE_OPT_JUNIT, "we", csink_gate_print_junit},
		{CSINK_GATE_OPT_JSON, "we", csink_gate_print_json},
		{CSINK_GATE_OPT_MARKDOWN, "ae", csink_gate_print_markdown},
	};
	const char *summary = getenv("GITHUB_STEP_SUMMARY"), *actions = getenv("GITHUB_ACTIONS");
	struct csink_gate_result *r = &gate->result;
	bool written = true;

	if (*text_of(gate, CSINK_GATE_OPT_HTML) && !r->error)
		written = write_html(gate);
	r->notes = gate->series.notes;
	r->nr_notes = gate->series.nr_notes;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(formats); i++) {
		if (*text_of(gate, formats[i].option))
			written &= write_file(text_of(gate, formats[i].option), formats[i].mode, formats[i].print, r);
	}
	if (summary && *summary && actions && !strcmp(actions, "true"))
		written &= write_file(summary, "ae", csink_gate_print_markdown, r);
	if (flag_of(gate, CSINK_GATE_OPT_GITHUB) || (actions && !strcmp(actions, "true"))) {
		csink_gate_print_github(stderr, r);
		fflush(stderr);
	}
	return written ? csink_gate_status(r) : CSINK_EXIT_FAILED;
}

/* ---- the runs ---- */

static void describe_event(struct gate *gate)
{
	const struct csink_rec_event *event = &gate->runner.specs[0].rec;

	if (gate->plan.simulate) {
		strcpy(gate->result.event, "instructions, counted by valgrind's callgrind");
		strcpy(gate->result.unit, "count");
		return;
	}
	snprintf(gate->result.event, sizeof(gate->result.event), "%s at %s Hz", event->name,
		 gate->runner.frequency_text);
	snprintf(gate->result.unit, sizeof(gate->result.unit), "%s", *event->unit ? event->unit : "count");
}

/* What took the samples is known when they are there. */
static int learn_engine(struct gate *gate)
{
	const char *engine = gate->series.engine;

	if (!strcmp(engine, "timer"))
		csink_gate_note(&gate->series,
				"perf_event_open is refused here: samples come at the kernel's tick at most, a few "
				"hundred a second instead of %s, so that only larger changes are found (see the "
				"detection floor); --deterministic counts instructions without it",
				gate->runner.frequency_text);
	free(gate->print.engine);
	gate->print.engine = strdup(engine);
	return gate->print.engine ? 0 : -ENOMEM;
}

/* Both commands may be the same: then there is nothing to find. Returns whether the runs can be left out. */
static bool say_if_same(struct gate *gate)
{
	enum csink_gate_same same;

	if (!gate->vs)
		return false;
	same = csink_gate_command_compare(gate->vs, gate->argv);
	if (same == CSINK_GATE_SAME_CONTENTS)
		csink_gate_note(&gate->series,
				"both commands are the same program with the same input, by other names: "
				"differences can only come from what else they read, or from chance");
	gate->verdicts.speed = 1;
	if (same == CSINK_GATE_SAME_RUN)
		csink_gate_note(&gate->series, "both commands are the same program with the same input: nothing can "
					       "have changed, and no runs were made (--self-check makes them)");
	return same == CSINK_GATE_SAME_RUN;
}

static int run_and_judge(struct gate *gate)
{
	struct csink_gate_series *series = &gate->series;
	uint64_t start_ns = now_ns();
	int err = csink_gate_series_make(series);

	gate->result.seconds = (double)(now_ns() - start_ns) / 1e9;
	if (err == -EINTR) {
		csink_say("interrupted by %s: no verdict", strsignal(series->signal));
		return CSINK_EXIT_SIGNAL + series->signal;
	}
	if (!err)
		err = learn_engine(gate);
	if (!err && gate->update)
		return write_baseline(gate);
	if (!err && gate->baseline.profile && series->kept[CSINK_GATE_NEW])
		csink_gate_baseline_compare_modules(&gate->baseline, series->kept[CSINK_GATE_NEW], series);
	if (!err) {
		err = csink_gate_judge(&gate->data, &gate->rules, series->look, &gate->verdicts);
		if (err)
			snprintf(series->error, sizeof(series->error), "the runs cannot be judged: %s", strerror(-err));
	}
	if (err) {
		gate->result.error = series->error;
		csink_say("%s", series->error);
	}
	return tell(gate);
}

static void fini(struct gate *gate)
{
	csink_gate_verdicts_release(&gate->verdicts);
	csink_gate_series_release(&gate->series);
	csink_gate_data_release(&gate->data);
	csink_gate_baseline_release(&gate->baseline);
	csink_gate_fingerprint_release(&gate->print);
	csink_gate_runner_fini(&gate->runner);
	free(gate->vs);
}

/* The programs of both sides are one module, whatever their files are called. */
static void name_programs(struct gate *gate)
{
	static struct csink_program program;

	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		const char *slash;

		if (!gate->plan.argv[side])
			continue;
		csink_program_find(gate->plan.argv[side][0], &program);
		slash = strrchr(program.path, '/');
		gate->data.functions.programs[side] = slash ? strdup(slash + 1) : NULL;
	}
}

static int gate_run(struct gate *gate)
{
	int status = CSINK_EXIT_FAILED;

	gate->series = (struct csink_gate_series){
		.plan = &gate->plan, .rules = &gate->rules, .runner = &gate->runner, .data = &gate->data};
	gate->result.data = &gate->data;
	gate->result.rules = &gate->rules;
	gate->result.verdicts = &gate->verdicts;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		gate->result.commands[side] = gate->lines[side];
	gate->result.engine = gate->series.engine;
	if (resolve(gate)) {
		fini(gate);
		return CSINK_EXIT_USAGE;
	}
	csink_gate_command_print(gate->argv, gate->lines[CSINK_GATE_NEW], MAX_LINE);
	if (gate->plan.argv[CSINK_GATE_OLD])
		csink_gate_command_print(gate->plan.argv[CSINK_GATE_OLD], gate->lines[CSINK_GATE_OLD], MAX_LINE);
	gate->result.warmup = gate->plan.warmup;
	describe_event(gate);
	name_programs(gate);
	if (!gate->plan.argv[CSINK_GATE_OLD] && open_baseline(gate))
		status = CSINK_EXIT_FAILED;
	else if (say_if_same(gate))
		status = tell(gate);
	else
		status = run_and_judge(gate);
	fini(gate);
	return status;
}

int csink_cmd_gate(int argc, char **argv)
{
	static struct gate gate = {.runner.reservation.reserve.fd = -1};
	int status, at = csink_command_parse(&gate.options, argc, argv, &status);

	if (at < 0)
		return status;
	if (at == argc) {
		csink_say("no command given: countersink %s (see countersink help gate)",
			  csink_command_find("gate")->synopsis);
		return CSINK_EXIT_USAGE;
	}
	gate.argv = argv + at;
	return gate_run(&gate);
}
