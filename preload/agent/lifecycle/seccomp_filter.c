/*
 * Runs classic BPF programs of seccomp(2) on calls of ours: see seccomp_filter.h. Any thread; no state, no call of
 * libc.
 */
#include "preload/agent/lifecycle/seccomp_filter.h"

#include <stdbool.h>
#include <string.h>

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	const struct seccomp_data *data;
};

static uint32_t word_of(const struct seccomp_data *data, uint32_t at)
{
	uint32_t word = 0;

	if (at % 4 == 0 && at <= sizeof(*data) - 4)
		memcpy(&word, (const char *)data + at, 4);
	return word;
}

static uint32_t load(const struct machine *m, const struct sock_filter *op)
{
	switch (BPF_MODE(op->code)) {
	case BPF_IMM:
		return op->k;
	case BPF_MEM:
		return op->k < BPF_MEMWORDS ? m->memory[op->k] : 0;
	case BPF_LEN:
		return sizeof(*m->data);
	default:
		return word_of(m->data, op->k);
	}
}

static uint32_t compute(uint32_t a, uint16_t code, uint32_t by)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + by;
	case BPF_SUB:
		return a - by;
	case BPF_MUL:
		return a * by;
	case BPF_DIV:
		return by ? a / by : 0;
	case BPF_OR:
		return a | by;
	case BPF_AND:
		return a & by;
	case BPF_XOR:
		return a ^ by;
	case BPF_LSH:
		return by < 32 ? a << by : 0;
	case BPF_RSH:
		return by < 32 ? a >> by : 0;
	default: /* BPF_NEG */
		return -a;
	}
}

static uint32_t distance(const struct machine *m, const struct sock_filter *op, uint32_t with)
{
	bool yes;

	switch (BPF_OP(op->code)) {
	case BPF_JA:
		return op->k;
	case BPF_JEQ:
		yes = m->a == with;
		break;
	case BPF_JGT:
		yes = m->a > with;
		break;
	case BPF_JGE:
		yes = m->a >= with;
		break;
	default: /* BPF_JSET */
		yes = m->a & with;
		break;
	}
	return yes ? op->jt : op->jf;
}

/* One instruction that does not return. Returns how many to leave out after it. */
static uint32_t step(struct machine *m, const struct sock_filter *op)
{
	uint32_t with = BPF_SRC(op->code) == BPF_X ? m->x : op->k;

	switch (BPF_CLASS(op->code)) {
	case BPF_LD:
		m->a = load(m, op);
		return 0;
	case BPF_LDX:
		m->x = load(m, op);
		return 0;
	case BPF_ST:
	case BPF_STX:
		if (op->k < BPF_MEMWORDS)
			m->memory[op->k] = BPF_CLASS(op->code) == BPF_ST ? m->a : m->x;
		return 0;
	case BPF_ALU:
		m->a = compute(m->a, op->code, with);
		return 0;
	case BPF_JMP:
		return distance(m, op, with);
	default: /* BPF_MISC */
		if (BPF_MISCOP(op->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return 0;
	}
}

uint32_t csink_seccomp_run(const struct sock_fprog *prog, const struct seccomp_data *data)
{
	struct machine m = {.data = data};

	/* Jumps lead forward only, so this ends. */
	for (uint64_t at = 0; at < prog->len; at++) {
		const struct sock_filter *op = &prog->filter[at];

		if (BPF_CLASS(op->code) == BPF_RET)
			return BPF_RVAL(op->code) == BPF_A ? m.a : op->k;
		at += step(&m, op);
	}
	return SECCOMP_RET_ALLOW;
}
