/*
 * DWARF expressions in frame rules. Two evaluators: a full one, with registers and memory at hand, for a single step;
 * and one that puts the forms that compilers and linkers write into closed form, once for an address of code: PLT stubs
 * rsp + 8 + ((rip & 15) >= 11) * 8    -> rsp + constant, as rip is known realigned stacks   *(rbp - 8) OpenSSL's
 * assembly *(rsp + n) + 8
 */
#include "preload/sample/cfi.h"
#include "preload/sample/cfi_read.h"

#define STACK_DEPTH 16
#define MAX_OPERATIONS 512 /* branches may go back */

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_REG0 = 0x50,
	OP_REG31 = 0x6f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_REGX = 0x90,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

bool csink_cfi_expr_bounds(const struct csink_cfi_fde *fde, const uint8_t *expr, const uint8_t **start,
			   const uint8_t **end)
{
	struct csink_reader r = {expr, fde->high, expr < fde->low || expr >= fde->high};
	uint64_t bytes = csink_read_uleb(&r);

	*start = r.at;
	csink_read_skip(&r, bytes);
	*end = r.at;
	return !r.failed;
}

/* Operations that push a constant. False: not one of them. */
static bool read_constant(struct csink_reader *r, uint8_t op, uint64_t *value)
{
	if (op >= OP_LIT0 && op <= OP_LIT31) {
		*value = op - OP_LIT0;
		return true;
	}
	switch (op) {
	case OP_CONST1U:
		*value = csink_read_u8(r);
		return true;
	case OP_CONST1S:
		*value = (uint64_t)(int64_t)(int8_t)csink_read_u8(r);
		return true;
	case OP_CONST2U:
		*value = csink_read_u16(r);
		return true;
	case OP_CONST2S:
		*value = (uint64_t)(int64_t)(int16_t)csink_read_u16(r);
		return true;
	case OP_CONST4U:
		*value = csink_read_u32(r);
		return true;
	case OP_CONST4S:
		*value = (uint64_t)(int64_t)(int32_t)csink_read_u32(r);
		return true;
	case OP_ADDR:
	case OP_CONST8U:
	case OP_CONST8S:
		*value = csink_read_u64(r);
		return true;
	case OP_CONSTU:
		*value = csink_read_uleb(r);
		return true;
	case OP_CONSTS:
		*value = (uint64_t)csink_read_sleb(r);
		return true;
	}
	return false;
}

/* Operations on two values, first (deeper) and second. False: not one of them, or a division by zero. */
static bool compute(uint8_t op, uint64_t first, uint64_t second, uint64_t *result)
{
	int64_t a = (int64_t)first, b = (int64_t)second;

	switch (op) {
	case OP_AND:
		*result = first & second;
		return true;
	case OP_DIV:
		*result = b == -1 ? 0 - first : b ? (uint64_t)(a / b) : 0; /* INT64_MIN / -1 would trap */
		return b != 0;
	case OP_MINUS:
		*result = first - second;
		return true;
	case OP_MOD:
		*result = second ? first % second : 0;
		return second != 0;
	case OP_MUL:
		*result = first * second;
		return true;
	case OP_OR:
		*result = first | second;
		return true;
	case OP_PLUS:
		*result = first + second;
		return true;
	case OP_SHL:
		*result = second < 64 ? first << second : 0;
		return true;
	case OP_SHR:
		*result = second < 64 ? first >> second : 0;
		return true;
	case OP_SHRA:
		*result = (uint64_t)(a >> (second < 64 ? second : 63));
		return true;
	case OP_XOR:
		*result = first ^ second;
		return true;
	case OP_EQ:
		*result = a == b;
		return true;
	case OP_GE:
		*result = a >= b;
		return true;
	case OP_GT:
		*result = a > b;
		return true;
	case OP_LE:
		*result = a <= b;
		return true;
	case OP_LT:
		*result = a < b;
		return true;
	case OP_NE:
		*result = a != b;
		return true;
	}
	return false;
}

/* ---- the full evaluator -------------------------------------------------------------------------------------------
 */

