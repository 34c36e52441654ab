/*
 * A table of Go as its linker writes it, in each form, with three functions: main.main; main.outer, which has main.mid
 * inlined, which has main.leaf inlined; runtime.goexit. One part at MADE_GO_VADDR holds all: the table, then the record
 * that leads to it, then the inlined calls. For the unit test and as what a fuzzer starts from.
 */
#ifndef CSINK_MADE_GO_H
#define CSINK_MADE_GO_H

#include <string.h>

#include "preload/core/go_table.h"

enum {
	MADE_GO_BYTES = 2048,
	MADE_GO_VADDR = 0x500000,
	MADE_GO_TEXT = 0x401000,
	MADE_GO_FUNCTION = 0x100, /* bytes of each function */
	MADE_GO_MODULE = 1024,
	MADE_GO_CALLS = 1600,
};

static uint8_t *made_go;
static uint32_t made_go_at;

static void made_go_put(uint64_t value, uint32_t bytes)
{
	memcpy(made_go + made_go_at, &value, bytes);
	made_go_at += bytes;
}

static uint32_t made_go_text(const char *text, uint32_t from)
{
	uint32_t at = made_go_at - from;

	memcpy(made_go + made_go_at, text, strlen(text) + 1);
	made_go_at += (uint32_t)strlen(text) + 1;
	return at;
}

/* Values: each for so many bytes of code. */
static uint32_t made_go_values(const int32_t *pairs, uint32_t nr, uint32_t from)
{
	uint32_t at = made_go_at - from;
	int32_t last = -1;

	for (uint32_t i = 0; i < nr; i++) {
		int32_t change = pairs[2 * i] - last;
		uint32_t zigzag = (uint32_t)change << 1 ^ (uint32_t)(change >> 31), code = (uint32_t)pairs[2 * i + 1];

		for (; zigzag > 127; zigzag >>= 7)
			made_go_put(zigzag | 0x80, 1);
		made_go_put(zigzag & 127, 1);
		for (; code > 127; code >>= 7)
			made_go_put(code | 0x80, 1);
		made_go_put(code & 127, 1);
		last = pairs[2 * i];
	}
	made_go_put(0, 1);
	return at;
}

static void made_go_set(uint32_t at, uint64_t value, uint32_t bytes)
{
	memcpy(made_go + at, &value, bytes);
}

struct made_go_function {
	uint32_t name, sp, file, line, start_line, inlined, calls;
};

/* Append what is known of a function. */
static void made_go_function_put(enum csink_go_form form, uint32_t number, const struct made_go_function *f)
{
	made_go_put(number * MADE_GO_FUNCTION + (form == CSINK_GO_1_16 ? MADE_GO_TEXT : 0),
		    form == CSINK_GO_1_16 ? 8 : 4);
	made_go_put(f->name, 4);
	made_go_put(0, 8);
	made_go_put(f->sp, 4);
	made_go_put(f->file, 4);
	made_go_put(f->line, 4);
	made_go_put(3, 4); /* tables of values */
	made_go_put(0, 4); /* unit */
	if (form == CSINK_GO_1_20)
		made_go_put(f->start_line, 4);
	made_go_put(4ULL << 24, 4); /* id, flag, -, numbers of data */
	made_go_put(0, 8);
	made_go_put(f->inlined, 4);
	if (form == CSINK_GO_1_16) {
		made_go_at = (made_go_at + 7) & ~7U;
		made_go_put(0, 8), made_go_put(0, 8), made_go_put(0, 8);
		made_go_put(f->inlined ? MADE_GO_VADDR + f->calls : 0, 8);
	} else {
		made_go_put(UINT64_MAX, 8);
		made_go_put(UINT32_MAX, 4);
		made_go_put(f->inlined ? 0 : UINT32_MAX, 4);
	}
	made_go_at = (made_go_at + 7) & ~7U;
}

/* mid: called at 0x48 of outer; leaf: at 0x44 of mid's code. */
static void made_go_calls_put(enum csink_go_form form, uint32_t mid, uint32_t leaf)
{
	const uint32_t names[] = {mid, leaf}, at[] = {0x18, 0x44}, lines[] = {20, 30};

	made_go_at = MADE_GO_CALLS;
	for (uint32_t i = 0; i < 2; i++) {
		if (form == CSINK_GO_1_20) {
			made_go_put(0, 4);
			made_go_put(names[i], 4);
			made_go_put(at[i], 4);
			made_go_put(lines[i], 4);
			continue;
		}
		made_go_put(i ? 0 : 0xffff, 4); /* the parent */
		made_go_put(0, 4);              /* file of the call, line */
		made_go_put(i ? 31 : 21, 4);
		made_go_put(names[i], 4);
		made_go_put(at[i], 4);
	}
}

