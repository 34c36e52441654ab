/* Small macros and types that both sides use. Nothing here allocates, locks or calls libc but for errno. */
#ifndef CSINK_INTERNAL_BASE_H
#define CSINK_INTERNAL_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_VERSION "0.1.0"

#define CSINK_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CSINK_LIKELY(x) __builtin_expect(!!(x), 1)
#define CSINK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CSINK_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CSINK_MAX(a, b) ((a) > (b) ? (a) : (b))
#define CSINK_ALIGN_UP(n, to) (((n) + (to)-1) & ~((to)-1))

/* Sums of numbers that a file claims: they end at the largest there is. */
static inline int64_t csink_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		sum = b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

/* Write a number's decimal digits so that they end just before @end; returns where they begin. At most 10. */
static inline char *csink_digits(char *end, uint32_t number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

static inline void csink_errno_restore(const int *saved)
{
	errno = *saved;
}

/* Declared first in a scope, it restores errno where the scope is left, by any way. The value that the scope returns is
 * computed before that. */
#define CSINK_KEEP_ERRNO __attribute__((cleanup(csink_errno_restore))) const int csink_saved_errno = errno

/* For large variables that most programs never touch: the others, which all do, then share a few pages. */
#define CSINK_COLD __attribute__((section(".bss.cold")))

/* For a function of a shared file that only some of our programs and libraries call: the linker (--gc-sections) leaves
 * it out of the others. */
#define CSINK_OPTIONAL(name) __attribute__((section(".text." #name)))

#define CSINK_NS_PER_S 1000000000ULL

/* Symbols that the program (or a caller that links us) may see; all others are hidden. */
#define CSINK_EXPORT __attribute__((visibility("default")))

/* For variables that headers declare, as -fvisibility=hidden is about definitions alone: other files then access them
 * directly, not by a pointer in the table of addresses. */
#define CSINK_HIDDEN __attribute__((visibility("hidden")))

#endif
