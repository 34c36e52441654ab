/* The instructions of call frame information: from an entry and an address to the rules that hold there. Any thread;
 * async-signal-safe. */
#include "preload/core/cfi/cfi.h"

#include <string.h>

#include "preload/core/cfi/cfi_read.h"

/* Compilers nest DW_CFA_remember_state once; more than this is refused. */
#define MAX_REMEMBERED 3
/* Instructions run for one address. Only hostile tables have more; large functions have some thousands. */
#define MAX_INSTRUCTIONS 100000

enum {
	CFA_ADVANCE_LOC = 0x40, /* the high two bits are the instruction, the low six its first operand */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d, /* elsewhere GNU_window_save, which needs nothing done either */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

#if defined(__x86_64__)
static const int8_t slot_regs[CSINK_NR_SLOTS] = {CSINK_REG_FP, CSINK_REG_RA, CSINK_REG_SP, CSINK_REG_BX,
						 12,           13,           14,           15};
#elif defined(__aarch64__)
static const int8_t slot_regs[CSINK_NR_SLOTS] = {
	CSINK_REG_FP, CSINK_REG_RA, CSINK_REG_SP, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
};
#endif

int csink_cfi_slot_reg(int slot)
{
	return slot_regs[slot];
}

int csink_cfi_slot(uint64_t reg)
{
	for (int i = 0; i < CSINK_NR_SLOTS; i++)
		if ((uint64_t)slot_regs[i] == reg)
			return i;
	return -1;
}

struct program {
	const struct csink_cfi_fde *fde;
	struct csink_cfi_rules *rules;
	struct csink_cfi_rules remembered[MAX_REMEMBERED];
	uint32_t nr_remembered, nr_instructions;
	uintptr_t at; /* code address that the rules hold from */
	bool initial; /* in the CIE's instructions */
};

static bool set_rule(struct program *p, uint64_t reg, enum csink_cfi_kind kind, int64_t value)
{
	int slot = csink_cfi_slot(reg);

	if (slot >= 0) {
		p->rules->rule[slot].kind = kind;
		p->rules->rule[slot].value = value;
	}
	return true;
}

static bool set_cfa(struct program *p, uint64_t reg, int64_t offset)
{
	p->rules->cfa_reg = reg;
	p->rules->cfa_offset = offset;
	p->rules->cfa_expr = NULL;
	return true;
}

static bool run(struct program *p, const uint8_t *code, const uint8_t *end, uintptr_t pc);

/* The rule that the CIE gave a register. Rarely needed: its few instructions are run again, which spares stack. */
__attribute__((noinline)) static bool restore_rule(struct program *p, uint64_t reg)
{
	int slot = csink_cfi_slot(reg);
	struct csink_cfi_rules kept;
	bool fine;

	if (slot < 0 || p->initial)
		return !p->initial;
	kept = *p->rules;
	memset(p->rules, 0, sizeof(*p->rules));
	p->initial = true;
	fine = run(p, p->fde->initial, p->fde->initial_end, UINTPTR_MAX);
	p->initial = false;
	kept.rule[slot] = p->rules->rule[slot];
	*p->rules = kept;
	return fine;
}

/* An operand that is an expression: its place is kept, its bytes are passed over. */
static const uint8_t *read_expr(struct csink_reader *r)
{
	const uint8_t *expr = r->at;

	csink_read_skip(r, csink_read_uleb(r));
	return expr;
}

/* Instructions that set the CFA. False: not one of them. */
static bool run_cfa(struct program *p, struct csink_reader *r, uint8_t op)
{
	int64_t data_align = p->fde->data_align;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = csink_read_uleb(r);
		return set_cfa(p, reg, (int64_t)csink_read_uleb(r));
	case CFA_DEF_CFA_SF:
		reg = csink_read_uleb(r);
		return set_cfa(p, reg, (int64_t)((uint64_t)csink_read_sleb(r) * (uint64_t)data_align));
	case CFA_DEF_CFA_REGISTER:
		return set_cfa(p, csink_read_uleb(r), p->rules->cfa_offset);
	case CFA_DEF_CFA_OFFSET:
		return set_cfa(p, p->rules->cfa_reg, (int64_t)csink_read_uleb(r));
	case CFA_DEF_CFA_OFFSET_SF:
		return set_cfa(p, p->rules->cfa_reg, (int64_t)((uint64_t)csink_read_sleb(r) * (uint64_t)data_align));
	case CFA_DEF_CFA_EXPRESSION:
		p->rules->cfa_expr = read_expr(r);
		return true;
	}
	return false;
}

