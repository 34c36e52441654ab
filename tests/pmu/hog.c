/*
 * hog [-N] COMMAND...: holds counters of the emulated machine with pinned events on each whole CPU, while a command
 * runs: all of them, or N of those that are not for cycles alone.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_COUNTERS 7

/* Returns 0, or 1 where it failed, and says so. */
static int hold(int cpu, __u64 config)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_HARDWARE, .config = config, .pinned = 1};

	/* An offline one has nothing to hold. */
	if (syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC) >= 0 || errno == ENODEV)
		return 0;
	perror("hog");
	return 1;
}

int main(int argc, char **argv)
{
	int nr = NR_COUNTERS, status = 1;
	pid_t pid;

	if (argc > 1 && argv[1][0] == '-') {
		nr = atoi(argv[1] + 1);
		argv++;
		argc--;
	}
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
		for (int i = 0; i < nr; i++)
			if (hold(cpu, i || nr < NR_COUNTERS ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_CPU_CYCLES))
				return 1;
	pid = argc > 1 ? fork() : -1;
	if (!pid) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
