/*
 * The contract between the agent and libcountersink-alloc.so, the preload object of `-e alloc`. Only the object has the
 * program's malloc and its family; programs of which allocations are not asked for do not load it. It counts what is
 * allocated, and decides what is sampled; the agent walks the stack and writes the recording.
 *
 * The agent finds the object by the symbol csink_alloc_object, a weak reference: NULL where it is not preloaded.
 */
#ifndef CSINK_ALLOC_OBJECT_H
#define CSINK_ALLOC_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/recording_format.h"

#define CSINK_ALLOC_LIBRARY "libcountersink-alloc.so"
/* The events, in this order: bytes, objects, and both of what is in use at the end. */
enum { CSINK_ALLOC_SPACE, CSINK_ALLOC_OBJECTS, CSINK_ALLOC_IN_USE, CSINK_ALLOC_IN_USE_OBJECTS, CSINK_ALLOC_NR_EVENTS };
#define CSINK_ALLOC_PERIOD (512ULL << 10) /* bytes between samples, on average */
#define CSINK_ALLOC_MIN_PERIOD 16ULL
#define CSINK_ALLOC_MAX_PERIOD (1ULL << 40)

/*
 * What a thread has allocated. The bytes since the last look are drawn - left + more, the objects objects - seen.
 * Written by its own thread; by others only looked at.
 */
struct csink_alloc_counts {
	uint64_t left;    /* of the countdown: a sample is due where an allocation is larger */
	uint64_t drawn;   /* what left was at the last look */
	uint64_t more;    /* bytes that the countdown does not count, since the last look */
	uint64_t objects; /* allocations so far */
	uint64_t seen;    /* of them, those before the last look */
};

/* Functions of the agent, for the object. */
struct csink_alloc_agent {
	/* May signals be blocked, as they have to be for a sample? Not under a filter that kills for the call. */
	bool (*may_block)(void);
	/* CLOCK_MONOTONIC, by no function that a program may define, and where reading a clock does no harm. */
	uint64_t (*now_ns)(void);
	/*
	 * Store a sample of the calling thread.
	 * @uc      program counter, stack pointer and callee-saved registers of the caller of malloc, at the call.
	 * @counts  the thread's.
	 * Returns what entry() takes for this stack, or 0: nothing is stored (the thread is unknown, or at its
	 * end). Context: thread; also in a handler of the program's, but not while another sample of the thread is
	 * stored.
	 */
	uint32_t (*sample)(const ucontext_t *uc, uint64_t bytes, uint64_t objects, struct csink_alloc_counts *counts);
	/* csink_lock_agent's, of which waiter is the stack, and holder CSINK_WAIT_IN_USE. */
	struct csink_rec_wait *(*entry)(uint32_t waiter, uint32_t holder, uint64_t lock);
	/* The timer engine's signal; 0: none samples by it. A sample that it interrupts is lost. */
	const _Atomic int *timer_signo;
};

/* Functions of the object, for the agent. */
struct csink_alloc_object {
	/* Describe an event. Context: init. */
	void (*event)(uint32_t i, struct csink_rec_event *event);
	/* Take samples from now on. Context: init. */
	void (*start)(const struct csink_alloc_agent *agent);
	/* The calling thread's counts. Context: thread. */
	struct csink_alloc_counts *(*counts)(void);
	/* Add what is not freed to the recording. Context: thread, mute, at the end. */
	void (*in_use)(void);
	/* In a forked child: the table is empty, what was allocated is the parent's. Context: init. */
	void (*forked)(void);
	/*
	 * What is not seen of this process, a line each, from @i = 0 on; *text is "" where there is nothing to say. The
	 * first line is of all that it allocates. False: there are no more. Context: init.
	 */
	bool (*unseen)(uint32_t i, char *text, size_t size);
	/* Samples whose address had no place in the table, or in the recording: they are not in what is in use. */
	const uint64_t *nr_full;
};

extern const struct csink_alloc_object csink_alloc_object;

#endif
