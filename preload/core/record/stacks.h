/*
 * The stack table: callers are stored once a process, as a tree that shares what stacks have in common, and every
 * (thread, phase, leaf, callers) has one row of weights in the recording; most have small numbers and a cell's room
 * (include/internal/recording_format.h). Private indexes find both; lookups take no lock and growth stops no thread.
 */
#ifndef CSINK_STACKS_H
#define CSINK_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "preload/core/record/recording.h"

/*
 * What a thread keeps between its samples: where its next nodes and cells go, and its latest stack of callers. The next
 * one is often the same: to compare with it costs less than to hash all frames and to look for them.
 */
struct csink_stack_memo {
	csink_ref_t node; /* of the latest callers; 0: there are none yet */
	uint32_t nr_frames;
	uint64_t epoch_ns;
	uint64_t hash;
	uint64_t same; /* of that sample */
	uint16_t chain_flags;
	uint16_t nodes_room, cells_room; /* of the next chunk */
	struct csink_rec_nodes *nodes;
	uint16_t nodes_nr, nodes_max; /* in that chunk */
	struct csink_stack_cells {
		struct csink_rec_cells *chunk;
		uint16_t nr, max; /* in it */
		uint16_t phase;
	} cells[4]; /* by phase */
	uint64_t frames[CSINK_MAX_DEPTH];
};

/* One sample, as the handler gives it to the table. */
struct csink_sample {
	csink_ref_t thread;
	uint16_t phase;
	uint16_t chain_flags; /* enum csink_chain_flags */
	uint32_t nr_frames;
	uint64_t epoch_ns; /* since when addresses mean what they mean now: equal ones of another time are others */
	uint64_t leaf;
	uint64_t same; /* equal: the frames are, too, without a look at them; 0: not known */
	const uint64_t *frames;
	struct csink_stack_memo *memo; /* the thread's */
};

/* A row for its thread to add to. ref 0: none. */
struct csink_row {
	csink_ref_t ref;
	uint16_t phase;
	uint16_t is_wide; /* a row, not a cell */
};

/** Begin a thread, or a new recording: @memo is of another one. */
static inline void csink_stack_memo_reset(struct csink_stack_memo *memo)
{
	memset(memo, 0, offsetof(struct csink_stack_memo, frames));
}

/** Drop everything: a new recording begins. Context: init; no other thread may be storing. */
void csink_stacks_reset(void);

/** The program has locked its memory (mlockall(2)): unlock the tables. Context: thread. */
void csink_stacks_unlock(void);

/**
 * Add a sample: its weights, and @nr to the number of samples, to its row, which is made if it is new.
 * @weights  nr_events of the recording.
 * Returns the row; none when the recording is full, and then nothing was added.
 * Context: signal. Takes no lock; makes a syscall only when a table or the recording grows.
 */
struct csink_row csink_stacks_add(struct csink_recording *rec, struct csink_writer *writer,
				  const struct csink_sample *sample, const uint64_t *weights, uint64_t nr);

/** Add to a row that is known. Returns it, or the one that it goes on in; none when the recording is full. Context:
 * signal, by the row's own thread, @thread. */
struct csink_row csink_row_add(struct csink_recording *rec, struct csink_writer *writer, struct csink_row row,
			       csink_ref_t thread, const uint64_t *weights, uint64_t nr);

/**
 * A row of its own, that no lookup finds, for weights without a sample: of what a thread spent before its first one.
 * Returns it; its ref is 0 when the recording is full. Context: signal.
 */
struct csink_row csink_row_alone(struct csink_recording *rec, struct csink_writer *writer, csink_ref_t thread,
				 uint16_t phase, const uint64_t *weights);

/** The node of a sample's callers, made if it is new; leaf, thread and phase do not matter. 0 when the recording is
 * full. Context: signal. */
csink_ref_t csink_stacks_node(struct csink_recording *rec, struct csink_writer *writer,
			      const struct csink_sample *sample);

#endif
