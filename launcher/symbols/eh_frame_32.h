/*
 * Unwind tables of 32-bit objects (i386), rewritten as those of 64-bit objects are: one reader, one walk and libunwind
 * serve both. Registers get the numbers of their 64-bit ones; esi and edi, which 32-bit code preserves, those of r12
 * and r13, which 64-bit code does.
 */
#ifndef CSINK_EH_FRAME_32_H
#define CSINK_EH_FRAME_32_H

#include <stdint.h>

/**
 * Rewrite .eh_frame. All addresses are pc-relative afterwards; entries with rules that cannot be rewritten are left
 * out.
 * @in     untrusted
 * @vaddr  where it lies in the object; the new one lies there, too, as far as addresses go
 * Returns the new bytes, to be freed, and their number in *nr; NULL: no memory, or too large. Context: any.
 */
uint8_t *csink_eh_frame_32_rewrite(const uint8_t *in, uint64_t bytes, uint64_t vaddr, uint32_t *nr);

#endif
