/*
 * Areas of the program's, and pages in them that are known: see kept_pages.h. Areas are stored by interposed calls on
 * any thread, in signal handlers, too; pages by the handler on its own thread.
 */
#include "preload/agent/interp/kept_pages.h"

#include <string.h>

#include "preload/core/private_memory.h"

/* Areas are counted in units. A large one is a word: first unit and last + 1; 0: none. Small ones, which V8 has by the
 * hundred at random addresses, are in blocks: a word is the block's number above a bit for each of its units. A block
 * is in its set or nowhere, and a word without bits is free. */
enum {
	UNIT_SHIFT = 16,
	BLOCK_SHIFT = 5,
	HALF = 32,
	LEAST_UNITS = 2,
	LARGE_UNITS = 128,
	NR_LARGE = 32,
	SETS_SHIFT = 9,
	SET_WORDS = 8,
	NR_WORDS = SET_WORDS << SETS_SHIFT,
	UNDER_WAY = 0xffff
};

struct areas {
	_Atomic uint64_t blocks[NR_WORDS];
	_Atomic uint64_t large[NR_LARGE];
	_Atomic uint32_t nr, next; /* how many were ever used; which gives way when none is free */
};

static struct areas *_Atomic areas; /* NULL: nothing is kept */

_Atomic uint64_t csink_kept_state;

static uint64_t make(uint64_t from, uint64_t to)
{
	return from + LEAST_UNITS <= to && to >> (HALF - 1) == 0 ? from << HALF | to : 0;
}

static uint64_t first_of(uint64_t area)
{
	return area >> HALF;
}

static uint64_t end_of(uint64_t area)
{
	return (uint32_t)area;
}

