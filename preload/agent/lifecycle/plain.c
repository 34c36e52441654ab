/*
 * The libc functions that the handler calls, once more and for this library alone: no library that interposes libc (a
 * sanitizer's runtime, a checker of memory) is entered from the handler by these names, in the middle of whatever it
 * was doing.
 */
#include "preload/agent/lifecycle/plain.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/libc.h"

/* The compiler must not take a loop for the function that it is in. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#define LOCAL __attribute__((visibility("hidden"), used))

/* A word at any address. */
struct word {
	uint64_t bits;
} __attribute__((packed, may_alias));

LOCAL void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	char *at = to;
	const char *left = from;

	for (; bytes >= 8; at += 8, left += 8, bytes -= 8)
		*(struct word *)at = *(const struct word *)left;
	while (bytes--)
		*at++ = *left++;
	return to;
}

LOCAL void *memmove(void *to, const void *from, size_t bytes)
{
	if ((uintptr_t)to - (uintptr_t)from >= bytes)
		return memcpy(to, from, bytes);
	while (bytes--)
		((char *)to)[bytes] = ((const char *)from)[bytes];
	return to;
}

LOCAL void *memset(void *to, int byte, size_t bytes)
{
	struct word all = {(uint8_t)byte * 0x0101010101010101ULL};
	char *at = to;

	for (; bytes >= 8; at += 8, bytes -= 8)
		*(struct word *)at = all;
	while (bytes--)
		*at++ = (char)byte;
	return to;
}

LOCAL int memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *left = a, *right = b;

	for (; bytes; bytes--, left++, right++)
		if (*left != *right)
			return *left - *right;
	return 0;
}

LOCAL void *memchr(const void *in, int byte, size_t bytes)
{
	const unsigned char *at = in;

	for (; bytes; bytes--, at++)
		if (*at == (unsigned char)byte)
			return (void *)at;
	return NULL;
}

LOCAL size_t strlen(const char *text)
{
	const char *at = text;

	while (*at)
		at++;
	return (size_t)(at - text);
}

LOCAL int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return (unsigned char)*a - (unsigned char)*b;
}

CSINK_OPTIONAL(readlink) LOCAL ssize_t readlink(const char *restrict path, char *restrict to, size_t bytes)
{
	return csink_raw_to_libc(csink_rawcall(SYS_readlinkat, -100 /* AT_FDCWD */, path, to, bytes));
}

/* libc's own, which asks the vdso. */
static int (*libc_clock)(clockid_t clock, struct timespec *at);

LOCAL int clock_gettime(clockid_t clock, struct timespec *at)
{
	return libc_clock ? libc_clock(clock, at) : (int)csink_raw_to_libc(csink_rawcall(SYS_clock_gettime, clock, at));
}

/* By its version, which only libc's own has, where libc cannot be known. */
void csink_plain_init(void)
{
	void *clock = csink_libc_find("clock_gettime");

	if (!clock && CSINK_ALLOW(dlvsym))
		clock = CSINK_ALLOW(dlvsym)(RTLD_NEXT, "clock_gettime", "GLIBC_2.17");
	libc_clock = (int (*)(clockid_t, struct timespec *))clock;
}
