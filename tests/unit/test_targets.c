/* What /proc shows of a process while its threads exec again and again: it has not ended, however often that is read.
 */
#include "preload/api/pmc/targets.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/tap.h"

enum { NR_READS = 3000 };

static void *exec_itself(void *argv)
{
	execv("/proc/self/exe", argv);
	return NULL;
}

/* It takes over the number of the first thread, which ends. */
static int chain(void)
{
	char *argv[] = {"test_targets", "chain", NULL};
	pthread_t thread;

	if (!pthread_create(&thread, NULL, exec_itself, argv))
		pthread_join(thread, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	int nr_ended = 0, nr_lost = 0, nr_zombies = 0;
	struct csink_task task;
	int32_t pid;

	if (argc > 1 && !strcmp(argv[1], "chain"))
		return chain();
	pid = fork();
	if (!pid)
		_exit(chain());
	for (int i = 0; i < NR_READS; i++) {
		struct csink_targets targets = {0};

		nr_ended += csink_process_read(pid, &task) || task.is_ending;
		nr_lost += csink_targets_scan(&targets, pid, true) <= 0;
		csink_targets_free(&targets);
	}
	is_num(nr_ended, 0, "a process whose threads exec has not ended");
	is_num(nr_lost, 0, "its threads are listed");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	nr_zombies = !csink_process_read(pid, &task) && task.is_ending;
	is_num(nr_zombies, 1, "that it has ended, and was not waited for, is found");
	waitpid(pid, NULL, 0);
	ok(csink_process_read(pid, &task) != 0, "nor is there one of its PID afterwards");
	return done();
}
