/*
 * vitest bench. Only its report of a run names the benchmarks, so all of them run once to be listed. Some are chosen by
 * their files, and of these by their places there: tasks.mjs, which adds them to that report.
 */
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/gate/suite/tasks.h"

#define SEPARATOR " > " /* between a file, its suites and a benchmark, in the report */

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
		const char *place = csink_json_get_text(one, "countersinkPlace");
		CSINK_AUTO_FREE char *name = NULL;
		struct csink_suite_case *c;

		if (!own)
			continue;
		if (asprintf(&name, "%s" SEPARATOR "%s", around, own) < 0)
			return -ENOMEM;
		c = csink_suite_case_add(suite, side, name, strlen(name));
		if (c && c->place[side] && c->state == CSINK_SUITE_PENDING)
			csink_suite_case_fail(c, "%s has several benchmarks of that name", csink_suite_sides[side]);
		else if (c && place && !c->place[side])
			c->place[side] = strdup(place);
		err = c ? 0 : -ENOMEM;
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
	int err = csink_tasks_load(suite, &job);

	if (err) {
		csink_suite_job_free(&job);
		return err;
	}
	csink_suite_put_all(&job.argv, suite->argv[side]);
	put_run(suite->argv[side], &job.argv);
	csink_suite_put(&job.argv, "--outputJson=%s", suite->report);
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

/* The length of the file's name that a case's begins with. */
static size_t file_of(const char *name)
{
	const char *end = strstr(name, SEPARATOR);

	return end ? (size_t)(end - name) : strlen(name);
}

/* @n  iterations of the only case; 0: each case's own. */
static int put_cases(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
		     uint64_t n, struct csink_suite_job *job)
{
	int err = csink_tasks_load(suite, job);

	put_run(suite->argv[side], &job->argv);
	csink_suite_put_files(cases, nr, file_of, &job->argv);
	return err ? err : csink_suite_put_cases(suite, side, cases, nr, n, job);
}

static int choose_all_vitest(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			     struct csink_suite_job *job)
{
	return put_cases(suite, side, cases, nr, 0, job);
}

static void choose_vitest(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			  struct csink_suite_job *job)
{
	struct csink_suite_case *one = &suite->cases[c - suite->cases];

	job->argv.lacked_memory |= put_cases(suite, side, &one, 1, n, job) != 0;
}

const struct csink_suite_harness csink_suite_vitest = {
	.name = "vitest",
	.is_kind = is_vitest,
	.list = list_vitest,
	.choose = choose_vitest,
	.choose_all = choose_all_vitest,
	.count = csink_suite_module_count,
	.seconds = csink_suite_module_seconds,
	.holds = csink_tasks_holds,
};
