#include "preload/record/stacks.h"

#include <errno.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "preload/sample/calls_off.h"

/*
 * A slot is 64 bits: the hash's high half beside the entry's reference, so that a probe touches an entry only when it
 * is almost certainly the right one. 0 is an empty slot (no entry lies at offset 0).
 */
typedef _Atomic uint64_t slot_t;

enum { NR_LEVELS = 11, FIRST_BITS = 10, MAX_PROBES = 24 };

struct index {
	slot_t *_Atomic levels[NR_LEVELS];
	_Atomic uint32_t used[NR_LEVELS];
	_Atomic uint32_t newest;
	slot_t first[1u << FIRST_BITS];
};

static struct index chains = {.levels = {chains.first}}, rows = {.levels = {rows.first}};

static uint32_t level_slots(uint32_t level)
{
	return 1u << (FIRST_BITS + 2 * level);
}

static void index_reset(struct index *index)
{
	for (uint32_t level = 1; level < NR_LEVELS; level++) {
		slot_t *slots = atomic_load(&index->levels[level]);

		if (slots)
			munmap(slots, level_slots(level) * sizeof(*slots));
		atomic_store(&index->levels[level], NULL);
		atomic_store(&index->used[level], 0);
	}
	/* Mostly empty in a program that has just started: do not touch pages that were never written. */
	if (atomic_load(&index->used[0]))
		memset((void *)index->first, 0, sizeof(index->first));
	atomic_store(&index->used[0], 0);
	atomic_store(&index->newest, 0);
}

void csink_stacks_reset(void)
{
	index_reset(&chains);
	index_reset(&rows);
}

/* The table that new entries go to, one level up when it is half full. A failed growth lets the old one fill. */
static uint32_t level_for_insert(struct index *index)
{
	uint32_t level = atomic_load_explicit(&index->newest, memory_order_acquire);
	slot_t *slots, *none = NULL;
	int saved = errno;

	if (atomic_load_explicit(&index->used[level], memory_order_relaxed) < level_slots(level) / 2 ||
	    level + 1 == NR_LEVELS || csink_calls_are_off(CSINK_CALLS_MEMORY))
		return level;
	slots = mmap(NULL, level_slots(level + 1) * sizeof(*slots), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	errno = saved;
	if (slots == MAP_FAILED)
		return level;
	madvise(slots, level_slots(level + 1) * sizeof(*slots), MADV_DONTDUMP);
	/* Release pairs with the acquire of newest and levels in the readers: a level is seen zeroed or not at all. */
	if (!atomic_compare_exchange_strong_explicit(&index->levels[level + 1], &none, slots, memory_order_release,
						     memory_order_relaxed))
		munmap(slots, level_slots(level + 1) * sizeof(*slots));
	errno = saved;
	atomic_compare_exchange_strong_explicit(&index->newest, &level, level + 1, memory_order_release,
						memory_order_acquire);
	return atomic_load_explicit(&index->newest, memory_order_acquire);
}

typedef bool (*match_fn)(const struct csink_recording *rec, const void *entry, const void *key);

static inline __attribute__((always_inline)) void *index_find(struct index *index, const struct csink_recording *rec,
							      uint64_t hash, match_fn match, const void *key)
{
	/* Newest first: what a program does now was mostly first seen lately. */
	for (int level = (int)atomic_load_explicit(&index->newest, memory_order_acquire); level >= 0; level--) {
		slot_t *slots = atomic_load_explicit(&index->levels[level], memory_order_acquire);
		uint32_t mask = level_slots((uint32_t)level) - 1;

		for (uint32_t i = 0; slots && i < MAX_PROBES; i++) {
			/* Acquire pairs with the release in index_insert: the entry behind a slot is complete. */
			uint64_t slot = atomic_load_explicit(&slots[(hash + i) & mask], memory_order_acquire);

			if (!slot)
				break;
			if (slot >> 32 == hash >> 32) {
				void *entry = csink_recording_at(rec, (csink_ref_t)slot);

				if (match(rec, entry, key))
					return entry;
			}
		}
	}
	return NULL;
}

/* Publish an entry. Two threads may publish equal ones at once: both are found by nobody or anybody, and the reader of
 * the recording adds equal stacks up anyway. A table with no free place near leaves the entry unindexed, the same way.
 */
static void index_insert(struct index *index, uint64_t hash, csink_ref_t ref)
{
	uint32_t level = level_for_insert(index);
	slot_t *slots = atomic_load_explicit(&index->levels[level], memory_order_acquire);
	uint32_t mask = level_slots(level) - 1;
	uint64_t slot = hash >> 32 << 32 | ref;

	for (uint32_t i = 0; i < MAX_PROBES; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong_explicit(&slots[(hash + i) & mask], &none, slot,
							    memory_order_release, memory_order_relaxed)) {
			atomic_fetch_add_explicit(&index->used[level], 1, memory_order_relaxed);
			return;
		}
	}
	/* Crowded here: let the next insertion grow the table. */
	atomic_store_explicit(&index->used[level], level_slots(level) / 2, memory_order_relaxed);
}

static inline uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	h ^= h >> 32;
	return h;
}

