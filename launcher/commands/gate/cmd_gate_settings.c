/* What `countersink gate` was asked for, from its options: see launcher/commands/gate/gate_settings.h. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/commands/gate/gate_settings.h"
#include "launcher/commands/gate/gate_suite.h"
#include "launcher/gate/gate_command.h"
#include "launcher/gate/suite/suite_words.h"
#include "launcher/session/find_program.h"

int csink_gate_refuse(const struct csink_gate_settings *s, enum csink_gate_opt option, const char *what)
{
	char where[64];

	csink_options_where(s->options, option, where, sizeof(where));
	return csink_fail(-EINVAL, "%s: '%.64s' is %s", where, csink_gate_option_text(s, option), what);
}

/* "5%", "5 %", "0.5": in percent either way. */
static int resolve_percent(const struct csink_gate_settings *s, enum csink_gate_opt option, double least,
			   const char *what, double *out)
{
	const char *text = csink_gate_option_text(s, option);
	char *end;
	double value = strtod(text, &end);

	while (*end == ' ')
		end++;
	if (*end == '%')
		end++;
	if (end == text || *end || !isfinite(value) || isspace((unsigned char)*text) || value < least || value >= 100)
		return csink_gate_refuse(s, option, what);
	*out = value / 100;
	return 0;
}

int csink_gate_resolve_count(const struct csink_gate_settings *s, enum csink_gate_opt option, uint32_t max,
			     const char *what, uint32_t *out)
{
	const char *text = csink_gate_option_text(s, option);
	uint64_t value = 0;

	if (strcmp(text, "0") && csink_number_parse(text, &value))
		return csink_gate_refuse(s, option, what);
	if (value > max)
		return csink_gate_refuse(s, option, "too large");
	*out = (uint32_t)value;
	return 0;
}

static int resolve_runs(struct csink_gate_settings *s)
{
	uint64_t runs;

	if (!strcmp(csink_gate_option_text(s, CSINK_GATE_OPT_RUNS), "auto"))
		return 0;
	if (csink_number_parse(csink_gate_option_text(s, CSINK_GATE_OPT_RUNS), &runs))
		return csink_gate_refuse(s, CSINK_GATE_OPT_RUNS, "neither a number of runs (2 or more) nor auto");
	if (runs < 2 || runs > 100000)
		return csink_gate_refuse(s, CSINK_GATE_OPT_RUNS,
					 runs < 2 ? "too few: one run shows no variation (2 or more, or auto)"
						  : "too many");
	s->plan.runs = (uint32_t)runs;
	return 0;
}

static int resolve_numbers(struct csink_gate_settings *s)
{
	static const char share[] = "no percentage from 0 to below 100 (5%, 0.5)";
	static const char chance[] = "no percentage above 0 and below 100 (1%, 0.5)";
	const char *pin = csink_gate_option_text(s, CSINK_GATE_OPT_PIN);
	uint32_t cpu = 0;

	if (resolve_percent(s, CSINK_GATE_OPT_THRESHOLD, 0, share, &s->rules.threshold) ||
	    resolve_percent(s, CSINK_GATE_OPT_MIN_SHARE, 0, share, &s->rules.min_share) ||
	    resolve_percent(s, CSINK_GATE_OPT_ALPHA, 1e-6, chance, &s->rules.alpha) || resolve_runs(s) ||
	    csink_gate_resolve_count(s, CSINK_GATE_OPT_WARMUP, 1000, "not a number of runs", &s->plan.warmup))
		return -EINVAL;
	s->plan.cpu = -1;
	if (!strcmp(pin, "no")) {
		s->plan.pin = CSINK_GATE_PIN_NO;
	} else if (*pin && strcmp(pin, "auto")) {
		if (csink_gate_resolve_count(s, CSINK_GATE_OPT_PIN, 1023, "neither the number of a CPU nor auto or no",
					     &cpu))
			return -EINVAL;
		s->plan.pin = CSINK_GATE_PIN_CPU;
		s->plan.cpu = (int)cpu;
	}
	s->plan.max_time_ns = csink_options_seconds(s->options, CSINK_GATE_OPT_MAX_TIME);
	s->rules.seed = csink_options_number(s->options, CSINK_GATE_OPT_SEED);
	if (!s->rules.seed)
		s->rules.seed = (csink_monotonic_ns() ^ (uint64_t)getpid() << 32) % 1000000000 + 1;
	s->rules.strict = csink_gate_option_flag(s, CSINK_GATE_OPT_STRICT);
	s->rules.folds_native = csink_gate_option_flag(s, CSINK_GATE_OPT_FOLD_NATIVE);
	return 0;
}

