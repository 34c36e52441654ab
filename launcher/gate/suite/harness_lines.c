/*
 * Any other harness: a command (--list) prints a case in each line, and {case} in a side's command stands for its name,
 * {n} for a number of iterations. A command without {n} does its own work.
 */
#include <stdlib.h>
#include <string.h>

#include "launcher/gate/suite/harness.h"

static int list_lines(struct csink_suite *suite, int side)
{
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer;
	bool shell = false;
	char **words = suite->list ? csink_gate_command_split(suite->list, &shell) : NULL, why[1024];
	int err;

	if (!words || !words[0]) {
		free(words);
		return CSINK_SUITE_WHY(
			suite, -EINVAL,
			suite->list ? "option --list: '%.200s' is no command"
				    : "the cases of --suite=lines are listed by a command: --list='COMMAND'%s",
			suite->list ? suite->list : "");
	}
	csink_suite_put_all(&job.argv, words);
	free(words);
	err = csink_suite_ask_job(suite, side, &job, &answer);
	if (err)
		return err;
	if (csink_suite_answer_error(&answer, why, sizeof(why)))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "option --list: %.200s: %s", suite->list, why);
	err = err ? err : csink_suite_add_lines(suite, side, answer.out, NULL);
	csink_suite_answer_free(&answer);
	return err;
}

/* The side's words with the name and the number in them take the place of those that are there. */
static void choose_lines(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
			 struct csink_suite_job *job)
{
	csink_suite_words_free(&job->argv);
	for (char **word = suite->argv[side]; *word; word++)
		csink_suite_put_own(&job->argv, csink_suite_fill_in(*word, c->name, n));
}

static bool takes_number_lines(const struct csink_suite *suite)
{
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		bool takes = false;

		for (char **word = suite->argv[side]; *word; word++)
			takes |= strstr(*word, "{n}") != NULL;
		if (!takes)
			return false;
	}
	return true;
}

const struct csink_suite_harness csink_suite_lines = {
	.name = "lines",
	.list = list_lines,
	.choose = choose_lines,
	.takes_number = takes_number_lines,
};
