/*
 * The contract between the agent and libcountersink-lock.so, the preload object of `-e lock`: see alloc_object.h for
 * the other one. The object has the program's locks, measures who waits and who releases meanwhile, and joins both; the
 * agent walks stacks and writes the recording.
 */
#ifndef CSINK_LOCK_OBJECT_H
#define CSINK_LOCK_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/recording_format.h"

#define CSINK_LOCK_LIBRARY "libcountersink-lock.so"
#define CSINK_LOCK_NR_EVENTS 2
#define CSINK_LOCK_CONDITIONS "conditions" /* of -e lock, and in COUNTERSINK_LOCK: waits for them, too */

/* Functions of the agent, for the object. Context: thread; also in a handler of the program's. */
struct csink_lock_agent {
	/* May signals be blocked, as they have to be for the next two? */
	bool (*may_block)(void);
	uint64_t (*now_ns)(void); /* csink_alloc_agent's */
	/* The calling thread's stack from @uc on; 0: it cannot be stored. What it costs is less than a microsecond. */
	uint32_t (*stack)(const ucontext_t *uc);
	/* An entry of the recording for waits, whose sums are the caller's to add to; NULL: the recording is full. */
	struct csink_rec_wait *(*entry)(uint32_t waiter, uint32_t holder, uint64_t lock);
	/* Add to what all waits of the process are. */
	void (*total)(uint64_t delay_ns, uint64_t contentions);
};

/* Functions of the object, for the agent. */
struct csink_lock_object {
	/* Describe an event: the time of waits, and their number. Context: init. */
	void (*event)(uint32_t i, struct csink_rec_event *event);
	/* Measure from now on. Context: init. */
	void (*start)(const struct csink_lock_agent *agent);
	/* In a forked child: who waits does so in the parent. Context: init. */
	void (*forked)(void);
};

extern const struct csink_lock_object csink_lock_object;

#endif
