/*
 * `countersink gate COMMAND`: compare a command with another one, or with its own baseline, and name what got slower.
 * The flow, in the launcher's one thread: settings from the options (cmd_gate_settings.c), the baseline's runs, the
 * runs in random pairs (gate/series.c, turn.c, gate_run.c), their figures and functions (gate/take_figures.c,
 * gate_functions.c), the verdicts (gate/judge.c), all outputs (gate_output.c; gate_tap.c and its like), the exit
 * status.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/path.h"
#include "launcher/commands/gate/gate_history.h"
#include "launcher/commands/gate/gate_output.h"
#include "launcher/commands/gate/gate_result.h"
#include "launcher/commands/gate/gate_settings.h"
#include "launcher/commands/gate/gate_suite.h"
#include "launcher/commands/registry.h"
#include "launcher/gate/baseline.h"
#include "launcher/gate/gate_command.h"
#include "launcher/gate/series.h"
#include "launcher/output/export.h"
#include "launcher/profile/profile.h"
#include "launcher/session/find_program.h"
#include "launcher/session/output_place.h"

#define MAX_LINE 2000  /* of a command, as it is shown */
#define LONG_RUN_MS 60 /* of CPU time: a third of it would do */

struct gate {
	struct csink_gate_settings set;
	struct csink_gate_data data;
	struct csink_gate_series series;
	struct csink_profile *print; /* fingerprint, of a gate with a baseline; else NULL */
	struct csink_gate_baseline baseline;
	struct csink_gate_verdicts verdicts;
	struct csink_gate_result result;
	struct csink_gate_history history;
	char lines[CSINK_GATE_NR_SIDES][MAX_LINE];
};

/* ---- writing the result, in every format that was asked for ---- */

struct printing {
	void (*print)(FILE *, const struct csink_gate_result *);
	const struct csink_gate_result *result;
};

static int print_result(FILE *out, void *arg)
{
	const struct printing *p = arg;

	p->print(out, p->result);
	return 0;
}

static bool write_file(const char *path, unsigned int how, void (*print)(FILE *, const struct csink_gate_result *),
		       const struct csink_gate_result *result)
{
	struct printing p = {print, result};

	return csink_gate_write(path, how, print_result, &p);
}

/*
 * The verdict is an error until there is one: a gate that is killed, or refuses its settings, leaves no older
 * verdict. What is not a regular file gets the verdict alone.
 */
static void begin_verdict(struct gate *gate)
{
	const char *path = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_VERDICT);
	struct stat st;

	if (!*path || !strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode)) ||
	    csink_gate_check_writable(path))
		return;
	gate->result.error = "the gate did not come to its end";
	write_file(path, 0, csink_gate_print_verdict, &gate->result);
	gate->result.error = NULL;
}

/* After all other outputs: one that could not be written is an error. */
static bool write_verdict(struct gate *gate, bool written)
{
	struct csink_gate_result r = gate->result;

	if (!written && !r.error)
		r.error = "an output could not be written";
	return write_file(csink_gate_option_text(&gate->set, CSINK_GATE_OPT_VERDICT), 0, csink_gate_print_verdict, &r);
}

/* After the verdict, which no history changes. */
static bool append_history(struct gate *gate)
{
	struct csink_gate_case one = {.result = &gate->result};
	char headline[1024];

	if (!*gate->history.path || gate->result.error)
		return true;
	csink_gate_headline(&gate->result, headline, sizeof(headline));
	return csink_gate_write_history(&gate->history, gate->set.argv, &one, 1, headline);
}

/* Write the result in all its formats. An output that cannot be written is reported on stderr, together with the
 * verdict. Returns what to exit with. @sides  of the differential flame graph; those without a profile give none. */
