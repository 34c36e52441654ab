/*
 * Rows: the rules of one address of code, compiled into eight bytes, and the cache that keeps them.
 *
 * The cache is one for the process, written and read by handlers of all threads without locks. An entry is two words,
 * the row and a check made of key and row; a reader that meets halves of two writes finds a check that does not fit,
 * and compiles the row again. The key holds the generation of the module snapshot, so that what is loaded later at the
 * same address does not meet old rows. Context of everything here: signal, unless it says init.
 */
#ifndef CSINK_CFI_ROW_H
#define CSINK_CFI_ROW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "preload/core/cfi/cfi.h"

/*
 * bits 0-3    kind
 * bits 4-8    CFA's register, for the kinds REG and DEREF
 * bits 9-15   `near`, signed words
 * bits 16-31  `far`, signed bytes
 * bits 32-63  CFA's offset, signed bytes
 *
 * x86-64:  the return address is at CFA - 8; the frame pointer is saved at CFA + far (FPX: fp + far); near is a DEREF's
 *          addend.
 * aarch64: the return address is at CFA + far; the frame pointer is saved near words above it.
 * A plain row without CSINK_ROW_SAVED names the return address's place as that of the frame pointer, so that the fast
 * path may load both and then choose.
 */
typedef uint64_t csink_row_t;

enum csink_row_kind {
	CSINK_ROW_BASE_FP = 1, /* bit of the four plain kinds: CFA = sp + offset, or with this bit, fp + offset ... */
	CSINK_ROW_SAVED = 2,   /* ... and with this one, the frame pointer is saved, else kept */
	CSINK_ROW_NR_PLAIN = 4,
	CSINK_ROW_REG = CSINK_ROW_NR_PLAIN, /* CFA = register + offset; other bits as above */
	CSINK_ROW_REG_SAVED,
	CSINK_ROW_REG_FPX,
	CSINK_ROW_DEREF, /* CFA = *(register + offset) + addend */
	CSINK_ROW_DEREF_SAVED,
	CSINK_ROW_DEREF_FPX,
	CSINK_ROW_LEAF,    /* return address in its register, frame pointer kept; CFA = register + offset */
	CSINK_ROW_SIGNAL,  /* the frame that the kernel made for a handler */
	CSINK_ROW_END,     /* no caller: outermost */
	CSINK_ROW_NO_CFI,  /* no table covers it: csink_row_untabled() */
	CSINK_ROW_COMPLEX, /* anything else: needs csink_cfi_step */
	CSINK_ROW_GO,      /* of Go, but not plain: enum csink_go_way is where the register of others is */
};

static inline csink_row_t csink_row_make(enum csink_row_kind kind, uint64_t reg, int64_t near, int64_t far,
					 int64_t offset)
{
	return (csink_row_t)kind | reg << 4 | ((uint64_t)near & 0x7f) << 9 | ((uint64_t)far & 0xffff) << 16 |
	       (uint64_t)offset << 32;
}

static inline enum csink_row_kind csink_row_kind(csink_row_t row)
{
	return (enum csink_row_kind)(row & 15);
}

static inline unsigned int csink_row_reg(csink_row_t row)
{
	return row >> 4 & 31;
}

static inline int64_t csink_row_near(csink_row_t row)
{
	return (int64_t)(row << 48) >> 57;
}

static inline int64_t csink_row_far(csink_row_t row)
{
	return (int16_t)(row >> 16);
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

/**
 * The row of an address that no table covers. near: 1 if it is in an object that has tables; the register: 1 if it is
 * and csink_code_has_word(); offset: the list of modules of which this is true.
 */
csink_row_t csink_row_untabled(uintptr_t pc, bool in_object);

/** The row that rules come to. @pc: the address that they are of. */
csink_row_t csink_row_close(const struct csink_cfi_fde *fde, uintptr_t pc, const struct csink_cfi_rules *rules);

/* ---- the cache --------------------------------------------------------------------------------------------------- */

struct csink_row_entry {
	_Atomic uint64_t row, check;
};

/*
 * Two tables of 256 KiB each. One is for return addresses: 16 bytes of code rarely have two, so nearby code has nearby
 * rows. The other is for interrupted instructions, which may be any. A row that is replaced moves to its entry's
 * neighbour in the same 32 bytes.
 *
 * The first rows of a process go to the first 32 KiB of each table alone: a page that is touched costs as much as some
 * rows (two faults and the zeroing), and in short processes most pages of a table would have a few rows.
 */
#define CSINK_ROW_TABLE_BYTES (256UL << 10)
#define CSINK_ROW_FIRST_BYTES (32UL << 10)
#define CSINK_ROW_FIRST_ROWS 1024 /* in both; after these the whole tables are used, and those are made once more */
#define CSINK_ROW_NEIGHBOUR sizeof(struct csink_row_entry)

struct csink_row_cache {
	char *callers, *leaves;
	_Atomic uintptr_t mask; /* of an entry's place in its table: see csink_row_slot() */
};
extern struct csink_row_cache csink_rows CSINK_HIDDEN;

/** Map the cache. Returns 0 or -errno. Context: init. */
int csink_rows_init(void);

#if defined(__x86_64__)
enum { CSINK_ROW_CALLER_SHIFT = 0, CSINK_ROW_LEAF_SHIFT = 4 };
#elif defined(__aarch64__)
enum { CSINK_ROW_CALLER_SHIFT = 1, CSINK_ROW_LEAF_SHIFT = 2 };
#endif

static inline uintptr_t csink_row_mask(void)
{
	return atomic_load_explicit(&csink_rows.mask, memory_order_relaxed);
}

/** Where the row of an address is in its table. @mask: csink_row_mask(). */
static inline uintptr_t csink_row_slot(uintptr_t pc, int shift, uintptr_t mask)
{
	return pc << shift & mask;
}

/* What checks are made with, after so many unloaded modules. Odd, so that rows keep all their bits. */
static inline uint64_t csink_row_mix(uint32_t nr_unloads)
{
	return (2 * (uint64_t)nr_unloads + 1) * 0x9e3779b97f4a7c15ULL;
}

/*
 * Multiplied, any bit of the row changes many of the check: halves of two entries do not fit by chance of similar rows.
 * No order is needed between the two words: the checksum rejects torn entries.
 */
static inline bool csink_row_get(const char *slot, uintptr_t pc, uint64_t mix, csink_row_t *row)
{
	const struct csink_row_entry *entry = (const struct csink_row_entry *)slot;

	*row = atomic_load_explicit(&entry->row, memory_order_relaxed);
	return atomic_load_explicit(&entry->check, memory_order_relaxed) == (pc ^ *row * mix);
}

/** The row of an address: out of the cache if it still holds, else compiled and put there. */
csink_row_t csink_row_find(uintptr_t pc, bool exact, uint64_t mix);

/** True if a row is as true as when it was compiled; the others need csink_row_find. */
bool csink_row_holds(csink_row_t row);

#endif
