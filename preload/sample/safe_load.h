/*
 * Loads that survive bad addresses. Inside a thread's known stack bounds a load is a plain load; elsewhere the page is
 * asked for from the kernel (one cheap syscall, off the hot path) each time a walk first meets it.
 * Context of everything here: signal.
 */
#ifndef CSINK_SAMPLE_SAFE_LOAD_H
#define CSINK_SAMPLE_SAFE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/sample/unwind.h"

/* One walk's view of memory: start each walk with a fresh one (the pages it found readable are remembered in it only). */
struct csink_loader {
	const struct csink_stack_bounds *stack;
	uintptr_t sp;       /* loads at or above it and below stack->high need no check */
	uintptr_t pages[2]; /* page addresses found readable in this walk */
	uint32_t nr_checks; /* syscalls made */
};

static inline void csink_loader_init(struct csink_loader *loader, const struct csink_stack_bounds *stack, uintptr_t sp)
{
	loader->stack = stack;
	loader->sp = sp;
	loader->pages[0] = loader->pages[1] = 0;
	loader->nr_checks = 0;
}

/** True if [addr, addr + bytes) can be read. errno is kept. One syscall a page. */
bool csink_readable(uintptr_t addr, uintptr_t bytes);

/** The slow half of csink_load_word. */
bool csink_load_word_slow(struct csink_loader *loader, uintptr_t addr, uint64_t *value);

/** Read the eight bytes at addr; false if they cannot be read. Unaligned addresses are fine. */
static inline bool csink_load_word(struct csink_loader *loader, uintptr_t addr, uint64_t *value)
{
	if (addr >= loader->sp && addr < loader->stack->high && loader->stack->high - addr >= 8 &&
	    loader->sp >= loader->stack->low) {
		*value = *(const uint64_t *)addr;
		return true;
	}
	return csink_load_word_slow(loader, addr, value);
}

#endif
