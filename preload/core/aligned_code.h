/*
 * Assembly without unwind tables that keeps the stack pointer in a register while it uses an aligned one, as the
 * kernels of OpenBLAS do for the whole of their work: sub $n, %rsp; saves; mov %rsp, %rbx (or %r15); sub $m, %rsp; and
 * $-align, %rsp. Context: signal.
 */
#ifndef CSINK_ALIGNED_CODE_H
#define CSINK_ALIGNED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	CSINK_ALIGNED_WITHIN = 49152, /* before an address, the beginning of its function is looked for */
	CSINK_ALIGNED_PROLOGUE = 64,  /* bytes before the stack pointer is copied */
	CSINK_ALIGNED_BYTES = 17,     /* from there on */
	CSINK_ALIGNED_SP = 1024,      /* the aligned stack pointer is a multiple of it */
	CSINK_ALIGNED_CHUNK = 2048,   /* bytes that are looked at at a time */
	CSINK_ALIGNED_ROOM = CSINK_ALIGNED_PROLOGUE + CSINK_ALIGNED_CHUNK + CSINK_ALIGNED_BYTES,
};

/** Copies code; false if not all of it can be read. */
typedef bool (*csink_aligned_reader)(const void *arg, uint64_t at, void *to, size_t bytes);

static inline uint32_t csink_aligned_word(const uint8_t *code)
{
	uint32_t value;

	memcpy(&value, code, sizeof(value));
	return value;
}

/** mov %rsp, a register; sub $n, %rsp; and $-align, %rsp */
static inline bool csink_aligned_is(const uint8_t *code)
{
	return csink_aligned_word(code + 2) >> 8 == 0xec8148 && csink_aligned_word(code + 9) >> 8 == 0xe48148 &&
	       code[1] == 0x89;
}

/**
 * The nearest beginning of such a function before an address, with what comes before it, in @room; NULL: there is none.
 * @found  set to its address
 */
static inline const uint8_t *csink_aligned_find(csink_aligned_reader read, const void *arg, uint64_t pc,
						uint8_t room[CSINK_ALIGNED_ROOM], uint64_t *found)
{
	for (uint64_t at = pc - CSINK_ALIGNED_CHUNK; pc - at < CSINK_ALIGNED_WITHIN; at -= CSINK_ALIGNED_CHUNK) {
		if (!read(arg, at - CSINK_ALIGNED_PROLOGUE, room, CSINK_ALIGNED_ROOM))
			break;
		for (const uint8_t *code = room + CSINK_ALIGNED_PROLOGUE + CSINK_ALIGNED_CHUNK;
		     --code >= room + CSINK_ALIGNED_PROLOGUE;) {
			if (!csink_aligned_is(code))
				continue;
			*found = at + (uint64_t)(code - room - CSINK_ALIGNED_PROLOGUE);
			return code;
		}
	}
	return NULL;
}

/** Does it copy to %r15, not to %rbx? */
static inline bool csink_aligned_keeps_r15(const uint8_t *code)
{
	return code[2] != 0xe3;
}

/**
 * Where the return address is, if this code made sp of what the register keeps; else 0.
 * @code      PROLOGUE bytes come before it
 * @saved_fp  set to where the frame pointer was saved; 0: it was not
 */
static inline uint64_t csink_aligned_return(const uint8_t *code, uint64_t sp, uint64_t kept, uint64_t *saved_fp)
{
	*saved_fp = 0;
	if (((kept - csink_aligned_word(code + 6)) & (uint64_t)(int32_t)csink_aligned_word(code + 13)) != sp)
		return 0;
	for (const uint8_t *before = code - 4; before > code - CSINK_ALIGNED_PROLOGUE; before--) {
		if (csink_aligned_word(before) == 0x246c8948) /* mov %rbp, n(%rsp) */
			*saved_fp = kept + before[4];
		if (csink_aligned_word(before - 1) >> 8 == 0xec8348 && before[3] < 0x80) /* sub $n, %rsp */
			return kept + before[3];
	}
	return 0;
}

#endif
