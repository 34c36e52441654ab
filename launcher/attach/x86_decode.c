/* See x86_decode.h. Source: Intel's manual, volume 2, appendix A (opcode maps) and chapter 2 (formats). */
#include "launcher/attach/x86_decode.h"

#include <string.h>

/*
 * What follows an opcode: M a ModRM byte; m the same, and an operand by its reg field; b, w, z an immediate of 1, 2, or
 * 4 bytes (2 with an operand size prefix); v as z, but 8 bytes with REX.W; B, Z both M and b, z; o an address alone;
 * j a branch's distance; f a far pointer; e of `enter`; P a prefix; E an escape; - none of these. Opcodes that only one
 * of both modes has: none in the other, where reading on does no harm.
 */
static const char one_byte[257] = "MMMMbz--MMMMbz-E" /* 00 */
				  "MMMMbz--MMMMbz--" /* 10 */
				  "MMMMbzP-MMMMbzP-" /* 20 */
				  "MMMMbzP-MMMMbzP-" /* 30 */
				  "----------------" /* 40 */
				  "----------------" /* 50 */
				  "--MMPPPPzZbB----" /* 60 */
				  "bbbbbbbbbbbbbbbb" /* 70 */
				  "BZBBMMMMMMMMMMMM" /* 80 */
				  "----------f-----" /* 90 */
				  "oooo----bz------" /* a0 */
				  "bbbbbbbbvvvvvvvv" /* b0 */
				  "BBw-MMBZe-w--b--" /* c0 */
				  "MMMMbb--MMMMMMMM" /* d0 */
				  "bbbbbbbbjjfb----" /* e0 */
				  "P-PP--mm------MM" /* f0 */;
static const char after_0f[257] = "MMMM---------M-B" /* 00 */
				  "MMMMMMMMMMMMMMMM" /* 10 */
				  "MMMMMMMMMMMMMMMM" /* 20 */
				  "--------E-E-----" /* 30 */
				  "MMMMMMMMMMMMMMMM" /* 40 */
				  "MMMMMMMMMMMMMMMM" /* 50 */
				  "MMMMMMMMMMMMMMMM" /* 60 */
				  "BBBBMMM-MMMMMMMM" /* 70 */
				  "jjjjjjjjjjjjjjjj" /* 80 */
				  "MMMMMMMMMMMMMMMM" /* 90 */
				  "---MBM-----MBMMM" /* a0 */
				  "MMMMMMMMMMBMMMMM" /* b0 */
				  "MMBMBBBM--------" /* c0 */
				  "MMMMMMMMMMMMMMMM" /* d0 */
				  "MMMMMMMMMMMMMMMM" /* e0 */
				  "MMMMMMMMMMMMMMMM" /* f0 */;

struct decoder {
	const uint8_t *at, *end;
	bool failed, is_64;
	uint8_t rex;           /* the bits W, R, X, B, of whatever prefix has them */
	uint8_t high;          /* by EVEX: bits R' and X, for registers 16 and above */
	bool is_short_address; /* by prefix */
	struct csink_x86_insn *insn;
};

static uint8_t next(struct decoder *d)
{
	if (d->at == d->end) {
		d->failed = true;
		return 0;
	}
	return *d->at++;
}

/* A signed number of so many bytes. */
static int64_t number(struct decoder *d, size_t bytes)
{
	int64_t value = 0;

	if ((size_t)(d->end - d->at) < bytes) {
		d->failed = true;
		return 0;
	}
	memcpy(&value, d->at, bytes);
	d->at += bytes;
	return bytes && bytes < 8 ? (int64_t)((uint64_t)value << (64 - 8 * bytes)) >> (64 - 8 * bytes) : value;
}

/* ---- operands ---- */

static void take_address_16(struct decoder *d, uint8_t rm)
{
	struct csink_x86_insn *insn = d->insn;

	insn->base = insn->index = CSINK_X86_NO_REG; /* nothing that is asked for here is addressed so */
	insn->disp = (int32_t)number(d, insn->mod == 2 || (!insn->mod && rm == 6) ? 2 : insn->mod);
}

