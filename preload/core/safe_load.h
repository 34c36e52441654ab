/*
 * Loads that survive bad addresses. Inside a thread's known stack bounds a load is a plain load; elsewhere the page is
 * asked for from the kernel (one cheap syscall, off the hot path) each time a walk first meets it.
 * Context of everything here: signal.
 */
#ifndef CSINK_SAFE_LOAD_H
#define CSINK_SAFE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* Bounds of the stack that a thread was started on; loads inside [sp, high) need no check. low = high = 0: unknown. */
struct csink_stack_bounds {
	uintptr_t low, high;
};

/* One walk's view of memory: start each walk with a fresh one (what it found readable holds in it only). */
struct csink_loader {
	uintptr_t low, high; /* all of it is readable: loads inside need no check */
	uintptr_t pages[2];  /* pages elsewhere that were found readable */
	uint32_t nr_checks;  /* syscalls made */
};

/* What lies between sp and the end of the thread's stack is there. On any other stack, pages are checked on the way up.
 */
static inline void csink_loader_init(struct csink_loader *loader, const struct csink_stack_bounds *stack, uintptr_t sp)
{
	bool known = sp >= stack->low && sp < stack->high;

	loader->low = known ? sp : 0;
	loader->high = known ? stack->high : 0;
	loader->pages[0] = loader->pages[1] = 0;
	loader->nr_checks = 0;
}

/** True if [addr, addr + bytes) can be read. errno is kept. One syscall a page. */
bool csink_readable(uintptr_t addr, uintptr_t bytes);

/** The slow half of csink_load_word. */
bool csink_load_word_slow(struct csink_loader *loader, uintptr_t addr, uint64_t *value);

/* A word wherever it lies. */
struct csink_unaligned_word {
	uint64_t value;
} __attribute__((packed, may_alias));

/*
 * Read the eight bytes at addr, which the caller knows to be readable. What belongs to the program is read across its
 * variables' bounds, so AddressSanitizer is not asked.
 */
__attribute__((no_sanitize_address)) static inline uint64_t csink_load_known(uintptr_t addr)
{
	return ((const struct csink_unaligned_word *)addr)->value;
}

/** Read the eight bytes at addr; false if they cannot be read. Unaligned addresses are fine. */
static inline bool csink_load_word(struct csink_loader *loader, uintptr_t addr, uint64_t *value)
{
	if (addr >= loader->low && addr < loader->high && loader->high - addr >= 8) {
		*value = csink_load_known(addr);
		return true;
	}
	return csink_load_word_slow(loader, addr, value);
}

#endif
