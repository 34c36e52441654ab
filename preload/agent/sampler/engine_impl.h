/* Between the files of the engines: the choice (engine_choose.c), a thread's groups (engine_groups.c), its life
 * (engine.c). */
#ifndef CSINK_ENGINE_IMPL_H
#define CSINK_ENGINE_IMPL_H

#include <stdint.h>

#include "preload/agent/sampler/engine.h"

/** Choose the process's engine and open it for the calling thread. As csink_engine_open. Context: init. */
int csink_engine_choose(struct csink_thread *thread);

/** A real-time signal that is not in use yet, or a profilers' one under a debugger; -EBUSY. Context: thread. */
int csink_engine_free_signal(void);

/** The event is not counted: its weights mean nothing, and a note in the recording has the reason. Context: thread. */
void csink_engine_refuse_event(struct csink_thread *thread, uint32_t event, const char *why);

/** Why an event cannot be had that happens in the kernel alone. */
extern const char csink_engine_kernels_own[] CSINK_HIDDEN;

/** Sample the calling thread by its CPU clock. Returns 0 or -errno. Context: thread. */
int csink_engine_open_timer(struct csink_thread *thread);

/** Start its timer, or set it to the period of now. Context: thread, signal. */
void csink_engine_start_timer(struct csink_thread *thread);

/** Open the thread's switches, where time off the CPU is asked for and can be had; else note it in the recording.
 * Context: thread.
 */
void csink_engine_open_switches(struct csink_thread *thread);

/**
 * The leader of a group: its first event; where that was refused, CPU time does in the first group, so that time is
 * sampled all the same, and the next event in the others. CSINK_MAX_EVENTS: none is left. Context: any.
 */
uint32_t csink_engine_leader(uint32_t g);

/** Open all groups of the calling thread, or none; *failed is then the event that could not be had. Returns 0 or
 * -errno. Context: thread, signal (csink_engine_slow_down). */
int csink_engine_open_groups(struct csink_thread *thread, enum csink_engine engine, uint32_t *failed);

/** Context: as the former. */
void csink_engine_close_groups(struct csink_thread *thread);

/** What is open now has been attributed up to thread->last: the groups that are opened next count on from there.
 * Context: as the former. */
void csink_engine_count_on(struct csink_thread *thread);

/** What csink_engine_slow_down does, where no other code changes the groups. Context: as csink_engine_open_groups. */
int csink_engine_reopen_rarer(struct csink_thread *thread, uint32_t g, bool throttled);

#endif
