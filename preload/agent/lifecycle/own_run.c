/* See own_run.h. In the constructor, a forked child, or at the process's end; not in our handlers. */
#include "preload/agent/lifecycle/own_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/run_dir.h"

static const char *set(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* An owner that the library names comes after the launcher's own entry. */
static bool is_of_launcher(void)
{
	return set(CSINK_ENV_RUN_PARENT) && !set(CSINK_ENV_RUN_OWNER);
}

bool csink_own_run_may_replace(void)
{
	const char *place = set(CSINK_ENV_RUN_PLACE);

	return set(CSINK_ENV_RUN_DIR) && !(is_of_launcher() && place && csink_run_dir_is_here(place));
}

/* Why the inherited directory cannot be used. It is checked once: later the program may change its environment. */
static const char *refusal(void)
{
	static const char *why;
	static bool is_known;
	const char *dir = set(CSINK_ENV_RUN_DIR);

	if (!is_known && dir)
		why = csink_run_dir_refuse(dir, set(CSINK_ENV_RUN_PLACE));
	is_known = true;
	return why;
}

const char *csink_own_run_is_due(void)
{
	return refusal() && csink_own_run_may_replace() ? refusal() : NULL;
}

bool csink_own_run_is_launchers(void)
{
	return refusal() && !*csink_config.own_run;
}

/* If the launcher has fixed one profile's path, or the run's own profile exists already, do not overwrite it. */
static const char *own_output(const char *output)
{
	const char *more = NULL;
	char *both;

	if (is_of_launcher())
		more = ".%h.%p";
	else if (!strchr(output, '%') && !access(output, F_OK))
		more = ".%p";
	both = more ? csink_private_get(strlen(output) + strlen(more) + 1) : NULL;
	return both ? strcat(strcpy(both, output), more) : output;
}

void csink_own_run_begin(const char *why)
{
	struct csink_config *config = &csink_config;

	snprintf(config->own_run, sizeof(config->own_run),
		 CSINK_ENV_RUN_DIR "=%.120s %s: this process and its descendants are a run of their own",
		 set(CSINK_ENV_RUN_DIR), why);
	config->output = set(CSINK_ENV_PREFIX "OUTPUT");
	config->output = own_output(config->output ? config->output : CSINK_LIB_DEFAULT_OUTPUT);
	config->standalone = true;
	config->owner = getpid();
	config->run_dir[0] = '\0';
}

void csink_own_run_of_child(void)
{
	csink_config.standalone = true;
	csink_config.outlives = true;
	csink_config.owner = getpid();
	csink_config.run_dir[0] = '\0';
}

void csink_own_run_take_over(pid_t owner)
{
	CSINK_KEEP_ERRNO;
	/* The environment keeps the string. Two, as a daemon may call daemon(3) once more. */
	static char texts[2][sizeof(CSINK_ENV_RUN_OWNER) + 16];
	static unsigned int nr;
	char *text = texts[nr++ % CSINK_ARRAY_SIZE(texts)];

	if (csink_config.standalone && csink_config.owner == owner) {
		csink_config.owner = getpid();
		snprintf(text, sizeof(texts[0]), CSINK_ENV_RUN_OWNER "=%d", (int)csink_config.owner);
		/* What it starts after its run was collected is not profiled. */
		if (!csink_config.outlives)
			csink_env_set(text);
	}
}