static uint64_t units_up(uint64_t bytes)
{
	return (bytes + (1UL << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
}

void csink_kept_begin(void)
{
	if (!atomic_load(&areas))
		atomic_store(&areas, csink_private_get(sizeof(struct areas)));
}

bool csink_kept_is_on(void)
{
	return atomic_load_explicit(&areas, memory_order_relaxed);
}

static _Atomic uint64_t *set_of(struct areas *table, uint64_t block)
{
	return &table->blocks[(block * 0x9e3779b97f4a7c15ULL >> (64 - SETS_SHIFT)) * SET_WORDS];
}

static uint32_t units_in(uint64_t word, uint64_t block)
{
	return word >> HALF == block ? (uint32_t)word : 0;
}

/* Bits of the block's units from @from to before @to. */
static uint32_t bits_of(uint64_t block, uint64_t from, uint64_t to)
{
	uint64_t first = block << BLOCK_SHIFT, low = CSINK_MAX(from, first) - first;

	return (uint32_t)((1ULL << (CSINK_MIN(to, first + 32) - first)) - (1ULL << low));
}

static void add_small(struct areas *table, uint64_t from, uint64_t to)
{
	for (uint64_t block = from >> BLOCK_SHIFT; block << BLOCK_SHIFT < to; block++) {
		_Atomic uint64_t *set = set_of(table, block);
		uint64_t word, made;
		uint32_t i, free = SET_WORDS;

		for (i = 0; i < SET_WORDS && !units_in(set[i], block); i++)
			if (!(uint32_t)set[i])
				free = i;
		if (i == SET_WORDS && (i = free) == SET_WORDS)
			continue;
		word = set[i];
		do {
			if ((uint32_t)word && word >> HALF != block)
				break;
			made = block << HALF | units_in(word, block) | bits_of(block, from, to);
		} while (!atomic_compare_exchange_weak(&set[i], &word, made));
	}
}

static void remove_small(struct areas *table, uint64_t from, uint64_t to)
{
	uint64_t first = from >> BLOCK_SHIFT, end = (to + 31) >> BLOCK_SHIFT;
	bool is_all = end - first > NR_WORDS / SET_WORDS;
	uint32_t nr = is_all ? NR_WORDS : (uint32_t)(end - first) * SET_WORDS;

	for (uint32_t i = 0; i < nr; i++) {
		_Atomic uint64_t *at =
			is_all ? &table->blocks[i] : &set_of(table, first + i / SET_WORDS)[i % SET_WORDS];
		uint64_t word = *at, block = is_all ? word >> HALF : first + i / SET_WORDS;

		while (block >= first && block < end && units_in(word, block) & bits_of(block, from, to) &&
		       !atomic_compare_exchange_weak(at, &word, word & ~(uint64_t)bits_of(block, from, to)))
			;
	}
}

/* A child does not have what its parent has kept for itself (MADV_DONTFORK, as V8 does): it starts without areas. */
void csink_kept_forked(void)
{
	struct areas *table = atomic_load(&areas);

	/* What is written to is copied. */
	for (uint32_t i = 0; table && i < NR_WORDS; i++)
		if (table->blocks[i])
			table->blocks[i] = 0;
	if (table)
		memset(table->large, 0, sizeof(table->large));
	atomic_store(&csink_kept_state, (atomic_load(&csink_kept_state) | UNDER_WAY) + 1);
}

/* Large areas that touch become one: many heaps grow by pieces. */
void csink_kept_add(const void *memory, size_t bytes)
{
	uintptr_t at = (uintptr_t)memory;
	struct areas *table = atomic_load_explicit(&areas, memory_order_acquire);
	uint64_t added = make(units_up(at), (at + bytes) >> UNIT_SHIFT);

	if (!table || !added)
		return;
	if (end_of(added) - first_of(added) < LARGE_UNITS) {
		add_small(table, first_of(added), end_of(added));
		return;
	}
	for (uint32_t i = 0; i < NR_LARGE; i++) {
		uint64_t area = atomic_load(&table->large[i]), both = 0;

		if (!area || (first_of(area) <= first_of(added) && end_of(area) >= end_of(added)))
			both = area ? area : added;
		else if (end_of(area) == first_of(added))
			both = make(first_of(area), end_of(added));
		else if (end_of(added) == first_of(area))
			both = make(first_of(added), end_of(area));
		if (!both || !atomic_compare_exchange_strong(&table->large[i], &area, both))
			continue;
		if (i >= atomic_load(&table->nr))
			atomic_store(&table->nr, i + 1);
		return;
	}
	atomic_store(&table->large[atomic_fetch_add(&table->next, 1) % NR_LARGE], added);
}

/* Of an area that loses its middle the larger part stays. */
static uint64_t without(uint64_t area, uint64_t from, uint64_t to)
{
	uint64_t before = make(first_of(area), CSINK_MIN(end_of(area), from));
	uint64_t after = make(CSINK_MAX(first_of(area), to), end_of(area));

	return end_of(before) - first_of(before) >= end_of(after) - first_of(after) ? before : after;
}

bool csink_kept_change(const void *memory, size_t bytes, bool is_gone)
{
	uintptr_t at = (uintptr_t)memory;
	struct areas *table = atomic_load_explicit(&areas, memory_order_acquire);
	uint64_t from = at >> UNIT_SHIFT, to = units_up(at + bytes);

	if (!table)
		return false;
	atomic_fetch_add(&csink_kept_state, 1);
	if (is_gone && from < to)
		remove_small(table, from, to);
	for (uint32_t i = 0; is_gone && i < atomic_load(&table->nr); i++) {
		uint64_t area = atomic_load(&table->large[i]);

		while (area && from < end_of(area) && to > first_of(area) &&
		       !atomic_compare_exchange_weak(&table->large[i], &area, without(area, from, to)))
			;
	}
	return true;
}

void csink_kept_changed(bool changes)
{
	if (changes)
		atomic_fetch_add(&csink_kept_state, UNDER_WAY);
}

static bool is_in_area(uintptr_t page)
{
	struct areas *table = atomic_load_explicit(&areas, memory_order_acquire);
	uint64_t unit = page >> (UNIT_SHIFT - 12), block = unit >> BLOCK_SHIFT;

	if (!table)
		return false;
	for (uint32_t i = 0; i < SET_WORDS; i++)
		if (units_in(set_of(table, block)[i], block) >> (unit & 31) & 1)
			return true;
	for (uint32_t i = 0; i < atomic_load_explicit(&table->nr, memory_order_relaxed); i++) {
		uint64_t area = atomic_load_explicit(&table->large[i], memory_order_relaxed);

		if (unit >= first_of(area) && unit < end_of(area))
			return true;
	}
	return false;
}

void csink_kept_put(struct csink_kept_pages *kept, uintptr_t page, uint64_t state)
{
	if (state & UNDER_WAY || !is_in_area(page))
		return;
	if (kept->state != state) {
		memset(kept->pages, 0, sizeof(kept->pages));
		kept->state = state;
	}
	*csink_kept_slot(kept, page) = page;
}