static void take_address(struct decoder *d, uint8_t rm)
{
	struct csink_x86_insn *insn = d->insn;
	uint8_t base = rm;
	size_t disp_bytes = insn->mod == 1 ? 1 : insn->mod == 2 ? 4 : 0;

	if (d->is_short_address && !d->is_64) {
		take_address_16(d, rm);
		return;
	}
	insn->index = CSINK_X86_NO_REG;
	if (rm == 4) {
		uint8_t sib = next(d), index = (uint8_t)((sib >> 3 & 7) | (d->rex & 2) << 2);

		base = sib & 7;
		insn->index = index == 4 ? CSINK_X86_NO_REG : index;
	}
	insn->base = (uint8_t)(base | (d->rex & 1) << 3);
	if (base == 5 && !insn->mod) {
		disp_bytes = 4;
		insn->base = rm == 5 && d->is_64 ? CSINK_X86_RIP : CSINK_X86_NO_REG;
	}
	insn->disp = (int32_t)number(d, disp_bytes);
}

static void take_modrm(struct decoder *d)
{
	struct csink_x86_insn *insn = d->insn;
	uint8_t byte = next(d);

	insn->has_modrm = true;
	insn->mod = byte >> 6;
	insn->reg = (uint8_t)((byte >> 3 & 7) | (d->rex & 4) << 1 | (d->high & 1) << 4);
	insn->rm = (uint8_t)((byte & 7) | (d->rex & 1) << 3 | (d->high & 2) << 3);
	if (insn->mod != 3)
		take_address(d, byte & 7);
}

static void take_immediate(struct decoder *d, char kind)
{
	struct csink_x86_insn *insn = d->insn;
	size_t natural = insn->is_16 ? 2 : 4;

	switch (kind) {
	case 'b':
	case 'B':
		insn->imm = number(d, 1);
		break;
	case 'w':
		insn->imm = (uint16_t)number(d, 2);
		break;
	case 'z':
	case 'Z':
		insn->imm = number(d, insn->is_wide ? 4 : natural);
		break;
	case 'v':
		insn->imm = number(d, insn->is_wide ? 8 : natural);
		break;
	case 'j':
		insn->imm = number(d, d->is_64 ? 4 : natural);
		break;
	case 'o':
		insn->imm = number(d, d->is_64 != d->is_short_address ? (d->is_64 ? 8 : 2) : 4);
		break;
	case 'f':
		insn->imm = number(d, d->is_64 ? 0 : natural + 2);
		break;
	case 'e':
		insn->imm = number(d, 3);
		break;
	case 'm': /* test has an immediate operand, not and neg have none */
		if ((insn->reg & 7) < 2)
			insn->imm = number(d, !(insn->opcode & 1) ? 1 : insn->is_wide ? 4 : natural);
		break;
	}
}

static void take_operands(struct decoder *d, char kind)
{
	if (kind == 'M' || kind == 'm' || kind == 'B' || kind == 'Z')
		take_modrm(d);
	take_immediate(d, kind);
}

/* ---- vector instructions ---- */

/* After VEX and EVEX: maps 1 to 3 are those of 0F, 0F38 and 0F3A. */
static void take_vector(struct decoder *d, uint8_t map)
{
	struct csink_x86_insn *insn = d->insn;

	insn->is_vector = true;
	insn->map = map <= 3 ? map : CSINK_X86_OTHER;
	insn->opcode = next(d);
	if (!map || map == 4 || map > 7)
		d->failed = true;
	if (map == 1)
		take_operands(d, insn->opcode == 0x77                                    ? '-'
				 : after_0f[insn->opcode] == 'B' && insn->opcode != 0x0f ? 'B'
											 : 'M');
	else
		take_operands(d, map == 3 ? 'B' : 'M');
}

static void take_vex_2(struct decoder *d)
{
	d->rex = (uint8_t)((~next(d) >> 5) & 4);
	take_vector(d, 1);
}

