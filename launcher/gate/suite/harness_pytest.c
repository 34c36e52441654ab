/*
 * pytest with pytest-benchmark. All benchmarks run for one round to be listed: only the report says which tests are
 * benchmarks. A case is run by its node id, which takes the place of the files and directories in the command.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/gate/suite/harness.h"

#define NOTHING_COLLECTED 5 /* pytest's exit status */

static bool is_pytest_word(const char *word)
{
	const char *base = csink_base_name(word);

	return !strcmp(base, "pytest") || !strcmp(base, "py.test") || !strcmp(base, "pytest-3");
}

static int is_pytest(struct csink_suite *suite)
{
	for (char **word = suite->argv[CSINK_GATE_NEW]; *word; word++) {
		if (is_pytest_word(*word))
			return 1;
	}
	return 0;
}

/* Is the next word the value of this option? */
static bool takes_value(const char *word)
{
	static const char *const options[] = {"-c",       "-k",         "-m",        "-o",        "-p",
					      "-W",       "-n",         "-r",        "--rootdir", "--confcutdir",
					      "--ignore", "--basetemp", "--deselect"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(options); i++) {
		if (!strcmp(word, options[i]))
			return true;
	}
	return false;
}

/* A file, a directory, or a node id, as seen from where the side runs. */
static bool is_place(const char *word, const char *dir)
{
	size_t len = strlen(word);
	const char *colons = strstr(word, "::");
	char *path = NULL;
	bool is;

	if (*word == '-')
		return false;
	len = colons ? (size_t)(colons - word) : len;
	if (asprintf(&path, "%s%s%.*s", dir && *word != '/' ? dir : "", dir && *word != '/' ? "/" : "", (int)len,
		     word) < 0)
		return false;
	is = !access(path, F_OK);
	free(path);
	return is;
}

/* Put the command without its files, directories and node ids. */
static void put_command(const struct csink_suite *suite, int side, struct csink_suite_words *argv)
{
	bool behind = false, is_value = false, has_root = false;

	for (char **word = suite->argv[side]; *word; word++) {
		if (!behind || is_value || !is_place(*word, suite->dirs[side]))
			csink_suite_put(argv, "%s", *word);
		has_root |= !strncmp(*word, "--rootdir", 9);
		is_value = behind && takes_value(*word);
		behind |= is_pytest_word(*word);
	}
	/* Node ids are relative to it. */
	if (!has_root)
		csink_suite_put(argv, "--rootdir=.");
}

static void put_options(const struct csink_suite *suite, struct csink_suite_words *argv, uint64_t rounds)
{
	csink_suite_put(argv, "--benchmark-only");
	csink_suite_put(argv, "--benchmark-min-rounds=%" PRIu64, rounds);
	csink_suite_put(argv, "--benchmark-max-time=0");
	csink_suite_put(argv, "--benchmark-warmup=off");
	csink_suite_put(argv, "--benchmark-disable-gc");
	csink_suite_put(argv, "-pno:cacheprovider");
	csink_suite_put(argv, "--benchmark-json=%s", suite->report);
	/* Else it makes a directory where it runs. */
	csink_suite_put(argv, "--benchmark-storage=%s", suite->directory.path);
}

static int list_pytest(struct csink_suite *suite, int side)
{
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer;
	struct csink_json_value *json;
	const struct csink_json_value *rows, *row;
	char why[1024];
	char *report;
	int err;

	csink_suite_put_all(&job.argv, suite->argv[side]);
	csink_suite_put(&job.argv, "--rootdir=.");
	put_options(suite, &job.argv, 1);
	err = csink_suite_ask_job(suite, side, &job, &answer);
	if (err)
		return err;
	report = csink_suite_take_report(suite);
	json = report ? csink_json_read(report, strlen(report)) : NULL;
	rows = csink_json_get(json, "benchmarks");
	/* Where some fail, the others are listed. */
	if (!rows && csink_suite_answer_error(&answer, why, sizeof(why)) &&
	    !(WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == NOTHING_COLLECTED))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "%s: the benchmarks cannot be listed: %s%.400s",
				      csink_suite_sides[side], why, answer.out);
	for (row = csink_json_first(rows); row && !err; row = row->next) {
		const char *name = csink_json_get_text(row, "fullname");

		if (name && !csink_suite_case_add(suite, side, name, strlen(name)))
			err = -ENOMEM;
	}
	csink_json_free(json);
	free(report);
	csink_suite_answer_free(&answer);
	return err;
}

static void choose_pytest(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	csink_suite_words_free(&job->argv);
	put_command(suite, side, &job->argv);
	put_options(suite, &job->argv, n);
	csink_suite_put(&job->argv, "%s", c->name);
}

static double count_pytest(const struct csink_suite_case *c, const char *out, const char *report, char *why,
			   size_t size)
{
	struct csink_json_value *json = report ? csink_json_read(report, strlen(report)) : NULL;
	const struct csink_json_value *row = csink_json_first(csink_json_get(json, "benchmarks"));
	double made = 0;

	(void)out;
	(void)why;
	(void)size;
	for (; row; row = row->next) {
		const struct csink_json_value *stats = csink_json_get(row, "stats");
		const char *name = csink_json_get_text(row, "fullname");

		if (name && !strcmp(name, c->name))
			made += csink_json_get_number(stats, "rounds") * csink_json_get_number(stats, "iterations");
	}
	csink_json_free(json);
	return made > 0 ? made : 0;
}

const struct csink_suite_harness csink_suite_pytest = {
	.name = "pytest",
	.is_kind = is_pytest,
	.list = list_pytest,
	.choose = choose_pytest,
	.count = count_pytest,
};
