/*
 * static_stacks SECONDS: use CPU in recursion, in callbacks of libc, and in libc itself. Linked statically, with all
 * the frames that a stack may have in such a program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NR_VALUES 500

static volatile unsigned long sink;

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static unsigned long mix(unsigned long value, int rounds)
{
	for (int i = 0; i < rounds; i++)
		value = value * 31 + (unsigned long)i;
	return value;
}

__attribute__((noinline)) static void sort_values(void)
{
	int values[NR_VALUES];

	for (int i = 0; i < NR_VALUES; i++)
		values[i] = rand();
	qsort(values, NR_VALUES, sizeof(values[0]), compare);
	sink += (unsigned long)values[0];
}

__attribute__((noinline)) static void print_values(void)
{
	char text[200];

	for (int i = 0; i < 50; i++)
		sink += (unsigned long)snprintf(text, sizeof(text), "%d %f %s", i, i * 1.5, "text") + strlen(text);
}

__attribute__((noinline)) static void descend(int levels)
{
	if (levels) {
		descend(levels - 1);
		sink++; /* no tail call */
		return;
	}
	sink += mix(sink, 3000);
	sort_values();
	print_values();
}

int main(int argc, char **argv)
{
	clock_t end = clock() + (clock_t)((argc > 1 ? atof(argv[1]) : 1) * CLOCKS_PER_SEC);

	while (clock() < end)
		descend(9);
	return 0;
}
