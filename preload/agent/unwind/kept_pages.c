/*
 * Areas of the program's, and pages in them that are known: see kept_pages.h. Areas are stored by interposed calls on
 * any thread, in signal handlers, too. Known pages are the process's: handlers of all threads store them and look them
 * up without a lock. Each is one atomic word, its number and how many calls there had been, so that a race can only
 * lose a page, which is asked for again.
 */
#include "preload/agent/unwind/kept_pages.h"

#include "preload/core/private_memory.h"

/*
 * Areas are counted in units of 64 KiB, and what is in a large one in units of 16 MiB. 32 units are a block, which is a
 * word of its set: its number above a bit for each unit that lies in an area. A word without bits is free. V8 has areas
 * by the hundred at random addresses.
 */
enum {
	UNIT_SHIFT = 16,
	MORE_SHIFT = 8, /* of large units */
	BLOCK_SHIFT = 5,
	BLOCK_UNITS = 1 << BLOCK_SHIFT,
	NUMBER_SHIFT = 32,
	LEAST_UNITS = 2,
	LARGE_UNITS = 2 << MORE_SHIFT,
	SETS_SHIFT = 9,
	SET_WORDS = 8,
	NR_WORDS = SET_WORDS << SETS_SHIFT,
	MOST_UNITS = 1 << 14, /* a call that takes away more leaves no area */
	UNDER_WAY = 0xffff,
	STATE_SHIFT = 16,
	PAGE_BITS = 36, /* of a known page's number; above it in its word: how many calls there had been */
	PAGES_SHIFT = 10,
	NR_PAGES = 1 << PAGES_SHIFT,
	MOST_CALLS =
		1 << 26, /* after so many all pages are forgotten: their words would repeat after four times as many */
};

/* NULL: nothing is kept; set once, to memory that is all 0. Known pages follow, each in the pair of its
 * number's hash. */
static _Atomic uint64_t *_Atomic areas;

/* Changed before and after a call that takes pages away; loaded before a page is asked for, and before it is read. */
_Atomic uint64_t csink_kept_state;

_Static_assert(MOST_CALLS < 1ULL << (64 - PAGE_BITS), "a word has room for the calls until pages are forgotten");

void csink_kept_begin(void)
{
	_Atomic uint64_t *none = NULL, *made = areas ? NULL : csink_private_get((NR_WORDS + NR_PAGES) * sizeof(*made));

	if (made)
		atomic_compare_exchange_strong(&areas, &none, made);
}

