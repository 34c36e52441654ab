/*
 * Count the CPU time of this process while it works, in ns.
 *
 *	cc -o pmc pmc.c $(pkg-config --cflags --libs countersink-api)
 */
#include <countersink/pmc.h>
#include <stdio.h>

static int fail(const char *what)
{
	char why[512];

	fprintf(stderr, "%s: %s\n", what, csink_pmc_reason(why, sizeof(why)));
	return 1;
}

int main(void)
{
	struct csink_pmc_value value;
	csink_pmc_id_t pmc = csink_pmc_allocate("task-clock", 0, -1);

	if (pmc < 0)
		return fail("csink_pmc_allocate");
	if (csink_pmc_attach(pmc, 0) < 0) /* 0: this process */
		return fail("csink_pmc_attach");
	if (csink_pmc_start(pmc) < 0)
		return fail("csink_pmc_start");
	for (volatile long i = 0; i < 50000000; i++)
		;
	if (csink_pmc_stop(pmc) < 0 || csink_pmc_read(pmc, &value) < 0)
		return fail("csink_pmc_read");
	csink_pmc_release(pmc);
	printf("CPU time: %llu ns\n", (unsigned long long)value.value);
	return 0;
}