static void take_vex_3(struct decoder *d)
{
	uint8_t first = next(d), second = next(d);

	d->rex = (uint8_t)((~first >> 5 & 7) | (second >> 4 & 8));
	d->insn->is_wide = second >> 7;
	take_vector(d, first & 31);
}

static void take_evex(struct decoder *d)
{
	uint8_t first = next(d), second = next(d);

	next(d);
	d->rex = (uint8_t)((~first >> 5 & 7) | (second >> 4 & 8));
	d->high = (uint8_t)((~first >> 4 & 1) | (~first >> 5 & 2));
	d->insn->is_wide = second >> 7;
	take_vector(d, first & 7);
}

static void take_xop(struct decoder *d)
{
	uint8_t first = next(d), second = next(d), map = first & 31;

	d->rex = (uint8_t)((~first >> 5 & 7) | (second >> 4 & 8));
	d->insn->is_wide = second >> 7;
	d->insn->is_vector = true;
	d->insn->map = CSINK_X86_OTHER;
	d->insn->opcode = next(d);
	if (map < 8 || map > 10)
		d->failed = true;
	take_modrm(d);
	number(d, map == 8 ? 1 : map == 10 ? 4 : 0);
}

/* The bytes of instructions that 32-bit code has, and which are no registers' there, are prefixes. */
static bool take_if_vector(struct decoder *d, uint8_t opcode)
{
	uint8_t following = d->at < d->end ? *d->at : 0;

	if ((opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62) && (d->is_64 || following >> 6 == 3)) {
		if (opcode == 0x62)
			take_evex(d);
		else if (opcode == 0xc4)
			take_vex_3(d);
		else
			take_vex_2(d);
		return true;
	}
	if (opcode == 0x8f && (following & 31) >= 8) {
		take_xop(d);
		return true;
	}
	return false;
}

/* ---- */

static void take_escaped(struct decoder *d)
{
	struct csink_x86_insn *insn = d->insn;

	insn->map = CSINK_X86_0F;
	insn->opcode = next(d);
	if (after_0f[insn->opcode] == 'E') {
		insn->map = insn->opcode == 0x38 ? CSINK_X86_0F38 : CSINK_X86_0F3A;
		insn->opcode = next(d);
		take_operands(d, insn->map == CSINK_X86_0F38 ? 'M' : 'B');
		return;
	}
	/* Those to and from control registers have no memory operand, whatever their mod. */
	if (insn->opcode >= 0x20 && insn->opcode <= 0x23) {
		next(d);
		return;
	}
	take_operands(d, after_0f[insn->opcode]);
}

/* Returns the byte behind the prefixes. */
static uint8_t take_prefixes(struct decoder *d)
{
	struct csink_x86_insn *insn = d->insn;
	uint8_t byte = next(d);

	while (one_byte[byte] == 'P' && !d->failed) {
		insn->is_16 |= byte == 0x66;
		insn->has_segment |= byte == 0x64 || byte == 0x65;
		d->is_short_address |= byte == 0x67;
		byte = next(d);
	}
	if (!d->is_64 || byte >> 4 != 4)
		return byte;
	d->rex = byte & 15;
	insn->is_wide = byte >> 3 & 1;
	return next(d);
}

bool csink_x86_decode(const uint8_t *code, size_t bytes, bool is_64, struct csink_x86_insn *insn)
{
	struct decoder d = {.at = code, .end = code + (bytes < CSINK_X86_MAX_BYTES ? bytes : CSINK_X86_MAX_BYTES)};

	*insn = (struct csink_x86_insn){.base = CSINK_X86_NO_REG, .index = CSINK_X86_NO_REG};
	d.is_64 = is_64;
	d.insn = insn;
	insn->opcode = take_prefixes(&d);
	if (insn->opcode == 0x0f)
		take_escaped(&d);
	else if (!take_if_vector(&d, insn->opcode))
		take_operands(&d, one_byte[insn->opcode]);
	insn->bytes = (uint8_t)(d.at - code);
	return !d.failed;
}
