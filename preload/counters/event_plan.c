/*
 * Which events are counted together: see csink_events_plan. The kernel simulates a group on an empty PMU as each member
 * is opened, and refuses the one that makes it too large with the errno that it has for nonsense as well; so the member
 * is tried alone, too.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/counters/event_parse.h"

/* Those that have counters of their own: anything but software events and tracepoints. */
static bool takes_a_counter(const struct csink_event_spec *spec)
{
	return spec->attr.type != PERF_TYPE_SOFTWARE && spec->attr.type != PERF_TYPE_TRACEPOINT && !spec->cpu_wide;
}

static int open_member(const struct csink_event_spec *spec, int group_fd)
{
	struct perf_event_attr attr = spec->attr;

	attr.size = sizeof(attr);
	attr.freq = 0;
	attr.sample_period = 0;
	attr.precise_ip = 0;
	attr.disabled = group_fd < 0;
	/* Nobody execs meanwhile; but some PMUs do not think of a leader that is off for good. */
	attr.enable_on_exec = group_fd < 0;
	attr.exclude_kernel = attr.exclude_hv = 1; /* so that every user may try */
	return csink_perf_open(&attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
}

/* How many of these events, from the first one on, can be counted together. What fails otherwise counts as fitting. */
static uint32_t count_fitting(const struct csink_event_spec *const *specs, uint32_t nr)
{
	int fds[CSINK_PLAN_MAX_EVENTS], fd, alone;
	uint32_t nr_open = 0, fit = nr;

	for (uint32_t i = 0; i < nr && fit == nr; i++) {
		fd = open_member(specs[i], nr_open ? fds[0] : -1);
		if (fd >= 0) {
			fds[nr_open++] = fd;
			continue;
		}
		alone = fd == -EINVAL && nr_open ? open_member(specs[i], -1) : -1;
		if (alone < 0)
			continue; /* another fault, which opening it will explain */
		close(alone);
		fit = i;
	}
	while (nr_open)
		close(fds[--nr_open]);
	return fit;
}

/* ---- what the user grouped ---- */

static void explain(const struct csink_event_spec *const *specs, uint32_t nr, uint32_t fit, char *why, size_t size)
{
	size_t used;

	if (strcmp(specs[0]->pmu, specs[fit]->pmu) && specs[0]->pmu[0] && specs[fit]->pmu[0]) {
		snprintf(why, size,
			 "'%.64s' and '%.64s' belong to different PMUs, which no group can span: take one of them out "
			 "of "
			 "the braces",
			 specs[0]->rec.name, specs[fit]->rec.name);
		return;
	}
	used = (size_t)snprintf(why, size, "the group of %u events cannot be counted at once; what fits is {", nr);
	for (uint32_t i = 0; i < fit && used < size; i++)
		used += (size_t)snprintf(why + used, size - used, "%s%s", i ? "," : "", specs[i]->rec.name);
	if (used < size)
		snprintf(why + used, size - used,
			 "}: split it, or leave out the braces, so that the events take turns");
}

static int check_group(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err)
{
	const struct csink_event_spec *members[CSINK_PLAN_MAX_EVENTS];
	uint32_t nr_members = 0, fit;

	for (uint32_t i = 0; i < nr && nr_members < CSINK_PLAN_MAX_EVENTS; i++)
		members[nr_members++] = &specs[i];
	fit = count_fitting(members, nr_members);
	if (fit == nr_members)
		return 0;
	err->err = -E2BIG;
	err->offset = specs[0].offset;
	err->length = specs[nr - 1].offset + specs[nr - 1].length - specs[0].offset;
	explain(members, nr_members, fit, err->line, sizeof(err->line));
	return -E2BIG;
}

int csink_events_fit(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err)
{
	uint32_t end;
	int ret;

	for (uint32_t first = 0; first < nr; first = end) {
		uint32_t counters = takes_a_counter(&specs[first]);

		for (end = first + 1; end < nr && specs[end].group == specs[first].group; end++)
			counters += takes_a_counter(&specs[end]);
		ret = counters > 1 ? check_group(specs + first, end - first, err) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- what was left to us ---- */

/* Would the event fit beside those that are planned for the group already? */
static bool joins(const struct csink_event_spec *specs, const uint32_t *plan, uint32_t at, uint32_t group)
{
	const struct csink_event_spec *members[CSINK_PLAN_MAX_EVENTS];
	uint32_t nr = 0, counters = 0;

	for (uint32_t i = 0; i < at; i++) {
		if (plan[i] != group)
			continue;
		members[nr++] = &specs[i];
		counters += takes_a_counter(&specs[i]);
	}
	members[nr++] = &specs[at];
	/* A single hardware event fits wherever it opens. */
	return !takes_a_counter(&specs[at]) || !counters || count_fitting(members, nr) == nr;
}

/* An event that says how often it is to be sampled leads a group of its own; so does each of the user's. */
static bool stands_apart(const struct csink_event_spec *spec)
{
	return spec->attr.sample_period || spec->attr.freq;
}

/* plan[i]: the group of event i. Returns how many groups there are. */
static uint32_t assign(const struct csink_event_spec *specs, uint32_t nr, uint32_t *plan)
{
	bool is_open[CSINK_PLAN_MAX_EVENTS] = {false}; /* may others join it? */
	uint32_t nr_groups = 0, group;

	for (uint32_t i = 0; i < nr; i++) {
		if (specs[i].braced) {
			bool first = !i || specs[i - 1].group != specs[i].group;

			plan[i] = first ? nr_groups++ : plan[i - 1];
			continue;
		}
		for (group = 0; group < nr_groups; group++)
			if (is_open[group] && !stands_apart(&specs[i]) && joins(specs, plan, i, group))
				break;
		plan[i] = group;
		if (group < nr_groups)
			continue;
		/* The first one of all may say how often for those that join it. */
		is_open[nr_groups++] = !stands_apart(&specs[i]) || !i;
	}
	return nr_groups;
}

int csink_events_plan(struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err)
{
	struct csink_event_spec ordered[CSINK_PLAN_MAX_EVENTS];
	uint32_t plan[CSINK_PLAN_MAX_EVENTS], nr_groups, at = 0;
	int ret;

	if (nr > CSINK_PLAN_MAX_EVENTS)
		return -EINVAL;
	ret = csink_events_fit(specs, nr, err);
	if (ret || nr < 2)
		return ret;
	nr_groups = assign(specs, nr, plan);
	/* Members of a group are neighbours. */
	for (uint32_t group = 0; group < nr_groups; group++) {
		for (uint32_t i = 0; i < nr; i++) {
			if (plan[i] != group)
				continue;
			ordered[at] = specs[i];
			ordered[at].group = group;
			ordered[at++].braced = 1;
		}
	}
	memcpy(specs, ordered, nr * sizeof(*specs));
	return 0;
}
