/*
 * old_kernel [-p] COMMAND...: run a command whose perf_event_open(2) is that of Linux 5.10 (tests/unit/old_kernel.h).
 * -p: with kernel.perf_event_paranoid at 3, as Debian's kernels have it. Ends as the command does.
 */
#include "tests/unit/old_kernel.h"

static int run(void *arg)
{
	char **argv = arg;

	execvp(argv[0], argv);
	perror(argv[0]);
	return 127;
}

int main(int argc, char **argv)
{
	int status, at = 1;

	if (argc > 1 && !strcmp(argv[1], "-p")) {
		old_kernel_paranoid = true;
		at++;
	}
	if (at >= argc) {
		fprintf(stderr, "usage: old_kernel [-p] COMMAND...\n");
		return 2;
	}
	status = on_old_kernel(run, argv + at);
	if (status < 0) {
		fprintf(stderr, "old_kernel: this kernel has no seccomp listener\n");
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
