/*
 * Areas of the program's, and pages in them that are known: see kept_pages.h. Areas are stored by interposed calls on
 * any thread, in signal handlers, too; pages by the handler on its own thread.
 */
#include "preload/agent/interp/kept_pages.h"

#include <string.h>

#include "preload/core/private_memory.h"

/* An area is a word: first and last + 1, in units that are large enough for both to fit. 0: none. */
enum { UNIT_SHIFT = 16, HALF = 32, NR_AREAS = 128, LEAST_UNITS = 2, UNDER_WAY = 0xffff };

struct areas {
	_Atomic uint64_t at[NR_AREAS];
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

/* A child does not have what its parent has kept for itself (MADV_DONTFORK, as V8 does): it starts without areas. */
void csink_kept_forked(void)
{
	struct areas *table = atomic_load(&areas);

	if (table)
		memset(table, 0, sizeof(*table));
	atomic_store(&csink_kept_state, (atomic_load(&csink_kept_state) | UNDER_WAY) + 1);
}

/* Areas that touch become one: many heaps grow by pieces. */
void csink_kept_add(const void *memory, size_t bytes)
{
	uintptr_t at = (uintptr_t)memory;
	struct areas *table = atomic_load_explicit(&areas, memory_order_acquire);
	uint64_t added = make(units_up(at), (at + bytes) >> UNIT_SHIFT);

	if (!table || !added)
		return;
	for (uint32_t i = 0; i < NR_AREAS; i++) {
		uint64_t area = atomic_load(&table->at[i]), both = 0;

		if (!area || (first_of(area) <= first_of(added) && end_of(area) >= end_of(added)))
			both = area ? area : added;
		else if (end_of(area) == first_of(added))
			both = make(first_of(area), end_of(added));
		else if (end_of(added) == first_of(area))
			both = make(first_of(added), end_of(area));
		if (!both || !atomic_compare_exchange_strong(&table->at[i], &area, both))
			continue;
		if (i >= atomic_load(&table->nr))
			atomic_store(&table->nr, i + 1);
		return;
	}
	atomic_store(&table->at[atomic_fetch_add(&table->next, 1) % NR_AREAS], added);
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

	if (!table)
		return false;
	atomic_fetch_add(&csink_kept_state, 1);
	for (uint32_t i = 0; i < NR_AREAS && is_gone; i++) {
		uint64_t area = atomic_load(&table->at[i]), from = at >> UNIT_SHIFT, to = units_up(at + bytes);

		while (area && from < end_of(area) && to > first_of(area) &&
		       !atomic_compare_exchange_weak(&table->at[i], &area, without(area, from, to)))
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
	uint64_t unit = page >> (UNIT_SHIFT - 12);

	for (uint32_t i = 0; table && i < atomic_load_explicit(&table->nr, memory_order_relaxed); i++) {
		uint64_t area = atomic_load_explicit(&table->at[i], memory_order_relaxed);

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
