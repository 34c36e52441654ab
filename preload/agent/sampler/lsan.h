/*
 * LeakSanitizer, which is in AddressSanitizer's runtime, too. Its runtime is a library that the program is linked with,
 * or a part of the program.
 */
#ifndef CSINK_LSAN_H
#define CSINK_LSAN_H

#include <stdbool.h>
#include <stddef.h>

extern void __lsan_do_leak_check(void) __attribute__((weak));

/** Does it look for leaks in this program? Context: any. */
static inline bool csink_has_lsan(void)
{
	return __lsan_do_leak_check != NULL;
}

#endif
