/*
 * Prints the signals that are blocked, ignored and pending, asked for as programs do: in main, in a thread, in a child,
 * and after an exec of itself.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static void print_masks(const char *where)
{
	sigset_t blocked, pending;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	sigpending(&pending);
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction action = {.sa_handler = SIG_DFL};

		sigaction(sig, NULL, &action);
		if (sigismember(&blocked, sig) == 1 || sigismember(&pending, sig) == 1 || action.sa_handler == SIG_IGN)
			printf("%s: signal %d%s%s%s\n", where, sig, sigismember(&blocked, sig) == 1 ? " blocked" : "",
			       sigismember(&pending, sig) == 1 ? " pending" : "",
			       action.sa_handler == SIG_IGN ? " ignored" : "");
	}
	printf("%s: that is all\n", where);
	fflush(stdout);
}

static void *in_thread(void *arg)
{
	volatile uint64_t x = spin(1, 20 * ROUNDS_MS);

	(void)x;
	print_masks(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	volatile uint64_t x = spin(1, 20 * ROUNDS_MS);
	pthread_t thread;
	sigset_t set;
	pid_t pid;

	(void)x;
	if (argc > 1) {
		print_masks(argv[1]);
		return 0;
	}
	print_masks("main");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	if (!pthread_create(&thread, NULL, in_thread, "thread"))
		pthread_join(thread, NULL);
	pid = fork();
	if (pid == 0) {
		print_masks("child");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	in_thread("all blocked");
	execl("/proc/self/exe", argv[0], "after exec", NULL);
	return 1;
}
