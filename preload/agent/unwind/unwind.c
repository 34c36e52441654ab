/*
 * The walkers by their names. Context: any, as unwind.h says of each.
 */
#include "preload/agent/unwind/unwind.h"

#include "preload/agent/unwind/made_code.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

csink_made_stepper csink_made_current;

void csink_made_set_stepper(csink_made_stepper step)
{
	/* Partner: csink_made_step(). */
	__atomic_store_n(&csink_made_current, step, __ATOMIC_RELEASE);
}

/* Those that run inside programs; "": a method for stacks from outside. */
static const char names[CSINK_NR_UNWINDS][6] = {
	[CSINK_UNWIND_NONE] = "none",
	[CSINK_UNWIND_FP] = "fp",
	[CSINK_UNWIND_DWARF] = "dwarf",
};

int csink_unwind_parse(const char *name)
{
	if (!strcmp(name, "auto"))
		return CSINK_NR_UNWINDS;
	for (int i = 0; i < CSINK_NR_UNWINDS; i++)
		if (names[i][0] && !strcmp(name, names[i]))
			return i;
	return -EINVAL;
}

void (*csink_unwind_walker(enum csink_unwind unwind))(struct csink_walk *, const ucontext_t *)
{
	switch (unwind) {
	case CSINK_UNWIND_FP:
		return csink_walk_fp;
	case CSINK_UNWIND_DWARF:
		return csink_walk_dwarf;
	default:
		return NULL;
	}
}
