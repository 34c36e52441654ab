/* Tasks of tinybench: see tasks.h. */
#include "launcher/gate/suite/tasks.h"

#include <stdlib.h>
#include <string.h>

extern const char csink_tasks_module[]; /* modules.S */

int csink_tasks_load(struct csink_suite *suite, struct csink_suite_job *job)
{
	const char *options = getenv("NODE_OPTIONS");
	bool has = options && *options;
	int err = csink_suite_write_module(suite, "tasks.mjs", csink_tasks_module);

	csink_suite_put(&job->env, "NODE_OPTIONS=%s%s--import=\"%s\"", has ? options : "", has ? " " : "",
			suite->module);
	return err;
}

bool csink_tasks_holds(void *c, int side, const char *function)
{
	const struct csink_suite_case *own = c;

	(void)side;
	return own->is_async || !strcmp(function, own->frame);
}
