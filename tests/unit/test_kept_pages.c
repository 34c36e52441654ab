/* Pages that stay known: which areas they may lie in, and what makes them unknown again. Addresses here are made up. */
#include "preload/agent/unwind/kept_pages.h"

#include "tap.h"

enum { UNIT = 1 << 16 };

#define AT(units) ((void *)((uintptr_t)(units)*UNIT))

static uintptr_t page(uint64_t units)
{
	return units * UNIT >> 12;
}

static void ask(uint64_t units)
{
	uint64_t asked = csink_kept_ask(page(units));

	if (asked != CSINK_KEPT_NONE)
		csink_kept_put(page(units), asked);
}

/* Is a page that is found readable known afterwards? It is not before. */
static bool is_kept(uint64_t units)
{
	bool was = csink_kept_has(page(units));

	ask(units);
	return !was && csink_kept_has(page(units));
}

static void unmap(uint64_t from, uint64_t units)
{
	csink_kept_changed(csink_kept_change(AT(from), units * UNIT, true));
}

static void before_a_language(void)
{
	csink_kept_add(AT(100), 8 * UNIT);
	ok(!csink_kept_change(AT(100), UNIT, true), "nothing is kept before there is a language");
	csink_kept_changed(false);
	ok(!is_kept(100), "a page is not known then");
	csink_kept_begin();
	ok(!is_kept(100), "an area that was mapped before is not known");
}

static void areas(void)
{
	csink_kept_add(AT(100), 8 * UNIT);
	ok(is_kept(100) && is_kept(107), "pages of an area are kept, the first and the last");
	ok(!is_kept(99) && !is_kept(108), "pages beside it are not");
	csink_kept_add(AT(108), 8 * UNIT);
	ok(is_kept(108) && is_kept(115) && !is_kept(116), "an area behind it is joined to it");
	csink_kept_add(AT(92), 8 * UNIT);
	ok(is_kept(92) && !is_kept(91), "and one before it");
	csink_kept_add((char *)AT(200) + 4096, 4 * UNIT);
	ok(!is_kept(200) && is_kept(201) && is_kept(203) && !is_kept(204), "parts of a unit at both ends are left out");
	csink_kept_add(AT(300), UNIT);
	ok(!is_kept(300), "an area of less than 128 KiB is left out");
	csink_kept_add(AT((1ULL << 32) + 100), 4 * UNIT);
	ok(!is_kept((1ULL << 32) + 100) && !is_kept(98 + (1ULL << 32)), "an address that is too large is left out");
}

static void changes(void)
{
	bool changes;

	ok(csink_kept_has(page(100)), "a page stays known");
	csink_kept_changed(csink_kept_change(AT(5000), 4096, false));
	ok(!csink_kept_has(page(100)) && is_kept(100), "any page that is protected makes all unknown, once");
	changes = csink_kept_change(AT(5000), 4096, false);
	ok(!is_kept(101) && !csink_kept_has(page(100)), "while a call is under way nothing is known or kept");
	{
		bool second = csink_kept_change(AT(6000), 4096, false);

		csink_kept_changed(changes);
		ok(!is_kept(101), "nor while a second one is");
		csink_kept_changed(second);
	}
	ok(is_kept(101), "after both it is");
	{
		uint64_t asked = csink_kept_ask(page(102));

		csink_kept_changed(csink_kept_change(AT(5000), 4096, false));
		csink_kept_put(page(102), asked);
		ok(!csink_kept_has(page(102)), "what was found readable before a call is not known after it");
	}
}

