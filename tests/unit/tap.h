/*
 * TAP for unit tests: ok() and is_*() print a point each; done() prints the plan last and gives main's status. Why a
 * point failed goes to stderr, which prove shows.
 */
#ifndef CSINK_TESTS_TAP_H
#define CSINK_TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int tap_nr, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static int ok(int passed, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", passed ? "" : "not ", ++tap_nr);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !passed;
	return passed;
}

__attribute__((unused)) static int is_num(long long got, long long want, const char *what)
{
	int same = got == want;

	ok(same, "%s", what);
	if (!same)
		fprintf(stderr, "#   got %lld, want %lld\n", got, want);
	return same;
}

__attribute__((unused)) static int is_str(const char *got, const char *want, const char *what)
{
	int same = got && want ? !strcmp(got, want) : got == want;

	ok(same, "%s", what);
	if (!same)
		fprintf(stderr, "#   got '%s', want '%s'\n", got ? got : "(null)", want ? want : "(null)");
	return same;
}

/* A point that cannot be judged here; say why. */
__attribute__((unused)) static void skip(const char *what, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_nr, what, why);
}

__attribute__((unused)) static int done(void)
{
	printf("1..%d\n", tap_nr);
	return tap_failed != 0;
}

/* What the agent does as a process begins, where the test has that part of it (weak: it is not linked in for this). */
extern void csink_find_object_init(void) __attribute__((weak));

__attribute__((constructor)) static void tap_begin(void)
{
	if (csink_find_object_init)
		csink_find_object_init();
}

#endif
