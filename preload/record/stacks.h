/*
 * The stack table: every distinct chain of callers is stored once a process, and every (thread, leaf, chain) has one
 * row of weights in the recording. The index over them is private memory: levels of open-addressed tables, each four
 * times the last, added when the newest is half full. Nothing is ever moved or removed, so lookups take no lock and
 * growth stops nobody.
 */
#ifndef CSINK_RECORD_STACKS_H
#define CSINK_RECORD_STACKS_H

#include <stdint.h>

#include "preload/record/recording.h"

/* One sample, as the handler gives it to the table. */
struct csink_sample {
	csink_ref_t thread;
	uint16_t phase;
	uint16_t chain_flags; /* enum csink_chain_flags */
	uint32_t nr_frames;
	uint32_t epoch; /* equal addresses of different epochs are different chains */
	uint64_t leaf;
	uint64_t time_ns; /* CLOCK_MONOTONIC, for the first sighting of a chain */
	const uint64_t *frames;
	struct csink_chain_memo *memo; /* the thread's */
};

/*
 * A thread's latest chain: the next one is often the same. To compare with it costs less than to hash all frames and to
 * look for the chain. Zero it with each new recording.
 */
struct csink_chain_memo {
	const struct csink_rec_chain *chain;
	uint64_t hash;
};

/** Forget everything: a new recording begins. Context: init; no other thread may be storing. */
void csink_stacks_reset(void);

/**
 * Find or make the row of a sample.
 * Returns NULL when the recording is full. The row belongs to the sample's thread: only that thread may add to it.
 * Context: signal. Takes no lock; makes a syscall only when a table grows.
 */
struct csink_rec_row *csink_stacks_row(struct csink_recording *rec, struct csink_writer *writer,
				       const struct csink_sample *sample);

/** Add one sample's weights to its row; nr_samples grows by @nr. Context: signal, by the row's own thread. */
void csink_row_add(struct csink_rec_row *row, const uint64_t *weights, uint32_t nr_weights, uint64_t nr);

#endif
