/* Filters that were there before us: see filtered.h. What they do to our calls is found by
 * preload/core/seccomp_probe.c. In the constructor, and before an exec on the thread that calls it; not in our
 * handlers. */
#include "preload/agent/lifecycle/filtered.h"

#include <stdio.h>
#include <stdlib.h>

#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/own_run.h"
#include "preload/core/calls_off.h"
#include "preload/core/seccomp_probe.h"
#include "preload/core/status.h"

static int nr_filters; /* on this process */
static char reason[160];

static void publish(void)
{
	static char entry[sizeof(CSINK_ENV_RUN_FILTERS) + 24];

	snprintf(entry, sizeof(entry), CSINK_ENV_RUN_FILTERS "=" CSINK_RUN_FILTERS_FORMAT, nr_filters,
		 csink_deadly_calls);
	csink_env_set(entry);
}

/* What the run's first process has found. False if that is this process, or it is outside this machine or container. */
static bool read_known(int *nr, uint32_t *deadly)
{
	const char *value = getenv(CSINK_ENV_RUN_FILTERS), *run_dir = getenv(CSINK_ENV_RUN_DIR);
	char *end;

	*nr = 0;
	*deadly = 0;
	if (csink_own_run_is_due())
		return false;
	/* As CSINK_RUN_FILTERS_FORMAT has it. */
	if (value) {
		*nr = (int)strtoull(value, &end, 10);
		if (*end == ':') {
			*deadly = (uint32_t)strtoull(end + 1, NULL, 16);
			return true;
		}
	}
	return run_dir && *run_dir;
}

/* Filters come by inheritance: where parent and child have as many, they have the same. */
static bool are_parents_own(pid_t parent)
{
	struct csink_status status;

	return parent && csink_status_read(parent, &status) == 0 && status.nr_filters == nr_filters;
}

/* Returns true where everything that is needed can be done. */
static bool leave_out(uint32_t deadly, const char *name)
{
	csink_deadly_calls = deadly;
	if (deadly & CSINK_DEADLY_SCAN)
		csink_calls_off |= CSINK_CALLS_SCAN;
	if (deadly & CSINK_DEADLY_LOCK)
		csink_calls_off |= CSINK_CALLS_LOCK;
	if (deadly & CSINK_DEADLY_ARM)
		csink_calls_off |= CSINK_CALLS_ARM;
	if (deadly & CSINK_DEADLY_RIGHTS)
		csink_calls_off |= CSINK_CALLS_RIGHTS;
	if (csink_filters_forbid_all(deadly)) {
		snprintf(reason, sizeof(reason), "a seccomp filter kills processes that call %s", name);
		return false;
	}
	if (deadly)
		snprintf(reason, sizeof(reason), "an earlier seccomp filter kills processes that call %s: not called",
			 csink_filters_words(deadly));
	return true;
}

bool csink_filtered_may_begin(const struct csink_status *status, const char **why)
{
	const char *name = NULL;
	uint32_t deadly;
	int known, err;
	bool is_known;

	*why = reason;
	if (status && !status->nr_filters)
		return true;
	is_known = read_known(&known, &deadly);
	/* Without /proc the number is unknown: the number that the first process of the run found is taken. */
	nr_filters = status ? status->nr_filters : known;
	if (!nr_filters)
		return true;
	if (is_known && known == nr_filters)
		return leave_out(deadly, "a system call that profiling needs");
	if (is_known && !are_parents_own(status ? status->parent : 0)) {
		snprintf(reason, sizeof(reason),
			 "it runs under a seccomp filter that may kill it for system calls of this library");
		return false;
	}
	err = csink_filters_try(&name);
	if (err < 0) {
		snprintf(reason, sizeof(reason), "it runs under a seccomp filter that cannot be tried");
		return false;
	}
	if (!leave_out((uint32_t)err, name))
		return false;
	publish();
	return true;
}

void csink_filtered_one_more(void)
{
	nr_filters++;
	publish();
}
