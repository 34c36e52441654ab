/*
 * criterion, of Rust. It chooses iterations by a clock, after a warm-up by it, and takes no number: each run is divided
 * by all iterations that it prints, those of the warm-up included. Before 0.4 both take whole seconds, one at least.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/gate/suite/harness.h"

#define SPECIAL "\\.+*?()|[]{}^$" /* of Rust's regular expressions */
#define CUT "..."                 /* at the end of a name that is printed in part */

#define WARM_UP_PART 4 /* of a run's time, one such part */

static bool is_given(char **words, const char *word)
{
	for (; *words; words++) {
		if (!strcmp(*words, word))
			return true;
	}
	return false;
}

/* Ask the executable, which without --bench would make a test of each benchmark. @more  ended by NULL. */
static int ask(struct csink_suite *suite, int side, const char *const *more, struct csink_suite_answer *answer)
{
	struct csink_suite_job job = {0};

	csink_suite_put_all(&job.argv, suite->argv[side]);
	if (!is_given(suite->argv[side], "--bench"))
		csink_suite_put(&job.argv, "--bench");
	csink_suite_put_all(&job.argv, (char *const *)more);
	return csink_suite_ask_job(suite, side, &job, answer);
}

/* "ID: bench", or "ID: benchmark": the length of the id; 0: no such line. */
static size_t id_of(const char *line, size_t len)
{
	static const char *const kinds[] = {": bench", ": benchmark"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(kinds); i++) {
		size_t kind = strlen(kinds[i]);

		if (len > kind && !strncmp(line + len - kind, kinds[i], kind))
			return len - kind;
	}
	return 0;
}

static int is_criterion(struct csink_suite *suite)
{
	static const char *const help[] = {"--help", NULL};
	struct csink_suite_answer answer;
	int err = ask(suite, CSINK_GATE_NEW, help, &answer);
	bool is;

	if (err)
		return err;
	is = csink_suite_answer_is_ok(&answer) && strstr(answer.out, "a Criterion.rs benchmark");
	csink_suite_answer_free(&answer);
	return is;
}

static int list_criterion(struct csink_suite *suite, int side)
{
	static const char *const all[] = {"--list", NULL}, *const fraction[] = {"--list", "--warm-up-time", "0.5",
										NULL};
	struct csink_suite_answer answer, taken;
	char why[1024];
	int err = ask(suite, side, all, &answer);

	if (err)
		return err;
	if (csink_suite_answer_error(&answer, why, sizeof(why)))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "the cases of %s (%.200s) cannot be listed: %s",
				      csink_suite_sides[side], suite->argv[side][0], why);
	err = err ? err : csink_suite_add_lines(suite, side, answer.out, id_of);
	csink_suite_answer_free(&answer);
	err = err ? err : ask(suite, side, fraction, &taken);
	if (err)
		return err;
	suite->takes_fractions = (side == CSINK_GATE_OLD || suite->takes_fractions) && csink_suite_answer_is_ok(&taken);
	csink_suite_answer_free(&taken);
	return 0;
}

/* The id as a regular expression; what is cut off at its end may be anything. malloc'ed; NULL without memory. */
static char *make_pattern(const char *id)
{
	size_t len = strlen(id), cut = strlen(CUT);
	bool is_cut = len > cut && !strcmp(id + len - cut, CUT);
	CSINK_AUTO_FREE char *whole = strndup(id, is_cut ? len - cut : len);
	CSINK_AUTO_FREE char *escaped = whole ? csink_suite_escape(whole, SPECIAL) : NULL;
	char *pattern = NULL;

	return escaped && asprintf(&pattern, "^%s%s", escaped, is_cut ? "" : "$") >= 0 ? pattern : NULL;
}

static void put_seconds(const struct csink_suite *suite, struct csink_suite_words *argv, const char *option,
			double seconds)
{
	csink_suite_put(argv, "%s", option);
	if (suite->takes_fractions)
		csink_suite_put(argv, "%.6f", seconds);
	else
		csink_suite_put(argv, "%.0f", ceil(seconds));
}

static void choose_criterion(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			     struct csink_suite_job *job)
{
	static const char *const options[] = {"--noplot", "--verbose", "--sample-size", "10", "--nresamples", "10"};
	struct csink_suite_words *argv = &job->argv;
	char *pattern = make_pattern(c->name);

	argv->lacked_memory |= !pattern;
	if (!is_given(suite->argv[side], "--bench"))
		csink_suite_put(argv, "--bench");
	csink_suite_put(argv, "%s", pattern ? pattern : "");
	free(pattern);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(options); i++)
		csink_suite_put(argv, "%s", options[i]);
	put_seconds(suite, argv, "--warm-up-time", fmax((double)n / 1e9 / WARM_UP_PART, 1e-4));
	put_seconds(suite, argv, "--measurement-time", fmax((double)n / 1e9, 1e-3));
	/* Prints the iterations of the warm-up. */
	csink_suite_put(&job->env, "CRITERION_DEBUG=1");
	/* What it keeps of its runs cannot be written there, which it reports and goes on: the user's own stays. */
	csink_suite_put(&job->env, "CRITERION_HOME=/dev/null");
}

/* "Benchmarking ID: Collecting 10 samples in estimated 1.0 s (1207030 iterations)": whether a line is that of the id.
 * @iterations  set; 0: they are not in it. */
static bool is_measurement(const char *line, size_t len, size_t *id_len, double *iterations)
{
	static const char begin[] = "Benchmarking ", collecting[] = ": Collecting ";
	const char *found =
		strncmp(line, begin, strlen(begin)) ? NULL : memmem(line, len, collecting, strlen(collecting));
	const char *open = found ? memrchr(found, '(', (size_t)(line + len - found)) : NULL;

	if (!found)
		return false;
	*id_len = (size_t)(found - line) - strlen(begin);
	*iterations = open ? strtod(open + 1, NULL) : 0;
	return true;
}

static double count_criterion(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	static const char completed[] = "Completed ";
	double made = 0, warm_up = 0, iterations;
	const char *line;
	size_t len, id;

	(void)report;
	while (out && (line = csink_suite_line(&out, &len))) {
		if (!strncmp(line, completed, strlen(completed)))
			warm_up += strtod(line + strlen(completed), NULL);
		if (!is_measurement(line, len, &id, &iterations))
			continue;
		line += strlen("Benchmarking ");
		if (id != strlen(c->name) || strncmp(line, c->name, id) != 0)
			return csink_why(-1, why, size, "its name chooses another benchmark, too: '%.*s'", (int)id,
					 line);
		made += iterations;
	}
	if (made > 0 && !(warm_up > 0))
		return csink_why(-1, why, size, "it does not print the iterations of its warm-up");
	return made > 0 ? made + warm_up : 0;
}

const struct csink_suite_harness csink_suite_criterion = {
	.name = "criterion",
	.is_kind = is_criterion,
	.list = list_criterion,
	.choose = choose_criterion,
	.count = count_criterion,
	.by_time = true,
	.prints_number = true,
};
