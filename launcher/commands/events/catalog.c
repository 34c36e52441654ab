/* Every event that has a name here: see catalog.h. */
#include "launcher/commands/events/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "launcher/base/format.h"
#include "preload/api/events/event_parse.h"
#include "preload/api/events/pfm.h"
#include "preload/core/sysfs.h"

#define DEVICES "/sys/bus/event_source/devices"
#define MAX_TRIED_TRACEPOINTS 32

struct catalog {
	const struct csink_catalog_query *query;
	int (*visit)(void *cookie, const struct csink_catalog_event *event);
	void *cookie;
	struct csink_catalog_summary *summary;
	char pfm_name[160]; /* the event whose unit masks follow */
	uint32_t nr_tried;  /* tracepoints */
};

static bool matches(const struct csink_catalog_query *query, const char *name)
{
	const char *own = strstr(name, "::"); /* libpfm4's PMU stands before it */

	if (!query->pattern)
		return true;
	if (strpbrk(query->pattern, "*?["))
		return !fnmatch(query->pattern, name, FNM_CASEFOLD) ||
		       (own && !fnmatch(query->pattern, own + 2, FNM_CASEFOLD));
	return strcasestr(name, query->pattern) != NULL;
}

/* ---- does it open? ----------------------------------------------------------------------------------------------- */

static void try_open(const struct csink_event_spec *parsed, struct csink_catalog_event *event)
{
	struct csink_event_spec spec = *parsed;
	struct csink_perf_call call = {&spec.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC};
	const char *why;
	int fd;

	if (csink_event_check(&spec, &why)) {
		event->state = CSINK_CATALOG_REFUSED;
		event->why.err = EOPNOTSUPP;
		event->why.cause = CSINK_CAUSE_UNSUPPORTED;
		snprintf(event->why.text, sizeof(event->why.text), "%.199s", why);
		return;
	}
	spec.attr.disabled = 1;
	if (spec.cpu_wide) {
		call.pid = -1;
		call.cpu = atoi(spec.cpus);
	}
	fd = csink_perf_open(&spec.attr, call.pid, call.cpu, -1, call.flags);
	event->state = CSINK_CATALOG_OPENS;
	if (fd < 0) {
		event->state = CSINK_CATALOG_REFUSED;
		csink_event_explain(&spec, &call, -fd, &event->why);
	}
	/* What happens in the kernel only opens without it, and counts 0. */
	if (fd == -EACCES && !spec.cpu_wide && !csink_event_is_kernels_own(&spec)) {
		struct csink_explanation first = event->why;

		csink_event_set_user_only(&spec);
		fd = csink_perf_open(&spec.attr, call.pid, call.cpu, -1, call.flags);
		if (fd >= 0)
			event->state = CSINK_CATALOG_USER_ONLY;
		else
			csink_explain_open(&call, -fd, &event->why, 1);
		/* Leaving the kernel out is no remedy where that is refused as well. */
		if (event->why.cause == CSINK_CAUSE_UNSUPPORTED && !strcmp(event->why.field, "exclude_kernel")) {
			memcpy(first.remedy, event->why.remedy, sizeof(first.remedy));
			event->why = first;
		}
	}
	if (fd >= 0)
		close(fd);
}

static int show_event(struct catalog *catalog, const struct csink_catalog_event *event)
{
	catalog->summary->nr_events++;
	catalog->summary->nr_usable += event->state <= CSINK_CATALOG_USER_ONLY;
	catalog->summary->nr_untried += event->state == CSINK_CATALOG_UNTRIED;
	if (catalog->query->usable && event->state > CSINK_CATALOG_USER_ONLY)
		return 0;
	return catalog->visit(catalog->cookie, event);
}

/* List one event: parse it as --events would, try it, call the visitor. */
static int list_event(struct catalog *catalog, const char *source, const char *name, const char *help)
{
	struct csink_catalog_event event = {.source = source, .name = name, .help = help ? help : ""};
	struct csink_event_error err;
	struct csink_event_spec spec;

	if (!matches(catalog->query, name))
		return 0;
	if (csink_events_parse(name, &spec, 1, &err) == 1) {
		if (spec.attr.type == PERF_TYPE_TRACEPOINT && catalog->nr_tried++ >= MAX_TRIED_TRACEPOINTS)
			event.state = CSINK_CATALOG_UNTRIED;
		else
			try_open(&spec, &event);
	} else if (err.err == -EINVAL) {
		event.state = CSINK_CATALOG_TEMPLATE;
	} else {
		event.state = CSINK_CATALOG_REFUSED;
		event.why.err = -err.err;
		event.why.cause = CSINK_CAUSE_NO_EVENT;
		snprintf(event.why.text, sizeof(event.why.text), "%.199s", err.line);
	}
	return show_event(catalog, &event);
}

