/* Compiling rules into rows, and the cache of rows; see cfi_row.h. In handlers of all threads; async-signal-safe, but
 * for what is called init. */
#include "preload/agent/unwind/cfi_row.h"
#include "preload/agent/unwind/code.h"
#include "preload/agent/unwind/go_frames.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/private_memory.h"

#include <errno.h>

struct csink_row_cache csink_rows;

/* ---- rules -> row ------------------------------------------------------------------------------------------------ */

static bool fits_near(int64_t bytes)
{
	return bytes % 8 == 0 && bytes / 8 >= -64 && bytes / 8 < 64;
}

/* Below the CFA, which the fast path need not check again. */
static bool fits_far(int64_t bytes)
{
	return bytes <= -8 && bytes >= INT16_MIN;
}

enum fp_rule { FP_KEPT, FP_SAVED, FP_FPX, FP_OTHER };

/* Where the frame pointer is saved: bytes from the CFA, or (FPX) from itself. */
static enum fp_rule close_fp(const struct csink_cfi_fde *fde, uintptr_t pc, struct csink_cfi_rule rule, int64_t *bytes)
{
	struct csink_cfi_closed closed;

	switch ((enum csink_cfi_kind)rule.kind) {
	case CSINK_CFI_UNSET:
	case CSINK_CFI_SAME:
		return FP_KEPT;
	case CSINK_CFI_AT_CFA:
		*bytes = rule.value;
		return FP_SAVED;
	case CSINK_CFI_AT_EXPR:
		if (!csink_cfi_expr_close(fde, (const uint8_t *)(intptr_t)rule.value, pc, &closed) || closed.deref ||
		    closed.reg != CSINK_REG_FP)
			return FP_OTHER;
		*bytes = closed.offset;
		return FP_FPX;
	default:
		return FP_OTHER;
	}
}

static bool close_cfa(const struct csink_cfi_fde *fde, uintptr_t pc, const struct csink_cfi_rules *rules,
		      struct csink_cfi_closed *cfa)
{
	*cfa = (struct csink_cfi_closed){.reg = rules->cfa_reg, .offset = rules->cfa_offset};
	if (rules->cfa_expr && !csink_cfi_expr_close(fde, rules->cfa_expr, pc, cfa))
		return false;
	return cfa->reg < CSINK_NR_REGS && cfa->offset == (int32_t)cfa->offset;
}

#if defined(__x86_64__)
static csink_row_t make_closed(const struct csink_cfi_closed *cfa, enum fp_rule fp, int64_t fp_bytes,
			       struct csink_cfi_rule ra)
{
	bool plain_base = cfa->reg == CSINK_REG_SP || cfa->reg == CSINK_REG_FP;
	unsigned int kind = cfa->deref ? CSINK_ROW_DEREF : CSINK_ROW_REG;

	if (ra.kind != CSINK_CFI_AT_CFA || ra.value != -8 || !fits_near(cfa->addend))
		return CSINK_ROW_COMPLEX;
	if (fp == FP_KEPT)
		fp_bytes = -8;
	if (fp == FP_FPX ? fp_bytes != (int16_t)fp_bytes : !fits_far(fp_bytes))
		return CSINK_ROW_COMPLEX;
	if (plain_base && !cfa->deref && fp != FP_FPX)
		return csink_row_make((cfa->reg == CSINK_REG_FP ? CSINK_ROW_BASE_FP : 0) |
					      (fp == FP_SAVED ? CSINK_ROW_SAVED : 0),
				      0, 0, fp_bytes, cfa->offset);
	return csink_row_make(kind + fp, cfa->reg, cfa->addend / 8, fp_bytes, cfa->offset);
}

#elif defined(__aarch64__)
static csink_row_t make_closed(const struct csink_cfi_closed *cfa, enum fp_rule fp, int64_t fp_bytes,
			       struct csink_cfi_rule ra)
{
	int64_t near = fp == FP_SAVED ? fp_bytes - ra.value : 0;

	if (cfa->deref || fp == FP_FPX)
		return CSINK_ROW_COMPLEX;
	if (ra.kind == CSINK_CFI_UNSET || ra.kind == CSINK_CFI_SAME)
		return fp == FP_KEPT ? csink_row_make(CSINK_ROW_LEAF, cfa->reg, 0, 0, cfa->offset) : CSINK_ROW_COMPLEX;
	if (ra.kind != CSINK_CFI_AT_CFA || !fits_far(ra.value) || !fits_near(near) || !fits_far(ra.value + near))
		return CSINK_ROW_COMPLEX;
	if (cfa->reg == CSINK_REG_SP || cfa->reg == CSINK_REG_FP)
		return csink_row_make((cfa->reg == CSINK_REG_FP ? CSINK_ROW_BASE_FP : 0) |
					      (fp == FP_SAVED ? CSINK_ROW_SAVED : 0),
				      0, near / 8, ra.value, cfa->offset);
	return csink_row_make(fp == FP_SAVED ? CSINK_ROW_REG_SAVED : CSINK_ROW_REG, cfa->reg, near / 8, ra.value,
			      cfa->offset);
}

#endif

