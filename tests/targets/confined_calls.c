/*
 * A sandbox of one call: for each system call there is, a child puts itself under a seccomp filter that kills for it,
 * works, starts a thread, locks its memory, changes its user where it may, raises SIGBUS with "bus", and exits. Prints
 * the number and how the child ended, for those that did not die of the filter.
 *   confined_calls [bus | masks | signals]
 * "masks" sets actions and masks of signals instead, also in a vfork child; "signals" lets through signals that came
 * while they were blocked.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kill_at.h"
#include "work.h"

enum { NR_CALLS = 336 };

static volatile uint64_t sum;

static void *work(void *arg)
{
	sum = spin(sum, 300000);
	return arg;
}

static volatile int nr_caught;

static void on_signal(int signo)
{
	nr_caught += signo > 0;
}

static void set_masks(void)
{
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	signal(SIGTRAP, on_signal);
	signal(SIGRTMAX, on_signal);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (vfork() == 0) {
		sigprocmask(SIG_SETMASK, &all, NULL);
		signal(SIGTRAP, SIG_DFL);
		_exit(0);
	}
	sigprocmask(SIG_BLOCK, &all, NULL);
	_exit(8);
}

/* Before the filter, since raise(3) makes calls that are to be forbidden. */
static void raise_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++) {
		signal(signo, on_signal);
		raise(signo);
	}
	signal(SIGTRAP, on_signal);
	raise(SIGTRAP);
}

static void let_through(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(nr_caught);
}

static void live(unsigned int number, const char *way)
{
	pthread_t thread;

	if (!strcmp(way, "signals"))
		raise_blocked();
	kill_at(number);
	if (!strcmp(way, "bus")) {
		raise(SIGBUS);
		_exit(6);
	}
	if (!strcmp(way, "masks"))
		set_masks();
	if (!strcmp(way, "signals"))
		let_through();
	if (pthread_create(&thread, NULL, work, NULL))
		_exit(7);
	work(NULL);
	pthread_join(thread, NULL);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (!setuid(65534))
		work(NULL);
	exit(5);
}

int main(int argc, char **argv)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	for (unsigned int number = 0; number < NR_CALLS; number++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			live(number, argc > 1 ? argv[1] : "");
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		/* A thread may be waited for by futex(2), or have ended before. */
		if (number == SYS_futex)
			continue;
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			printf("%u: %#x\n", number, status);
		fflush(stdout);
	}
	return 0;
}
