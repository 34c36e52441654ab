/* Tasks of tinybench: see tasks.h. */
#include "launcher/gate/suite/tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/json_read.h"

#define ITERATIONS "countersinkIterations" /* tasks.mjs */

extern const char csink_tasks_module[]; /* modules.S */

/* Of a case. */
struct own {
	bool is_async; /* its iterations go on below other functions, too */
	char text[];
};

int csink_tasks_begin(struct csink_suite *suite)
{
	return csink_suite_write_module(suite, "tasks.mjs", csink_tasks_module);
}

void csink_tasks_choose(struct csink_suite *suite, const char *name, uint64_t n, bool reports,
			struct csink_suite_job *job)
{
	const char *options = getenv("NODE_OPTIONS");
	bool has = options && *options;

	csink_suite_put(&job->env, "NODE_OPTIONS=%s%s--import=\"%s\"", has ? options : "", has ? " " : "",
			suite->module);
	csink_suite_put(&job->env, "COUNTERSINK_TASKS_NUMBER=%" PRIu64, n);
	if (name)
		csink_suite_put(&job->env, "COUNTERSINK_TASKS_NAME=%s", name);
	if (reports)
		csink_suite_put(&job->env, "COUNTERSINK_TASKS_REPORT=%s", suite->report);
}

/* The next line of a report from *at on; NULL: there is none, or it is no JSON. */
static struct csink_json_value *next_line(const char **at)
{
	size_t len;
	const char *line = *at ? csink_suite_line(at, &len) : NULL;

	return line ? csink_json_read(line, len) : NULL;
}

int csink_tasks_list(struct csink_suite *suite, int side, const char *report)
{
	struct csink_json_value *json;
	int err = 0;

	while (!err && (json = next_line(&report))) {
		const char *name = csink_json_get_text(json, "name");
		struct csink_suite_case *c = name ? csink_suite_case_add(suite, side, name, strlen(name)) : NULL;

		if (name)
			err = c ? csink_tasks_keep(c, "") : -ENOMEM;
		csink_json_free(json);
	}
	return err;
}

int csink_tasks_keep(struct csink_suite_case *c, const char *text)
{
	struct own *own = c->own ? c->own : calloc(1, sizeof(*own) + strlen(text) + 1);

	if (own && !c->own)
		strcpy(own->text, text);
	c->own = own;
	return own ? 0 : -ENOMEM;
}

const char *csink_tasks_text(const struct csink_suite_case *c)
{
	return ((const struct own *)c->own)->text;
}

double csink_tasks_count(const struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	struct own *own = c->own;
	struct csink_json_value *json;
	uint32_t nr = 0;
	double made = 0;

	(void)out;
	while ((json = next_line(&report))) {
		const struct csink_json_value *is_async = csink_json_get(json, "async");
		const char *error = csink_json_get_text(json, "error");

		nr++;
		own->is_async = is_async && is_async->kind == CSINK_JSON_TRUE;
		made = error ? csink_why(-1, why, size, "the benchmark fails: %s", error)
			     : csink_json_get_number(json, "iterations");
		csink_json_free(json);
	}
	if (nr > 1)
		return csink_why(-1, why, size, "its name chooses %u benchmarks", nr);
	return made;
}

double csink_tasks_seconds(const struct csink_suite_case *c, const char *out, const char *report)
{
	struct csink_json_value *json = next_line(&report);
	double seconds = csink_json_get_number(json, "seconds");

	(void)c;
	(void)out;
	csink_json_free(json);
	return isnan(seconds) ? 0 : seconds;
}

bool csink_tasks_holds(void *c, int side, const char *function)
{
	const struct own *own = ((const struct csink_suite_case *)c)->own;

	(void)side;
	return own->is_async || !strcmp(function, ITERATIONS);
}