static void removals(void)
{
	unmap(110, 6);
	ok(is_kept(109) && !is_kept(110) && !is_kept(115), "an area loses its end");
	unmap(92, 4);
	ok(!is_kept(95) && is_kept(96), "and its beginning");
	unmap(99, 1);
	ok(is_kept(98) && !is_kept(99) && is_kept(100), "of one that loses its middle both sides stay");
	csink_kept_changed(csink_kept_change((char *)AT(103) + 5, 1, true));
	ok(!is_kept(103), "a byte of a unit takes the unit");
	unmap(0, 1ULL << 31);
	ok(!is_kept(101) && !is_kept(105) && !is_kept(202), "a call over all of them leaves none");
	csink_kept_add(AT(400), 8 * UNIT);
	csink_kept_add(AT(1 << 20), 8 * UNIT);
	unmap(402, 1 << 13);
	ok(is_kept(401) && !is_kept(402) && is_kept(1 << 20),
	   "a large call takes a part of an area, and none behind it");
}

static void large_ones(void)
{
	csink_kept_add(AT(10000), 1000 * UNIT);
	ok(is_kept(10000) && is_kept(10500) && is_kept(10999) && !is_kept(9999) && !is_kept(11000),
	   "pages of a large area");
	csink_kept_add(AT(20000), 999 * UNIT);
	unmap(20000, 10);
	unmap(20995, 4);
	ok(!is_kept(20009) && is_kept(20010) && is_kept(20994) && !is_kept(20995), "it loses both ends");
	unmap(20500, 1);
	ok(!is_kept(20480) && !is_kept(20500) && is_kept(20479) && is_kept(20736),
	   "of its middle it loses 16 MiB at a time");
	csink_kept_add(AT(20500), 2 * UNIT);
	ok(is_kept(20500), "a part of it can be added again");
	unmap(20001, 997);
	ok(!is_kept(20010) && !is_kept(20500) && is_kept(10000), "a call over all of it leaves none of it");
	csink_kept_add(AT(512), 512 * UNIT);
	csink_kept_add(AT(1025), 511 * UNIT);
	ok(is_kept(512) && is_kept(1023) && !is_kept(1024) && is_kept(1025) && is_kept(1535) && !is_kept(511) &&
		   !is_kept(1536),
	   "areas that have no small units, and none of the first large one");
	unmap(0, 1ULL << 31);
	ok(!is_kept(10000) && !is_kept(512), "a call over all areas leaves none");
}

static uint32_t add_many(uint64_t first, uint64_t distance, uint64_t units, uint32_t nr)
{
	uint32_t nr_kept = 0;

	for (uint32_t i = 0; i < nr; i++)
		csink_kept_add(AT(first + distance * i), units * UNIT);
	for (uint32_t i = 0; i < nr; i++)
		nr_kept += is_kept(first + distance * i);
	return nr_kept;
}

static void many(void)
{
	uint32_t nr = add_many(1000, 10, 4, 300);

	ok(nr == 300, "300 small areas are known (%u)", nr);
	nr = add_many(1 << 20, 101, 4, 2000);
	ok(nr > 1900, "2,000 more, but for those whose set has no room (%u)", nr);
	nr = add_many(1 << 24, 10000, 5120, 40);
	ok(nr >= 35, "40 large ones beside them, but for those whose set has no room (%u)", nr);
	for (uint64_t i = 0; i < 20; i++)
		unmap((1 << 20) + 10100 * i, 10100);
	nr = 0;
	for (uint64_t i = 0; i < 2000; i++)
		nr += is_kept((1 << 20) + 101 * i);
	ok(!nr && is_kept(1000), "2,000 areas that are unmapped, 100 at once, and no others (%u)", nr);
	nr = add_many(1 << 22, 97, 4, 2000);
	ok(nr > 1900, "leave room for others (%u)", nr);
	csink_kept_forked();
	ok(!csink_kept_has(page(1000)) && !is_kept(1000) && !is_kept(1 << 24) && !is_kept(1 << 22),
	   "a forked child knows none");
	csink_kept_add(AT(100), 8 * UNIT);
	ok(is_kept(100), "but those that it maps");
	csink_kept_change(AT(100), 1, false);
	csink_kept_forked();
	csink_kept_add(AT(100), 8 * UNIT);
	ok(is_kept(100), "a call of another thread that was under way at fork does not count in the child");
}

int main(void)
{
	before_a_language();
	areas();
	changes();
	removals();
	large_ones();
	many();
	return done();
}
