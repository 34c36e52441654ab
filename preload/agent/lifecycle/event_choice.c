/*
 * From COUNTERSINK_EVENTS to events. A launcher hands them over so that they can be read back without a file, and
 * the default takes no more than to try it. Event names that the environment alone gives need sysfs, tracefs or
 * libpfm4: the API library knows how. It is closed afterwards: it has no thread, no handler and no destructor then.
 * Runs in the constructor alone, where the loader may be entered (CSINK_ALLOW).
 */
#include "preload/agent/lifecycle/event_choice.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/names_entry.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/installed.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/core/calls_off.h"
#include "preload/core/event/event_spec.h"
#include "preload/core/seccomp_probe.h"

static int fail(struct csink_event_error *err, const char *why)
{
	err->err = -ELIBACC;
	snprintf(err->line, sizeof(err->line),
		 CSINK_ENV_PREFIX "EVENTS=%.300s: names of events are looked up by " CSINK_API_LIBRARY ", which %s",
		 csink_config.events, why);
	return err->err;
}

static int ask_library(struct csink_event_spec *events, uint32_t max, struct csink_event_error *err)
{
	const struct csink_names_ask ask = {
		CSINK_VERSION, sizeof(*events),          sizeof(*err),       csink_config.events,
		max,           !csink_config.standalone, csink_deadly_calls, csink_calls_off};
	int (*entry)(const struct csink_names_ask *, struct csink_event_spec *, struct csink_event_error *);
	char path[PATH_MAX];
	void *library;
	int nr = -ENOEXEC;

	if (!csink_installed_find(CSINK_INSTALLED_API, path))
		return fail(err, "is not beside libcountersink.so: install it there");
	library = CSINK_ALLOW(dlsym) ? REAL(dlopen)(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library)
		return fail(err, "cannot be loaded: see LD_DEBUG=libs");
	*(void **)&entry = CSINK_ALLOW(dlsym)(library, CSINK_NAMES_ENTRY);
	if (entry)
		nr = entry(&ask, events, err);
	CSINK_ALLOW(dlclose)(library);
	return nr == -ENOEXEC ? fail(err, "is of another version than libcountersink.so: install both together") : nr;
}

/* Where several kinds of CPU have a PMU each, the generic event may be that of another kind: it opens, and does not
 * count here. The library tries each kind. */
static int default_event(struct csink_event_spec *event, struct csink_event_error *err)
{
	int counts;

	csink_event_named("cycles", event);
	counts = csink_event_does_count(event);
	if (counts < 0 || (!counts && ask_library(event, 1, err) != 1))
		csink_event_named("task-clock", event);
	return 1;
}

/* Is there nothing left to be done with events that were read: to bind them to the machine's PMUs, check or group them?
 */
static bool is_complete(const struct csink_event_spec *events, int nr)
{
	const struct perf_event_attr *attr = &events->attr;

	if (nr > 1 && !events->braced)
		return false;
	if (!csink_config.standalone)
		return true;
	return nr == 1 && attr->type == PERF_TYPE_SOFTWARE && !attr->exclude_user && !attr->exclude_kernel &&
	       !attr->exclude_hv && !attr->exclude_host && !attr->precise_ip && !attr->sample_period;
}

int csink_event_choice_make(struct csink_event_spec *events, uint32_t max, char *problem, size_t size)
{
	CSINK_KEEP_ERRNO;
	struct csink_event_error err;
	int nr = 0;

	if (strcmp(csink_config.events, "auto") != 0) {
		nr = csink_events_read(csink_config.events, events, max);
		if (nr <= 0 || !is_complete(events, nr))
			nr = ask_library(events, max, &err);
		if (nr < 0)
			snprintf(problem, size, "%s; sampling CPU time instead", err.line);
	}
	if (nr <= 0)
		nr = default_event(events, &err);
	return nr;
}
