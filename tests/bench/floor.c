/*
 * The bare event's floor: runs a command under a task-clock event that overflows at the period, and no reader.
 * What it costs is what every profiler that is driven by this event pays at least.
 *
 *   floor PERIOD_NS COMMAND...
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_kernel = geteuid() != 0,
		.exclude_hv = 1,
	};

	if (argc < 3) {
		fputs("usage: floor PERIOD_NS COMMAND...\n", stderr);
		return 2;
	}
	attr.sample_period = strtoull(argv[1], NULL, 10);
	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0) {
		perror("floor: perf_event_open");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
