/*
 * A suite for `countersink gate --suite=lines`. cases CASE NUMBER PERCENT: so many iterations of a case, each of
 * 100,000 rounds of two instructions. Of "fold" 60 % are in first() and 40 % in second(), which does so many percent
 * more. "plain" has first() alone.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/pmu/pmu_work.h"

__attribute__((noipa)) static void first(uint64_t rounds)
{
	work_rounds(rounds);
}

__attribute__((noipa)) static void second(uint64_t rounds)
{
	work_rounds(rounds);
}

int main(int argc, char **argv)
{
	uint64_t percent = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	if (argc < 3)
		return 2;
	for (unsigned long n = strtoul(argv[2], NULL, 10); n > 0; n--) {
		if (!strcmp(argv[1], "plain")) {
			first(100000);
			continue;
		}
		first(60000);
		second(400 * (100 + percent));
	}
	return 0;
}
