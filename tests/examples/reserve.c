/*
 * Ask PCP's agent for the hardware counters, and the kernel whether an event fits on them now.
 *
 *	cc -o reserve reserve.c $(pkg-config --cflags --libs countersink-api)
 */
#include <countersink/reserve.h>
#include <stdio.h>

int main(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	struct csink_reserve_config config;
	struct csink_reserve_probe probe;
	struct csink_reserve reserve;
	char line[256];

	csink_reserve_config_init(&config);
	/* Where there is no agent nothing is locked, and text says so. */
	if (!csink_reserve_acquire(&reserve, &config))
		csink_reserve_confirm(&reserve);
	printf("reservation: %s (%s)\n", csink_reserve_state_name(reserve.state), reserve.text);

	csink_reserve_probe(&attr, 1, &probe);
	printf("probe: %s\n", csink_reserve_probe_print(&probe, line, sizeof(line)));

	csink_reserve_release(&reserve);
	return 0;
}
