/*
 * LeakSanitizer, which is in AddressSanitizer's runtime, too. Its runtime is a library that the program is linked with,
 * or a part of the program.
 */
#ifndef CSINK_LSAN_H
#define CSINK_LSAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

extern void __lsan_do_leak_check(void) __attribute__((weak));

/** Does it look for leaks in this program? Context: any. */
static inline bool csink_has_lsan(void)
{
	return __lsan_do_leak_check != NULL;
}

/** Have the runtime start, as the first block of memory does: before, what it intercepts does nothing, sigaction(2)
 * included. Context: init. */
static inline void csink_lsan_begin(void)
{
	if (csink_has_lsan())
		CSINK_ALLOW(free)(CSINK_ALLOW(malloc)(1));
}

#endif
