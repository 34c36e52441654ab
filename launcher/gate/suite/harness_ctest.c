/*
 * CMake's ctest lists each test's command, directory and environment, and these are run without it. Tests that set
 * fixtures up run once a side, before the others. A run is one iteration, and status 0 is success: what ctest derives
 * from the output (PASS_REGULAR_EXPRESSION, WILL_FAIL) is not known here.
 */
#include <string.h>

#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/gate/suite/harness.h"

static int is_ctest(struct csink_suite *suite)
{
	return !strcmp(csink_base_name(suite->argv[CSINK_GATE_NEW][0]), "ctest");
}

static const struct csink_json_value *property(const struct csink_json_value *test, const char *name)
{
	const struct csink_json_value *one = csink_json_first(csink_json_get(test, "properties"));

	for (; one; one = one->next) {
		const char *own = csink_json_get_text(one, "name");

		if (own && !strcmp(own, name))
			return csink_json_get(one, "value");
	}
	return NULL;
}

static void put_texts(struct csink_suite_words *words, const struct csink_json_value *array)
{
	for (const struct csink_json_value *one = csink_json_first(array); one; one = one->next) {
		if (one->text)
			csink_suite_put(words, "%s", one->text);
	}
}

/* What ctest would run. Returns 0 or -ENOMEM. */
static int read_job(const struct csink_json_value *test, struct csink_suite_job *job)
{
	const struct csink_json_value *dir = property(test, "WORKING_DIRECTORY");

	put_texts(&job->argv, csink_json_get(test, "command"));
	put_texts(&job->env, property(test, "ENVIRONMENT"));
	if (dir && dir->text)
		job->dir = strdup(dir->text);
	return job->argv.lacked_memory || job->env.lacked_memory || (dir && dir->text && !job->dir) ? -ENOMEM : 0;
}

static int set_up(struct csink_suite *suite, int side, const struct csink_json_value *test, const char *name)
{
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer = {0};
	char why[1024];
	int err = read_job(test, &job);

	err = err ? err : csink_suite_ask_job(suite, side, &job, &answer);
	if (!err && csink_suite_answer_error(&answer, why, sizeof(why)))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "%.200s, which sets a fixture up: %s", name, why);
	csink_suite_answer_free(&answer);
	csink_suite_job_free(&job);
	return err;
}

static int add_test(struct csink_suite *suite, int side, const struct csink_json_value *test)
{
	const struct csink_json_value *disabled = property(test, "DISABLED");
	const struct csink_json_value *program = csink_json_first(csink_json_get(test, "command"));
	const char *name = csink_json_get_text(test, "name");
	struct csink_suite_case *c;

	if (!name || property(test, "FIXTURES_CLEANUP") || (disabled && disabled->kind == CSINK_JSON_TRUE))
		return 0;
	if (!program || !program->text) {
		csink_gate_note(suite->series, "tests without a command, whose programs are not built, are left out");
		return 0;
	}
	if (property(test, "FIXTURES_SETUP"))
		return set_up(suite, side, test, name);
	c = csink_suite_case_add(suite, side, name, strlen(name));
	if (c && c->given[side].argv.nr) {
		csink_gate_note(suite->series,
				"of tests that have one name, in several directories, the first is judged");
		return 0;
	}
	return c ? read_job(test, &c->given[side]) : -ENOMEM;
}

static int list_ctest(struct csink_suite *suite, int side)
{
	static const char *const more[] = {"--show-only=json-v1", NULL};
	struct csink_suite_answer answer;
	struct csink_json_value *json;
	const struct csink_json_value *tests, *test;
	int err = csink_suite_ask_list(suite, side, more, &answer);

	if (err)
		return err;
	json = csink_json_read(answer.out, answer.out_bytes);
	csink_suite_answer_free(&answer);
	tests = csink_json_get(json, "tests");
	if (!tests)
		err = CSINK_SUITE_WHY(suite, -EINVAL, "%.200s: its list of tests is no JSON", suite->argv[side][0]);
	for (test = csink_json_first(tests); test && !err; test = test->next)
		err = add_test(suite, side, test);
	csink_json_free(json);
	return err;
}

const struct csink_suite_harness csink_suite_ctest = {
	.name = "ctest",
	.is_kind = is_ctest,
	.list = list_ctest,
	.one_run = true,
};