/* to has MADE_GO_BYTES. with_text: the header has the address of the code, as it had up to Go 1.25. */
static void made_go_make(uint8_t *to, enum csink_go_form form, bool with_text)
{
	static const uint32_t magics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	const uint32_t word = form == CSINK_GO_1_16 ? 8 : 4, first_offset = form == CSINK_GO_1_16 ? 24 : 32;
	struct made_go_function f[3] = {{.start_line = 10}, {.start_line = 20}, {.start_line = 40}};
	uint32_t names, files, values, functions, mid, leaf;

	memset(to, 0, MADE_GO_BYTES);
	made_go = to;
	made_go_at = 0;
	made_go_put(magics[form] | 0x0801000000000000, 8);
	made_go_put(3, 8);
	made_go_put(1, 8);
	if (form != CSINK_GO_1_16)
		made_go_put(with_text ? MADE_GO_TEXT : 0, 8);
	made_go_at = names = 80;
	made_go_text("", names);
	f[0].name = made_go_text("main.main", names);
	f[1].name = made_go_text("main.outer", names);
	f[2].name = made_go_text("runtime.goexit", names);
	mid = made_go_text("main.mid", names);
	leaf = made_go_text("main.leaf", names);
	made_go_set(first_offset, names, 8);
	made_go_at = (made_go_at + 7) & ~7U;
	made_go_set(first_offset + 8, made_go_at, 8); /* units: of the only one, the only file */
	made_go_put(0, 4);
	files = made_go_at;
	made_go_text("/src/main.go", files);
	made_go_set(first_offset + 16, files, 8);
	values = made_go_at;
	made_go_put(0, 1); /* offset 0 means none */
	made_go_set(first_offset + 24, values, 8);
	for (uint32_t i = 0; i < 3; i++) {
		f[i].file = made_go_values((int32_t[]){0, MADE_GO_FUNCTION}, 1, values);
		f[i].sp = made_go_values((int32_t[]){0, 0x10, 32, 0xe0, 0, 0x10}, 3, values);
		f[i].line = made_go_values((int32_t[]){10, 0x100}, 1, values);
	}
	/* 21 calls mid, 31 in it leaf, 41 in that, 22 again of outer. */
	f[1].line = made_go_values((int32_t[]){20, 0x18, 21, 0x28, 31, 8, 41, 0x20, 22, 0x98}, 5, values);
	f[1].inlined = made_go_values((int32_t[]){-1, 0x40, 0, 8, 1, 0x20, -1, 0x98}, 4, values);
	f[1].calls = MADE_GO_CALLS;
	made_go_at = functions = (made_go_at + 7) & ~7U;
	made_go_set(first_offset + 32, functions, 8);
	made_go_at += 7 * word + (word == 4 ? 4 : 0);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t start = i * MADE_GO_FUNCTION + (form == CSINK_GO_1_16 ? MADE_GO_TEXT : 0);

		made_go_at = (made_go_at + 7) & ~7U;
		made_go_set(functions + i * 2 * word, start, word);
		made_go_set(functions + i * 2 * word + word, made_go_at - functions, word);
		made_go_function_put(form, i, &f[i]);
	}
	made_go_set(functions + 6 * word, 3 * MADE_GO_FUNCTION + (form == CSINK_GO_1_16 ? MADE_GO_TEXT : 0), word);
	made_go_set(MADE_GO_MODULE, MADE_GO_VADDR, 8);
	made_go_set(MADE_GO_MODULE + 16 * 8, MADE_GO_VADDR + functions, 8);
	made_go_set(MADE_GO_MODULE + 17 * 8, 4, 8);
	made_go_set(MADE_GO_MODULE + 22 * 8, MADE_GO_TEXT, 8);
	made_go_set(MADE_GO_MODULE + 40 * 8, MADE_GO_VADDR + MADE_GO_CALLS, 8);
	made_go_calls_put(form, mid, leaf);
}

#endif
