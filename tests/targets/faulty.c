/*
 * faulty PAGES MS: touches so many new pages in one function, a few at a time between stretches of CPU time in another.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

static __attribute__((noinline, noclone)) void touch_pages(volatile char *at, uint64_t nr, size_t page)
{
	for (uint64_t i = 0; i < nr; i++) {
		at[i * page] = 1;
		/* Some microseconds: faults alone, each of which is sampled, would leave hardly any time beside
		 * samples. */
		for (volatile int left = 3000; left; left--)
			;
	}
}

static __attribute__((noinline, noclone)) uint64_t burn_time(uint64_t x, uint64_t rounds)
{
	return spin(x, rounds);
}

int main(int argc, char **argv)
{
	uint64_t pages = arg_num(argc, argv, 1, 2000), slices = 20, x = 1;
	uint64_t rounds = arg_num(argc, argv, 2, 200) * ROUNDS_MS / slices;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *room = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return 1;
	madvise(room, pages * page, MADV_NOHUGEPAGE); /* a fault for each page */
	for (uint64_t i = 0; i < slices; i++) {
		touch_pages(room + i * (pages / slices) * page, pages / slices, page);
		x = burn_time(x, rounds);
	}
	printf("faulty %d\n", (int)(x & 1));
	return 0;
}
