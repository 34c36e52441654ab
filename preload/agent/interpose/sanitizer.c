/*
 * AddressSanitizer's runtime as a shared library (gcc's default) refuses to start where another library comes before
 * it, as a preloaded one does. The check is there because its own functions might not be found; we define none of
 * those, and our interposed calls call the next definition, which is the runtime's. It asks the program for options by
 * this name, and the first definition that the loader finds is ours, unless the program itself has one. The runtime
 * calls it when it begins, on the main thread: by the program's first block of memory at the latest.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "include/internal/base.h"

#define IN_ANY_ORDER "verify_asan_link_order=0"

const char *__asan_default_options(void);

/* Called while the runtime starts, when what it intercepts cannot be called yet, not even strlen(). */
CSINK_EXPORT const char *__asan_default_options(void)
{
	static volatile char options[1024] = IN_ANY_ORDER ":";
	const char *(*next)(void) =
		CSINK_ALLOW(dlsym) ? (const char *(*)(void))CSINK_ALLOW(dlsym)(RTLD_NEXT, "__asan_default_options")
				   : NULL;
	const char *theirs = next ? next() : NULL;
	size_t at = sizeof(IN_ANY_ORDER);

	if (!theirs || !*theirs)
		return IN_ANY_ORDER;
	while (*theirs && at < sizeof(options) - 1)
		options[at++] = *theirs++;
	options[at] = '\0';
	return (const char *)options;
}