static int write_result(struct gate *gate, const struct csink_html_side *sides)
{
	struct csink_gate_result *r = &gate->result;
	static const struct {
		enum csink_gate_opt option;
		unsigned int how;
		void (*print)(FILE *out, const struct csink_gate_result *r);
	} formats[] = {
		{CSINK_GATE_OPT_TAP, 0, csink_gate_print_tap},
		{CSINK_GATE_OPT_JUNIT, 0, csink_gate_print_junit},
		{CSINK_GATE_OPT_JSON, 0, csink_gate_print_json},
		{CSINK_GATE_OPT_MARKDOWN, CSINK_OUTFILE_APPEND, csink_gate_print_markdown},
		{CSINK_GATE_OPT_BADGE, 0, csink_gate_print_badge},
	};
	char headline[1024];
	bool written = true;

	if (*csink_gate_option_text(&gate->set, CSINK_GATE_OPT_HTML) && !r->error)
		written = csink_gate_write_page(csink_gate_option_text(&gate->set, CSINK_GATE_OPT_HTML), &gate->series,
						sides);
	r->pin = gate->series.pin;
	r->notes = gate->series.notes;
	r->nr_notes = gate->series.nr_notes;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(formats); i++)
		written &= write_file(csink_gate_option_text(&gate->set, formats[i].option), formats[i].how,
				      formats[i].print, r);
	written &= write_file(csink_gate_summary_file(), CSINK_OUTFILE_APPEND, csink_gate_print_markdown, r);
	if (csink_gate_option_flag(&gate->set, CSINK_GATE_OPT_GITHUB) || csink_gate_is_in_actions()) {
		csink_gate_print_github(stderr, r);
		fflush(stderr);
	}
	written &= write_verdict(gate, written);
	if (written)
		return append_history(gate) ? csink_gate_status(r) : CSINK_EXIT_FAILED;
	/* What the runs have shown is not lost with a file. */
	if (!r->error) {
		csink_gate_headline(r, headline, sizeof(headline));
		csink_say("the output is incomplete; the verdict: %s", headline);
	}
	return CSINK_EXIT_FAILED;
}

static void describe_event(struct gate *gate)
{
	const struct csink_rec_event *event = &gate->set.runner.events.specs[0].rec;

	if (gate->set.plan.counting) {
		csink_gate_counting_describe(&gate->set.counting, gate->result.event, sizeof(gate->result.event));
		strcpy(gate->result.unit, "count");
		return;
	}
	if (gate->set.runner.events.alloc_is_first) {
		snprintf(gate->result.event, sizeof(gate->result.event), "alloc every %s",
			 csink_amount((int64_t)gate->set.runner.events.alloc_period, "bytes").text);
		strcpy(gate->result.unit, "bytes");
		return;
	}
	snprintf(gate->result.event, sizeof(gate->result.event), "%s at %s Hz", event->name,
		 gate->set.runner.frequency_text);
	snprintf(gate->result.unit, sizeof(gate->result.unit), "%s", *event->unit ? event->unit : "count");
}

/* ---- the baseline ---- */

static int take_fingerprint(struct gate *gate)
{
	csink_profile_free(gate->print);
	gate->print = csink_gate_fingerprint_take(gate->set.argv, &gate->set.runner,
						  csink_gate_counting_mode(&gate->set.counting));
	return gate->print ? 0 : csink_fail(-ENOMEM, "no memory");
}

/* With --deterministic=auto, the tool that counted the baseline counts again. */
static void follow_baseline(struct gate *gate)
{
	const char *mode = csink_gate_fingerprint_mode(gate->baseline.profile);

	if (!gate->set.plan.counting || !mode)
		return;
	csink_gate_counting_follow(&gate->set.counting, mode);
	describe_event(gate);
}

static int open_baseline(struct gate *gate)
{
	const char *path = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_BASELINE);
	char why[CSINK_WHY_BYTES];

	snprintf(gate->lines[CSINK_GATE_OLD], MAX_LINE, "%s", path);
	if (gate->set.update)
		return take_fingerprint(gate);
	gate->data.functions.folds_native = gate->set.rules.folds_native;
	if (csink_gate_baseline_read(path, &gate->data, &gate->baseline, why, sizeof(why)))
		return csink_fail(-EINVAL, "option --baseline: %s", why);
	follow_baseline(gate);
	if (take_fingerprint(gate))
		return -ENOMEM;
	snprintf(gate->lines[CSINK_GATE_OLD], MAX_LINE, "%s, made %s", path, gate->baseline.when);
	if (!csink_gate_option_flag(&gate->set, CSINK_GATE_OPT_ANY_ENVIRONMENT) &&
	    !csink_gate_fingerprint_fits(gate->baseline.profile, gate->print, why, sizeof(why)))
		return csink_fail(-EINVAL, "option --baseline: %s: %s", path, why);
	return 0;
}

