/* The counts of an attach: read, scaled and noted for the report. See attach_counters.h. */
#include <errno.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/attach/attach_counters.h"
#include "launcher/base/message.h"
#include "launcher/session/outside.h"

#define LITTLE 256 /* less than this part of a count is not worth its row */

/* Returns the sum of what an event counted on all CPUs. */
static uint64_t read_sum(const struct csink_attach_counters *c, uint32_t event, struct csink_event_times *times)
{
	bool is_group = c->events[event].attr.read_format & PERF_FORMAT_GROUP;
	uint64_t numbers[3 + CSINK_MAX_EVENTS], value = 0;
	uint32_t nr_fds = 0;

	*times = (struct csink_event_times){.spec = &c->events[event].spec};
	for (uint32_t k = 0; k < c->nr_fds; k++) {
		if (c->fds[k].event != event ||
		    read(c->fds[k].fd, numbers, sizeof(numbers)) < (3 + is_group) * (int)sizeof(*numbers))
			continue;
		value += numbers[is_group ? 3 : 0]; /* of a group: how many, the times, the first one's */
		times->enabled_ns += numbers[1];
		times->running_ns += numbers[2];
		nr_fds++;
	}
	/* On each CPU the event waits while its thread is on another one: it is enabled there all the same. */
	if (c->nr_lineages && nr_fds > c->nr_lineages)
		times->enabled_ns = (uint64_t)((double)times->enabled_ns * c->nr_lineages / nr_fds);
	return value;
}

static void add_count(const struct csink_attach_event *event, uint64_t value, uint64_t could_ns, uint64_t running_ns,
		      struct csink_outside *out)
{
	const struct csink_event_spec *spec = &event->spec;
	double scaled = (double)value;
	char why[CSINK_WHY_BYTES];

	if (!running_ns && (could_ns || spec->cpus[0]) && !(spec->rec.flags & CSINK_EVENT_CPU_NS)) {
		csink_outside_note(out, "%s was not counted: %s", spec->rec.name,
				   could_ns ? "the kernel never had a counter free for it"
					    : "nothing ran on its kind of CPU");
		return;
	}
	if (!value && running_ns && csink_event_doubt_zero(spec, why, sizeof(why)))
		csink_outside_note(out, "%s %s", spec->rec.name, why);
	/* A software event needs no counter, and is never kept waiting for one. */
	if (spec->attr.type != PERF_TYPE_SOFTWARE && running_ns && running_ns < could_ns)
		scaled *= (double)could_ns / (double)running_ns;
	csink_outside_add_count(out, spec, (uint64_t)(scaled + 0.5), could_ns, running_ns);
	/* Where it had a counter all the time, the times differ by what it takes to stop events one after the other. */
	if (spec->scale == 1 && scaled <= (double)value + (double)value / LITTLE)
		out->counts[out->nr_counts - 1].column = event->column;
}

int csink_attach_counters_cpu_event(const struct csink_attach_counters *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->events[i].spec.rec.flags & CSINK_EVENT_CPU_NS && !c->events[i].err)
			return (int)i;
	return -ENOENT;
}

uint64_t csink_attach_counters_cpu_ns(const struct csink_attach_counters *c)
{
	struct csink_event_times times;
	int event = csink_attach_counters_cpu_event(c);

	return event < 0 ? 0 : read_sum(c, (uint32_t)event, &times);
}

void csink_attach_counters_read(struct csink_attach_counters *c, struct csink_outside *out)
{
	struct csink_event_times times[CSINK_MAX_EVENTS + CSINK_MAX_CLOCKS];
	uint64_t values[CSINK_MAX_EVENTS], longest_ns = 0;
	uint32_t nr = c->nr_events;

	if (!c->has_read && c->nr_columns < c->nr_events)
		csink_outside_note(out, "before Linux 6.13 samples hold the count of a group's first event only: the "
					"other events have totals, but no columns");
	for (uint32_t i = 0; i < c->nr_events; i++) {
		values[i] = read_sum(c, i, &times[i]);
		longest_ns = CSINK_MAX(longest_ns, times[i].running_ns);
	}
	/* Of threads that have ended some kernels forget when they waited. All are enabled together: what one of them
	 * had is the least that each was to have. */
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->cgroup_fd < 0 || !times[i].spec->cpus[0])
			times[i].enabled_ns = CSINK_MAX(times[i].enabled_ns, longest_ns);
	if (c->cgroup_fd < 0)
		nr += csink_clocks_read(&c->clocks, times + nr);
	for (uint32_t i = 0; i < c->nr_events; i++) {
		if (c->events[i].err) {
			csink_outside_note(out, "%s was not counted: %s", c->events[i].spec.rec.name,
					   c->events[i].reason);
			continue;
		}
		add_count(&c->events[i], values[i],
			  c->cgroup_fd < 0 ? csink_event_could_run_ns(times, nr, i) : times[i].enabled_ns,
			  times[i].running_ns, out);
		if ((int)i == csink_attach_counters_cpu_event(c))
			out->attached_cpu_ns = values[i];
	}
}
