/*
 * What the process samples and counts. Written by the constructor (image.c, image_events.c) before the first sample;
 * forked children inherit it. Constant from then on, except for the flags of events that the engine's choice refuses
 * (engine_choose.c, in the main thread) and for the leaders' rates (csink_engine_slow_down). Read by every thread and
 * by the handler.
 */
#ifndef CSINK_PLAN_H
#define CSINK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/agent/unwind/unwind.h"

struct csink_plan {
	void (*walk)(struct csink_walk *walk, const ucontext_t *uc); /* NULL: leaf only */
	uint32_t max_depth;
	uint32_t budget; /* of CPU time, for samples, in parts of CSINK_SHARE_WHOLE; 0: no limit */
	bool timeline;   /* keep the time of each sample */

	uint32_t nr_events;
	uint32_t cpu_event;     /* index of the one that counts CPU time; there always is one */
	uint32_t off_cpu_event; /* index of the time off the CPU; CSINK_MAX_EVENTS: not asked for */
	uint32_t nr_opened;     /* of all events: the kernel counts these; then come those of allocations */
	/*
	 * The groups of events that are counted together: bit i is event i; the lowest one leads and samples. Each
	 * group has a ring of its own in every thread.
	 */
	uint32_t nr_groups;
	uint8_t groups[CSINK_MAX_EVENTS];
	uint8_t group_of[CSINK_MAX_EVENTS];
	uint8_t counterparts_of[CSINK_MAX_EVENTS]; /* bit g: group g counts the same on another kind of CPU */
	uint8_t time_groups; /* bit g: the samples of group g are given the CPU time that passed */
	struct csink_event_spec events[CSINK_MAX_EVENTS];
	struct csink_rec_rate rates[CSINK_MAX_EVENTS]; /* as in the header */
};

extern struct csink_plan csink_plan CSINK_HIDDEN;

#endif
