/* DWARF expressions in frame rules, evaluated with registers and memory. Any thread; async-signal-safe. */
#include "preload/core/cfi/cfi.h"
#include "preload/core/cfi/cfi_op.h"

#define STACK_DEPTH 16
#define MAX_OPERATIONS 512 /* branches may go back */

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
	return csink_cfi_knows(m->regs, reg) && push(m, m->regs->value[reg] + (uint64_t)offset);
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
	return csink_cfi_op_compute(op, kept, top[0], &top[-1]);
}

static bool run_operation(struct machine *m, uint8_t op)
{
	uint64_t value;

	if (csink_cfi_op_constant(&m->code, op, &value))
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
