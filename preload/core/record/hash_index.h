/*
 * A table from 64-bit hashes to places in the recording, filled by many threads' handlers at once: levels of
 * open-addressed tables, each four times the last, added when the newest is half full. Nothing is ever moved or
 * removed, so lookups take no lock and growth stops no thread. Private memory of the process.
 */
#ifndef CSINK_HASH_INDEX_H
#define CSINK_HASH_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "include/internal/recording_format.h"

enum { CSINK_INDEX_LEVELS = 12, CSINK_INDEX_FIRST_BITS = 8, CSINK_INDEX_PROBES = 24, CSINK_INDEX_NEAR_PROBES = 8 };

/* hash 0: free. ref 0: taken, but not filled yet, as a thread that was killed may leave it. */
struct csink_index_slot {
	_Atomic uint64_t hash;
	_Atomic uint32_t ref;
	_Atomic uint32_t aux; /* the user's */
};

struct csink_index {
	struct csink_index_slot *_Atomic levels[CSINK_INDEX_LEVELS];
	_Atomic uint32_t used[CSINK_INDEX_LEVELS];
	_Atomic uint32_t newest;
};

/* An index with its first level, which is a page: small programs touch no more. */
#define CSINK_INDEX(name)                                                                                              \
	static CSINK_COLD struct csink_index_slot name##_first[1u << CSINK_INDEX_FIRST_BITS];                          \
	static struct csink_index name = {.levels = {name##_first}}

static inline uint32_t csink_index_slots(uint32_t level)
{
	return 1u << (CSINK_INDEX_FIRST_BITS + 2 * level);
}

/*
 * The slot that is tried as the @i-th one: first by the lower half of the hash, where the user may have entries lie
 * together (stacks.c); where these slots are taken, anywhere by the upper half.
 */
static inline struct csink_index_slot *csink_index_slot(struct csink_index_slot *slots, uint32_t level, uint64_t hash,
							uint32_t i)
{
	uint64_t at = i < CSINK_INDEX_NEAR_PROBES ? hash + i : (hash >> 32) * (2 * i + 1);

	return &slots[at & (csink_index_slots(level) - 1)];
}

/** Empty it. levels[0] stays. Context: init; no other thread may be using it. */
void csink_index_reset(struct csink_index *index);

/** The program has locked its memory (mlockall(2)): unlock what the index has mapped. Context: thread. */
void csink_index_unlock(const struct csink_index *index);

typedef bool (*csink_index_match)(csink_ref_t ref, uint32_t aux, const void *key);

/** The slot of the first entry with @hash that @match accepts, or NULL. Context: signal. */
static inline __attribute__((always_inline)) struct csink_index_slot *
csink_index_find(struct csink_index *index, uint64_t hash, csink_index_match match, const void *key)
{
	/* Newest first: what a program does now was mostly first seen lately. */
	for (int level = (int)atomic_load_explicit(&index->newest, memory_order_acquire); level >= 0; level--) {
		struct csink_index_slot *slots = atomic_load_explicit(&index->levels[level], memory_order_acquire);

		for (uint32_t i = 0; slots && i < CSINK_INDEX_PROBES; i++) {
			struct csink_index_slot *slot = csink_index_slot(slots, (uint32_t)level, hash, i);
			uint64_t has = atomic_load_explicit(&slot->hash, memory_order_relaxed);
			csink_ref_t ref;

			if (!has)
				break;
			if (has != hash)
				continue;
			/* Acquire pairs with the release in insert: the entry behind a slot is complete. */
			ref = atomic_load_explicit(&slot->ref, memory_order_acquire);
			if (ref && match(ref, atomic_load_explicit(&slot->aux, memory_order_relaxed), key))
				return slot;
		}
	}
	return NULL;
}

/**
 * Publish an entry, complete before the call, unless another thread has just published an equal one. An equal one is
 * missed, and lookups then find either, only where the table grows at that moment or a thread stopped for long between
 * the two stores that publish. A table with no free place near leaves the entry unindexed.
 * @hash   not 0.
 * @match  as for csink_index_find.
 * Returns @ref, or the ref of the equal entry: the caller's own is then unused.
 * Context: signal; makes a syscall when the table grows.
 */
csink_ref_t csink_index_insert(struct csink_index *index, uint64_t hash, csink_ref_t ref, uint32_t aux,
			       csink_index_match match, const void *key);

#endif
