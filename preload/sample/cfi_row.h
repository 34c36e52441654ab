/*
 * Rows: the rules of one address of code, compiled into eight bytes, and the cache that keeps them.
 *
 * The cache is one for the process, written and read by handlers of all threads without locks. An entry is two words,
 * the row and a check made of key and row; a reader that meets halves of two writes finds a check that does not fit,
 * and compiles the row again. The key holds the generation of the module snapshot, so that what is loaded later at the
 * same address does not meet old rows. Context of everything here: signal, unless it says init.
 */
#ifndef CSINK_SAMPLE_CFI_ROW_H
#define CSINK_SAMPLE_CFI_ROW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "preload/sample/cfi.h"

/*
 * bits 0-3    kind
 * bits 4-7    CFA's register, for CSINK_ROW_REG and CSINK_ROW_DEREF with and without _FPX
 * bits 8-19   where the frame pointer is saved, in words from the CFA (_FPX: from the frame pointer); CSINK_ROW_KEPT
 * bits 20-31  where the return address is saved, in words from the CFA; CSINK_ROW_KEPT: in its register.
 *             x86-64 saves it at CFA - 8 always; there a DEREF's addend is here.
 * bits 32-63  CFA's offset, in bytes
 */
typedef uint64_t csink_row_t;

enum csink_row_kind {
	CSINK_ROW_BASE_FP = 1, /* bit of the four kinds below 4: CFA = sp + offset, or with this bit, fp + offset ... */
	CSINK_ROW_SAVED = 2,   /* ... and with this one, the frame pointer is saved, else kept */
	CSINK_ROW_NR_FAST = 4,
	CSINK_ROW_REG = CSINK_ROW_NR_FAST, /* CFA = register + offset; known in the innermost frame only */
	CSINK_ROW_DEREF,                   /* CFA = *(register + offset) + addend */
	CSINK_ROW_REG_FPX,                 /* likewise, with the frame pointer saved at an offset from itself */
	CSINK_ROW_DEREF_FPX,
	CSINK_ROW_SIGNAL,  /* the frame that the kernel made for a handler */
	CSINK_ROW_END,     /* no caller: outermost */
	CSINK_ROW_NO_CFI,  /* no table covers it */
	CSINK_ROW_COMPLEX, /* anything else: needs csink_cfi_step */
};
enum { CSINK_ROW_KEPT = -2048 };

static inline enum csink_row_kind csink_row_kind(csink_row_t row)
{
	return row & 15;
}

static inline unsigned int csink_row_reg(csink_row_t row)
{
	return row >> 4 & 15;
}

static inline int64_t csink_row_fp_words(csink_row_t row)
{
	return (int64_t)(row << 44) >> 52;
}

static inline int64_t csink_row_ra_words(csink_row_t row)
{
	return (int64_t)(row << 32) >> 52;
}

static inline int64_t csink_row_cfa_offset(csink_row_t row)
{
	return (int64_t)row >> 32;
}

/**
 * Find and compile the row of an address.
 * @exact  pc is the address of an instruction that was about to run; else pc is a return address, and the call before
 * it is what counts.
 */
csink_row_t csink_row_compile(uintptr_t pc, bool exact);

/** True if the code at an address is the kernel's way back from a signal handler. */
bool csink_code_is_sigreturn(uintptr_t pc);

/* ---- the cache ----------------------------------------------------------------------------------------------------
 */

struct csink_row_entry {
	_Atomic uint64_t check, row;
};

/* Two entries: addresses that share a set do not drive each other out at once. */
struct csink_row_set {
	struct csink_row_entry way[2];
};

/* 512 KiB of address space; pages are touched as rows are made. */
#define CSINK_ROW_SETS 16384

extern struct csink_row_set *csink_row_sets __attribute__((visibility("hidden")));

/** Map the cache. Returns 0 or -errno. Context: init. */
int csink_rows_init(void);

/* User addresses have 48 bits at most; a generation that comes round after 32768 changes meets entries as old as that.
 */
static inline uint64_t csink_row_key(uintptr_t pc, bool exact, uint64_t generation)
{
	return (uint64_t)pc << 16 | (uint64_t)exact << 15 | (generation & 0x7fff);
}

/* Any bit of the row changes many of the check: halves of two entries do not fit by chance of similar rows. */
static inline uint64_t csink_row_check(uint64_t key, csink_row_t row)
{
	return key ^ row * 0x9e3779b97f4a7c15ULL;
}

static inline struct csink_row_set *csink_row_set(struct csink_row_set *sets, uintptr_t pc)
{
	return &sets[pc & (CSINK_ROW_SETS - 1)];
}

/* No order is needed between the words: the check tells. */
static inline bool csink_row_get(const struct csink_row_entry *entry, uint64_t key, csink_row_t *row)
{
	*row = atomic_load_explicit(&entry->row, memory_order_relaxed);
	return atomic_load_explicit(&entry->check, memory_order_relaxed) == csink_row_check(key, *row);
}

/** The row of an address: out of the cache, else compiled and put there. */
csink_row_t csink_row_find(uintptr_t pc, bool exact, uint32_t generation);

#endif
