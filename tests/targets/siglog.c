/*
 * siglog: print the name of each signal that arrives, a line each; "ready PID" first. Stops by TSTP, TTIN and TTOU as
 * programs do. "exit N" on stdin ends it with that status, end of file with 0. A signal named as an argument (a number)
 * is not caught.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_signal(int signo)
{
	char line[32] = "RT\n";
	const char *name = sigabbrev_np(signo);

	if (name) {
		strcpy(line, name);
		strcat(line, "\n");
	}
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		_exit(99);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	char line[64];
	int status;

	for (int signo = 1; signo <= SIGRTMAX; signo++) {
		int wanted = signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU && signo != SIGCHLD &&
			     signo != SIGTRAP && signo != SIGPROF && signo != SIGSEGV && signo != SIGBUS &&
			     signo != SIGILL && signo != SIGFPE && signo != SIGABRT && signo != SIGSYS;

		for (int i = 1; i < argc; i++)
			wanted = wanted && atoi(argv[i]) != signo;
		/* Real-time signals: the first only; a library may use the others. */
		if (wanted && (signo < 32 || signo == SIGRTMIN))
			sigaction(signo, &action, NULL);
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "exit %d", &status) == 1)
			return status;
	}
	return 0;
}
