/*
 * libFuzzer target: bytes as an object that somebody else has mapped, as attach reads it: its build-id, its segments,
 * its unwind tables, of which every entry is looked up, and walked from by libunwind, and its instructions. Sanitizers
 * judge. (Our own walker of copied stacks keeps rules by the object's address, and would find those of the last input.)
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/attach/code_bytes.h"
#include "launcher/attach/code_paths.h"
#include "launcher/attach/objects.h"
#include "launcher/attach/walk_libunwind.h"
#include "tests/fuzz/no_modules.h"

#define MAX_LOOKUPS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* At its own addresses. */
static bool locate(void *arg, uint64_t pc, const struct csink_attach_object **object, uint64_t *bias)
{
	(void)pc;
	*object = arg;
	*bias = 0;
	return true;
}

/* A stack that is full of return addresses into the entry. */
static void walk(struct csink_attach_object *object, uint64_t pc)
{
	static uint64_t words[512], frames[CSINK_MAX_DEPTH];
	uint64_t regs[64];
	struct csink_walk_copy copy = {regs, (const char *)words, sizeof(words), locate, object, NULL, NULL,
				       0,    object->is_32,       NULL};
	enum csink_walk_copy_end end;

	for (size_t i = 0; i < 512; i++)
		words[i] = i % 3 ? pc + 1 : (uint64_t)(uintptr_t)&words[i];
	for (size_t i = 0; i < 64; i++)
		regs[i] = i == (size_t)__builtin_ctzll(csink_walk_pc_mask) ? pc : (uint64_t)(uintptr_t)words;
	csink_walk_libunwind(&copy, frames, CSINK_MAX_DEPTH, &end);
}

/* .eh_frame_hdr's table begins behind its head: pairs of where code and its entry are. */
static void look_up(struct csink_attach_object *object)
{
	const struct csink_cfi_table *table = &object->table;
	struct csink_cfi_rules rules;
	struct csink_cfi_fde fde;

	for (size_t i = 0; i < MAX_LOOKUPS && (size_t)(table->hdr_end - table->hdr) >= 20 + 8 * i; i++) {
		int32_t start;

		memcpy(&start, table->hdr + 12 + 8 * i, sizeof(start));
		if (!csink_cfi_find(table, (uintptr_t)table->hdr + (uintptr_t)(intptr_t)start, &fde))
			continue;
		csink_cfi_rules_at(&fde, fde.end - 1, &rules);
		walk(object, fde.end - 1 - object->table_bias);
	}
}

/* The instructions of an object, whatever its bytes are, without a table. */
static void follow_code(const struct csink_attach_object *object)
{
	static struct csink_code_rules rules;
	struct csink_code_rule rule;
	uint64_t starts[MAX_LOOKUPS], target;
	uint32_t context;

	for (uint32_t i = 0; i < object->nr_code; i++) {
		for (uint64_t k = 0; k < MAX_LOOKUPS; k++) {
			uint64_t pc = object->code[i].vaddr + k * 29;

			csink_code_find_returns(object, pc, k % 2, &rules);
			csink_code_find_frame(object, object->code[i].vaddr, pc, k % 2, &rule);
			csink_code_find_starts(object, pc, starts, MAX_LOOKUPS);
			csink_code_call_before(object, pc, &target);
			csink_code_is_jump(object, pc);
			csink_code_is_first(object, object->entry);
			csink_code_returns_from_signal(object, pc, pc & 1, &context);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_attach_objects objects = {0};
	struct csink_attach_object *object;
	int fd = memfd_create("object", MFD_CLOEXEC);
	char path[32];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	object = csink_attach_objects_get(&objects, 0, "", path);
	if (!object || object->build_id_len > sizeof(object->build_id))
		abort();
	csink_attach_object_bias(object, 0x10000, 0x1000);
	if (object->table.hdr)
		look_up(object);
	follow_code(object);
	csink_attach_objects_free(&objects);
	close(fd);
	return 0;
}
