#include "preload/agent/unwind/unwind.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const names[CSINK_NR_UNWINDS] = {
	[CSINK_UNWIND_NONE] = "none",
	[CSINK_UNWIND_FP] = "fp",
	[CSINK_UNWIND_LIBUNWIND] = "libunwind",
	[CSINK_UNWIND_DWARF] = "dwarf",
};

const char *csink_unwind_name(enum csink_unwind unwind)
{
	return unwind < CSINK_NR_UNWINDS ? names[unwind] : "unknown";
}

int csink_unwind_parse(const char *name)
{
	if (!strcmp(name, "auto"))
		return CSINK_NR_UNWINDS;
	for (int i = 0; i < CSINK_NR_UNWINDS; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -EINVAL;
}

void (*csink_unwind_walker(enum csink_unwind unwind))(struct csink_walk *, const ucontext_t *)
{
	switch (unwind) {
	case CSINK_UNWIND_FP:
		return csink_walk_fp;
	case CSINK_UNWIND_LIBUNWIND:
		return csink_walk_libunwind;
	case CSINK_UNWIND_DWARF:
		return csink_walk_dwarf;
	default:
		return NULL;
	}
}
