/* See eh_frame_32.h. One pass over the entries, each of which is checked; any thread. */
#include "launcher/symbols/eh_frame_32.h"

#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/core/cfi/cfi.h"
#include "preload/core/cfi/cfi_op.h"

#define MAX_BYTES (32U << 20)
#define MAX_LETTERS 8
#define MAX_CIE_CODE 1024 /* bytes of a CIE's instructions, which may be rewritten for each FDE */
#define HEAD_BYTES 64     /* more than a CIE's and an FDE's own fields take */

/* ---- registers ---- */

enum { IP_32 = 8, FIRST_OTHER = 9, OTHERS_AT = 32, NR_NUMBERS = 32 };

/* Those beyond the instruction pointer (flags, x87, SSE) get numbers for which there are no rules. */
static uint8_t renumbered(uint8_t reg)
{
	static const uint8_t of[] = {0, 2, 1, 3, CSINK_REG_SP, CSINK_REG_FP, 12, 13, CSINK_REG_RA};

	return reg < FIRST_OTHER ? of[reg] : (uint8_t)(reg - FIRST_OTHER + OTHERS_AT);
}

/* ---- instructions, in the place where they are ---- */

struct rewriter {
	struct csink_reader r;
	uint8_t *base; /* the same bytes, to be written */
	const uint8_t *from;
};

static uint8_t *writable(const struct rewriter *w, const uint8_t *at)
{
	return w->base + (at - w->from);
}

/* A register's number, of one byte. */
static bool take_reg(struct rewriter *w)
{
	const uint8_t *at = w->r.at;

	if (csink_read_u8(&w->r) >= NR_NUMBERS || w->r.failed)
		return false;
	*writable(w, at) = renumbered(*at);
	return true;
}

/* Of an expression, which begins with its length. */
static bool take_expression(struct rewriter *w)
{
	uint64_t bytes = csink_read_uleb(&w->r), unused;
	struct csink_reader r = w->r;

	csink_read_skip(&w->r, bytes);
	r.end = w->r.at;
	while (!w->r.failed && r.at < r.end && !r.failed) {
		const uint8_t *at = r.at;
		uint8_t op = csink_read_u8(&r);

		if (op == OP_ADDR) /* its address would need more room */
			return false;
		if (csink_cfi_op_constant(&r, op, &unused))
			continue;
		if (op >= OP_BREG0 && op <= OP_BREG31) {
			uint8_t reg = renumbered((uint8_t)(op - OP_BREG0));

			if (reg > OP_BREG31 - OP_BREG0)
				return false;
			*writable(w, at) = (uint8_t)(OP_BREG0 + reg);
			csink_read_sleb(&r);
		} else if (op == OP_PLUS_UCONST) {
			csink_read_uleb(&r);
		} else if (op == OP_PICK || op == OP_DEREF_SIZE) {
			csink_read_u8(&r);
		} else if (op == OP_BRA || op == OP_SKIP) {
			csink_read_u16(&r);
		} else if (op != OP_NOP && op != OP_DEREF && (op < OP_DUP || op > OP_NE)) {
			return false;
		}
	}
	return !w->r.failed && !r.failed;
}

/* Operands: u a LEB128 number, r a register, e an expression, 1, 2, 4 so many bytes. NULL: not taken. */
static const char *const operands[] = {
	[0x00] = "",  [0x02] = "1",  [0x03] = "2",  [0x04] = "4",  [0x05] = "ru", [0x06] = "r",
	[0x07] = "r", [0x08] = "r",  [0x09] = "rr", [0x0a] = "",   [0x0b] = "",   [0x0c] = "ru",
	[0x0d] = "r", [0x0e] = "u",  [0x0f] = "e",  [0x10] = "re", [0x11] = "ru", [0x12] = "ru",
	[0x13] = "u", [0x14] = "ru", [0x15] = "ru", [0x16] = "re", [0x2e] = "u",  [0x2f] = "ru",
};

static bool take_operand(struct rewriter *w, char kind)
{
	switch (kind) {
	case 'r':
		return take_reg(w);
	case 'e':
		return take_expression(w);
	case 'u':
		csink_read_uleb(&w->r);
		break;
	default:
		csink_read_skip(&w->r, (uint64_t)(kind - '0'));
	}
	return !w->r.failed;
}

