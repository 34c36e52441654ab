/* Works a while, then writes where nothing is.  crash [MS] (100). */
#include <stdio.h>

#include "work.h"

static __attribute__((noinline, noclone)) uint64_t before_the_crash(uint64_t ms)
{
	return spin(1, ms * ROUNDS_MS);
}

int main(int argc, char **argv)
{
	int *volatile nowhere = (int *)8;

	printf("%016llx\n", (unsigned long long)before_the_crash(arg_num(argc, argv, 1, 100)));
	fflush(stdout);
	*nowhere = 1;
	return 0;
}
