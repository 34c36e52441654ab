/* Ends of a process that exits and guest_ends have in common, and what runs at them. */
#ifndef CSINK_TESTS_ENDS_H
#define CSINK_TESTS_ENDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void ends_at_exit(void)
{
	puts("atexit ran");
	fflush(stdout);
}

static void ends_at_quick_exit(void)
{
	puts("at_quick_exit ran");
	fflush(stdout);
}

/* Before any end: lines are written as they come. */
static inline void ends_prepare(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	atexit(ends_at_exit);
	at_quick_exit(ends_at_quick_exit);
}

/* Ends in a way that gives status 7, or by abort. Returns if there is none of that name. */
static inline void ends_by(const char *way)
{
	if (!strcmp(way, "exit"))
		exit(7);
	if (!strcmp(way, "_exit"))
		_exit(7);
	if (!strcmp(way, "_Exit"))
		_Exit(7);
	if (!strcmp(way, "exit_group"))
		syscall(SYS_exit_group, 7);
	if (!strcmp(way, "quick_exit"))
		quick_exit(7);
	if (!strcmp(way, "abort"))
		abort();
}

#endif