/* False: there is an instruction that cannot be rewritten. */
static bool rewrite(const uint8_t *from, const uint8_t *end, uint8_t *to)
{
	struct rewriter w = {{from, end, false}, to, from};

	memcpy(to, from, (size_t)(end - from));
	while (w.r.at < w.r.end) {
		const uint8_t *at = w.r.at;
		uint8_t op = csink_read_u8(&w.r), reg = op & 0x3f;

		if (op >> 6 >= 2) {
			if (reg >= NR_NUMBERS)
				return false;
			*writable(&w, at) = (uint8_t)((op & 0xc0) | renumbered(reg));
			if (op >> 6 == 2)
				csink_read_uleb(&w.r);
		} else if (!(op >> 6)) {
			const char *kinds = op < CSINK_ARRAY_SIZE(operands) ? operands[op] : NULL;

			for (; kinds && *kinds; kinds++)
				if (!take_operand(&w, *kinds))
					return false;
			if (!kinds)
				return false;
		}
		if (w.r.failed)
			return false;
	}
	return true;
}

/* ---- entries ---- */

struct cie {
	const uint8_t *at; /* NULL: none */
	bool signal_frame, augmented;
	uint8_t encoding; /* of the addresses of its FDEs */
	uint64_t code_align;
	int64_t data_align;
	const uint8_t *code, *end;
	uint32_t made_at; /* in the output */
};

struct maker {
	uint64_t vaddr; /* of the input's first byte */
	const uint8_t *in, *in_end;
	uint8_t *out;
	uint32_t nr, cap; /* bytes of the output */
	struct cie cie;   /* the last one */
};

/* An address as the input has it; made from pc-relative ones. */
static uint64_t read_address(const struct maker *m, struct csink_reader *r, uint8_t encoding)
{
	uint64_t at = m->vaddr + (uint64_t)(r->at - m->in), value;
	uint8_t format = encoding & CSINK_PE_FORMAT;

	if (format == CSINK_PE_ABSPTR || format == CSINK_PE_UDATA4 || format == CSINK_PE_SDATA4)
		value = csink_read_u32(r);
	else
		value = csink_read_encoded(r, format, 0);
	switch (encoding & ~CSINK_PE_FORMAT) {
	case 0:
		break;
	case CSINK_PE_PCREL:
		value += at;
		break;
	default:
		r->failed = true;
	}
	return value & UINT32_MAX;
}

/* The letters after the 'z' of an augmentation, and what belongs to them. */
static bool read_letters(const struct maker *m, struct csink_reader *r, const uint8_t *letters, struct cie *cie)
{
	uint64_t bytes = csink_read_uleb(r);
	struct csink_reader data = *r;

	csink_read_skip(r, bytes);
	data.end = r->at;
	for (; *letters && !r->failed; letters++) {
		if (*letters == 'R')
			cie->encoding = csink_read_u8(&data);
		else if (*letters == 'L')
			csink_read_u8(&data);
		else if (*letters == 'P')
			read_address(m, &data,
				     csink_read_u8(&data) & (uint8_t) ~(CSINK_PE_INDIRECT | CSINK_PE_RELATION));
		else if (*letters == 'S')
			cie->signal_frame = true;
		else
			return false;
	}
	return !r->failed && !data.failed;
}

/* Bounds the reader to the entry; gives where its second field is. */
static const uint8_t *begin_entry(struct csink_reader *r)
{
	uint32_t length = csink_read_u32(r);

	if (r->failed || !length || length > (uint64_t)(r->end - r->at))
		return NULL;
	r->end = r->at + length;
	return r->at;
}

static bool read_cie(const struct maker *m, const uint8_t *at, struct cie *cie)
{
	struct csink_reader r = {at, m->in_end, false};
	const uint8_t *letters;
	uint8_t version;
	uint64_t ra_reg;

	*cie = (struct cie){.at = at};
	if (!begin_entry(&r) || csink_read_u32(&r))
		return false;
	version = csink_read_u8(&r);
	letters = r.at;
	while (csink_read_u8(&r) && r.at - letters <= MAX_LETTERS)
		;
	if (r.failed || r.at[-1] || (version != 1 && version != 3))
		return false;
	cie->code_align = csink_read_uleb(&r);
	cie->data_align = csink_read_sleb(&r);
	ra_reg = version == 1 ? csink_read_u8(&r) : csink_read_uleb(&r);
	cie->augmented = *letters == 'z';
	if (ra_reg != IP_32 || (!cie->augmented && *letters) ||
	    (cie->augmented && !read_letters(m, &r, letters + 1, cie)))
		return false;
	cie->code = r.at;
	cie->end = r.end;
	return !r.failed && cie->end - cie->code <= MAX_CIE_CODE && cie->code_align < 1 << 16 &&
	       cie->data_align > -(1 << 16) && cie->data_align < 1 << 16;
}

