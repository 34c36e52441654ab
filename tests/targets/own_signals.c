/*
 * Owns the signals that profilers often use, and prints whether each of its own arrived, and whether anything else
 * did: SIGPROF and SIGALRM from interval timers, SIGTRAP by raise() and by a breakpoint instruction, real-time signals
 * with their values, a signal waited for with sigwait. Before that, every disposition must be the default.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "work.h"

static volatile sig_atomic_t nr[65];
static volatile sig_atomic_t unexpected; /* signals that this program neither sent nor asked for */
static volatile int rt_sum;

static void count(int sig, siginfo_t *info, void *context)
{
	(void)context;
	nr[sig]++;
	if (sig >= SIGRTMIN)
		rt_sum += info->si_value.sival_int;
	if (sig == SIGTRAP && info->si_code != SI_TKILL && info->si_code != SI_KERNEL && info->si_code != TRAP_BRKPT)
		unexpected++;
}

static void print_dispositions(void)
{
	int others = 0;

	for (int sig = 1; sig < 65; sig++) {
		struct sigaction action;

		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
			printf("signal %d is %s\n", sig, action.sa_handler == SIG_IGN ? "ignored" : "caught");
			others++;
		}
	}
	printf("dispositions that are not the default: %d\n", others);
}

static void take(int sig)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART}, old;

	sigemptyset(&action.sa_mask);
	if (sigaction(sig, &action, &old) || old.sa_handler != SIG_DFL)
		printf("signal %d was not the default before\n", sig);
	if (sigaction(sig, NULL, &old) || old.sa_sigaction != count ||
	    (old.sa_flags ^ action.sa_flags) & (SA_SIGINFO | SA_RESTART))
		printf("signal %d does not read back as set\n", sig);
}

/* Works until the timer's signal came five times. */
static void by_timer(const char *name, int which, int sig)
{
	struct itimerval every = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
	volatile uint64_t x = 1;

	setitimer(which, &every, NULL);
	while (nr[sig] < 5)
		x = spin(x, ROUNDS_MS / 10);
	setitimer(which, &off, NULL);
	printf("%s arrived\n", name);
}

static void by_sigwait(void)
{
	union sigval value = {.sival_int = 42};
	siginfo_t info;
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigqueue(getpid(), SIGUSR2, value);
	if (sigwaitinfo(&set, &info) == SIGUSR2 && info.si_value.sival_int == 42)
		puts("sigwaitinfo got what was sent");
	else
		printf("sigwaitinfo got an unexpected signal: %d\n", info.si_signo);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* alarm() must interrupt a read that waits for nothing else. */
static void by_alarm(void)
{
	struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};
	/* Again and again: the first one may come before the read has begun. */
	struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
	int fds[2];
	char byte;

	sigaction(SIGALRM, &action, NULL);
	if (pipe(fds))
		return;
	setitimer(ITIMER_REAL, &often, NULL);
	printf("read: %s\n", read(fds[0], &byte, 1) < 0 ? strerror(errno) : "returned");
	setitimer(ITIMER_REAL, &never, NULL);
}

int main(void)
{
	union sigval value = {.sival_int = 5};
	volatile uint64_t x;

	print_dispositions();
	take(SIGPROF);
	take(SIGALRM);
	take(SIGVTALRM);
	take(SIGTRAP);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		take(sig);
	by_timer("SIGPROF", ITIMER_PROF, SIGPROF);
	by_timer("SIGVTALRM", ITIMER_VIRTUAL, SIGVTALRM);
	by_timer("SIGALRM", ITIMER_REAL, SIGALRM);
	x = spin(1, 50 * ROUNDS_MS);
	(void)x;
	for (int i = 0; i < 10; i++)
		raise(SIGTRAP);
#if defined(__x86_64__)
	__asm__ volatile("int3");
#else
	raise(SIGTRAP);
#endif
	printf("SIGTRAP %d, unexpected %d\n", (int)nr[SIGTRAP], (int)unexpected);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigqueue(getpid(), sig, value);
	printf("real-time signals carried %d of %d\n", (int)rt_sum, 5 * (SIGRTMAX - SIGRTMIN + 1));
	by_sigwait();
	by_alarm();
	return 0;
}
