/*
 * pytest with pytest-benchmark. All benchmarks run for one round to be listed: only the report says which tests are
 * benchmarks. Cases are run by a plugin, cases.py, which is given their node ids in a file, and how many iterations
 * each makes; the files that have them take the place of files and directories in the command.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "launcher/base/json.h"
#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/gate/suite/harness.h"

#define NOTHING_COLLECTED 5 /* pytest's exit status */
#define MODULE "countersink_cases"

extern const char csink_pytest_module[]; /* modules.S */

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

/* Options, and the plugin. Returns 0, or -errno with suite->error. */
static int put_options(struct csink_suite *suite, struct csink_suite_job *job)
{
	const char *path = getenv("PYTHONPATH"), *directory = suite->directory.path;
	struct csink_suite_words *argv = &job->argv;
	bool has = path && *path;
	int err = csink_suite_write_module(suite, MODULE ".py", csink_pytest_module);

	if (err)
		return err;
	if (strchr(directory, ':'))
		return CSINK_SUITE_WHY(suite, -EINVAL,
				       "%s: PYTHONPATH can have no directory with a colon: set TMPDIR to another one",
				       directory);
	csink_suite_put(argv, "--benchmark-only");
	csink_suite_put(argv, "--benchmark-warmup=off");
	csink_suite_put(argv, "--benchmark-disable-gc");
	csink_suite_put(argv, "-pno:cacheprovider");
	/* Else it makes a directory where it runs. */
	csink_suite_put(argv, "--benchmark-storage=%s", directory);
	csink_suite_put(argv, "-p" MODULE);
	/* Else the order of sets differs from run to run, and with it what is executed. */
	if (suite->is_counted && !getenv("PYTHONHASHSEED"))
		csink_suite_put(&job->env, "PYTHONHASHSEED=0");
	csink_suite_put(&job->env, "PYTHONPATH=%s%s%s", directory, has ? ":" : "", has ? path : "");
	return 0;
}

/* Why nothing is listed; NULL: it is, or there is nothing. */
static const char *list_error(const struct csink_suite_answer *answer, char *why, size_t size)
{
	if (!csink_suite_answer_error(answer, why, size) ||
	    (WIFEXITED(answer->status) && WEXITSTATUS(answer->status) == NOTHING_COLLECTED))
		return NULL;
	if (!strstr(answer->err, "No module named '" MODULE "'"))
		return why;
	return "its Python ignores PYTHONPATH (its options -I and -E have it so), by which the gate's plugin is found";
}

static int list_pytest(struct csink_suite *suite, int side)
{
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer;
	struct csink_json_value *json;
	const struct csink_json_value *rows, *row;
	char buffer[1024], *report;
	const char *why;
	int err;

	csink_suite_put_all(&job.argv, suite->argv[side]);
	csink_suite_put(&job.argv, "--rootdir=.");
	err = put_options(suite, &job);
	if (err) {
		csink_suite_job_free(&job);
		return err;
	}
	csink_suite_put(&job.argv, "--benchmark-min-rounds=1");
	csink_suite_put(&job.argv, "--benchmark-max-time=0");
	csink_suite_put(&job.argv, "--benchmark-json=%s", suite->report);
	err = csink_suite_ask_job(suite, side, &job, &answer);
	if (err)
		return err;
	report = csink_suite_take_report(suite);
	json = report ? csink_json_read(report, strlen(report)) : NULL;
	rows = csink_json_get(json, "benchmarks");
	/* Where some fail, the others are listed. */
	why = rows ? NULL : list_error(&answer, buffer, sizeof(buffer));
	if (why)
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

/* ---- how they are run ---- */

/* The length of the file's name that a node id begins with. */
static size_t file_of(const char *name)
{
	const char *colons = strstr(name, "::");

	return colons ? (size_t)(colons - name) : strlen(name);
}

/* @n  iterations of the only case; 0: each case's own. */
static int put_cases(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
		     uint64_t n, struct csink_suite_job *job)
{
	int err;

	csink_suite_words_free(&job->argv);
	put_command(suite, side, &job->argv);
	err = put_options(suite, job);
	csink_suite_put_files(cases, nr, file_of, &job->argv);
	return err ? err : csink_suite_put_cases(suite, side, cases, nr, n, job);
}

static int choose_all_pytest(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			     struct csink_suite_job *job)
{
	return put_cases(suite, side, cases, nr, 0, job);
}

static void choose_pytest(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	struct csink_suite_case *one = &suite->cases[c - suite->cases];

	job->argv.lacked_memory |= put_cases(suite, side, &one, 1, n, job) != 0;
}

const struct csink_suite_harness csink_suite_pytest = {
	.name = "pytest",
	.is_kind = is_pytest,
	.list = list_pytest,
	.choose = choose_pytest,
	.choose_all = choose_all_pytest,
	.count = csink_suite_module_count,
	.seconds = csink_suite_module_seconds,
};