struct machine {
	struct csink_reader code;
	const uint8_t *start, *end;
	const struct csink_cfi_regs *regs;
	struct csink_loader *load;
	uint64_t stack[STACK_DEPTH];
	unsigned int depth;
};

static bool push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_DEPTH)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

static bool push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	return reg < CSINK_NR_REGS && m->regs->known >> reg & 1 && push(m, m->regs->value[reg] + (uint64_t)offset);
}

static bool jump(struct machine *m, int16_t delta)
{
	if (delta < m->start - m->code.at || delta > m->end - m->code.at)
		return false;
	m->code.at += delta;
	return true;
}

static bool dereference(struct machine *m, unsigned int bytes)
{
	uint64_t *top = &m->stack[m->depth - 1];

	if (!bytes || bytes > 8 || !csink_load_word(m->load, *top, top))
		return false;
	if (bytes < 8)
		*top &= (1ULL << (8 * bytes)) - 1;
	return true;
}

/* Operations that need a value on the stack, and do not compute with two. */
static bool run_unary(struct machine *m, uint8_t op)
{
	uint64_t *top, kept;

	if (!m->depth)
		return false;
	top = &m->stack[m->depth - 1];
	switch (op) {
	case OP_DEREF:
		return dereference(m, 8);
	case OP_DEREF_SIZE:
		return dereference(m, csink_read_u8(&m->code));
	case OP_DUP:
		return push(m, *top);
	case OP_DROP:
		m->depth--;
		return true;
	case OP_PICK:
		kept = csink_read_u8(&m->code);
		return kept < m->depth && push(m, m->stack[m->depth - 1 - kept]);
	case OP_ABS:
		*top = (int64_t)*top < 0 ? 0 - *top : *top;
		return true;
	case OP_NEG:
		*top = 0 - *top;
		return true;
	case OP_NOT:
		*top = ~*top;
		return true;
	case OP_PLUS_UCONST:
		*top += csink_read_uleb(&m->code);
		return true;
	case OP_BRA:
		kept = csink_read_u16(&m->code);
		m->depth--;
		return !*top || jump(m, (int16_t)kept);
	}
	return false;
}

static bool run_several(struct machine *m, uint8_t op)
{
	uint64_t *top, kept;

	if (m->depth < 2)
		return false;
	top = &m->stack[m->depth - 1];
	kept = top[-1];
	switch (op) {
	case OP_OVER:
		return push(m, kept);
	case OP_SWAP:
		top[-1] = top[0];
		top[0] = kept;
		return true;
	case OP_ROT:
		if (m->depth < 3)
			return false;
		kept = top[0];
		top[0] = top[-1];
		top[-1] = top[-2];
		top[-2] = kept;
		return true;
	}
	m->depth--;
	return compute(op, kept, top[0], &top[-1]);
}

