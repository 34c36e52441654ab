/* Facts about other processes, from /proc: see proc.h. */
#include "launcher/base/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "preload/core/task_stat.h"

/* How far a start that was seen may lie from the kernel's own (ticks, and the time between fork and exec). */
#define START_SLACK_NS (2 * CSINK_NS_PER_S)
#define MAX_GENERATIONS 1000

/* The kernel counts from boot, suspended time included. */
static uint64_t since_boot(uint64_t monotonic_ns)
{
	return monotonic_ns + csink_clock_ns(CLOCK_BOOTTIME) - csink_monotonic_ns();
}

/* When it started, since boot. False: it is not there. */
static bool read_start(int32_t pid, uint64_t *start_ns, bool *is_zombie)
{
	struct csink_task_stat stat;

	/* The cheap question first: most processes are gone when this is asked. */
	if (kill(pid, 0) && errno == ESRCH)
		return false;
	if (csink_task_stat_read(pid, &stat))
		return false;
	*is_zombie = stat.state == 'Z' || stat.state == 'X';
	*start_ns = stat.start_ticks * (CSINK_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}

bool csink_proc_is_running(int32_t pid, uint64_t start_monotonic_ns)
{
	uint64_t start_ns, seen_ns;
	bool is_zombie;

	if (!read_start(pid, &start_ns, &is_zombie) || is_zombie)
		return false;
	if (!start_monotonic_ns)
		return true;
	seen_ns = since_boot(start_monotonic_ns);
	return start_ns < seen_ns + START_SLACK_NS && seen_ns < start_ns + START_SLACK_NS;
}

bool csink_proc_was_there(int32_t pid, uint64_t monotonic_ns)
{
	uint64_t start_ns;
	bool is_zombie;

	return read_start(pid, &start_ns, &is_zombie) && start_ns <= since_boot(monotonic_ns);
}

bool csink_proc_is_descendant(int32_t pid, int32_t ancestor)
{
	struct csink_task_stat stat;

	for (int i = 0; i < MAX_GENERATIONS && pid > 1; i++) {
		if (pid == ancestor)
			return true;
		if (csink_task_stat_read(pid, &stat))
			return false;
		pid = stat.ppid;
	}
	return false;
}

int32_t csink_proc_own_number(int32_t tid)
{
	CSINK_AUTO_FREE char *line = NULL;
	CSINK_AUTO_FCLOSE FILE *status = NULL;
	char path[64];
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "re");
	while (status && getline(&line, &size, status) > 0) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			return atoi(last);
	}
	return -ESRCH;
}
