/*
 * What a process counts: from the list of events that it was given to groups, and how often each is sampled. Written
 * once, by the constructor; forked children have it from their parents.
 */
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/event_choice.h"
#include "preload/agent/lifecycle/image.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/preloaded.h"
#include "preload/agent/sampler/switches.h"
#include "preload/core/event/event_spec.h"
#include "preload/core/sysfs.h"

#define SHORTEST_NS (CSINK_NS_PER_S / CSINK_MAX_CLOCK_FREQUENCY)

/* A rate that a program cannot take, or that the kernel refuses, is not tried. rate: where to say so of one that
 * samples, or NULL.
 */
static void limit_rate(struct csink_event_spec *event, struct csink_rec_rate *rate)
{
	bool is_clock = event->rec.flags & CSINK_EVENT_CPU_NS, measured = false;
	uint64_t asked = event->attr.sample_period, shortest = SHORTEST_NS;
	uint64_t highest = is_clock ? CSINK_MAX_CLOCK_FREQUENCY : UINT64_MAX;
	int64_t limit;

	if (!is_clock && !event->attr.freq)
		shortest = csink_event_shortest_period(event, asked, &measured);
	if (event->attr.freq) {
		if (!csink_sysfs_read_number(&limit, "/proc/sys/kernel/perf_event_max_sample_rate") && limit > 0)
			highest = CSINK_MIN(highest, (uint64_t)limit);
		if (event->attr.sample_freq <= highest)
			return;
		snprintf(csink_config.bad, sizeof(csink_config.bad),
			 "%s: %llu samples a second are more than %s: using %llu", event->rec.name,
			 (unsigned long long)event->attr.sample_freq,
			 highest == CSINK_MAX_CLOCK_FREQUENCY ? "a program can tolerate"
							      : "kernel.perf_event_max_sample_rate allows",
			 (unsigned long long)highest);
		event->attr.sample_freq = highest;
	} else if (measured && asked < shortest) {
		if (rate)
			*rate = (struct csink_rec_rate){asked, shortest, CSINK_RATE_MEASURED};
		event->attr.sample_period = shortest;
	} else if (asked < shortest) {
		snprintf(csink_config.bad, sizeof(csink_config.bad),
			 "%s: a sample every %llu%s is more than a program can tolerate: using %llu%s", event->rec.name,
			 (unsigned long long)asked, is_clock ? " ns" : "", (unsigned long long)shortest,
			 is_clock ? " ns" : "");
		event->attr.sample_period = shortest;
	}
}

/* How often an event is sampled, if it comes to lead. */
static void set_rate(struct csink_plan *plan, uint32_t i)
{
	struct csink_event_spec *event = &plan->events[i];
	bool leads = (uint32_t)__builtin_ctz(plan->groups[plan->group_of[i]]) == i;
	uint64_t ns = CSINK_NS_PER_S / (csink_config.frequency ? csink_config.frequency : CSINK_DEFAULT_FREQUENCY);
	bool is_clock = event->rec.flags & CSINK_EVENT_CPU_NS;

	if (event->attr.sample_period || event->attr.freq)
		;                                             /* the event's own text says how often */
	else if (csink_config.period && (leads || !is_clock)) /* it is in units of what leads */
		event->attr.sample_period = csink_config.period;
	else if (is_clock)
		event->attr.sample_period = ns;
	else {
		event->attr.freq = 1;
		event->attr.sample_freq = csink_config.frequency;
	}
	limit_rate(event, leads ? &plan->rates[i] : NULL);
	event->rec.period = 0; /* set for leaders, once they are known */
}

static const struct csink_event_spec *first_of(const struct csink_plan *plan, uint32_t g)
{
	return &plan->events[__builtin_ctz(plan->groups[g])];
}

/* How many groups of the same name come before it. */
static uint32_t place_of(const struct csink_plan *plan, uint32_t g)
{
	uint32_t place = 0;

	for (uint32_t before = 0; before < g; before++)
		place += !strcmp(first_of(plan, before)->rec.name, first_of(plan, g)->rec.name);
	return place;
}

/* The groups that count the same on other kinds of CPU: one of each kind. */
static uint8_t find_counterparts(const struct csink_plan *plan, uint32_t g)
{
	uint8_t found = 0;

	for (uint32_t k = 0; k < plan->nr_groups; k++)
		if (csink_event_is_counterpart(first_of(plan, g), first_of(plan, k)) &&
		    place_of(plan, g) == place_of(plan, k))
			found |= (uint8_t)(1u << k);
	return found;
}

/* From the groups of the list to those of the process. CPU time is in the first one; time off the CPU is in none. */
static void form_groups(struct csink_plan *plan, uint32_t nr)
{
	plan->nr_groups = 0;
	plan->time_groups = 1;
	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_event_spec *event = &plan->events[i];
		bool first = !i || (event->group != event[-1].group && !(event->rec.flags & CSINK_EVENT_IMPLIED));

		if (first)
			plan->groups[plan->nr_groups++] = 0;
		plan->group_of[i] = (uint8_t)(event->rec.flags & CSINK_EVENT_IMPLIED ? 0 : plan->nr_groups - 1);
		plan->groups[plan->group_of[i]] |= (uint8_t)(1u << i);
		if (first && csink_event_is_counterpart(event, &plan->events[0]))
			plan->time_groups |= (uint8_t)(1u << (plan->nr_groups - 1));
	}
	for (uint32_t g = 0; g < plan->nr_groups; g++)
		plan->counterparts_of[g] = find_counterparts(plan, g);
}

void csink_image_choose_events(char *problem, size_t size)
{
	struct csink_plan *plan = &csink_plan;
	/* One place is for CPU time, one for time off the CPU. */
	uint32_t others = 1 + csink_config.off_cpu + csink_objects_nr_events();
	int nr = csink_event_choice_make(plan->events, CSINK_MAX_EVENTS - others, problem, size);

	plan->cpu_event = CSINK_MAX_EVENTS;
	for (int i = 0; i < nr && plan->cpu_event == CSINK_MAX_EVENTS; i++)
		if (plan->events[i].rec.flags & CSINK_EVENT_CPU_NS)
			plan->cpu_event = (uint32_t)i;
	if (plan->cpu_event == CSINK_MAX_EVENTS) { /* time is what totals are checked against */
		csink_event_named("task-clock", &plan->events[nr]);
		plan->events[nr].rec.flags |= CSINK_EVENT_IMPLIED;
		plan->cpu_event = (uint32_t)nr++;
	}
	form_groups(plan, (uint32_t)nr);
	plan->off_cpu_event = CSINK_MAX_EVENTS;
	for (int i = 0; i < nr; i++)
		set_rate(plan, (uint32_t)i);
	/* Of the timer engine, which has CPU time alone. */
	csink_engine_set_timer_period();
	if (csink_config.off_cpu) {
		csink_switches_event(&plan->events[nr]);
		plan->off_cpu_event = (uint32_t)nr++;
	}
	plan->nr_opened = (uint32_t)nr;
	plan->nr_events = plan->nr_opened + csink_objects_nr_events();
	csink_objects_events(&plan->events[plan->nr_opened]);
}