static int write_baseline(struct gate *gate)
{
	const char *path = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_BASELINE);
	int err = csink_gate_baseline_write(path, &gate->series, gate->print, 0), first = err;
	char what[PATH_MAX + 32], elsewhere[PATH_MAX], kept[PATH_MAX + 32];

	/* Minutes of runs are not lost with a place. */
	for (uint32_t i = 0; err && !csink_output_fallback(path, i, elsewhere, sizeof(elsewhere)); i++)
		err = csink_gate_baseline_write(elsewhere, &gate->series, gate->print, CSINK_OUTFILE_PRIVATE);
	if (first) {
		snprintf(what, sizeof(what), "option --baseline: %s", path);
		snprintf(kept, sizeof(kept), "the baseline is in %s", elsewhere);
		csink_say_unwritten(what, -first, err ? NULL : kept);
		return CSINK_EXIT_FAILED;
	}
	if (!csink_gate_option_flag(&gate->set, CSINK_GATE_OPT_QUIET))
		csink_say("%u runs of %s are in %s", gate->data.nr_runs, csink_base_name(gate->set.argv[0]), path);
	return CSINK_EXIT_OK;
}

/* ---- the report ---- */

/* Returns what to exit with. */
static int report_result(struct gate *gate)
{
	struct csink_html_side sides[CSINK_GATE_NR_SIDES];

	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		sides[side] =
			(struct csink_html_side){gate->series.kept[side], gate->lines[side], gate->verdicts.runs[side]};
	if (gate->baseline.profile)
		sides[CSINK_GATE_OLD].profile = gate->baseline.profile;
	return write_result(gate, sides);
}

/* ---- the runs ---- */

/* The engine is known once there are samples. No note if the user chose the timer. */
static int learn_from_runs(struct gate *gate)
{
	const char *engine = gate->series.engine, *asked = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_ENGINE);

	if (!strcmp(engine, "timer") && strcmp(asked, engine))
		csink_gate_note(&gate->series,
				"perf_event_open is refused here: samples come at the kernel's tick at most, a few "
				"hundred a second instead of %s, so that only larger changes are found (see the "
				"detection floor); --deterministic counts instructions without it",
				gate->set.runner.frequency_text);
	if (gate->set.plan.counting) {
		csink_gate_counting_note(&gate->series);
		/* The first run may have shown that another tool is needed. */
		describe_event(gate);
		if (gate->set.update && take_fingerprint(gate))
			return -ENOMEM;
	}
	if (!gate->print)
		return 0;
	if (csink_gate_fingerprint_learn(gate->print, engine, &gate->series.placement))
		return -ENOMEM;
	if (!gate->set.update)
		csink_gate_fingerprint_note(gate->baseline.profile, gate->print, &gate->series);
	return 0;
}

/* Both commands may be the same: then there is nothing to find. Returns whether the runs can be left out. */
static bool say_if_same(struct gate *gate)
{
	enum csink_gate_same same;

	if (!gate->set.vs)
		return false;
	same = csink_gate_command_compare(gate->set.vs, gate->set.argv);
	if (same == CSINK_GATE_SAME_CONTENTS)
		csink_gate_note(&gate->series,
				"both commands are files of the same contents, with the same input under other names: "
				"differences can only come from input that is not compared, or from chance");
	if (same != CSINK_GATE_SAME_RUN)
		return false;
	csink_gate_note(&gate->series, "both commands are the same program with the same input: nothing can "
				       "have changed, and no runs were made (--self-check makes them)");
	/* What takes runs to know. */
	gate->verdicts = (struct csink_gate_verdicts){
		.speed = NAN, .speed_interval = {NAN, NAN}, .floor_function = NAN, .floor_command = NAN};
	return true;
}

