/*
 * libFuzzer target: bytes as one object's .eh_frame_hdr and .eh_frame (the header first). Every entry of its table is
 * looked up; rules are made, closed into rows, and their expressions evaluated. Sanitizers judge.
 */
#include "preload/agent/unwind/cfi_row.h"
#include "tests/fuzz/no_modules.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LOOKUPS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate(const struct csink_cfi_fde *fde, const struct csink_cfi_rules *rules)
{
	static uint64_t stack[64];
	struct csink_stack_bounds bounds = {(uintptr_t)stack, (uintptr_t)stack + sizeof(stack)};
	struct csink_cfi_regs regs = {.known = (1ULL << CSINK_NR_REGS) - 1};
	struct csink_loader load;
	uint64_t cfa = (uintptr_t)&stack[32], value;

	csink_loader_init(&load, &bounds, (uintptr_t)stack);
	for (int i = 0; i < CSINK_NR_REGS; i++)
		regs.value[i] = (uintptr_t)&stack[i];
	if (rules->cfa_expr)
		csink_cfi_eval(fde, rules->cfa_expr, &regs, NULL, &load, &value);
	for (int slot = 0; slot < CSINK_NR_SLOTS; slot++)
		if (rules->rule[slot].kind == CSINK_CFI_AT_EXPR || rules->rule[slot].kind == CSINK_CFI_IS_EXPR)
			csink_cfi_eval(fde, (const uint8_t *)(intptr_t)rules->rule[slot].value, &regs, &cfa, &load,
				       &value);
}

static void look_up(const struct csink_cfi_table *table, uintptr_t pc)
{
	struct csink_cfi_rules rules;
	struct csink_cfi_fde fde;

	if (!csink_cfi_find(table, pc, &fde))
		return;
	if (fde.code < table->low || fde.code > fde.code_end || fde.code_end > table->high)
		abort();
	if (csink_cfi_rules_at(&fde, pc, &rules)) {
		csink_row_close(&fde, pc, &rules);
		evaluate(&fde, &rules);
	}
	if (csink_cfi_rules_at(&fde, fde.end - 1, &rules))
		csink_row_close(&fde, fde.end - 1, &rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* of the exact size: a read too far is seen */
	struct csink_cfi_table table = {.low = copy, .high = copy + size, .hdr = copy, .hdr_end = copy + size};

	memcpy(copy, data, size);
	for (size_t i = 0; i < MAX_LOOKUPS && 12 + i * 8 + 8 <= size; i++) {
		int32_t start;

		memcpy(&start, copy + 12 + i * 8, sizeof(start));
		for (int step = 0; step < 64; step = step * 2 + 1)
			look_up(&table, (uintptr_t)copy + (uintptr_t)(intptr_t)start + (uintptr_t)step);
	}
	free(copy);
	return 0;
}
