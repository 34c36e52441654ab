/*
 * Short libc functions that the start of a process calls, once more and for this library alone: the loader looks up
 * each function of libc that we call, in every program. Any thread, async-signal-safe.
 */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/rawcall.h"

/* The compiler must not take a loop for the function that it is in. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#define LOCAL __attribute__((visibility("hidden"), used))

LOCAL char *strchrnul(const char *text, int c)
{
	while (*text && *text != (char)c)
		text++;
	return (char *)text;
}

LOCAL char *strchr(const char *text, int c)
{
	char *at = strchrnul(text, c);

	return *at == (char)c ? at : NULL;
}

LOCAL char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

LOCAL char *strcat(char *restrict to, const char *restrict from)
{
	strcpy(to + strlen(to), from);
	return to;
}

LOCAL size_t strcspn(const char *text, const char *reject)
{
	const char *at = text;

	while (*at && !strchr(reject, *at))
		at++;
	return (size_t)(at - text);
}

LOCAL int strncmp(const char *a, const char *b, size_t bytes)
{
	for (; bytes && *a && *a == *b; a++, b++)
		bytes--;
	return bytes ? (unsigned char)*a - (unsigned char)*b : 0;
}

#define OWN(type, name)                                                                                                \
	LOCAL type name(void)                                                                                          \
	{                                                                                                              \
		return (type)csink_rawcall(SYS_##name);                                                                \
	}
OWN(pid_t, getpid)
OWN(pid_t, getppid)
OWN(pid_t, gettid)
OWN(uid_t, getuid)
OWN(uid_t, geteuid)
OWN(gid_t, getgid)
OWN(gid_t, getegid)
#undef OWN