/* Of a history, all ratios are of pairs of runs, and to one anchor: nothing else can be compared between machines. */
static int resolve_history(const struct csink_gate_settings *s)
{
	bool history = *csink_gate_option_text(s, CSINK_GATE_OPT_HISTORY);
	bool anchor = *csink_gate_option_text(s, CSINK_GATE_OPT_ANCHOR);

	if (history && !*csink_gate_option_text(s, CSINK_GATE_OPT_VS) &&
	    !*csink_gate_option_text(s, CSINK_GATE_OPT_VS_DIR))
		return csink_fail(-EINVAL, "option --history: it records ratios of pairs of runs, which --vs makes");
	if (history != anchor)
		return csink_fail(-EINVAL, history ? "option --history: name the commit of --vs with --anchor, since "
						     "only ratios to the same one can be compared"
						   : "option --anchor: it is for --history=FILE, which is not given");
	return 0;
}

/* It is put into Markdown, where it is followed. */
static int resolve_link(const struct csink_gate_settings *s)
{
	const char *link = csink_gate_option_text(s, CSINK_GATE_OPT_HTML_LINK);

	if (*link && strncmp(link, "https://", 8) && strncmp(link, "http://", 7))
		return csink_gate_refuse(s, CSINK_GATE_OPT_HTML_LINK, "no URL that begins with https:// or http://");
	for (; *link; link++) {
		if (!isgraph((unsigned char)*link) || strchr("()<>[]\"\\`", *link))
			return csink_gate_refuse(
				s, CSINK_GATE_OPT_HTML_LINK,
				"no URL: blanks, brackets, quotes and letters beyond ASCII have to be encoded (%20)");
	}
	return 0;
}

/* One of --vs, --baseline and --self-check says what to compare with. */
static int resolve_sides(struct csink_gate_settings *s)
{
	bool vs = *csink_gate_option_text(s, CSINK_GATE_OPT_VS),
	     dir = *csink_gate_option_text(s, CSINK_GATE_OPT_VS_DIR),
	     baseline = *csink_gate_option_text(s, CSINK_GATE_OPT_BASELINE), shell = false;
	bool self = csink_gate_option_flag(s, CSINK_GATE_OPT_SELF_CHECK);

	s->update = csink_gate_option_flag(s, CSINK_GATE_OPT_UPDATE_BASELINE);
	if (vs + dir + baseline + self != 1)
		return csink_fail(-EINVAL,
				  vs + dir + baseline + self
					  ? "options --vs, --vs-dir, --baseline and --self-check exclude each other: "
					    "give one"
					  : "no comparison given: use --vs='COMMAND', --baseline=FILE or --self-check "
					    "(see countersink help gate)");
	if (s->update && !baseline)
		return csink_fail(-EINVAL, "option --update-baseline: name its file with --baseline=FILE");
	if (s->update && *csink_gate_option_text(s, CSINK_GATE_OPT_VERDICT))
		return csink_fail(-EINVAL, "option --verdict: there is none with --update-baseline, which only makes "
					   "the baseline's runs");
	s->plan.argv[CSINK_GATE_NEW] = s->argv;
	s->how = vs ? "vs" : dir ? "vs-dir" : self ? "self-check" : "baseline";
	if (self || dir)
		s->plan.argv[CSINK_GATE_OLD] = s->argv;
	if (!vs)
		return 0;
	if (csink_gate_is_suite(s))
		s->vs = csink_suite_split(csink_gate_option_text(s, CSINK_GATE_OPT_VS), &shell);
	else
		s->vs = csink_gate_command_split(csink_gate_option_text(s, CSINK_GATE_OPT_VS), &shell);
	if (!s->vs && shell)
		return csink_fail(-EINVAL, "option --vs: '%.200s' takes a shell, and a suite's cases get none",
				  csink_gate_option_text(s, CSINK_GATE_OPT_VS));
	if (!s->vs || !s->vs[0])
		return csink_fail(-EINVAL, "option --vs: '%.200s' is no command: %s",
				  csink_gate_option_text(s, CSINK_GATE_OPT_VS),
				  s->vs ? "it has no words" : "its quotes do not match");
	s->plan.argv[CSINK_GATE_OLD] = s->vs;
	s->shell_on_one_side = shell && strcmp(s->argv[0], "/bin/sh") && strcmp(s->argv[0], "sh");
	return 0;
}

