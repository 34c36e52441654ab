/* Unwind tables of 32-bit objects, as 64-bit readers take them. */
#include <stdlib.h>
#include <string.h>

#include "launcher/symbols/eh_frame_32.h"
#include "preload/core/cfi/cfi.h"
#include "tests/unit/tap.h"

#define VADDR 0x1000
#define CODE 0x8048000

static uint8_t in[8192];
static uint32_t nr_in;

static void put_u32(uint32_t value)
{
	memcpy(in + nr_in, &value, sizeof(value));
	nr_in += (uint32_t)sizeof(value);
}

/* A CIE of no augmentation, with so many instructions that do nothing, and so many FDEs of it, of 16 bytes of code
 * each. */
static void make(uint32_t nr_nops, uint32_t nr_fdes)
{
	static const uint8_t head[] = {1, 0, 1, 0x7c, 8, 0x0c, 4, 4, 0x88, 1}; /* CFA: esp + 4; eip at CFA - 4 */

	memset(in, 0, sizeof(in));
	nr_in = 0;
	put_u32((uint32_t)(4 + sizeof(head) + nr_nops));
	put_u32(0);
	memcpy(in + nr_in, head, sizeof(head));
	nr_in += (uint32_t)sizeof(head) + nr_nops;
	for (uint32_t i = 0; i < nr_fdes; i++) {
		put_u32(12);
		put_u32(nr_in);
		put_u32(CODE + 16 * i);
		put_u32(16);
	}
}

/* How many entries of code there are in what is made, that have a rule for the return address. */
static uint32_t nr_rewritten(void)
{
	uint32_t nr, found = 0;
	uint8_t *out = csink_eh_frame_32_rewrite(in, nr_in, VADDR, &nr);
	const struct csink_cfi_table table = {.low = out, .high = out + nr};
	uintptr_t bias = (uintptr_t)out - VADDR;

	for (const uint8_t *at = out; at && at < table.high; at = csink_cfi_next_entry(at, table.high)) {
		struct csink_cfi_rules rules;
		struct csink_cfi_fde fde;

		if (csink_cfi_read_entry(&table, at, &fde) && fde.start - bias == CODE + 16 * found &&
		    fde.end - fde.start == 16 && csink_cfi_rules_at(&fde, fde.start, &rules) &&
		    rules.cfa_reg == CSINK_REG_SP && rules.cfa_offset == 4 &&
		    rules.rule[CSINK_SLOT_RA].kind == CSINK_CFI_AT_CFA && rules.rule[CSINK_SLOT_RA].value == -4)
			found++;
	}
	free(out);
	return found;
}

int main(void)
{
	make(0, 3);
	is_num(nr_rewritten(), 3, "entries say the same as before");
	make(1000, 3);
	is_num(nr_rewritten(), 3, "with instructions that do nothing");
	make(5000, 3);
	is_num(nr_rewritten(), 0, "entries are left out whose CIE is longer than any: each would have it read again");
	return done();
}
