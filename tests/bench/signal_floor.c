/*
 * The floor of every engine that has a signal for each sample: preloaded, opens a task-clock event with sigtrap in the
 * main thread, as ours is, and handles its signals with nothing. SIGNAL_FLOOR_NS is the period.
 */
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void nothing(int signo)
{
	(void)signo;
}

__attribute__((constructor)) static void start(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = geteuid() != 0,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
		.sigtrap = 1,
		.remove_on_exec = 1,
	};
	struct sigaction act = {.sa_handler = nothing, .sa_flags = SA_RESTART | SA_ONSTACK};
	const char *period = getenv("SIGNAL_FLOOR_NS");
	int fd;

	if (!period)
		return;
	attr.sample_period = strtoull(period, NULL, 10);
	sigaction(SIGTRAP, &act, NULL);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("signal_floor: perf_event_open");
		_exit(125);
	}
}
