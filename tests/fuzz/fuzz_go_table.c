/*
 * libFuzzer target: bytes as a program by Go, at tests/unit/made_go.h's address, with its table at the beginning or,
 * failing that, wherever a header is. Every function is asked for all that is known of it, at several addresses.
 */
#include <stdlib.h>

#include "preload/core/go_table.h"

enum { VADDR = 0x500000, MAX_FUNCTIONS = 64, MAX_FRAMES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct csink_go_table *table, uint64_t pc)
{
	struct csink_go_frame frames[MAX_FRAMES];
	struct csink_go_function function;
	struct csink_go_rule rule;
	volatile char byte = 0;
	int32_t offset;

	if (!csink_go_find(table, pc, &function))
		return;
	csink_go_sp_offset(table, &function, pc, &offset);
	csink_go_rule_at(table, pc, &rule);
	for (uint32_t i = 0, nr = csink_go_frames(table, &function, pc, frames, MAX_FRAMES); i < nr; i++) {
		for (const char *at = frames[i].name; at && *at; at++)
			byte = *at;
		for (const char *at = frames[i].file; at && *at; at++)
			byte = *at;
	}
	(void)byte;
}

static void open_at(const struct csink_go_program *program, uint64_t header)
{
	struct csink_go_function function;
	struct csink_go_table table;

	if (!csink_go_open(&table, program, header))
		return;
	csink_go_find_inlines(&table, program);
	for (uint64_t nr = 0; nr < MAX_FUNCTIONS && csink_go_nth(&table, nr, &function); nr++) {
		ask(&table, function.start);
		ask(&table, function.start + (function.end - function.start) / 3);
		ask(&table, function.end - 1);
	}
	ask(&table, 0);
	ask(&table, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct csink_go_bytes part = {VADDR, data, size};
	const struct csink_go_program program = {&part, 1};

	open_at(&program, VADDR);
	for (size_t at = 8; at + 8 <= size; at += 8) {
		if (!csink_go_is_header(data + at, size - at))
			continue;
		open_at(&program, VADDR + at);
		break;
	}
	return 0;
}
