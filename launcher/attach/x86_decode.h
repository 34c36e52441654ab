/*
 * Instructions of x86, 64-bit and 32-bit: how long they are, their opcodes and operands. What they mean is not known
 * here. Context of everything here: any; no state.
 */
#ifndef CSINK_X86_DECODE_H
#define CSINK_X86_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_X86_MAX_BYTES 15
#define CSINK_X86_NO_REG 0xff
#define CSINK_X86_RIP 0xfe /* base: the address of the next instruction */

enum csink_x86_map {
	CSINK_X86_ONE_BYTE,
	CSINK_X86_0F,
	CSINK_X86_0F38,
	CSINK_X86_0F3A,
	CSINK_X86_OTHER, /* of XOP, or of EVEX alone */
};

struct csink_x86_insn {
	uint8_t bytes; /* the whole length */
	uint8_t map;   /* enum csink_x86_map */
	uint8_t opcode;
	bool is_vector;   /* coded by VEX, EVEX or XOP */
	bool is_wide;     /* REX.W */
	bool is_16;       /* of 16-bit operands, by prefix */
	bool has_segment; /* an address in a thread's own segment: FS or GS */
	bool has_modrm;
	uint8_t mod, reg, rm; /* reg, rm: registers with the bits of REX; rm where mod is 3 */
	/* A memory operand: base + index * scale + disp; CSINK_X86_NO_REG: has none. */
	uint8_t base, index;
	int32_t disp;
	int64_t imm; /* of branches: the distance from the instruction's end */
};

/** Read one instruction. False: the bytes end before it does, or it is none. */
bool csink_x86_decode(const uint8_t *code, size_t bytes, bool is_64, struct csink_x86_insn *insn);

#endif
