/*
 * vitest bench. Only its report of a run names the benchmarks, so all of them run once to be listed. One is chosen by
 * its file and by its full name, a regular expression.
 */
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/gate/suite/tasks.h"

#define SPECIAL "\\^$.*+?()[]{}|/" /* of regular expressions in JavaScript */
#define SEPARATOR " > "            /* between a file, its suites and a benchmark, in the report */

static int is_vitest(struct csink_suite *suite)
{
	bool is_its = false;

	for (char **word = suite->argv[CSINK_GATE_NEW]; *word; word++) {
		if (is_its && !strcmp(*word, "bench"))
			return 1;
		is_its |= !strcmp(csink_base_name(*word), "vitest") || !strcmp(csink_base_name(*word), "vitest.mjs");
	}
	return 0;
}

static void put_run(char **words, struct csink_suite_words *argv)
{
	for (; *words; words++) {
		if (!strcmp(*words, "--run"))
			return;
	}
	csink_suite_put(argv, "--run");
}

static int add_group(struct csink_suite *suite, int side, const struct csink_json_value *group)
{
	const char *around = csink_json_get_text(group, "fullName");
	const struct csink_json_value *one = csink_json_first(csink_json_get(group, "benchmarks"));
	int err = 0;

	for (; one && around && !err; one = one->next) {
		const char *own = csink_json_get_text(one, "name");
		CSINK_AUTO_FREE char *name = NULL;
		struct csink_suite_case *c;

		if (!own)
			continue;
		if (asprintf(&name, "%s" SEPARATOR "%s", around, own) < 0)
			return -ENOMEM;
		c = csink_suite_case_add(suite, side, name, strlen(name));
		err = c ? csink_tasks_keep(c, around) : -ENOMEM;
	}
	return err;
}

static int list_vitest(struct csink_suite *suite, int side)
{
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer;
	struct csink_json_value *json;
	const struct csink_json_value *file, *group;
	char *report, why[1024];
	int err = csink_tasks_begin(suite);

	if (err)
		return err;
	csink_suite_put_all(&job.argv, suite->argv[side]);
	put_run(suite->argv[side], &job.argv);
	csink_suite_put(&job.argv, "--outputJson=%s", suite->report);
	csink_tasks_choose(suite, NULL, 1, false, &job);
	err = csink_suite_ask_job(suite, side, &job, &answer);
	if (err)
		return err;
	report = csink_suite_take_report(suite);
	json = report ? csink_json_read(report, strlen(report)) : NULL;
	/* Where some fail, the others are listed. */
	if (!json && csink_suite_answer_error(&answer, why, sizeof(why)))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "%s: the benchmarks cannot be listed: %s",
				      csink_suite_sides[side], why);
	for (file = csink_json_first(csink_json_get(json, "files")); file && !err; file = file->next) {
		for (group = csink_json_first(csink_json_get(file, "groups")); group && !err; group = group->next)
			err = add_group(suite, side, group);
	}
	csink_json_free(json);
	free(report);
	csink_suite_answer_free(&answer);
	return err;
}

/* "^suite name benchmark$": without the file, and with a blank between suites, whose own names may have a SEPARATOR. */
static char *make_pattern(const char *name)
{
	const char *behind_file = strstr(name, SEPARATOR);
	CSINK_AUTO_FREE char *escaped = csink_suite_escape(behind_file ? behind_file + 3 : name, SPECIAL);
	char *pattern = NULL;
	size_t bytes;
	FILE *out = escaped ? open_memstream(&pattern, &bytes) : NULL;

	if (!out)
		return NULL;
	fputc('^', out);
	for (const char *at = escaped; *at;) {
		bool is_separator = !strncmp(at, SEPARATOR, 3);

		if (is_separator)
			fputs("( > | )", out);
		else
			fputc(*at, out);
		at += is_separator ? 3 : 1;
	}
	fputc('$', out);
	if (!fclose(out))
		return pattern;
	free(pattern);
	return NULL;
}

static void choose_vitest(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	const char *around = csink_tasks_text(c), *file_end = strstr(around, SEPARATOR);
	size_t file = file_end ? (size_t)(file_end - around) : strlen(around);
	char *pattern = make_pattern(c->name);

	put_run(suite->argv[side], &job->argv);
	job->argv.lacked_memory |= !pattern;
	csink_suite_put_bytes(&job->argv, around, file);
	csink_suite_put(&job->argv, "--testNamePattern=%s", pattern ? pattern : "");
	free(pattern);
	csink_tasks_choose(suite, NULL, n, true, job);
}

const struct csink_suite_harness csink_suite_vitest = {
	.name = "vitest",
	.is_kind = is_vitest,
	.list = list_vitest,
	.choose = choose_vitest,
	.count = csink_tasks_count,
	.seconds = csink_tasks_seconds,
	.holds = csink_tasks_holds,
};
