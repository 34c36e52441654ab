/*
 * What the program allocates (`-e alloc`): the agent's half. libcountersink-alloc.so has the program's malloc, counts,
 * and decides what is sampled (include/internal/alloc_object.h); this stores samples and totals in the recording. All
 * of it does nothing in a process that has not loaded that object.
 */
#ifndef CSINK_ALLOCATIONS_H
#define CSINK_ALLOCATIONS_H

#include <stdint.h>

#include "include/internal/event.h"
#include "preload/core/record/recording.h"

struct csink_thread;

/** How many events allocations take: 0 or 4. Context: init. */
uint32_t csink_allocations_nr_events(void);

/** Describe them: bytes and objects, of all that is allocated and of what is in use at the end. Context: init. */
void csink_allocations_events(struct csink_event_spec *out);

/** Let samples be taken, and note what they do not see. Context: init. */
void csink_allocations_begin(struct csink_writer *writer);

/** What the calling thread has allocated since the last look goes to the recording's totals. Context: thread. */
void csink_allocations_take(void);

/** The same of another thread that goes on, for as long as nothing takes it back. Context: thread, at the end. */
void csink_allocations_give(struct csink_thread *thread);

/** The image has not ended: what other threads were given is theirs to count. Context: thread. */
void csink_allocations_take_back(void);

/** Store what is not freed, once a process. Context: thread, mute, at the end. */
void csink_allocations_in_use(void);

/** In a forked child: what was allocated is the parent's. Context: init. */
void csink_allocations_forked(void);

#endif
