/*
 * Pages that stay known as readable from one sample to the next, so that reading frames of a language, and code that a
 * sample interrupts, asks the kernel for each of them once and not once a sample.
 *
 * Only pages of areas that the program mapped by mmap(2): private, anonymous, of 128 KiB and more, where languages have
 * their heaps, code and stacks. What libc maps for itself (malloc, stacks, objects) is unmapped by calls that cannot be
 * seen. So is brk(2): libc stores the new end only after the kernel has removed the pages. A call of the program's that
 * takes pages away (munmap, mprotect, mremap, mmap over them) forgets them all.
 */
#ifndef CSINK_KEPT_PAGES_H
#define CSINK_KEPT_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/base.h"

/* No state: in one that allows keeping, the low 16 bits are 0. */
#define CSINK_KEPT_NONE UINT64_MAX

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
 * Returns the argument of csink_kept_changed(), which is called once the call has returned. Context: any.
 */
bool csink_kept_change(const void *memory, size_t bytes, bool is_gone);
void csink_kept_changed(bool changes);

/** Is the page (its number, not 0) known? Context: signal. */
bool csink_kept_has(uintptr_t page);

/**
 * Called before the kernel is asked whether a page can be read. Returns what csink_kept_put() takes; CSINK_KEPT_NONE:
 * the page is not to be kept. Context: signal.
 */
uint64_t csink_kept_ask(uintptr_t page);

/** The page was found readable, by a call that obeys protection keys. @asked: not CSINK_KEPT_NONE. Context: signal. */
void csink_kept_put(uintptr_t page, uint64_t asked);

#endif
