/* One frame by all rules of its address, with every register that can be known. Slow (no rows), and rarely needed. */
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
	if (rules->cfa_reg >= CSINK_NR_REGS || !(f->regs->known >> rules->cfa_reg & 1))
		return false;
	f->cfa = f->regs->value[rules->cfa_reg] + (uint64_t)rules->cfa_offset;
	return true;
}

/* The caller's value of a register. False: it cannot be had (undefined, or the rule cannot be followed). */
static bool recover(const struct frame *f, uint64_t reg, struct csink_cfi_rule rule, uint64_t *value)
{
	uint64_t from = reg;

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
		from = (uint64_t)(int64_t)rule.value;
		break;
	case CSINK_CFI_UNSET:
		if (reg == CSINK_REG_SP) { /* what the CFA is, by its definition */
			*value = f->cfa;
			return true;
		}
		break;
	case CSINK_CFI_SAME:
		break;
	case CSINK_CFI_UNDEFINED:
		return false;
	}
	*value = from < CSINK_NR_REGS ? f->regs->value[from] : 0;
	return from < CSINK_NR_REGS && f->regs->known >> from & 1;
}

enum csink_cfi_step csink_cfi_step(struct csink_cfi_regs *regs, uintptr_t *pc, bool *exact, struct csink_loader *load)
{
	uintptr_t at = *exact ? *pc : *pc - 1;
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;
	struct csink_cfi_rules rules;
	struct csink_cfi_regs caller = {.known = 0};
	struct frame f = {.fde = &fde, .regs = regs, .load = load};

	if (!csink_cfi_locate(at, &table) || !csink_cfi_find(&table, at, &fde) || !csink_cfi_rules_at(&fde, at, &rules))
		return CSINK_STEP_NO_CFI;
	if (rules.rule[CSINK_SLOT_RA].kind == CSINK_CFI_UNDEFINED)
		return CSINK_STEP_END;
	if (!find_cfa(&f, &rules))
		return CSINK_STEP_RULES;
	for (int slot = 0; slot < CSINK_NR_SLOTS; slot++) {
		uint64_t reg = (uint64_t)csink_cfi_slot_reg(slot), value;

		if (!recover(&f, reg, rules.rule[slot], &value))
			continue;
		caller.value[reg] = value;
		caller.known |= 1ULL << reg;
	}
	if (!(caller.known >> CSINK_REG_RA & 1) || !(caller.known >> CSINK_REG_SP & 1))
		return CSINK_STEP_BAD;
	*regs = caller;
	*pc = caller.value[CSINK_REG_RA];
	*exact = fde.signal_frame;
	return CSINK_STEP_CALLER;
}
