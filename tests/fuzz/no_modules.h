/* For fuzzers of what reads unwind tables: the module snapshot, which has no modules here. Included by one source each.
 */
#ifndef CSINK_FUZZ_NO_MODULES_H
#define CSINK_FUZZ_NO_MODULES_H

#include <string.h>

#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/go_frames.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/modules.h"

int (*csink_find_object)(void *address, struct dl_find_object *found);

bool csink_modules_find(uint64_t pc, struct csink_module *out)
{
	(void)pc;
	(void)out;
	return false;
}

bool csink_go_row(uintptr_t pc, bool exact, csink_row_t *row)
{
	(void)pc;
	(void)exact;
	(void)row;
	return false;
}

_Atomic uint32_t csink_jit_nr_lists;

bool csink_jit_locate(uintptr_t pc, struct csink_cfi_table *table)
{
	(void)pc;
	(void)table;
	return false;
}

bool csink_copy_by_call(void *to, const void *from, size_t bytes)
{
	if (!csink_readable((uintptr_t)from, bytes))
		return false;
	memcpy(to, from, bytes);
	return true;
}

uint32_t csink_modules_generation(void)
{
	return 1;
}

#endif
