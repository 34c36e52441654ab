/* The lock-free index of a recording: see hash_index.h. Handlers of any thread; grows by mmap(2), never blocks. */
#include "preload/core/record/hash_index.h"

#include <string.h>

#include "include/internal/rawcall.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"

/* How often a slot that another thread has just taken is read before it is passed by. */
enum { FILL_SPINS = 64 };

static size_t level_bytes(uint32_t level)
{
	return csink_index_slots(level) * sizeof(struct csink_index_slot);
}

__attribute__((cold)) void csink_index_reset(struct csink_index *index)
{
	for (uint32_t level = 1; level < CSINK_INDEX_LEVELS; level++) {
		struct csink_index_slot *slots = atomic_load(&index->levels[level]);

		if (slots)
			csink_rawcall(SYS_munmap, slots, level_bytes(level));
		atomic_store(&index->levels[level], NULL);
		atomic_store(&index->used[level], 0);
	}
	/* Mostly empty in a program that has just started: do not touch pages that were never written. */
	if (atomic_load(&index->used[0]))
		memset((void *)atomic_load(&index->levels[0]), 0, level_bytes(0));
	atomic_store(&index->used[0], 0);
	atomic_store(&index->newest, 0);
}

void csink_index_unlock(const struct csink_index *index)
{
	for (uint32_t level = 1; level < CSINK_INDEX_LEVELS; level++) {
		struct csink_index_slot *slots = atomic_load(&index->levels[level]);

		if (slots)
			csink_rawcall(SYS_munlock, slots, level_bytes(level));
	}
}

/* The table that new entries go to, one level up when it is half full. A failed growth lets the old one fill. */
static uint32_t level_for_insert(struct csink_index *index)
{
	uint32_t level = atomic_load_explicit(&index->newest, memory_order_acquire);
	struct csink_index_slot *slots, *none = NULL;

	if (atomic_load_explicit(&index->used[level], memory_order_relaxed) < csink_index_slots(level) / 2 ||
	    level + 1 == CSINK_INDEX_LEVELS || csink_calls_are_off(CSINK_CALLS_MEMORY))
		return level;
	slots = csink_private_map(level_bytes(level + 1));
	if (!slots)
		return level;
	/* Release pairs with the acquire of newest and levels in the readers: a level is seen zeroed or not at all. */
	if (!atomic_compare_exchange_strong_explicit(&index->levels[level + 1], &none, slots, memory_order_release,
						     memory_order_relaxed))
		csink_rawcall(SYS_munmap, slots, level_bytes(level + 1));
	atomic_compare_exchange_strong_explicit(&index->newest, &level, level + 1, memory_order_release,
						memory_order_acquire);
	return atomic_load_explicit(&index->newest, memory_order_acquire);
}

/* The ref of a slot that another thread has taken; 0 if it is still not there after as long as two stores may take. */
static csink_ref_t published_ref(const struct csink_index_slot *slot)
{
	csink_ref_t ref = 0;

	for (int i = 0; i < FILL_SPINS && !ref; i++)
		ref = atomic_load_explicit(&slot->ref, memory_order_acquire);
	return ref;
}

csink_ref_t csink_index_insert(struct csink_index *index, uint64_t hash, csink_ref_t ref, uint32_t aux,
			       csink_index_match match, const void *key)
{
	uint32_t level = level_for_insert(index);
	struct csink_index_slot *slots = atomic_load_explicit(&index->levels[level], memory_order_acquire);

	for (uint32_t i = 0; i < CSINK_INDEX_PROBES; i++) {
		struct csink_index_slot *slot = csink_index_slot(slots, level, hash, i);
		uint64_t has = 0;

		if (atomic_compare_exchange_strong_explicit(&slot->hash, &has, hash, memory_order_relaxed,
							    memory_order_relaxed)) {
			atomic_store_explicit(&slot->aux, aux, memory_order_relaxed);
			/* Pairs with the acquire in find: the entry and aux are there when ref is. */
			atomic_store_explicit(&slot->ref, ref, memory_order_release);
			atomic_fetch_add_explicit(&index->used[level], 1, memory_order_relaxed);
			return ref;
		}
		/* Equal entries try the same slots in the same order, so the later of two comes by the first. */
		if (CSINK_UNLIKELY(has == hash)) {
			csink_ref_t other = published_ref(slot);

			if (other && match(other, atomic_load_explicit(&slot->aux, memory_order_relaxed), key))
				return other;
		}
	}
	/* Crowded here: let the next insertion grow the table. */
	atomic_store_explicit(&index->used[level], csink_index_slots(level) / 2, memory_order_relaxed);
	return ref;
}