static void resolve_runner(struct csink_gate_settings *s)
{
	const char **texts = s->runner.texts;

	for (uint32_t i = 0; i < CSINK_NR_RUN_OPTS; i++)
		texts[i] = csink_run_options[i].flags & CSINK_OPT_BOOL ? "0" : csink_run_options[i].def;
	texts[CSINK_OPT_EVENTS] = csink_gate_option_text(s, CSINK_GATE_OPT_EVENTS);
	if (s->counting.tool == CSINK_GATE_PMU)
		texts[CSINK_OPT_EVENTS] = CSINK_GATE_PMU_EVENT;
	texts[CSINK_OPT_FREQUENCY] = csink_gate_option_text(s, CSINK_GATE_OPT_FREQUENCY);
	texts[CSINK_OPT_ENGINE] = csink_gate_option_text(s, CSINK_GATE_OPT_ENGINE);
	texts[CSINK_OPT_QUIET] = "1";
	s->runner.input = csink_gate_option_given(s, CSINK_GATE_OPT_INPUT);
}

/* Which tool counts instructions, if they are what is judged. */
static int resolve_counting(struct csink_gate_settings *s)
{
	struct csink_gate_plan *plan = &s->plan;
	/* The commands of a suite's cases are not known yet: what counts is to run on this machine. */
	char self[] = "/proc/self/exe", *of_suite[] = {self, NULL}, **of_suites[CSINK_GATE_NR_SIDES] = {NULL, of_suite};
	char why[CSINK_WHY_BYTES];

	if (csink_gate_counting_choose(&s->counting, csink_gate_option_text(s, CSINK_GATE_OPT_DETERMINISTIC),
				       csink_gate_is_suite(s) ? of_suites : plan->argv, why, sizeof(why)))
		return csink_fail(-ENOENT, "option --deterministic: %s", why);
	if (s->counting.tool == CSINK_GATE_MEASURED)
		return 0;
	plan->counting = &s->counting;
	if (s->options->values[CSINK_GATE_OPT_FOLD_NATIVE].source == CSINK_FROM_OPTION)
		return csink_fail(-EINVAL, "option --fold-native: not with --deterministic, which counts a function's "
					   "instructions without its callers");
	s->rules.folds_native = false; /* by the environment, for all commands */
	/* Two runs of each show whether the program itself does the same twice. */
	plan->runs = plan->runs ? plan->runs : 2;
	/* Whether qemu-user can count a command is found by trying. */
	plan->warmup = s->counting.tool == CSINK_GATE_QEMU && s->counting.is_auto;
	return 0;
}

int csink_gate_settings_resolve(struct csink_gate_settings *s)
{
	struct csink_gate_plan *plan = &s->plan;
	char why[CSINK_WHY_BYTES];

	if (csink_gate_suite_check(s) || resolve_numbers(s) || resolve_sides(s) || resolve_counting(s) ||
	    resolve_history(s) || resolve_link(s))
		return -EINVAL;
	plan->prepare = *csink_gate_option_text(s, CSINK_GATE_OPT_PREPARE)
				? (char *)csink_gate_option_text(s, CSINK_GATE_OPT_PREPARE)
				: NULL;
	plan->cleanup = *csink_gate_option_text(s, CSINK_GATE_OPT_CLEANUP)
				? (char *)csink_gate_option_text(s, CSINK_GATE_OPT_CLEANUP)
				: NULL;
	plan->move = !plan->counting && !strcmp(csink_gate_option_text(s, CSINK_GATE_OPT_PLACEMENT), "random");
	plan->keep = !plan->counting && (*csink_gate_option_text(s, CSINK_GATE_OPT_BASELINE) ||
					 *csink_gate_option_text(s, CSINK_GATE_OPT_HTML));
	plan->progress = !csink_gate_option_flag(s, CSINK_GATE_OPT_QUIET) && isatty(STDERR_FILENO);
	/* Nothing to look at: a baseline is made of as many runs as the first look takes. */
	if (!plan->runs && s->update)
		plan->runs = CSINK_GATE_FIRST_LOOK;
	plan->look_again = !plan->runs;
	resolve_runner(s);
	if (csink_gate_runner_init(&s->runner, why, sizeof(why)))
		return csink_fail(-EINVAL, "%s", why);
	return 0;
}

void csink_gate_settings_free(struct csink_gate_settings *s)
{
	csink_reservation_end(&s->runner.reservation);
	free(s->vs);
}