/* ---- what the library counts ------------------------------------------------------------------------------------- */

static int list_own(struct catalog *catalog)
{
	static const char *const names[][2] = {
		{"alloc", "memory that programs allocate: bytes and objects, and what is in use at the end"},
		{"lock", "waits for locks, semaphores, threads: how long, and who held a lock meanwhile"},
		{"lock:conditions", "the same, and waits for conditions"}};
	int ret = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names) && !ret; i++) {
		struct csink_catalog_event event = {.source = "measured by countersink itself",
						    .name = names[i][0],
						    .help = names[i][1],
						    .state = CSINK_CATALOG_OPENS};

		if (matches(catalog->query, event.name))
			ret = show_event(catalog, &event);
	}
	return ret;
}

/* ---- generic names ----------------------------------------------------------------------------------------------- */

static int list_generic(struct catalog *catalog)
{
	const struct csink_event_generic *generic;
	char name[CSINK_NEAREST_NAME], help[80];
	uint32_t nr;
	int ret = 0;

	generic = csink_events_generic(&nr);
	for (uint32_t i = 0; i < nr && !ret; i++) {
		snprintf(help, sizeof(help), "%s%s%s%s", csink_event_generic_help(&generic[i]),
			 *generic[i].alias ? " (also: " : "", generic[i].alias, *generic[i].alias ? ")" : "");
		ret = list_event(catalog, "generic", generic[i].name, help);
	}
	for (uint32_t i = 0; !ret && i < csink_event_cache_name(i, name); i++)
		ret = list_event(catalog, "cache", name, "");
	return ret;
}

/* ---- PMUs -------------------------------------------------------------------------------------------------------- */

/* The names in a directory, sorted, freed where the scope is left: NAMES(events), then read_names(&events, path). */
struct names {
	struct dirent **list;
	int nr;
};

static void free_names(struct names *names)
{
	while (names->nr)
		free(names->list[--names->nr]);
	free(names->list);
}

#define NAMES(name) __attribute__((cleanup(free_names))) struct names name = {NULL, 0}

static int is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Returns 0 or -errno; then there are none. */
static int read_names(struct names *names, const char *path)
{
	int nr = scandir(path, &names->list, is_name, alphasort);

	names->nr = nr < 0 ? 0 : nr;
	return nr < 0 ? -errno : 0;
}

/* A PMU that names no events: its fields, for people to fill in. */
static int list_fields(struct catalog *catalog, const char *pmu)
{
	char path[320], name[280], help[256] = "fields:";
	NAMES(fields);

	snprintf(path, sizeof(path), DEVICES "/%s/format", pmu);
	read_names(&fields, path);
	if (!fields.nr)
		return 0;
	for (int i = 0; i < fields.nr; i++)
		csink_append(help, sizeof(help), " %s", fields.list[i]->d_name);
	snprintf(name, sizeof(name), "%s/FIELD=N/", pmu);
	if (!matches(catalog->query, name))
		return 0;
	catalog->summary->nr_events++;
	if (catalog->query->usable)
		return 0;
	return catalog->visit(catalog->cookie,
			      &(struct csink_catalog_event){
				      .source = pmu, .name = name, .help = help, .state = CSINK_CATALOG_TEMPLATE});
}

static int list_pmu(struct catalog *catalog, const char *pmu)
{
	char path[320], name[520], help[256];
	NAMES(events);
	int ret = 0;

	snprintf(path, sizeof(path), DEVICES "/%s/events", pmu);
	read_names(&events, path);
	if (!events.nr)
		return list_fields(catalog, pmu);
	for (int i = 0; i < events.nr && !ret; i++) {
		if (strchr(events.list[i]->d_name, '.'))
			continue; /* .unit and .scale of another */
		snprintf(name, sizeof(name), "%s/%s/", pmu, events.list[i]->d_name);
		csink_sysfs_read(help, sizeof(help), "%s/%s", path, events.list[i]->d_name);
		ret = list_event(catalog, pmu, name, help);
	}
	return ret;
}

