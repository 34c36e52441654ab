/*
 * Pages that stay known as readable from one sample to the next, so that reading frames of a language asks the kernel
 * for each of them once and not once a sample.
 *
 * Only pages of areas that the program mapped by mmap(2): private, anonymous, of 128 KiB and more, where languages have
 * their heaps, code and stacks. A call of the program's that takes pages away (munmap, mprotect, mremap, mmap over
 * them) forgets them all. What libc maps for itself (stacks, objects, malloc's areas of other threads) is unmapped by
 * calls that cannot be seen. But what malloc has by brk(2) needs no asking: libc says where it ends.
 */
#ifndef CSINK_KEPT_PAGES_H
#define CSINK_KEPT_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/base.h"

/* Low 16 bits: calls under way that take pages away; above: how many there were. Any thread. */
extern _Atomic uint64_t csink_kept_state CSINK_HIDDEN;

/** Keep pages of areas that are added from now on: there is a language. Context: signal. */
void csink_kept_begin(void);

/** Has csink_kept_begin() been called? Context: any. */
bool csink_kept_is_on(void);

/** At the start, and in a forked child, where calls of the parent's other threads do not end: nothing is known.
 * Context: signal. */
void csink_kept_forked(void);

/** The program has mapped an area. Context: any. */
void csink_kept_add(const void *memory, size_t bytes);

/**
 * The program is about to take pages away.
 * @is_gone  what is there may belong to something else afterwards.
 * Returns what csink_kept_changed() wants to know once it has. Context: any.
 */
bool csink_kept_change(const void *memory, size_t bytes, bool is_gone);
void csink_kept_changed(bool changes);

/** The program's break is set by a call that libc does not see: what lies below it is not known any more. Context: any.
 */
void csink_kept_break_off(void);

/** Is the page (its number, not 0) known? Context: signal. */
bool csink_kept_has(uintptr_t page);

/** The page was found readable after @state was loaded. Context: signal. */
void csink_kept_put(uintptr_t page, uint64_t state);

#endif
