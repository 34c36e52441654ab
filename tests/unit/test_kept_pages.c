/* Pages that stay known: which areas they may lie in, and what makes them unknown again. Addresses here are made up. */
#include "preload/agent/interp/kept_pages.h"

#include "tap.h"

enum { UNIT = 1 << 16 };

#define AT(units) ((void *)((uintptr_t)(units)*UNIT))

static struct csink_kept_pages kept;

static uintptr_t page(uint64_t units)
{
	return units * UNIT >> 12;
}

/* Is a page that is found readable known afterwards? It is not before. */
static bool is_kept(uint64_t units)
{
	bool was = csink_kept_has(&kept, page(units));

	csink_kept_put(&kept, page(units), atomic_load(&csink_kept_state));
	return !was && csink_kept_has(&kept, page(units));
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

	ok(csink_kept_has(&kept, page(100)), "a page stays known");
	csink_kept_changed(csink_kept_change(AT(5000), 4096, false));
	ok(!csink_kept_has(&kept, page(100)) && is_kept(100), "any page that is protected makes all unknown, once");
	changes = csink_kept_change(AT(5000), 4096, false);
	ok(!is_kept(101) && !csink_kept_has(&kept, page(100)), "while a call is under way nothing is known or kept");
	{
		bool second = csink_kept_change(AT(6000), 4096, false);

		csink_kept_changed(changes);
		ok(!is_kept(101), "nor while a second one is");
		csink_kept_changed(second);
	}
	ok(is_kept(101), "after both it is");
	{
		uint64_t before = atomic_load(&csink_kept_state);

		csink_kept_changed(csink_kept_change(AT(5000), 4096, false));
		csink_kept_put(&kept, page(102), before);
		ok(!csink_kept_has(&kept, page(102)), "what was found readable before a call is not known after it");
	}
}

static void removals(void)
{
	unmap(110, 6);
	ok(is_kept(109) && !is_kept(110) && !is_kept(115), "an area loses its end");
	unmap(92, 4);
	ok(!is_kept(95) && is_kept(96), "and its beginning");
	unmap(99, 1);
	ok(!is_kept(97) && !is_kept(99) && is_kept(100) && is_kept(109),
	   "of one that loses its middle the larger part stays");
	unmap(107, 1);
	ok(is_kept(106) && !is_kept(107) && !is_kept(108), "the same at the other side");
	csink_kept_changed(csink_kept_change((char *)AT(103) + 5, 1, true));
	ok(!is_kept(103), "a byte of a unit takes the unit");
	unmap(0, 1ULL << 31);
	ok(!is_kept(101) && !is_kept(105) && !is_kept(202), "a call over all of them leaves none");
}

static void many(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < 300; i++)
		csink_kept_add(AT(1000 + 10 * i), 4 * UNIT);
	for (uint32_t i = 0; i < 300; i++)
		nr += is_kept(1000 + 10 * i);
	ok(nr == 128, "of more areas than there is room for the last ones are known (%u)", nr);
	ok(csink_kept_has(&kept, page(1000 + 10 * 299)), "the newest is one of them");
	csink_kept_forked();
	ok(!csink_kept_has(&kept, page(1000 + 10 * 299)) && !is_kept(1000 + 10 * 299), "a forked child knows none");
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
	many();
	return done();
}
