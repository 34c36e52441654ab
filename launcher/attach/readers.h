/*
 * Reading the frames of interpreters in attached processes while the sampled thread does not run, without stopping it:
 * one thread for each CPU, bound to it, waits for a sample in that CPU's ring. The kernel wakes it at the end of the
 * interrupt that took the sample, and it takes the CPU from the sampled thread before that executes its next
 * instruction; so what it reads is what was there at the sample. It runs before all others where it may (SCHED_FIFO),
 * else with a short slice, and may come late. Also, the scheduler may move the thread to another CPU meanwhile. What
 * was read too late is dropped: by the clock, by the top of the stack and the newest frame, which are read again, and,
 * where others may run before the reader, by the evaluator's next instruction.
 *
 * The attach command's thread (main) starts and ends these threads, registers processes that have an interpreter, and
 * takes what was read, in the order of time.
 */
#ifndef CSINK_READERS_H
#define CSINK_READERS_H

#include "launcher/attach/attach_counters.h"
#include "launcher/attach/codes.h"
#include "launcher/attach/python_stack.h"

/* So long after a sample nothing more is read for it; records may be drained then. */
#define CSINK_READERS_LATE_NS 5000000

enum csink_read_state {
	CSINK_READ_DONE,       /* its frames, if it has any */
	CSINK_READ_LATE,       /* the thread ran on before */
	CSINK_READ_UNFINISHED, /* the thread was between two stores, or the records are none */
	CSINK_READ_RESTED,     /* a read before it took too long */
	CSINK_READ_NO_ROOM,    /* there are too many functions */
	CSINK_READ_NO_STATES,  /* the process's thread states are not known yet */
	CSINK_READ_NOT,        /* none of the threads looked at it */
	CSINK_NR_READ_STATES
};

/* What was read at a sample. */
struct csink_attach_read {
	enum csink_read_state state;
	bool is_full; /* there are more frames */
	uint32_t nr_frames, nr_groups;
	uint64_t frames[CSINK_MAX_DEPTH]; /* CSINK_FRAME_CODE with an id of codes */
	struct csink_python_group groups[CSINK_MAX_DEPTH];
};

struct csink_attach_readers;

/**
 * Start the threads, before any event is opened: they must ask for a wake-up at each sample.
 * @counters  initialized; their rings are shared.
 * Returns 0 or -errno. Context: main.
 */
int csink_attach_readers_start(struct csink_attach_readers **readers, struct csink_attach_counters *counters,
			       struct csink_attach_codes *codes);

/** From now on read this process's frames, with the interpreter and its roots, if any are known. Context: main. */
void csink_attach_readers_add(struct csink_attach_readers *readers, int32_t pid,
			      const struct csink_attach_python *python);

/** A process executed another program, or one without an interpreter has its PID now. Context: main. */
void csink_attach_readers_remove(struct csink_attach_readers *readers, int32_t pid);

/** What is known of a process's interpreter. False: nothing. Context: main. */
bool csink_attach_readers_get(struct csink_attach_readers *readers, int32_t pid, struct csink_attach_python *python);

/** Take what was read at a sample; samples come in the order of their times. Context: main. */
void csink_attach_readers_take(struct csink_attach_readers *readers, uint64_t time_ns, int32_t tid,
			       struct csink_attach_read *read);

/**
 * End the threads; what they have read stays to be taken. A thread that the kernel keeps waiting for a process's memory
 * is left behind. Context: main.
 */
void csink_attach_readers_stop(struct csink_attach_readers *readers);

/** How many threads there are, may run before all others, and were left behind. Context: main. */
struct csink_attach_readers_count {
	uint32_t all, first, left;
} csink_attach_readers_count(const struct csink_attach_readers *readers);

/** False: a thread was left behind, so that it must not be freed, nor what it was started with. Context: main. */
bool csink_attach_readers_free(struct csink_attach_readers *readers);

#endif