static int list_pmus(struct catalog *catalog)
{
	NAMES(pmus);
	int ret = 0;

	read_names(&pmus, DEVICES);
	for (int i = 0; i < pmus.nr && !ret; i++)
		ret = list_pmu(catalog, pmus.list[i]->d_name);
	return ret;
}

/* ---- tracepoints ------------------------------------------------------------------------------------------------- */

static int list_subsystem(struct catalog *catalog, const char *tracefs, const char *subsystem)
{
	char path[512], name[512];
	NAMES(events);
	int64_t id;
	int ret = 0;

	snprintf(path, sizeof(path), "%s/events/%s", tracefs, subsystem);
	read_names(&events, path);
	for (int i = 0; i < events.nr && !ret; i++) {
		if (csink_sysfs_read_number(&id, "%s/%s/id", path, events.list[i]->d_name))
			continue;
		snprintf(name, sizeof(name), "%s:%s", subsystem, events.list[i]->d_name);
		if (catalog->query->pattern)
			ret = list_event(catalog, "tracepoint", name, "");
		else
			catalog->summary->nr_tracepoints++;
	}
	return ret;
}

static int list_tracepoints(struct catalog *catalog)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	struct csink_catalog_summary *summary = catalog->summary;
	NAMES(subsystems);
	char path[64];
	int ret = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/events", places[i]);
		ret = read_names(&subsystems, path);
		if (ret == -EACCES)
			snprintf(summary->tracepoints_why, sizeof(summary->tracepoints_why),
				 "%s may be read by root only (mount -o remount,mode=755 %s)", places[i], places[i]);
		if (ret)
			continue;
		summary->tracepoints_why[0] = '\0';
		for (int s = 0; s < subsystems.nr && !ret; s++)
			ret = list_subsystem(catalog, places[i], subsystems.list[s]->d_name);
		return ret;
	}
	if (!summary->tracepoints_why[0])
		snprintf(summary->tracepoints_why, sizeof(summary->tracepoints_why),
			 "tracefs is not mounted (mount -t tracefs tracefs %s)", places[0]);
	return 0;
}

/* ---- libpfm4 ----------------------------------------------------------------------------------------------------- */

static int list_pfm_event(void *cookie, const struct csink_pfm_event *event)
{
	struct catalog *catalog = cookie;
	char name[320];

	/* perf's own names, which libpfm4 repeats, have been listed. */
	if (!strcmp(event->pmu, "perf") || !strcmp(event->pmu, "perf_raw"))
		return 0;
	if (!event->is_mask) {
		snprintf(catalog->pfm_name, sizeof(catalog->pfm_name), "%s::%s", event->pmu, event->name);
		return list_event(catalog, event->pmu, catalog->pfm_name, event->help);
	}
	if (!catalog->query->pattern) {
		catalog->summary->nr_unit_masks++;
		return 0;
	}
	snprintf(name, sizeof(name), "%s:%s", catalog->pfm_name, event->name);
	return list_event(catalog, event->pmu, name, event->help);
}

/* A pattern that matches no name may be an event written out, with modifiers, a raw code, or a PMU's fields. */
static int list_asked(struct catalog *catalog)
{
	struct csink_catalog_query all = {NULL, catalog->query->usable};
	const char *name = catalog->query->pattern;
	struct csink_event_error err;
	struct csink_event_spec spec;

	if (csink_events_parse(name, &spec, 1, &err) != 1)
		return 0;
	catalog->query = &all;
	return list_event(catalog, "as asked", name, "");
}

int csink_catalog_list(const struct csink_catalog_query *query,
		       int (*visit)(void *cookie, const struct csink_catalog_event *event), void *cookie,
		       struct csink_catalog_summary *summary)
{
	struct catalog catalog = {.query = query, .visit = visit, .cookie = cookie, .summary = summary};
	int ret;

	memset(summary, 0, sizeof(*summary));
	ret = list_own(&catalog);
	if (!ret)
		ret = list_generic(&catalog);
	if (!ret)
		ret = list_pmus(&catalog);
	if (!ret)
		ret = list_tracepoints(&catalog);
	if (!ret)
		ret = csink_pfm_list(list_pfm_event, &catalog, summary->libpfm4_why, sizeof(summary->libpfm4_why));
	if (!ret && !summary->nr_events && query->pattern)
		ret = list_asked(&catalog);
	/* That libpfm4 is missing is in the summary. */
	return summary->libpfm4_why[0] ? 0 : ret;
}