/* Two independent lanes, so that the multiplications overlap. */
static uint64_t hash_frames(const uint64_t *frames, uint32_t n)
{
	uint64_t a = 0x9e3779b97f4a7c15ULL + n, b = 0xc2b2ae3d27d4eb4fULL;
	uint32_t i;

	for (i = 0; i + 2 <= n; i += 2) {
		a = (a ^ frames[i]) * 0x9fb21c651e98df25ULL;
		b = (b ^ frames[i + 1]) * 0xff51afd7ed558ccdULL;
		a ^= a >> 29;
		b ^= b >> 31;
	}
	if (i < n)
		a = (a ^ frames[i]) * 0x9fb21c651e98df25ULL;
	return mix(a ^ mix(b));
}

static uint64_t hash_chain(const struct csink_sample *sample)
{
	return hash_frames(sample->frames, sample->nr_frames) ^ sample->epoch * 0x9e3779b97f4a7c15ULL;
}

/* By fours: most comparisons are of equal ones. */
static bool same_frames(const uint64_t *a, const uint64_t *b, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 4 <= n; i += 4)
		if ((a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) | (a[i + 3] ^ b[i + 3]))
			return false;
	for (; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static bool same_chain(const struct csink_rec_chain *chain, const struct csink_sample *sample)
{
	if (chain->nr_frames != sample->nr_frames || chain->epoch != sample->epoch ||
	    chain->head.aux != sample->chain_flags)
		return false;
	return same_frames(chain->frames, sample->frames, sample->nr_frames);
}

static bool match_chain(const struct csink_recording *rec, const void *entry, const void *key)
{
	(void)rec;
	return same_chain(entry, key);
}

static bool match_row(const struct csink_recording *rec, const void *entry, const void *key)
{
	const struct csink_rec_row *row = entry;
	const struct csink_sample *sample = key;

	return row->leaf == sample->leaf && row->thread == sample->thread && row->head.aux == sample->phase &&
	       same_chain(csink_recording_at(rec, row->chain), sample);
}

/* As match_row, where the sample's chain is the memo's. */
static bool match_row_of_memo(const struct csink_recording *rec, const void *entry, const void *key)
{
	const struct csink_rec_row *row = entry;
	const struct csink_sample *sample = key;

	return row->leaf == sample->leaf && row->thread == sample->thread && row->head.aux == sample->phase &&
	       row->chain == csink_recording_ref(rec, sample->memo->chain);
}

static struct csink_rec_chain *chain_get(struct csink_recording *rec, struct csink_writer *writer,
					 const struct csink_sample *sample, uint64_t hash)
{
	struct csink_rec_chain *chain = index_find(&chains, rec, hash, match_chain, sample);
	uint32_t bytes = (uint32_t)sizeof(*chain) + sample->nr_frames * 8;

	if (chain)
		return chain;
	chain = csink_recording_reserve(rec, writer, bytes);
	if (!chain)
		return NULL;
	chain->nr_frames = sample->nr_frames;
	chain->epoch = sample->epoch;
	chain->first_ns = sample->time_ns;
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		chain->frames[i] = sample->frames[i];
	csink_recording_commit(chain, bytes, CSINK_ENTRY_CHAIN, sample->chain_flags);
	index_insert(&chains, hash, csink_recording_ref(rec, chain));
	return chain;
}

struct csink_rec_row *csink_stacks_row(struct csink_recording *rec, struct csink_writer *writer,
				       const struct csink_sample *sample)
{
	struct csink_chain_memo *memo = sample->memo;
	bool known = memo->chain && same_chain(memo->chain, sample);
	uint64_t chain_hash = known ? memo->hash : hash_chain(sample);
	uint64_t hash = mix(chain_hash ^ sample->leaf * 0x9e3779b97f4a7c15ULL ^
			    ((uint64_t)sample->thread << 16 ^ sample->phase));
	struct csink_rec_row *row = known ? index_find(&rows, rec, hash, match_row_of_memo, sample)
					  : index_find(&rows, rec, hash, match_row, sample);
	uint32_t bytes = (uint32_t)sizeof(*row) + rec->header->nr_events * 8;
	const struct csink_rec_chain *chain;

	if (CSINK_LIKELY(row != NULL)) {
		if (!known)
			*memo = (struct csink_chain_memo){csink_recording_at(rec, row->chain), chain_hash};
		return row;
	}
	chain = known ? memo->chain : chain_get(rec, writer, sample, chain_hash);
	if (chain)
		*memo = (struct csink_chain_memo){chain, chain_hash};
	row = chain ? csink_recording_reserve(rec, writer, bytes) : NULL;
	if (!row)
		return NULL;
	row->thread = sample->thread;
	row->chain = csink_recording_ref(rec, chain);
	row->leaf = sample->leaf;
	csink_recording_commit(row, bytes, CSINK_ENTRY_ROW, sample->phase);
	index_insert(&rows, hash, csink_recording_ref(rec, row));
	return row;
}

/* A store of our own, never torn, that the launcher may read while we run; the row has one writer. */
static inline void add_relaxed(uint64_t *to, uint64_t n)
{
	_Atomic uint64_t *a = (_Atomic uint64_t *)to;

	atomic_store_explicit(a, atomic_load_explicit(a, memory_order_relaxed) + n, memory_order_relaxed);
}

void csink_row_add(struct csink_rec_row *row, const uint64_t *weights, uint32_t nr_weights, uint64_t nr)
{
	add_relaxed(&row->nr_samples, nr);
	for (uint32_t i = 0; i < nr_weights; i++)
		add_relaxed(&row->weights[i], weights[i]);
}
