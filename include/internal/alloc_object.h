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

#define CSINK_ALLOC_LIBRARY "libcountersink-alloc.so"
#define CSINK_ALLOC_VERSION 1
#define CSINK_ALLOC_NR_EVENTS 4
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

/* An allocation that was sampled and not freed. */
struct csink_alloc_live {
	uint64_t bytes, objects; /* that it stands for */
	uint32_t row;            /* what the agent returned for it */
	uint32_t age_ms;         /* CLOCK_MONOTONIC */
};

/* Functions of the agent, for the object. */
struct csink_alloc_agent {
	uint32_t version;
	uint64_t period;
	/*
	 * Store a sample of the calling thread.
	 * @uc      program counter, stack pointer and callee-saved registers of the caller of malloc, at the call.
	 * @counts  the thread's.
	 * Returns what to keep for csink_alloc_live.row, or 0: nothing is stored (the thread is unknown, or at its
	 * end). Context: thread; also in a handler of the program's, but not while another sample of the thread is
	 * stored.
	 */
	uint32_t (*sample)(const ucontext_t *uc, uint64_t bytes, uint64_t objects, struct csink_alloc_counts *counts);
};

/* Functions of the object, for the agent. */
struct csink_alloc_object {
	uint32_t version;
	/* Take samples from now on. Context: init. */
	void (*start)(const struct csink_alloc_agent *agent);
	/* The calling thread's counts. Context: thread. */
	struct csink_alloc_counts *(*counts)(void);
	/* The first live allocation at a place of the table that is not less than *at, which is set behind it. Returns
	 * false where there is none. Context: thread. */
	bool (*next_live)(uint32_t *at, struct csink_alloc_live *live);
	/* In a forked child: the table is empty, what was allocated is the parent's. Context: init. */
	void (*forked)(void);
	/*
	 * What is not seen of this process, a line each, from @i = 0 on; *text is "" where there is nothing to say. The
	 * first line is of all that it allocates. False: there are no more. Context: init.
	 */
	bool (*unseen)(uint32_t i, char *text, size_t size);
	/* Samples whose address had no place in the table: they are not in what is in use. */
	const uint64_t *nr_full;
	/* Samples that could not be taken since another one of the thread was. */
	const uint64_t *nr_busy;
};

extern const struct csink_alloc_object csink_alloc_object;

#endif
