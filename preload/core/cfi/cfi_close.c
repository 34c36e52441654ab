/*
 * DWARF expressions put into closed form, once for an address of code. The forms that compilers and linkers write have
 * one:
 * - PLT stubs: rsp + 8 + ((rip & 15) >= 11) * 8, which is rsp + a constant, as rip is known
 * - realigned stacks: *(rbp - 8)
 * - OpenSSL's assembly: *(rsp + n) + 8
 *
 * Any thread; async-signal-safe.
 */
#include "preload/core/cfi/cfi.h"
#include "preload/core/cfi/cfi_op.h"

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
		return csink_cfi_op_compute(op, first->offset, second->offset, &first->offset);
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
	if (csink_cfi_op_constant(r, op, &value) || (op >= OP_BREG0 && op <= OP_BREG31)) {
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
