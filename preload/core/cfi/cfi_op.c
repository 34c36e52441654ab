/* Operations that both evaluators of DWARF expressions share; see cfi_op.h. Any thread; async-signal-safe. */
#include "preload/core/cfi/cfi_op.h"

/* Returns true, for those that call it: they know the operation. */
static bool give(uint64_t *to, uint64_t value)
{
	*to = value;
	return true;
}

bool csink_cfi_op_constant(struct csink_reader *r, uint8_t op, uint64_t *value)
{
	if (op >= OP_LIT0 && op <= OP_LIT31)
		return give(value, op - OP_LIT0);
	switch (op) {
	case OP_CONST1U:
		return give(value, csink_read_u8(r));
	case OP_CONST1S:
		return give(value, (uint64_t)(int64_t)(int8_t)csink_read_u8(r));
	case OP_CONST2U:
		return give(value, csink_read_u16(r));
	case OP_CONST2S:
		return give(value, (uint64_t)(int64_t)(int16_t)csink_read_u16(r));
	case OP_CONST4U:
		return give(value, csink_read_u32(r));
	case OP_CONST4S:
		return give(value, (uint64_t)(int64_t)(int32_t)csink_read_u32(r));
	case OP_ADDR:
	case OP_CONST8U:
	case OP_CONST8S:
		return give(value, csink_read_u64(r));
	case OP_CONSTU:
		return give(value, csink_read_uleb(r));
	case OP_CONSTS:
		return give(value, (uint64_t)csink_read_sleb(r));
	}
	return false;
}

bool csink_cfi_op_compute(uint8_t op, uint64_t first, uint64_t second, uint64_t *result)
{
	int64_t a = (int64_t)first, b = (int64_t)second;

	switch (op) {
	case OP_AND:
		return give(result, first & second);
	case OP_DIV:
		return b && give(result, b == -1 ? 0 - first : (uint64_t)(a / b)); /* INT64_MIN / -1 would trap */
	case OP_MINUS:
		return give(result, first - second);
	case OP_MOD:
		return second && give(result, first % second);
	case OP_MUL:
		return give(result, first * second);
	case OP_OR:
		return give(result, first | second);
	case OP_PLUS:
		return give(result, first + second);
	case OP_SHL:
		return give(result, second < 64 ? first << second : 0);
	case OP_SHR:
		return give(result, second < 64 ? first >> second : 0);
	case OP_SHRA:
		return give(result, (uint64_t)(a >> (second < 64 ? second : 63)));
	case OP_XOR:
		return give(result, first ^ second);
	case OP_EQ:
		return give(result, a == b);
	case OP_GE:
		return give(result, a >= b);
	case OP_GT:
		return give(result, a > b);
	case OP_LE:
		return give(result, a <= b);
	case OP_LT:
		return give(result, a < b);
	case OP_NE:
		return give(result, a != b);
	}
	return false;
}
