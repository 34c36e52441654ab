/*
 * Name the phases of a program, so that `countersink report --by phase` shows what each of them cost.
 *
 *	cc -o phases phases.c
 *	countersink -o phases.pb.gz -- ./phases
 *	countersink report --by phase phases.pb.gz
 */
#include <countersink.h>
#include <stdio.h>

static void work(long rounds)
{
	for (volatile long i = 0; i < rounds; i++)
		;
}

int main(void)
{
	countersink_phase_begin("load");
	work(20000000);
	countersink_phase_end();

	countersink_phase_begin("compute");
	work(60000000);
	countersink_phase_end();

	/* What is not of interest: the profile has its time, but no function of it. */
	countersink_pause();
	work(20000000);
	countersink_resume();

	printf("profiled: %s\n", countersink_is_here() ? "yes" : "no");
	return 0;
}
