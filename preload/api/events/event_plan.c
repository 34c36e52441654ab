/*
 * Which events are counted together: see csink_events_plan. The kernel simulates a group on an empty PMU as each member
 * is opened, and refuses the one that makes it too large with the errno that it has for nonsense as well; so the member
 * is tried alone, too.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/api/events/event_parse.h"

static int open_member(const struct csink_event_spec *spec, int group_fd)
{
	struct perf_event_attr attr = spec->attr;

	attr.size = sizeof(attr);
	attr.freq = 0;
	attr.sample_period = 0;
	attr.precise_ip = 0;
	attr.disabled = group_fd < 0;
	/* No exec happens meanwhile; but some PMUs skip a permanently disabled leader. */
	attr.enable_on_exec = group_fd < 0;
	attr.exclude_kernel = attr.exclude_hv = 1; /* so that every user may try */
	return csink_perf_open(&attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
}

/*
 * Is it for want of room that the event did not open beside the others? The kernel says EINVAL of a group that is too
 * large, and of much else; of breakpoints, ENOSPC.
 */
static bool is_too_many(const struct csink_event_spec *spec, int err)
{
	int alone;

	if (spec->attr.type == PERF_TYPE_BREAKPOINT)
		return err == -ENOSPC;
	alone = err == -EINVAL ? open_member(spec, -1) : -1;
	if (alone >= 0)
		close(alone);
	return alone >= 0;
}

/*
 * Which of these events can be counted together, taken in their order: bit i is event i. What fails otherwise counts as
 * fitting, for opening it will explain that.
 */
static uint32_t find_fitting(const struct csink_event_spec *const *specs, uint32_t nr)
{
	int fds[CSINK_PLAN_MAX_EVENTS], fd;
	uint32_t nr_open = 0, fit = 0;

	for (uint32_t i = 0; i < nr; i++) {
		fd = open_member(specs[i], nr_open ? fds[0] : -1);
		if (fd >= 0)
			fds[nr_open++] = fd;
		if (fd >= 0 || !nr_open || !is_too_many(specs[i], fd))
			fit |= 1U << i;
	}
	while (nr_open)
		close(fds[--nr_open]);
	return fit;
}

static uint32_t all_of(uint32_t nr)
{
	return nr < 32 ? (1U << nr) - 1 : UINT32_MAX;
}

/* ---- what the user grouped ---- */

/* "a,b,c"; where there is no room for all, how many more there are. */
static void put_names(const struct csink_event_spec *const *specs, uint32_t which, char *buf, size_t size)
{
	size_t used = 0;

	for (; which; which &= which - 1) {
		const char *name = specs[__builtin_ctz(which)]->rec.name;

		if (used + strlen(name) + sizeof(", and 32 more") > size) {
			snprintf(buf + used, size - used, " and %d more", __builtin_popcount(which));
			return;
		}
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? "," : "", name);
	}
}

static void explain(const struct csink_event_spec *const *specs, uint32_t nr, uint32_t fit, char *why, size_t size)
{
	const struct csink_event_spec *first = specs[0], *other = specs[__builtin_ctz(~fit)];
	char fitting[200] = "", rest[200] = "";

	if (strcmp(first->pmu, other->pmu) && first->pmu[0] && other->pmu[0]) {
		snprintf(why, size,
			 "'%.64s' and '%.64s' belong to different PMUs, which no group can span: take one of them out "
			 "of the braces",
			 first->rec.name, other->rec.name);
		return;
	}
	put_names(specs, fit, fitting, sizeof(fitting));
	put_names(specs, all_of(nr) & ~fit, rest, sizeof(rest));
	snprintf(why, size,
		 "the group of %u events cannot be counted at once; what fits is {%s}, and what does not is {%s}: "
		 "split it, or leave out the braces, so that the events take turns",
		 nr, fitting, rest);
}

static int check_group(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err)
{
	const struct csink_event_spec *members[CSINK_PLAN_MAX_EVENTS];
	uint32_t nr_members = 0, fit;

	for (uint32_t i = 0; i < nr && nr_members < CSINK_PLAN_MAX_EVENTS; i++)
		members[nr_members++] = &specs[i];
	fit = find_fitting(members, nr_members);
	if (fit == all_of(nr_members))
		return 0;
	err->err = -E2BIG;
	err->offset = specs[0].offset;
	err->length = specs[nr - 1].offset + specs[nr - 1].length - specs[0].offset;
	explain(members, nr_members, fit, err->line, sizeof(err->line));
	return -E2BIG;
}

static int limit_number(const struct csink_event_spec *specs, uint32_t nr, uint32_t max, struct csink_event_error *err)
{
	const struct csink_event_spec *events[CSINK_PLAN_MAX_EVENTS];
	char fitting[200] = "", rest[200] = "";

	if (nr <= max)
		return 0;
	nr = CSINK_MIN(nr, (uint32_t)CSINK_PLAN_MAX_EVENTS);
	for (uint32_t i = 0; i < nr; i++)
		events[i] = &specs[i];
	put_names(events, all_of(max), fitting, sizeof(fitting));
	put_names(events, all_of(nr) & ~all_of(max), rest, sizeof(rest));
	err->err = -E2BIG;
	err->offset = specs[max].offset;
	err->length = specs[nr - 1].offset + specs[nr - 1].length - specs[max].offset;
	snprintf(err->line, sizeof(err->line),
		 "too many events: '%s' would be number %u, and %u fit: %s; what does not is %s", events[max]->rec.name,
		 max + 1, max, fitting, rest);
	return -E2BIG;
}

int csink_events_fit(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err)
{
	uint32_t end;
	int ret;

	for (uint32_t first = 0; first < nr; first = end) {
		uint32_t counters = csink_event_takes_counter(&specs[first]);

		for (end = first + 1; end < nr && specs[end].group == specs[first].group; end++)
			counters += csink_event_takes_counter(&specs[end]);
		ret = counters > 1 ? check_group(specs + first, end - first, err) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

int csink_events_take(const char *list, struct csink_event_spec *specs, uint32_t max, struct csink_event_error *err)
{
	static const struct csink_event_roots machine;
	struct csink_event_spec all[CSINK_PLAN_MAX_EVENTS];
	int nr = csink_events_parse(list, all, CSINK_ARRAY_SIZE(all), err);

	/* Those that were asked for, or those of several kinds of CPU: the line for too many is another one. */
	if (nr > 0)
		nr = csink_events_bind(&machine, all, (uint32_t)nr,
				       (uint32_t)nr <= max ? max : (uint32_t)CSINK_ARRAY_SIZE(all), err);
	if (nr < 0)
		return nr;
	if (csink_events_check(all, (uint32_t)nr, err) || csink_events_fit(all, (uint32_t)nr, err) ||
	    limit_number(all, (uint32_t)nr, max, err))
		return err->err;
	memcpy(specs, all, (uint32_t)nr * sizeof(*specs));
	return nr;
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
		counters += csink_event_takes_counter(&specs[i]);
	}
	members[nr++] = &specs[at];
	/* A single hardware event fits wherever it opens. */
	return !csink_event_takes_counter(&specs[at]) || !counters || find_fitting(members, nr) == all_of(nr);
}

/* An event that says how often it is to be sampled leads a group of its own; so does each of the user's. */
static bool leads_own_group(const struct csink_event_spec *spec)
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
			if (is_open[group] && !leads_own_group(&specs[i]) && joins(specs, plan, i, group))
				break;
		plan[i] = group;
		if (group < nr_groups)
			continue;
		/* The first one of all may say how often for those that join it. */
		is_open[nr_groups++] = !leads_own_group(&specs[i]) || !i;
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
