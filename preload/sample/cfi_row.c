/* Compiling rules into rows, and the cache of rows; see cfi_row.h. */
#include "preload/sample/cfi_row.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct csink_row_set *csink_row_sets;

/* ---- code that says itself what it is -----------------------------------------------------------------------------
 */

/* Code that ran may still be unreadable by now, or never have been code. */
static bool code_is(uintptr_t pc, const void *bytes, size_t nr)
{
	return csink_readable(pc, nr) && !memcmp((const void *)pc, bytes, nr);
}

#if defined(__x86_64__)
bool csink_code_is_sigreturn(uintptr_t pc)
{
	static const uint8_t by_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15, %rax; syscall */
	static const uint8_t by_eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};             /* mov $15, %eax; syscall */

	return code_is(pc, by_rax, sizeof(by_rax)) || code_is(pc - 7, by_rax, sizeof(by_rax)) ||
	       code_is(pc, by_eax, sizeof(by_eax)) || code_is(pc - 5, by_eax, sizeof(by_eax));
}

/* Stubs that some linkers write without frame information. Gives CFA - sp, or 0. */
static int64_t plt_stub_offset(uintptr_t pc)
{
	static const uint8_t jump[] = {0xff, 0x25}, bnd_jump[] = {0xf2, 0xff, 0x25},
			     branch[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t push[] = {0x68}, away[] = {0xe9};

	if (code_is(pc, jump, sizeof(jump)) || code_is(pc, bnd_jump, sizeof(bnd_jump)) ||
	    (code_is(pc, branch, sizeof(branch)) &&
	     (code_is(pc + 4, jump, sizeof(jump)) || code_is(pc + 4, bnd_jump, sizeof(bnd_jump)))))
		return 8;
	if (code_is(pc, push, sizeof(push)) && code_is(pc + 5, away, sizeof(away)) &&
	    code_is(pc - 6, jump, sizeof(jump)))
		return 8;
	if (code_is(pc, away, sizeof(away)) && code_is(pc - 5, push, sizeof(push)) &&
	    code_is(pc - 11, jump, sizeof(jump)))
		return 16;
	return 0;
}
#elif defined(__aarch64__)
bool csink_code_is_sigreturn(uintptr_t pc)
{
	static const uint32_t code[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */

	return code_is(pc, code, sizeof(code)) || code_is(pc - 4, code, sizeof(code));
}

/* Stubs keep the return address in its register and the stack as it is. */
static int64_t plt_stub_offset(uintptr_t pc)
{
	(void)pc;
	return 0;
}
#endif

/* ---- rules -> row -------------------------------------------------------------------------------------------------
 */

static csink_row_t make_row(enum csink_row_kind kind, unsigned int reg, int64_t fp_words, int64_t ra_words,
			    int64_t offset)
{
	return (csink_row_t)kind | (csink_row_t)reg << 4 | ((uint64_t)fp_words & 0xfff) << 8 |
	       ((uint64_t)ra_words & 0xfff) << 20 | (uint64_t)offset << 32;
}

static bool fits_words(int64_t bytes)
{
	return bytes % 8 == 0 && bytes / 8 > CSINK_ROW_KEPT && bytes / 8 <= 2047;
}

/* Where the frame pointer is saved. False: in no way that a row can say. */
static bool close_fp(const struct csink_cfi_fde *fde, uintptr_t pc, struct csink_cfi_rule rule, int64_t *words,
		     bool *by_fp)
{
	struct csink_cfi_closed closed;
	int64_t bytes = rule.value;

	*by_fp = false;
	*words = CSINK_ROW_KEPT;
	switch ((enum csink_cfi_kind)rule.kind) {
	case CSINK_CFI_UNSET:
	case CSINK_CFI_SAME:
		return true;
	case CSINK_CFI_AT_CFA:
		break;
	case CSINK_CFI_AT_EXPR:
		if (!csink_cfi_expr_close(fde, (const uint8_t *)(uintptr_t)bytes, pc, &closed) || closed.deref ||
		    closed.reg != CSINK_REG_FP)
			return false;
		bytes = closed.offset;
		*by_fp = true;
		break;
	default:
		return false;
	}
	*words = bytes / 8;
	return fits_words(bytes);
}

static bool close_ra(struct csink_cfi_rule rule, int64_t *words)
{
#if defined(__x86_64__)
	*words = -1;
	return rule.kind == CSINK_CFI_AT_CFA && rule.value == -8;
#else
	*words = rule.kind == CSINK_CFI_AT_CFA ? rule.value / 8 : CSINK_ROW_KEPT;
	return rule.kind == CSINK_CFI_UNSET || rule.kind == CSINK_CFI_SAME ||
	       (rule.kind == CSINK_CFI_AT_CFA && fits_words(rule.value));
#endif
}

static bool close_cfa(const struct csink_cfi_fde *fde, uintptr_t pc, const struct csink_cfi_rules *rules,
		      struct csink_cfi_closed *cfa)
{
	if (rules->cfa_expr)
		return csink_cfi_expr_close(fde, rules->cfa_expr, pc, cfa);
	*cfa = (struct csink_cfi_closed){.reg = rules->cfa_reg, .offset = rules->cfa_offset};
	return true;
}

static csink_row_t close_rules(const struct csink_cfi_fde *fde, uintptr_t pc, const struct csink_cfi_rules *rules)
{
	const struct csink_cfi_rule *sp_rule = &rules->rule[CSINK_SLOT_SP];
	struct csink_cfi_closed cfa;
	int64_t fp_words, ra_words;
	unsigned int kind;
	bool by_fp;

	if (rules->rule[CSINK_SLOT_RA].kind == CSINK_CFI_UNDEFINED)
		return CSINK_ROW_END;
	if (fde->signal_frame || (sp_rule->kind != CSINK_CFI_UNSET && sp_rule->kind != CSINK_CFI_SAME) ||
	    !close_ra(rules->rule[CSINK_SLOT_RA], &ra_words) ||
	    !close_fp(fde, pc, rules->rule[CSINK_SLOT_FP], &fp_words, &by_fp) || !close_cfa(fde, pc, rules, &cfa) ||
	    cfa.offset != (int32_t)cfa.offset || !fits_words(cfa.addend))
		return CSINK_ROW_COMPLEX;
	if (!cfa.deref && !by_fp && (cfa.reg == CSINK_REG_SP || cfa.reg == CSINK_REG_FP)) {
		kind = (cfa.reg == CSINK_REG_FP ? CSINK_ROW_BASE_FP : 0) |
		       (fp_words != CSINK_ROW_KEPT ? CSINK_ROW_SAVED : 0);
		return make_row(kind, 0, fp_words, ra_words, cfa.offset);
	}
#if defined(__x86_64__)
	if (cfa.reg < 16) {
		kind = by_fp       ? cfa.deref ? CSINK_ROW_DEREF_FPX : CSINK_ROW_REG_FPX
		       : cfa.deref ? CSINK_ROW_DEREF
				   : CSINK_ROW_REG;
		return make_row(kind, (unsigned int)cfa.reg, fp_words, cfa.deref ? cfa.addend / 8 : ra_words,
				cfa.offset);
	}
#endif
	return CSINK_ROW_COMPLEX;
}

/* Nothing of the caller's was touched, but for what its call and a stub's push put on the stack. */
static csink_row_t bare_call_row(int64_t offset)
{
#if defined(__x86_64__)
	return make_row(0, 0, CSINK_ROW_KEPT, -1, offset);
#else
	return make_row(0, 0, CSINK_ROW_KEPT, CSINK_ROW_KEPT, offset - 8);
#endif
}

csink_row_t csink_row_compile(uintptr_t pc, bool exact)
{
	uintptr_t at = exact ? pc : pc - 1;
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;
	struct csink_cfi_rules rules;
	bool located = csink_cfi_locate(at, &table), covered = located && csink_cfi_find(&table, at, &fde);
	int64_t offset;

	/* Trampolines need no tables; without them, their callers seem to return to where nothing was called before. */
	if (!covered || (!exact && pc >= fde.end) || fde.signal_frame)
		if (csink_code_is_sigreturn(pc))
			return CSINK_ROW_SIGNAL;
	if (covered)
		return csink_cfi_rules_at(&fde, at, &rules) ? close_rules(&fde, at, &rules) : CSINK_ROW_NO_CFI;
	/* Where nothing is, a call through a bad pointer led: the caller's return address was pushed, and no more. */
	offset = !exact ? 0 : !located && !csink_readable(pc, 1) ? 8 : plt_stub_offset(pc);
	return offset ? bare_call_row(offset) : CSINK_ROW_NO_CFI;
}

/* ---- the cache ----------------------------------------------------------------------------------------------------
 */

int csink_rows_init(void)
{
	void *map;

	if (csink_row_sets)
		return 0;
	map = mmap(NULL, CSINK_ROW_SETS * sizeof(struct csink_row_set), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	csink_row_sets = map;
	return 0;
}

static void put(struct csink_row_entry *entry, uint64_t check, csink_row_t row)
{
	atomic_store_explicit(&entry->row, row, memory_order_relaxed);
	atomic_store_explicit(&entry->check, check, memory_order_relaxed);
}

csink_row_t csink_row_find(uintptr_t pc, bool exact, uint32_t generation)
{
	struct csink_row_set *set = csink_row_set(csink_row_sets, pc);
	uint64_t key = csink_row_key(pc, exact, generation);
	csink_row_t row;

	if (csink_row_get(&set->way[0], key, &row) || csink_row_get(&set->way[1], key, &row))
		return row;
	row = csink_row_compile(pc, exact);
	put(&set->way[1], atomic_load_explicit(&set->way[0].check, memory_order_relaxed),
	    atomic_load_explicit(&set->way[0].row, memory_order_relaxed));
	put(&set->way[0], csink_row_check(key, row), row);
	return row;
}
