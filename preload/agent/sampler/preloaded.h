/*
 * What preload objects measure in the program's own calls: allocations (`-e alloc`) and waits for locks (`-e lock`).
 * The objects have the program's malloc and its locks (include/internal/alloc_object.h, lock_object.h); this is the
 * agent's half, which stores stacks and totals in the recording. It does nothing in a process that has not loaded an
 * object.
 */
#ifndef CSINK_PRELOADED_H
#define CSINK_PRELOADED_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/event.h"
#include "preload/core/record/recording.h"

struct csink_thread;

/** Is an object loaded: 0 that of allocations, 1 that of locks, as csink_object_marks? Context: any. */
bool csink_objects_have(uint32_t object);

/** How many events the objects have. Context: init. */
uint32_t csink_objects_nr_events(void);

/** Describe them: those of allocations, then those of locks. Context: init. */
void csink_objects_events(struct csink_event_spec *out);

/** Let them measure, and note what they do not see. Context: init. */
void csink_objects_begin(struct csink_writer *writer);

/** A thread of the program begins: the calling one. Context: thread. */
void csink_objects_thread(struct csink_thread *thread);

/** What the calling thread has allocated since the last look goes to the recording's totals. Context: thread. */
void csink_objects_take(void);

/** The same of another thread that goes on, for as long as nothing takes it back. Context: thread, at the end. */
void csink_objects_give(struct csink_thread *thread);

/** The image has not ended: what other threads were given is theirs to count. Context: thread. */
void csink_objects_take_back(void);

/** Store what is not freed, once a process. Context: thread, mute, at the end. */
void csink_objects_in_use(void);

/** In a forked child: what was measured is the parent's. Context: init. */
void csink_objects_forked(void);

#endif
