/*
 * Appends a line to a file: how many CPUs it may run on, and on which one it is. Then it works for some milliseconds.
 * usage: cpus_seen FILE [thread|child]     (which it starts as well, and waits for)
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	volatile unsigned sum = 0;
	pthread_t thread;
	cpu_set_t set;
	FILE *out;

	if (argc < 2 || sched_getaffinity(0, sizeof(set), &set))
		return 2;
	out = fopen(argv[1], "ae");
	if (!out || fprintf(out, "%d %d\n", CPU_COUNT(&set), sched_getcpu()) < 0 || fclose(out))
		return 2;
	if (argc > 2 && !strcmp(argv[2], "thread") && !pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
	if (argc > 2 && !strcmp(argv[2], "child")) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	for (unsigned i = 0; i < 4000000; i++)
		sum += i;
	return 0;
}