/* A gate that cannot fail must not look like one that passed: warned of before the runs are made. */
static void warn_of_few(const struct gate *gate)
{
	uint32_t runs = gate->set.plan.runs, old = gate->data.paired ? runs : gate->data.nr_runs;
	double smallest = csink_smallest_p(gate->data.paired, old, runs);

	if (runs && !gate->set.update && !gate->data.exact && smallest > gate->set.rules.alpha)
		csink_say("so few runs (%u and %u) cannot show a regression, however large: the smallest possible p is "
			  "%.2g, and %.2g is required (--runs, --alpha)",
			  old, runs, smallest, gate->set.rules.alpha);
}

/* The same, as far as it takes the number of questions to know. Where runs are made as needed, that number is not ours.
 */
static void note_few(struct gate *gate)
{
	const struct csink_gate_verdicts *v = &gate->verdicts;

	if (!v->nr_open || gate->set.plan.look_again)
		return;
	if (v->runs[CSINK_GATE_NEW] < v->least_runs)
		csink_gate_note(&gate->series,
				"so few runs cannot show a regression here, however large: the smallest possible q is "
				"%.2g, and %.2g is required; that takes %u runs%s",
				v->smallest_q, v->alpha, v->least_runs,
				gate->data.paired ? " of each side" : ", or a baseline of more runs");
	else if (v->runs[CSINK_GATE_NEW] < v->steady_runs)
		csink_gate_note(
			&gate->series,
			"%u pairs are few here (the smallest possible q is %.2g, and %.2g is required): one disturbed "
			"pair can hide a large change; %u pairs tolerate one",
			v->runs[CSINK_GATE_NEW], v->smallest_q, v->alpha, v->steady_runs);
}

/* Runs differ by as much however long they are, so that many short ones say more than few long ones. */
static void note_length(struct gate *gate)
{
	const struct csink_gate_verdicts *v = &gate->verdicts;

	if (!v->nr_open || !gate->data.paired || gate->data.exact)
		return;
	for (uint32_t i = 0; i < v->nr_metric_rows; i++) {
		const struct csink_gate_row *row = &v->rows[i];
		double ms = fmin(row->means[CSINK_GATE_OLD], row->means[CSINK_GATE_NEW]) / 1e6;

		if (!strcmp(gate->data.metrics[row->metric].name, "cpu") && ms > LONG_RUN_MS)
			csink_gate_note(
				&gate->series,
				"a run takes %.0f ms of CPU time, and 20 to 30 ms would do: shorter runs differ "
				"hardly more, and there are more of them in the same time",
				ms);
	}
}

static int run_and_judge(struct gate *gate)
{
	struct csink_gate_series *series = &gate->series;
	uint64_t start_ns;
	char why[CSINK_WHY_BYTES];
	int err;

	if (csink_gate_runner_start(&gate->set.runner, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_FAILED, "%s", why);
	warn_of_few(gate);
	start_ns = csink_monotonic_ns();
	err = csink_gate_series_make(series);
	gate->result.seconds = (double)(csink_monotonic_ns() - start_ns) / 1e9;
	if (err == -EINTR)
		return csink_fail(CSINK_EXIT_SIGNAL + series->signal, "interrupted by %s: no verdict",
				  strsignal(series->signal));
	if (!err)
		err = learn_from_runs(gate);
	if (!err && gate->set.update)
		return write_baseline(gate);
	if (!err) {
		err = csink_gate_judge(&gate->data, &gate->set.rules, series->level, &gate->verdicts);
		if (err)
			snprintf(series->error, sizeof(series->error), "the runs cannot be judged: %s", strerror(-err));
		if (!err) {
			note_few(gate);
			note_length(gate);
		}
	}
	if (err) {
		gate->result.error = series->error;
		csink_say("%s", series->error);
	}
	return report_result(gate);
}

static void free_gate(struct gate *gate)
{
	csink_gate_verdicts_free(&gate->verdicts);
	csink_gate_series_free(&gate->series);
	csink_gate_data_free(&gate->data);
	csink_profile_free(gate->baseline.profile);
	csink_profile_free(gate->print);
	csink_gate_settings_free(&gate->set);
}

/* The programs of both sides are one module, whatever their files are called. */
static void name_programs(struct gate *gate)
{
	static struct csink_program program;

	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		const char *slash;

		if (!gate->set.plan.argv[side])
			continue;
		csink_program_find(gate->set.plan.argv[side][0], &program);
		slash = strrchr(program.path, '/');
		gate->data.functions.programs[side] = slash ? strdup(slash + 1) : NULL;
	}
}

