/*
 * hog COMMAND...: holds every counter of the emulated machine with pinned events on the whole CPU, while a command
 * runs.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_COUNTERS 7

int main(int argc, char **argv)
{
	int status = 1;
	pid_t pid;

	for (int i = 0; i < NR_COUNTERS; i++) {
		struct perf_event_attr attr = {.size = sizeof(attr),
					       .type = PERF_TYPE_HARDWARE,
					       .config = i ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_CPU_CYCLES,
					       .pinned = 1};

		if (syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC) < 0) {
			perror("hog");
			return 1;
		}
	}
	pid = argc > 1 ? fork() : -1;
	if (!pid) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
