/* The counters of `stat`: see counters.h. */
#include "launcher/stat/counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "launcher/run/outside.h"

void csink_stat_counters_init(struct csink_stat_counters *counters, const struct csink_event_spec *specs, uint32_t nr)
{
	memset(counters, 0, sizeof(*counters));
	counters->nr = CSINK_MIN(nr, (uint32_t)CSINK_STAT_MAX_EVENTS);
	for (uint32_t i = 0; i < counters->nr; i++)
		counters->counters[i].spec = specs[i];
}

void csink_stat_counter_refuse(struct csink_stat_counter *counter, const struct perf_event_attr *attr, int cpu,
			       int group_fd, int err)
{
	const struct csink_perf_call call = {attr, 0, cpu, group_fd, PERF_FLAG_FD_CLOEXEC};
	struct csink_explanation why;

	counter->err = err;
	csink_event_explain(&counter->spec, &call, -err, &why);
	csink_explain_print(&why, counter->reason, sizeof(counter->reason));
}

int csink_stat_counter_check(struct csink_stat_counter *counter, const char *whom)
{
	const struct csink_event_spec *spec = &counter->spec;
	const char *why;

	counter->err = csink_event_check(spec, &why);
	/* Of samples, :u has a meaning: where they are taken. */
	if (!counter->err && spec->rec.flags & CSINK_EVENT_CPU_NS && spec->rec.flags & CSINK_EVENT_USER_ASKED) {
		counter->err = -EOPNOTSUPP;
		why = "the kernel's clocks count all of the CPU time, whatever is left out; leave out u, and see user "
		      "and system below";
	}
	if (counter->err) {
		snprintf(counter->reason, sizeof(counter->reason), "EOPNOTSUPP: %s", why);
	} else if (spec->cpu_wide) {
		counter->err = -EOPNOTSUPP;
		snprintf(counter->reason, sizeof(counter->reason), "%s counts whole CPUs, not %s",
			 spec->pmu[0] ? spec->pmu : "its PMU", whom);
	}
	return counter->err;
}

static void open_one(struct csink_stat_counter *counter, int group_fd)
{
	struct csink_outside_how how = {.cpu = -1, .group_fd = group_fd};
	struct perf_event_attr attr;
	int fd;

	counter->err = 0;
	counter->reason[0] = '\0';
	counter->nr_fds = 0;
	if (csink_stat_counter_check(counter, "processes"))
		return;
	counter->fds = malloc(sizeof(*counter->fds));
	fd = counter->fds ? csink_outside_open_event(&counter->spec, &how, &attr) : -ENOMEM;
	if (fd < 0) {
		csink_stat_counter_refuse(counter, &attr, -1, group_fd, fd);
		return;
	}
	counter->fds[0] = fd;
	counter->nr_fds = 1;
}

void csink_stat_counters_open(struct csink_stat_counters *counters)
{
	struct csink_stat_counter *leader = NULL;

	for (uint32_t i = 0; i < counters->nr; i++) {
		struct csink_stat_counter *counter = &counters->counters[i];
		bool leads = !leader || counter->spec.group != leader->spec.group;

		open_one(counter, leads || !leader->nr_fds ? -1 : leader->fds[0]);
		if (leads)
			leader = counter;
	}
}

void csink_stat_value_scale(struct csink_stat_value *value, double unit_scale)
{
	double scaled = (double)value->raw;

	if (!value->running_ns)
		value->state = CSINK_STAT_NOT_COUNTED;
	else if (value->running_ns < value->enabled_ns)
		scaled = scaled * (double)value->enabled_ns / (double)value->running_ns;
	else if (unit_scale == 1) { /* most: as it is, to the last digit */
		value->value = value->raw;
		return;
	}
	value->value = value->state == CSINK_STAT_COUNTED ? (uint64_t)(scaled * unit_scale + 0.5) : 0;
}

static struct csink_stat_value read_one(const struct csink_stat_counter *counter)
{
	struct csink_stat_value value = {.state = counter->err ? CSINK_STAT_NOT_SUPPORTED : CSINK_STAT_COUNTED};
	uint64_t got[4]; /* value, time enabled, time running, and of threads' the id */
	uint32_t nr = 0;

