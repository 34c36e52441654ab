/*
 * A program for node that has tinybench run its tasks. All of them run once to be listed. The program itself does what
 * it does, with no tasks but the chosen ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/gate/suite/tasks.h"

/* @report  what the tasks wrote, or NULL: no task ran. */
static int ask(struct csink_suite *suite, int side, char **report, struct csink_suite_answer *answer)
{
	struct csink_suite_job job = {0};
	int err = csink_tasks_load(suite, &job);

	*report = NULL;
	csink_suite_put(&job.env, "COUNTERSINK_CASES_REPORT=%s", suite->report);
	if (err) {
		csink_suite_job_free(&job);
		return err;
	}
	csink_suite_put_all(&job.argv, suite->argv[side]);
	err = csink_suite_ask_job(suite, side, &job, answer);
	if (!err)
		*report = csink_suite_take_report(suite);
	return err;
}

static int is_tinybench(struct csink_suite *suite)
{
	const char *program = csink_base_name(suite->argv[CSINK_GATE_NEW][0]);
	struct csink_suite_answer answer;
	char *report;
	bool is;
	int err;

	if (strcmp(program, "node") != 0 && strcmp(program, "nodejs") != 0)
		return 0;
	err = ask(suite, CSINK_GATE_NEW, &report, &answer);
	if (err)
		return err;
	is = report;
	free(report);
	csink_suite_answer_free(&answer);
	return is;
}

/* A line with a name is there each time that a task begins. */
static int add_tasks(struct csink_suite *suite, int side, const char *report)
{
	const char *line;
	size_t len;
	int err = 0;

	while (!err && (line = csink_suite_line(&report, &len))) {
		struct csink_json_value *json = csink_json_read(line, len);
		const char *name = csink_json_get_text(json, "name");

		if (name && !csink_suite_case_add(suite, side, name, strlen(name)))
			err = -ENOMEM;
		csink_json_free(json);
	}
	return err;
}

static int list_tinybench(struct csink_suite *suite, int side)
{
	struct csink_suite_answer answer;
	char *report, why[1024];
	int err = ask(suite, side, &report, &answer);

	if (err)
		return err;
	if (csink_suite_answer_error(&answer, why, sizeof(why)))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "the cases of %s (%.200s) cannot be listed: %s",
				      csink_suite_sides[side], suite->argv[side][0], why);
	else if (report)
		err = add_tasks(suite, side, report);
	free(report);
	csink_suite_answer_free(&answer);
	return err;
}

static int choose_all_tinybench(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
				struct csink_suite_job *job)
{
	int err = csink_tasks_load(suite, job);

	return err ? err : csink_suite_put_cases(suite, side, cases, nr, 0, job);
}

static void choose_tinybench(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			     struct csink_suite_job *job)
{
	struct csink_suite_case *one = &suite->cases[c - suite->cases];

	job->argv.lacked_memory |= csink_tasks_load(suite, job) || csink_suite_put_cases(suite, side, &one, 1, n, job);
}

const struct csink_suite_harness csink_suite_tinybench = {
	.name = "tinybench",
	.is_kind = is_tinybench,
	.list = list_tinybench,
	.choose = choose_tinybench,
	.choose_all = choose_all_tinybench,
	.count = csink_suite_module_count,
	.seconds = csink_suite_module_seconds,
	.holds = csink_tasks_holds,
};
