/*
 * guest_names: functions of its own by the names of libc's. putenv() and others ruin whoever calls them from outside;
 * clone(), in a library that it is linked with (built from this file, too: GUEST_NAMES_LIBRARY), copies a text and
 * returns where. The library also has three of the calls on memory, and a function that the loader chooses while it
 * relocates the library, by a resolver that maps memory and closes a file. The program handles SIGCHLD, and says so
 * should one come as it ends: it has no children.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef GUEST_NAMES_LIBRARY

#include <sys/mman.h>

/* Its arguments are no function and no stack; its result has 64 bits. */
char *clone(const char *text, char *to, uint64_t most)
{
	return most ? memcpy(to, text, most) : NULL;
}

char *names_clone(const char *text, char *to, uint64_t most)
{
	return clone(text, to, most);
}

static int one(void)
{
	return 1;
}

static int (*choose(void))(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at != MAP_FAILED && !mprotect(at, 4096, PROT_READ) && !munmap(at, 4096) &&
			       !close(open("/dev/null", O_RDONLY))
		       ? one
		       : NULL;
}

static int chosen(void) __attribute__((ifunc("choose")));

int names_chosen(void)
{
	return chosen();
}

void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return (char *)at + bytes + prot + flags + fd + offset;
}

int madvise(void *at, size_t bytes, int advice)
{
	return at ? (int)bytes : advice;
}

int pkey_mprotect(void *at, size_t bytes, int prot, int key)
{
	return at ? (int)bytes + prot : key;
}

#else

#include <sys/mman.h>

#include "guest.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

char *names_clone(const char *text, char *to, uint64_t most);
int names_chosen(void);
int pkey_mprotect(void *at, size_t bytes, int prot, int key); /* in the header since glibc 2.27 */

static void not_mine(const char *name)
{
	static const char words[] = ": called by a stranger\n";

	if (write(STDERR_FILENO, name, strlen(name)) < 0 || write(STDERR_FILENO, words, sizeof(words) - 1) < 0)
		_exit(4);
	abort();
}

#define STRANGE(type, name, ...)                                                                                       \
	type name(__VA_ARGS__)                                                                                         \
	{                                                                                                              \
		not_mine(#name);                                                                                       \
		return 0;                                                                                              \
	}

/* As libc declares them, so that no header is in the way. */
STRANGE(int, access, const char *a, int b)
STRANGE(char *, getcwd, char *a, size_t b)
STRANGE(char *, getenv, const char *a)
STRANGE(int, putenv, char *a)
STRANGE(int, ftruncate, int a, off_t b)
STRANGE(ssize_t, read, int a, void *b, size_t c)
STRANGE(unsigned long, strtoul, const char *a, char **b, int c)
STRANGE(long, strtol, const char *a, char **b, int c)
STRANGE(int, unsetenv, const char *a)

static void on_child(int signo)
{
	static const char words[] = "SIGCHLD without a child\n";

	(void)signo;
	if (write(STDOUT_FILENO, words, sizeof(words) - 1) < 0)
		_exit(5);
	_exit(6);
}

int main(void)
{
	char to[64] = "";
	char *at = names_clone("cloned", to, 7);

	signal(SIGCHLD, on_child);
	printf("%s %d\n", to, at == to);
	printf("%d\n", names_clone("nothing", NULL, 0) == NULL);
	printf("%d\n", names_chosen());
	printf("%d %d %d\n", mmap64(to, 10, 1, 2, 3, 16) == (void *)(to + 32), madvise(to, 11, 1),
	       pkey_mprotect(to, 12, 1, 0));
	printf("%d\n", (int)(guest_work(30) != 0));
	return 3;
}

#endif