csink_row_t csink_row_close(const struct csink_cfi_fde *fde, uintptr_t pc, const struct csink_cfi_rules *rules)
{
	const struct csink_cfi_rule sp = rules->rule[CSINK_SLOT_SP], ra = rules->rule[CSINK_SLOT_RA];
	struct csink_cfi_closed cfa;
	int64_t fp_bytes = 0;
	enum fp_rule fp;

	if (ra.kind == CSINK_CFI_UNDEFINED)
		return CSINK_ROW_END;
	fp = close_fp(fde, pc, rules->rule[CSINK_SLOT_FP], &fp_bytes);
	if (fde->signal_frame || (sp.kind != CSINK_CFI_UNSET && sp.kind != CSINK_CFI_SAME) || fp == FP_OTHER ||
	    !close_cfa(fde, pc, rules, &cfa))
		return CSINK_ROW_COMPLEX;
	return make_closed(&cfa, fp, fp_bytes, ra);
}

csink_row_t csink_row_untabled(uintptr_t pc, bool in_object)
{
	bool has_word = false;

#if defined(__x86_64__)
	has_word = in_object && csink_code_has_word(pc);
#else
	(void)pc;
#endif
	return csink_row_make(CSINK_ROW_NO_CFI, has_word, in_object, 0, (int64_t)csink_modules_generation());
}

bool csink_row_holds(csink_row_t row)
{
	/* No row is 0, but an empty entry fits address 0. */
	return row && (csink_row_kind(row) != CSINK_ROW_NO_CFI ||
		       (uint32_t)csink_row_cfa_offset(row) == csink_modules_generation());
}

__attribute__((cold)) csink_row_t csink_row_compile(uintptr_t pc, bool exact)
{
	uintptr_t at = exact ? pc : pc - 1;
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;
	struct csink_cfi_rules rules;
	csink_row_t row;
	bool located = csink_cfi_locate(at, &table), covered = located && csink_cfi_find(&table, at, &fde);

	if (!covered && csink_go_row(pc, exact, &row))
		return row;
	/*
	 * Nothing before it could have called and come back, unless the last function there ended in a call that it
	 * took not to return. So it may be an address that a stack was made to return to: a signal's trampoline, or the
	 * end of a coroutine.
	 */
	if (!covered || (!exact && pc >= fde.end) || fde.signal_frame) {
		if (csink_code_is_sigreturn(pc))
			return CSINK_ROW_SIGNAL;
		if (!exact && csink_code_is_start_context(pc))
			return CSINK_ROW_END;
		if (located && !covered && !exact && csink_cfi_find(&table, pc, &fde) && fde.start == pc) {
			covered = true;
			at = pc;
		}
	}
	if (covered)
		return csink_cfi_rules_at(&fde, at, &rules) ? csink_row_close(&fde, at, &rules)
							    : csink_row_untabled(pc, true);
	return csink_row_untabled(pc, located);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

int csink_rows_init(void)
{
	char *map;

	if (csink_rows.callers)
		return 0;
	map = csink_private_get(2 * CSINK_ROW_TABLE_BYTES);
	if (!map)
		return -ENOMEM;
	csink_rows.callers = map;
	csink_rows.leaves = map + CSINK_ROW_TABLE_BYTES;
	atomic_init(&csink_rows.mask, CSINK_ROW_FIRST_BYTES - sizeof(struct csink_row_entry));
	return 0;
}

/* A row was made; threads that still look in the small tables make some once more. Returns how many there were. */
static uint32_t count_row(void)
{
	static _Atomic uint32_t nr;
	uint32_t now = atomic_fetch_add_explicit(&nr, 1, memory_order_relaxed);

	if (now == CSINK_ROW_FIRST_ROWS)
		atomic_store_explicit(&csink_rows.mask, CSINK_ROW_TABLE_BYTES - sizeof(struct csink_row_entry),
				      memory_order_relaxed);
	return now;
}

csink_row_t csink_row_find(uintptr_t pc, bool exact, uint64_t mix)
{
	uintptr_t slot = csink_row_slot(pc, exact ? CSINK_ROW_LEAF_SHIFT : CSINK_ROW_CALLER_SHIFT, csink_row_mask());
	char *table = exact ? csink_rows.leaves : csink_rows.callers;
	struct csink_row_entry *entry = (struct csink_row_entry *)(table + slot);
	struct csink_row_entry *neighbour = (struct csink_row_entry *)(table + (slot ^ CSINK_ROW_NEIGHBOUR));
	csink_row_t row, evicted;
	uint32_t nr;

	if ((csink_row_get((char *)entry, pc, mix, &row) || csink_row_get((char *)neighbour, pc, mix, &row)) &&
	    csink_row_holds(row))
		return row;
	row = csink_row_compile(pc, exact);
	nr = count_row();
	evicted = atomic_load_explicit(&entry->row, memory_order_relaxed);
	/*
	 * The row that is replaced moves to the neighbouring entry, unless there is none: an empty row there would
	 * replace the neighbour's own for nothing. Half of the rows are dropped instead, by chance: a row that is not
	 * used any more would otherwise move to and fro for ever, and each time replace a row that is used.
	 */
	if (evicted && nr * 0x9e3779b9u >> 31) {
		atomic_store_explicit(&neighbour->row, evicted, memory_order_relaxed);
		atomic_store_explicit(&neighbour->check, atomic_load_explicit(&entry->check, memory_order_relaxed),
				      memory_order_relaxed);
	}
	atomic_store_explicit(&entry->row, row, memory_order_relaxed);
	atomic_store_explicit(&entry->check, pc ^ row * mix, memory_order_relaxed);
	return row;
}
