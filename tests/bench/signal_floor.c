/*
 * The floor of every engine that has a signal for each sample: preloaded, opens a task-clock event with sigtrap in the
 * main thread, as ours is, and handles its signals with nothing. SIGNAL_FLOOR_NS is the period.
 */
#include "tests/bench/sigtrap_event.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void start(void)
{
	const char *period = getenv("SIGNAL_FLOOR_NS");
	int fd;

	if (!period)
		return;
	sigtrap_ignore();
	fd = sigtrap_event_open(strtoull(period, NULL, 10), 0, 0);
	if (fd < 0) {
		perror("signal_floor: perf_event_open");
		_exit(125);
	}
}
