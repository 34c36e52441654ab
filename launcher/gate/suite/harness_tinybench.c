/*
 * A program for node that has tinybench run its tasks. All of them run once to be listed. The program itself does what
 * it does, with the chosen task as the only one.
 */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/path.h"
#include "launcher/gate/suite/tasks.h"

/* @report  what the tasks wrote, or NULL: no task ran. */
static int ask(struct csink_suite *suite, int side, char **report, struct csink_suite_answer *answer)
{
	struct csink_suite_job job = {0};
	int err = csink_tasks_begin(suite);

	*report = NULL;
	if (err)
		return err;
	csink_suite_put_all(&job.argv, suite->argv[side]);
	csink_tasks_choose(suite, NULL, 1, true, &job);
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
		err = csink_tasks_list(suite, side, report);
	free(report);
	csink_suite_answer_free(&answer);
	return err;
}

static void choose_tinybench(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			     struct csink_suite_job *job)
{
	(void)side;
	csink_tasks_choose(suite, c->name, n, true, job);
}

const struct csink_suite_harness csink_suite_tinybench = {
	.name = "tinybench",
	.is_kind = is_tinybench,
	.list = list_tinybench,
	.choose = choose_tinybench,
	.count = csink_tasks_count,
	.seconds = csink_tasks_seconds,
	.holds = csink_tasks_holds,
};