static uint64_t units_up(uintptr_t address)
{
	return (address + (1UL << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
}

bool csink_kept_is_on(void)
{
	return atomic_load_explicit(&areas, memory_order_relaxed);
}

/* Blocks of large units have the numbers that no block of small ones has. */
static uint64_t number_of(uint64_t unit, bool is_large)
{
	return unit >> BLOCK_SHIFT | (uint64_t)is_large << (NUMBER_SHIFT - 2);
}

static _Atomic uint64_t *set_of(uint64_t number)
{
	return &areas[(number * 0x9e3779b97f4a7c15ULL >> (64 - SETS_SHIFT)) * SET_WORDS];
}

/* The units of a word, if it is that block's. */
static uint32_t units_in(uint64_t word, uint64_t number)
{
	return word >> NUMBER_SHIFT == number ? (uint32_t)word : 0;
}

/* Of two calls that add to a set at the same time one may add nothing: that is safe. */
static void add(uint64_t number, uint32_t units)
{
	_Atomic uint64_t *set = set_of(number), *to = NULL;
	uint64_t word;

	for (uint32_t i = 0; i < SET_WORDS; i++)
		if (units_in(set[i], number) || (!(uint32_t)set[i] && !to))
			to = &set[i];
	if (!to)
		return;
	word = *to;
	if (!(uint32_t)word || units_in(word, number))
		atomic_compare_exchange_strong(to, &word, number << NUMBER_SHIFT | units_in(word, number) | units);
}

/* If the word became another block's, that loses units: that is safe, too. */
static void remove_units(uint64_t number, uint32_t units)
{
	_Atomic uint64_t *set = set_of(number);

	for (uint32_t i = 0; i < SET_WORDS; i++)
		if (units_in(set[i], number) & units)
			atomic_fetch_and(&set[i], ~(uint64_t)units);
}

static void for_each_block(uint64_t from, uint64_t to, bool is_large, void (*call)(uint64_t number, uint32_t units))
{
	for (uint64_t end; from < to; from = end) {
		end = CSINK_MIN(to, (from | (BLOCK_UNITS - 1)) + 1);
		call(number_of(from, is_large), UINT32_MAX >> (BLOCK_UNITS - (end - from)) << from % BLOCK_UNITS);
	}
}

/* Set words to 0. In a child, a page that is written to is copied. */
static void forget(uint32_t from, uint32_t to)
{
	_Atomic uint64_t *words = areas;

	for (uint32_t i = from; words && i < to; i++)
		if (words[i])
			words[i] = 0;
}

/* A child does not have what its parent has kept for itself (MADV_DONTFORK, as V8 does): it starts without areas. */
void csink_kept_forked(void)
{
	forget(0, NR_WORDS + NR_PAGES);
	atomic_store(&csink_kept_state, (atomic_load(&csink_kept_state) | UNDER_WAY) + 1);
}

void csink_kept_add(const void *memory, size_t bytes)
{
	uint64_t from = units_up((uintptr_t)memory), to = ((uintptr_t)memory + bytes) >> UNIT_SHIFT, low = to,
		 high = to;

	if (!csink_kept_is_on() || from + LEAST_UNITS > to || to >> (NUMBER_SHIFT - 1))
		return;
	if (to - from >= LARGE_UNITS) {
		low = ((from - 1) >> MORE_SHIFT) + 1;
		high = to >> MORE_SHIFT;
		for_each_block(low, high, true, add);
		low <<= MORE_SHIFT;
		high <<= MORE_SHIFT;
	}
	for_each_block(from, low, false, add);
	for_each_block(high, to, false, add);
}

bool csink_kept_change(const void *memory, size_t bytes, bool is_gone)
{
	uint64_t from = (uintptr_t)memory >> UNIT_SHIFT, to = units_up((uintptr_t)memory + bytes);

	if (!csink_kept_is_on())
		return false;
	atomic_fetch_add(&csink_kept_state, 1);
	if (is_gone && from < to && to - from > MOST_UNITS) {
		forget(0, NR_WORDS);
	} else if (is_gone && from < to) {
		for_each_block(from, to, false, remove_units);
		for_each_block(from >> MORE_SHIFT, ((to - 1) >> MORE_SHIFT) + 1, true, remove_units);
	}
	return true;
}

/* In a child that a handler forked during the call, it is not under way. */
void csink_kept_changed(bool changes)
{
	uint64_t state = atomic_load(&csink_kept_state), next;

	if (!changes)
		return;
	do {
		next = state + UNDER_WAY + !(state & UNDER_WAY);
	} while (!atomic_compare_exchange_weak(&csink_kept_state, &state, next));
	if ((next >> STATE_SHIFT) % MOST_CALLS == 0)
		forget(NR_WORDS, NR_WORDS + NR_PAGES);
}

static bool is_in_area(uintptr_t page)
{
	for (int is_large = 0; is_large < 2 && csink_kept_is_on(); is_large++) {
		uint64_t unit = page >> (UNIT_SHIFT - 12 + is_large * MORE_SHIFT), number = number_of(unit, is_large);
		_Atomic uint64_t *set = set_of(number);

		for (uint32_t i = 0; i < SET_WORDS; i++)
			if (units_in(set[i], number) >> unit % BLOCK_UNITS & 1)
				return true;
	}
	return false;
}

static _Atomic uint64_t *pair_of(uintptr_t page)
{
	return &areas[NR_WORDS + (page * 0x9e3779b97f4a7c15ULL >> (64 - PAGES_SHIFT) & ~1UL)];
}

static uint64_t page_word(uintptr_t page, uint64_t state)
{
	return page | state >> STATE_SHIFT << PAGE_BITS;
}

bool csink_kept_has(uintptr_t page)
{
	uint64_t state = atomic_load_explicit(&csink_kept_state, memory_order_acquire), word = page_word(page, state);
	_Atomic uint64_t *pair;

	if (!page || page >> PAGE_BITS || state & UNDER_WAY || !csink_kept_is_on())
		return false;
	pair = pair_of(page);
	return pair[0] == word || pair[1] == word;
}

uint64_t csink_kept_ask(uintptr_t page)
{
	uint64_t state = atomic_load_explicit(&csink_kept_state, memory_order_acquire);

	return state & UNDER_WAY || !page || page >> PAGE_BITS || !is_in_area(page) ? CSINK_KEPT_NONE : state;
}

void csink_kept_put(uintptr_t page, uint64_t asked)
{
	_Atomic uint64_t *pair = pair_of(page);

	pair[1] = pair[0];
	pair[0] = page_word(page, asked);
}