static bool run_operation(struct machine *m, uint8_t op)
{
	uint64_t value;

	if (read_constant(&m->code, op, &value))
		return push(m, value);
	if (op >= OP_REG0 && op <= OP_REG31)
		return push_register(m, op - OP_REG0, 0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_register(m, op - OP_BREG0, csink_read_sleb(&m->code));
	switch (op) {
	case OP_REGX:
		return push_register(m, csink_read_uleb(&m->code), 0);
	case OP_BREGX:
		value = csink_read_uleb(&m->code);
		return push_register(m, value, csink_read_sleb(&m->code));
	case OP_SKIP:
		value = csink_read_u16(&m->code);
		return jump(m, (int16_t)value);
	case OP_NOP:
		return true;
	case OP_OVER:
	case OP_SWAP:
	case OP_ROT:
		return run_several(m, op);
	case OP_DEREF:
	case OP_DEREF_SIZE:
	case OP_DUP:
	case OP_DROP:
	case OP_PICK:
	case OP_ABS:
	case OP_NEG:
	case OP_NOT:
	case OP_PLUS_UCONST:
	case OP_BRA:
		return run_unary(m, op);
	}
	return run_several(m, op);
}

bool csink_cfi_eval(const struct csink_cfi_fde *fde, const uint8_t *expr, const struct csink_cfi_regs *regs,
		    const uint64_t *cfa, struct csink_loader *load, uint64_t *result)
{
	struct machine m = {.regs = regs, .load = load};

	if (!csink_cfi_expr_bounds(fde, expr, &m.start, &m.end))
		return false;
	m.code = (struct csink_reader){m.start, m.end, false};
	if (cfa)
		push(&m, *cfa);
	for (unsigned int nr = 0; m.code.at < m.end; nr++)
		if (nr == MAX_OPERATIONS || !run_operation(&m, csink_read_u8(&m.code)) || m.code.failed)
			return false;
	if (!m.depth)
		return false;
	*result = m.stack[m.depth - 1];
	return true;
}

/* ---- closed form --------------------------------------------------------------------------------------------------
 */

/* *(reg + offset) + addend; without deref, reg + offset; a constant if there is no register. */
struct symbol {
	uint64_t offset, addend;
	uint8_t reg, has_reg, deref;
};

#define SYMBOLS 4

static bool close_binary(uint8_t op, struct symbol *first, const struct symbol *second)
{
	const struct symbol *constant = second->has_reg ? first : second;
	uint64_t *sum;

	if (!first->has_reg && !second->has_reg)
		return compute(op, first->offset, second->offset, &first->offset);
	if (constant->has_reg || (op != OP_PLUS && !(op == OP_MINUS && first->has_reg)))
		return false;
	if (second->has_reg) {
		uint64_t offset = first->offset;

		*first = *second;
		*(first->deref ? &first->addend : &first->offset) += offset;
		return true;
	}
	sum = first->deref ? &first->addend : &first->offset;
	*sum = op == OP_PLUS ? *sum + second->offset : *sum - second->offset;
	return true;
}

static bool close_operation(struct csink_reader *r, uint8_t op, uintptr_t pc, struct symbol *stack, unsigned int *depth)
{
	struct symbol *top = *depth ? &stack[*depth - 1] : NULL;
	uint64_t value;

	if (op == OP_DEREF) {
		if (!top || !top->has_reg || top->deref)
			return false;
		top->deref = 1;
		return true;
	}
	if (op == OP_PLUS_UCONST) {
		value = csink_read_uleb(r);
		if (top)
			*(top->deref ? &top->addend : &top->offset) += value;
		return top != NULL;
	}
	if (read_constant(r, op, &value) || (op >= OP_BREG0 && op <= OP_BREG31)) {
		bool is_reg = op >= OP_BREG0 && op <= OP_BREG31;

		if (*depth == SYMBOLS)
			return false;
		if (is_reg)
			value = (uint64_t)csink_read_sleb(r);
#if defined(__x86_64__)
		if (is_reg && op - OP_BREG0 == CSINK_REG_RA) { /* the instruction pointer: a constant here */
			value += pc;
			is_reg = false;
		}
#else
		(void)pc;
#endif
		stack[(*depth)++] = (struct symbol){value, 0, is_reg ? (uint8_t)(op - OP_BREG0) : 0, is_reg, 0};
		return true;
	}
	return *depth >= 2 && close_binary(op, &stack[--*depth - 1], top);
}

bool csink_cfi_expr_close(const struct csink_cfi_fde *fde, const uint8_t *expr, uintptr_t pc,
			  struct csink_cfi_closed *closed)
{
	struct symbol stack[SYMBOLS];
	struct csink_reader r = {NULL, NULL, false};
	unsigned int depth = 0;

	if (!csink_cfi_expr_bounds(fde, expr, &r.at, &r.end))
		return false;
	while (r.at < r.end)
		if (!close_operation(&r, csink_read_u8(&r), pc, stack, &depth) || r.failed)
			return false;
	if (depth != 1 || !stack[0].has_reg)
		return false;
	*closed = (struct csink_cfi_closed){stack[0].reg, (int64_t)stack[0].offset, (int64_t)stack[0].addend,
					    stack[0].deref};
	return true;
}
