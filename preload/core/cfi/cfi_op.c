/* Operations that both evaluators of DWARF expressions share; see cfi_op.h. */
#include "preload/core/cfi/cfi_op.h"

bool csink_cfi_op_constant(struct csink_reader *r, uint8_t op, uint64_t *value)
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

bool csink_cfi_op_compute(uint8_t op, uint64_t first, uint64_t second, uint64_t *result)
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