/* ---- output ---- */

static void put(struct maker *m, const void *from, size_t bytes)
{
	memcpy(m->out + m->nr, from, bytes);
	m->nr += (uint32_t)bytes;
}

static void put_byte(struct maker *m, uint8_t byte)
{
	put(m, &byte, 1);
}

static void put_u32(struct maker *m, uint32_t value)
{
	put(m, &value, sizeof(value));
}

static void put_leb(struct maker *m, int64_t value)
{
	while (value < -64 || value > 63) {
		put_byte(m, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	put_byte(m, value & 0x7f);
}

/* Instructions end the entry; its length precedes it. */
static bool put_instructions(struct maker *m, uint32_t entry, const uint8_t *code, const uint8_t *end)
{
	uint32_t bytes;

	if (!rewrite(code, end, m->out + m->nr))
		return false;
	m->nr += (uint32_t)(end - code);
	while (m->nr % 4)
		put_byte(m, 0);
	bytes = m->nr - entry - (uint32_t)sizeof(bytes);
	memcpy(m->out + entry, &bytes, sizeof(bytes));
	return true;
}

static bool make_cie(struct maker *m, struct cie *cie)
{
	cie->made_at = m->nr;
	put_u32(m, 0);
	put_u32(m, 0);
	put_byte(m, 1);
	put(m, cie->signal_frame ? "zRS" : "zR", cie->signal_frame ? 4 : 3);
	put_leb(m, (int64_t)cie->code_align);
	put_leb(m, cie->data_align);
	put_byte(m, CSINK_REG_RA);
	put_leb(m, 1);
	put_byte(m, CSINK_PE_PCREL | CSINK_PE_SDATA8);
	return put_instructions(m, cie->made_at, cie->code, cie->end);
}

static void make_fde(struct maker *m, struct csink_reader *r, uint64_t start, uint64_t bytes)
{
	uint32_t at = m->nr;
	int64_t distance;

	put_u32(m, 0);
	put_u32(m, m->nr - m->cie.made_at);
	distance = (int64_t)(start - (m->vaddr + m->nr)); /* the output lies, as it were, where the input did */
	put(m, &distance, sizeof(distance));
	put(m, &bytes, sizeof(bytes));
	put_leb(m, 0);
	if (!put_instructions(m, at, r->at, r->end))
		m->nr = at;
}

/* Takes the CIE that an FDE refers to, unless it is the last one's. */
static bool take_cie(struct maker *m, const uint8_t *at)
{
	struct cie cie;
	uint32_t before = m->nr;

	if (m->cie.at == at)
		return true;
	if (!read_cie(m, at, &cie) || m->cap - m->nr < (uint64_t)(cie.end - cie.code) + HEAD_BYTES)
		return false;
	if (!make_cie(m, &cie)) {
		m->nr = before;
		return false;
	}
	m->cie = cie;
	return true;
}

static void take_entry(struct maker *m, const uint8_t *at)
{
	struct csink_reader r = {at, m->in_end, false};
	const uint8_t *field = begin_entry(&r);
	uint32_t back = field ? csink_read_u32(&r) : 0;
	uint64_t start, bytes;

	if (!back || r.failed || back > (uint64_t)(field - m->in) || !take_cie(m, field - back))
		return;
	start = read_address(m, &r, m->cie.encoding);
	bytes = read_address(m, &r, m->cie.encoding & CSINK_PE_FORMAT);
	if (m->cie.augmented)
		csink_read_skip(&r, csink_read_uleb(&r));
	if (r.failed || !bytes || m->cap - m->nr < (uint64_t)(r.end - r.at) + HEAD_BYTES)
		return;
	make_fde(m, &r, start, bytes);
}

/* ---- */

uint8_t *csink_eh_frame_32_rewrite(const uint8_t *in, uint64_t bytes, uint64_t vaddr, uint32_t *nr)
{
	struct maker m = {.vaddr = vaddr, .in = in, .in_end = in + bytes};

	if (bytes > MAX_BYTES)
		return NULL;
	/* Each entry grows by less than 32 bytes, from 16 at least; CIEs may come again. */
	m.cap = (uint32_t)(3 * bytes + HEAD_BYTES);
	m.out = calloc(1, m.cap);
	for (const uint8_t *at = in; m.out && at && at < m.in_end; at = csink_cfi_next_entry(at, m.in_end))
		take_entry(&m, at);
	*nr = m.nr;
	return m.out;
}
