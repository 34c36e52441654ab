/*
 * Runs a command and writes what the kernel accounted to it, to its waited-for descendants and to this program itself,
 * into a file: "user+system CPU in ns" on one line. Leaves with the command's status.  rusage FILE COMMAND...
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long long cpu_ns(int who)
{
	struct rusage use;

	getrusage(who, &use);
	return 1000ULL * (1000000ULL * (unsigned long long)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			  (unsigned long long)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
}

int main(int argc, char **argv)
{
	int status = 0;
	FILE *out;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: rusage FILE COMMAND...\n", stderr);
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	out = fopen(argv[1], "w");
	if (!out) {
		perror(argv[1]);
		return 125;
	}
	fprintf(out, "%llu\n", cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN));
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
