/*
 * A hash table of ids: which id has the thing that hashes so? The things themselves are the caller's, and so is the
 * comparison. Keys come from csink_hash_*() (hash.h). Context: thread; allocates.
 *
 * What is to be found or added: CSINK_TABLE_INTERN. Where that does not do, csink_table_room(), CSINK_TABLE_PROBE, and
 * csink_table_set() where the slot is empty.
 */
#ifndef CSINK_TABLE_H
#define CSINK_TABLE_H

#include <stdint.h>

/* Open addressing, at most half full. All zero: empty. */
struct csink_table {
	struct csink_slot {
		uint32_t hash;
		uint32_t id; /* 0: empty */
	} * slots;
	uint32_t mask; /* slots less one; 0 before the first addition */
	uint32_t nr;
};

/** Give it nr_slots, a power of two that is more than there are. Returns 0, or -ENOMEM and it is as it was. */
int csink_table_resize(struct csink_table *table, uint64_t nr_slots);

/** Free its slots. */
void csink_table_free(struct csink_table *table);

/** Remove all ids; it keeps its slots. */
void csink_table_clear(struct csink_table *table);

/** How many slots it should have for one more id; 0: it has them. */
static inline uint64_t csink_table_want(const struct csink_table *table)
{
	if (table->slots && table->nr < table->mask / 2)
		return 0;
	return table->slots ? ((uint64_t)table->mask + 1) * 2 : 256;
}

/** Make room for one more id, before its look-up. Returns 0 or -ENOMEM. */
static inline int csink_table_room(struct csink_table *table)
{
	uint64_t want = csink_table_want(table);

	return want ? csink_table_resize(table, want) : 0;
}

/** Put an id into the slot that a probe with the same hash ended at, in place of its former one if any. */
static inline void csink_table_set(struct csink_table *table, struct csink_slot *slot, uint32_t hash, uint32_t id)
{
	table->nr += !slot->id;
	*slot = (struct csink_slot){hash, id};
}

/* Walk the slots of a 32-bit hash until `same` (an expression of `id`) holds or an empty one is met; slot is where it
 * stopped. */
#define CSINK_TABLE_PROBE(table, key, slot, same)                                                                      \
	do {                                                                                                           \
		uint32_t at_ = (key) & (table).mask, id;                                                               \
		for (;; at_ = (at_ + 1) & (table).mask) {                                                              \
			(slot) = &(table).slots[at_];                                                                  \
			id = (slot)->id;                                                                               \
			if (!id || ((slot)->hash == (key) && (same)))                                                  \
				break;                                                                                 \
		}                                                                                                      \
	} while (0)

/* The id for which `same` (an expression of `id`) holds; where none does, the last argument: an expression that adds
 * the thing to those that the table is of, and has its id, or 0 without memory. 0 without memory. */
#define CSINK_TABLE_INTERN(table, key, same, ...)                                                                      \
	({                                                                                                             \
		uint32_t key_ = (key), found_ = 0;                                                                     \
		struct csink_slot *slot_;                                                                              \
		if (!csink_table_room(&(table))) {                                                                     \
			CSINK_TABLE_PROBE(table, key_, slot_, same);                                                   \
			found_ = slot_->id ? slot_->id : (__VA_ARGS__);                                                \
			if (found_ && !slot_->id)                                                                      \
				csink_table_set(&(table), slot_, key_, found_);                                        \
		}                                                                                                      \
		found_;                                                                                                \
	})

#endif