	if (counter->err)
		return value;
	for (uint32_t i = 0; i < counter->nr_fds; i++) {
		/* A pinned event that lost its counter reads as end of file. */
		if (counter->fds[i] < 0 || read(counter->fds[i], got, sizeof(got)) < (ssize_t)(3 * sizeof(got[0])))
			continue;
		value.raw += got[0];
		value.enabled_ns += got[1];
		value.running_ns += got[2];
		nr++;
	}
	/* One for each CPU: all were enabled all the time, and each ran only while the tree was on its CPU. */
	value.enabled_ns /= CSINK_MAX(nr, 1u);
	return value;
}

/* The same event of this and of another kind of CPU: of a hybrid machine's, "cpu_core/cycles/" and "cpu_atom/cycles/".
 */
static bool is_kin(const struct csink_event_spec *a, const struct csink_event_spec *b)
{
	const char *of_a = strchr(a->rec.name, '/'), *of_b = strchr(b->rec.name, '/');

	return a->cpus[0] && b->cpus[0] && of_a && of_b && !strcmp(of_a, of_b);
}

/* How many of the same name come before it. */
static uint32_t ordinal(const struct csink_stat_counters *counters, uint32_t i)
{
	uint32_t nr = 0;

	for (uint32_t k = 0; k < i; k++)
		nr += !strcmp(counters->counters[k].spec.rec.name, counters->counters[i].spec.rec.name);
	return nr;
}

/*
 * How long an event of some CPUs could have run. On the others it is enabled as well, but there is nothing for it to
 * count: only the time in which neither it nor its kin ran was lost to events that it shares counters with.
 */
static uint64_t enabled_there(const struct csink_stat_counters *counters, const struct csink_stat_value *values,
			      uint32_t i)
{
	uint64_t running_ns = 0, enabled_ns = values[i].enabled_ns;
	uint32_t nr_kin = 0;

	for (uint32_t k = 0; k < counters->nr; k++) {
		if (!is_kin(&counters->counters[i].spec, &counters->counters[k].spec) ||
		    ordinal(counters, i) != ordinal(counters, k))
			continue;
		running_ns += values[k].running_ns;
		nr_kin++;
	}
	/* More than one of them can have had: this kernel has each enabled on its own CPUs only. */
	if (nr_kin > 1 && running_ns > enabled_ns + enabled_ns / 100 && values[i].running_ns <= enabled_ns)
		return enabled_ns;
	/* By itself it does not tell. */
	if (nr_kin < 2 || running_ns >= enabled_ns || !values[i].running_ns)
		return values[i].running_ns ? values[i].running_ns : enabled_ns;
	return (uint64_t)((double)values[i].running_ns * (double)enabled_ns / (double)running_ns);
}

void csink_stat_counters_read(const struct csink_stat_counters *counters, struct csink_stat_value *values)
{
	uint64_t enabled_ns[CSINK_STAT_MAX_EVENTS];

	for (uint32_t i = 0; i < counters->nr; i++)
		values[i] = read_one(&counters->counters[i]);
	for (uint32_t i = 0; i < counters->nr; i++)
		enabled_ns[i] =
			counters->counters[i].spec.cpus[0] ? enabled_there(counters, values, i) : values[i].enabled_ns;
	for (uint32_t i = 0; i < counters->nr; i++) {
		values[i].enabled_ns = enabled_ns[i];
		if (values[i].state != CSINK_STAT_NOT_SUPPORTED)
			csink_stat_value_scale(&values[i], counters->counters[i].spec.scale);
	}
}

struct csink_stat_value csink_stat_value_since(const struct csink_stat_value *now, const struct csink_stat_value *then,
					       double unit_scale)
{
	struct csink_stat_value since = *now;

	if (now->state == CSINK_STAT_NOT_SUPPORTED)
		return since;
	since.state = CSINK_STAT_COUNTED;
	since.raw -= then->raw;
	since.enabled_ns -= then->enabled_ns;
	since.running_ns -= then->running_ns;
	/* Nothing ran meanwhile: that is a true zero, if it has ever counted. */
	if (!since.enabled_ns && now->running_ns)
		since.value = 0;
	else
		csink_stat_value_scale(&since, unit_scale);
	return since;
}

void csink_stat_counters_close(struct csink_stat_counters *counters)
{
	for (uint32_t i = 0; i < counters->nr; i++) {
		struct csink_stat_counter *counter = &counters->counters[i];

		for (uint32_t k = 0; k < counter->nr_fds; k++)
			if (counter->fds[k] >= 0)
				close(counter->fds[k]);
		free(counter->fds);
		counter->fds = NULL;
		counter->nr_fds = 0;
	}
}
