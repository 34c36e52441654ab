/*
 * Loads that survive bad addresses: the kernel is asked whether a page can be read, by a call that fails either way.
 *
 * csink_raw_try_load() changes and opens nothing, takes no fd, and every seccomp filter that lets libc live allows it.
 * Any thread; async-signal-safe.
 */
#include "preload/core/safe_load.h"

#include <errno.h>
#include <stddef.h>

#include "include/internal/rawcall.h"
#include "preload/core/calls_off.h"

#define PAGE 4096UL /* the smallest page; on larger ones a probe is merely asked more often */

volatile uint32_t csink_calls_off;

/* The page that holds addr; all of it shares one answer. A null set would mean "change nothing" and succeed. */
static bool page_readable(uintptr_t addr)
{
	const void *first = (const void *)(addr & ~(PAGE - 1));

	return first && !csink_calls_are_off(CSINK_CALLS_PROBE) && csink_raw_try_load(first) == -EINVAL;
}

bool csink_readable(uintptr_t addr, uintptr_t bytes)
{
	uintptr_t last = addr + (bytes ? bytes - 1 : 0);

	if (last < addr)
		return false;
	for (uintptr_t page = addr & ~(PAGE - 1);; page += PAGE) {
		if (!page_readable(page))
			return false;
		if (last - page < PAGE)
			return true;
	}
}

static bool page_known(struct csink_loader *loader, uintptr_t page)
{
	if (loader->pages[0] == page || loader->pages[1] == page ||
	    (page >= loader->low && page < loader->high && loader->high - page >= PAGE))
		return true;
	loader->nr_checks++;
	if (!page_readable(page))
		return false;
	if (loader->low == loader->high) /* nothing known yet: most likely the walk's stack begins here */
		loader->low = page;
	else if (loader->high != page)
		goto elsewhere;
	loader->high = page + PAGE;
	return true;
elsewhere:
	loader->pages[loader->nr_checks & 1] = page;
	return true;
}

bool csink_load_word_slow(struct csink_loader *loader, uintptr_t addr, uint64_t *value)
{
	uintptr_t page = addr & ~(PAGE - 1), last_page = (addr + 7) & ~(PAGE - 1);

	if (!page || last_page < page) /* page 0 also means "none" in the loader */
		return false;
	if (!page_known(loader, page) || (last_page != page && !page_known(loader, last_page)))
		return false;
	*value = csink_load_known(addr);
	return true;
}
