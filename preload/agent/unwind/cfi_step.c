/* One frame by all rules of its address, with every register. Slow (no rows), and rarely needed. Any
 * thread; async-signal-safe. */
#include "preload/core/cfi/cfi.h"

struct frame {
	const struct csink_cfi_fde *fde;
	const struct csink_cfi_regs *regs;
	uint64_t cfa;
	struct csink_loader *load;
};

static bool find_cfa(struct frame *f, const struct csink_cfi_rules *rules)
{
	if (rules->cfa_expr)
		return csink_cfi_eval(f->fde, rules->cfa_expr, f->regs, NULL, f->load, &f->cfa);
	if (!csink_cfi_knows(f->regs, rules->cfa_reg))
		return false;
	f->cfa = f->regs->value[rules->cfa_reg] + (uint64_t)rules->cfa_offset;
	return true;
}

/* The caller's value of a register. False: it cannot be had (undefined, or the rule cannot be followed). */
static bool recover(const struct frame *f, uint64_t reg, struct csink_cfi_rule rule, uint64_t *value)
{
	switch ((enum csink_cfi_kind)rule.kind) {
	case CSINK_CFI_AT_CFA:
		return csink_load_word(f->load, f->cfa + (uint64_t)(int64_t)rule.value, value);
	case CSINK_CFI_CFA_PLUS:
		*value = f->cfa + (uint64_t)(int64_t)rule.value;
		return true;
	case CSINK_CFI_AT_EXPR:
		return csink_cfi_eval(f->fde, (const uint8_t *)(intptr_t)rule.value, f->regs, &f->cfa, f->load,
				      value) &&
		       csink_load_word(f->load, *value, value);
	case CSINK_CFI_IS_EXPR:
		return csink_cfi_eval(f->fde, (const uint8_t *)(intptr_t)rule.value, f->regs, &f->cfa, f->load, value);
	case CSINK_CFI_REGISTER:
	case CSINK_CFI_UNSET:
	case CSINK_CFI_SAME:
	case CSINK_CFI_UNDEFINED:
		break;
	}
	return csink_cfi_recover_kept(f->regs, f->cfa, reg, rule, value);
}

enum csink_cfi_step csink_cfi_step(struct csink_cfi_regs *regs, uintptr_t *pc, bool *exact, struct csink_loader *load)
{
	uintptr_t at = *exact ? *pc : *pc - 1;
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;
	struct csink_cfi_rules rules;
	struct csink_cfi_regs caller = *regs;
	struct frame f = {.fde = &fde, .regs = regs, .load = load};

	if (!csink_cfi_locate(at, &table) || !csink_cfi_find(&table, at, &fde) || !csink_cfi_rules_at(&fde, at, &rules))
		return CSINK_STEP_NO_CFI;
	if (rules.rule[CSINK_SLOT_RA].kind == CSINK_CFI_UNDEFINED)
		return CSINK_STEP_END;
	if (!find_cfa(&f, &rules))
		return CSINK_STEP_RULES;
	for (int slot = 0; slot < CSINK_NR_SLOTS; slot++) {
		uint64_t reg = (uint64_t)csink_cfi_slot_reg(slot), value;

		csink_cfi_forget(&caller, reg);
		if (recover(&f, reg, rules.rule[slot], &value))
			csink_cfi_set(&caller, reg, value);
	}
	if (!csink_cfi_knows(&caller, CSINK_REG_RA) || !csink_cfi_knows(&caller, CSINK_REG_SP))
		return CSINK_STEP_BAD;
	*regs = caller;
	*pc = caller.value[CSINK_REG_RA];
	*exact = fde.signal_frame;
	return CSINK_STEP_CALLER;
}