/* The parts of the gate that refer to each other. */
static void link_parts(struct gate *gate)
{
	gate->series = (struct csink_gate_series){
		.plan = &gate->set.plan, .rules = &gate->set.rules, .runner = &gate->set.runner, .data = &gate->data};
	gate->result.data = &gate->data;
	gate->result.rules = &gate->set.rules;
	gate->result.verdicts = &gate->verdicts;
	gate->result.engine = gate->series.engine;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		gate->result.commands[side] = gate->lines[side];
}

/* The settings of the runs and of their report. */
static void take_settings(struct gate *gate)
{
	const struct csink_gate_plan *plan = &gate->set.plan;

	gate->result.how = gate->set.how;
	gate->result.page_link = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_HTML_LINK);
	gate->result.warmup = plan->warmup;
	gate->data.exact = plan->counting;
	gate->data.has_no_speed = gate->set.runner.events.alloc_is_first;
	gate->data.paired = plan->argv[CSINK_GATE_OLD];
	if (gate->set.shell_on_one_side)
		csink_gate_note(&gate->series, "the command of --vs needs a shell, and the other command has none: run "
					       "both by a shell (sh -c '...')");
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		if (plan->argv[side])
			csink_gate_command_print(plan->argv[side], gate->lines[side], MAX_LINE);
	}
	describe_event(gate);
	name_programs(gate);
}

/* Find the commit of the history's line. A name of --commit that git does not know is recorded as it is. */
static int find_commit(struct gate *gate)
{
	const char *name = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_COMMIT);
	struct csink_git_commit *commit = &gate->history.commit;

	if (!csink_git_commit_find(name, commit))
		return 0;
	if (gate->set.options->values[CSINK_GATE_OPT_COMMIT].source == CSINK_FROM_DEFAULT)
		return csink_fail(-ENOENT, "option --history: git knows no commit of this directory: name it with "
					   "--commit");
	if (strlen(name) >= sizeof(commit->id))
		return csink_fail(-EINVAL, "option --commit: '%.64s' is too long", name);
	strcpy(commit->id, name);
	return 0;
}

static int gate_run(struct gate *gate)
{
	int status;

	link_parts(gate);
	begin_verdict(gate);
	if (csink_gate_settings_resolve(&gate->set)) {
		free_gate(gate);
		return CSINK_EXIT_USAGE;
	}
	take_settings(gate);
	gate->history.path = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_HISTORY);
	gate->history.anchor = csink_gate_option_text(&gate->set, CSINK_GATE_OPT_ANCHOR);
	if (*gate->history.path && find_commit(gate))
		status = CSINK_EXIT_USAGE;
	else if (!csink_gate_can_report(&gate->set) || (!gate->data.paired && open_baseline(gate)))
		status = CSINK_EXIT_FAILED;
	else if (csink_gate_is_suite(&gate->set))
		status = csink_gate_suite_run(&gate->set, &gate->series, &gate->history, &gate->result);
	else if (say_if_same(gate))
		status = report_result(gate);
	else
		status = run_and_judge(gate);
	free_gate(gate);
	return status;
}

static int main_gate(const struct csink_options *o, int nr, char **operands)
{
	static struct gate gate = {.set.runner.reservation.reserve.fd = -1};

	if (!nr)
		return csink_fail(CSINK_EXIT_USAGE, "no command given: countersink %s (see countersink help gate)",
				  csink_command_find("gate")->synopsis);
	gate.set.options = o;
	gate.set.argv = operands;
	return gate_run(&gate);
}

const struct csink_command csink_command_gate = {
	.name = "gate",
	.synopsis = "gate [OPTION]... [--] COMMAND [ARGUMENT]...",
	.help = "find the functions that got slower (0 none, 1 an error, 3 some did, 4 no cases)",
	.main = main_gate,
	CSINK_COMMAND_OPTIONS(CSINK_GATE_OPTIONS),
};
