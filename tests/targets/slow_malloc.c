/*
 * Preloaded in front of the library: an allocator that needs 60 ms of CPU time for each call until its own constructor
 * runs, after the library's start: so long does the library take to start on a slow machine. It has a function of
 * LeakSanitizer's runtime, whose allocator is the only one that the library calls as it begins.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

void *__libc_malloc(size_t bytes);
void *__libc_realloc(void *was, size_t bytes);
void *malloc(size_t bytes);
void *realloc(void *was, size_t bytes);
void __lsan_do_leak_check(void);

static volatile int has_begun;

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void take_time(void)
{
	int64_t end = has_begun ? 0 : cpu_ns() + 60000000;

	while (end && cpu_ns() < end)
		;
}

void *malloc(size_t bytes)
{
	take_time();
	return __libc_malloc(bytes);
}

void *realloc(void *was, size_t bytes)
{
	take_time();
	return __libc_realloc(was, bytes);
}

__attribute__((constructor)) static void begin(void)
{
	has_begun = 1;
}

void __lsan_do_leak_check(void)
{
}
