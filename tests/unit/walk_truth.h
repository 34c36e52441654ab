/* What a stack through tests/targets/deep_functions.h must look like; shared by tests of walkers and their bench. */
#ifndef CSINK_TESTS_WALK_TRUTH_H
#define CSINK_TESTS_WALK_TRUTH_H

#include "preload/agent/unwind/unwind.h"
#include "tests/targets/deep_functions.h"

#include <stdlib.h>

/* Functions in the order of their addresses; deep_call counts as number -1. */
static struct truth_fn {
	uintptr_t start;
	int nr;
} truth_fns[DEEP_MAX + 1];

static int truth_by_start(const void *a, const void *b)
{
	const struct truth_fn *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void truth_init(void)
{
	for (int i = 0; i < DEEP_MAX; i++)
		truth_fns[i] = (struct truth_fn){(uintptr_t)deep_fn[i], i};
	truth_fns[DEEP_MAX] = (struct truth_fn){(uintptr_t)deep_call, -1};
	qsort(truth_fns, DEEP_MAX + 1, sizeof(truth_fns[0]), truth_by_start);
}

/* The function that holds an address: its number, or -2. No function of these is longer than 2 KiB. */
static int truth_nr(uintptr_t pc)
{
	int low = 0, high = DEEP_MAX + 1;

	while (low < high) {
		int mid = (low + high) / 2;

		if (truth_fns[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low && pc - truth_fns[low - 1].start < 2048 ? truth_fns[low - 1].nr : -2;
}

/* 1: the walk is what it must be; 0: it is not; -1: the program was elsewhere. */
__attribute__((unused)) static int truth_judge(const struct csink_walk *walk, uintptr_t pc)
{
	int nr = truth_nr(pc);

	if (nr == -2)
		return -1;
	if ((int)walk->nr_frames < nr + 2 || walk->end != CSINK_WALK_COMPLETE)
		return 0;
	for (int i = 0; i <= nr; i++)
		if (truth_nr(walk->frames[i] - 1) != nr - 1 - i)
			return 0;
	return 1;
}

#endif