/* Instructions that set one register's rule. False: not one of them, or a restore of what was never set. */
static bool run_rule(struct program *p, struct csink_reader *r, uint8_t op)
{
	uint64_t align = (uint64_t)p->fde->data_align, reg = csink_read_uleb(r);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		return set_rule(p, reg, CSINK_CFI_AT_CFA, (int64_t)(csink_read_uleb(r) * align));
	case CFA_OFFSET_EXTENDED_SF:
		return set_rule(p, reg, CSINK_CFI_AT_CFA, (int64_t)((uint64_t)csink_read_sleb(r) * align));
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		return set_rule(p, reg, CSINK_CFI_AT_CFA, (int64_t)(0 - csink_read_uleb(r) * align));
	case CFA_VAL_OFFSET:
		return set_rule(p, reg, CSINK_CFI_CFA_PLUS, (int64_t)(csink_read_uleb(r) * align));
	case CFA_VAL_OFFSET_SF:
		return set_rule(p, reg, CSINK_CFI_CFA_PLUS, (int64_t)((uint64_t)csink_read_sleb(r) * align));
	case CFA_RESTORE_EXTENDED:
		return restore_rule(p, reg);
	case CFA_UNDEFINED:
		return set_rule(p, reg, CSINK_CFI_UNDEFINED, 0);
	case CFA_SAME_VALUE:
		return set_rule(p, reg, CSINK_CFI_SAME, 0);
	case CFA_REGISTER:
		return set_rule(p, reg, CSINK_CFI_REGISTER, (int64_t)csink_read_uleb(r));
	case CFA_EXPRESSION:
		return set_rule(p, reg, CSINK_CFI_AT_EXPR, (int64_t)(uintptr_t)read_expr(r));
	case CFA_VAL_EXPRESSION:
		return set_rule(p, reg, CSINK_CFI_IS_EXPR, (int64_t)(uintptr_t)read_expr(r));
	}
	return false;
}

/* Instructions that move on in the code. False: not one of them. */
static bool run_advance(struct program *p, struct csink_reader *r, uint8_t op)
{
	uint64_t delta;

	switch (op) {
	case CFA_SET_LOC:
		p->at = csink_read_encoded(r, p->fde->address_encoding, 0);
		return true;
	case CFA_ADVANCE_LOC1:
		delta = csink_read_u8(r);
		break;
	case CFA_ADVANCE_LOC2:
		delta = csink_read_u16(r);
		break;
	case CFA_ADVANCE_LOC4:
		delta = csink_read_u32(r);
		break;
	default:
		return false;
	}
	p->at += delta * p->fde->code_align;
	return true;
}

static bool run_other(struct program *p, struct csink_reader *r, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
	case CFA_AARCH64_NEGATE_RA_STATE: /* return addresses are stripped of their signature wherever they come from */
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return true;
	case CFA_GNU_ARGS_SIZE:
		csink_read_uleb(r);
		return true;
	case CFA_REMEMBER_STATE:
		if (p->nr_remembered == MAX_REMEMBERED)
			return false;
		p->remembered[p->nr_remembered++] = *p->rules;
		return true;
	case CFA_RESTORE_STATE:
		if (!p->nr_remembered)
			return false;
		*p->rules = p->remembered[--p->nr_remembered];
		return true;
	}
	return run_advance(p, r, op) || run_cfa(p, r, op) || run_rule(p, r, op);
}

/* Run instructions up to the first that holds beyond pc. */
static bool run(struct program *p, const uint8_t *code, const uint8_t *end, uintptr_t pc)
{
	struct csink_reader r = {code, end, false};

	while (r.at < r.end && !r.failed) {
		uint8_t op = csink_read_u8(&r), operand = op & 0x3f;

		if (++p->nr_instructions > MAX_INSTRUCTIONS)
			return false;
		switch (op & 0xc0) {
		case CFA_ADVANCE_LOC:
			p->at += operand * p->fde->code_align;
			break;
		case CFA_OFFSET:
			set_rule(p, operand, CSINK_CFI_AT_CFA,
				 (int64_t)(csink_read_uleb(&r) * (uint64_t)p->fde->data_align));
			break;
		case CFA_RESTORE:
			if (!restore_rule(p, operand))
				return false;
			break;
		default:
			if (!run_other(p, &r, op))
				return false;
		}
		if (p->at > pc)
			return !r.failed;
	}
	return !r.failed;
}

#if defined(__aarch64__)
/*
 * A PLT entry pushes a pair of registers, with the return address above the other one, before it jumps to the loader.
 * glibc's _dl_runtime_resolve() says where the return address is, but counts its CFA from the stack pointer as it was
 * entered: the frame of the caller then begins 16 bytes too low. The CFA is above what this call saved.
 */
static void count_pushed_pair(const struct csink_cfi_fde *fde, struct csink_cfi_rules *rules)
{
	struct csink_cfi_rule ra = rules->rule[CSINK_SLOT_RA];

	if (ra.kind != CSINK_CFI_AT_CFA || ra.value != 8 || rules->cfa_reg != CSINK_REG_SP || rules->cfa_expr ||
	    fde->signal_frame)
		return;
	rules->cfa_offset += 16;
	for (int slot = 0; slot < CSINK_NR_SLOTS; slot++)
		if (rules->rule[slot].kind == CSINK_CFI_AT_CFA || rules->rule[slot].kind == CSINK_CFI_CFA_PLUS)
			rules->rule[slot].value -= 16;
}
#else
static void count_pushed_pair(const struct csink_cfi_fde *fde, struct csink_cfi_rules *rules)
{
	(void)fde;
	(void)rules;
}
#endif

bool csink_cfi_rules_at(const struct csink_cfi_fde *fde, uintptr_t pc, struct csink_cfi_rules *rules)
{
	struct program p;
	bool fine;

	p.fde = fde;
	p.nr_remembered = p.nr_instructions = 0;
	p.at = fde->start;
	p.initial = true;
	p.rules = rules;
	memset(rules, 0, sizeof(*rules));
	p.rules->cfa_reg = UINT64_MAX;
	fine = run(&p, fde->initial, fde->initial_end, UINTPTR_MAX);
	p.initial = false;
	p.at = fde->start;
	fine = fine && run(&p, fde->code, fde->code_end, pc);
	if (fine)
		count_pushed_pair(fde, rules);
	return fine;
}
