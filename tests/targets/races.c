/*
 * Threads of a process that do at the same moment what is rarely done at the same moment.  races WHAT [TIMES]
 *
 *   ends      each of TIMES children exits while others of its threads start and end
 *   starts    threads start and end, with all signals blocked, while TIMES signals are sent to the process
 *   children  each of TIMES children is sent a signal that it blocks as soon as there is a child
 *   traps     TIMES threads that block all signals, and begin before they do, open events that raise SIGTRAP
 *
 * Prints what went otherwise than in a program that runs alone, and "done".
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void start(pthread_t *id, void *(*run)(void *), void *arg)
{
	int err = pthread_create(id, NULL, run, arg);

	if (err) {
		fprintf(stderr, "races: %s\n", strerror(err));
		exit(1);
	}
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void *nothing(void *arg)
{
	return arg;
}

static void *start_threads(void *arg)
{
	pthread_attr_t detached;
	pthread_t id;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (;;)
		if (pthread_create(&id, &detached, nothing, arg))
			sched_yield(); /* too many, for the moment */
	return arg;
}

static void exit_among_threads(int after_us)
{
	pthread_t id;

	for (int i = 0; i < 3; i++)
		start(&id, start_threads, NULL);
	usleep((useconds_t)after_us);
	_exit(0);
}

static void ends(int times)
{
	for (int i = 0; i < times; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			exit_among_threads(500 + i % 20 * 20);
		status = wait_for(pid);
		if (status)
			printf("a child that exits while its threads end: status %#x\n", (unsigned int)status);
	}
}

/* ---- starts ------------------------------------------------------------------------------------------------------ */

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void *take_signals(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	for (;;)
		sigwaitinfo(&all, NULL);
	return arg;
}

static void starts(int times)
{
	pid_t pid = fork();
	pthread_t id;
	int status;

	if (pid == 0) {
		block_all();
		for (int i = 0; i < 3; i++)
			start(&id, i ? start_threads : take_signals, NULL);
		for (int i = 0; i < times; i++) {
			kill(getpid(), i % 8 ? SIGRTMAX - i % 8 + 1 : SIGTRAP);
			if (i % 64 == 0)
				usleep(50);
		}
		_exit(0);
	}
	status = wait_for(pid);
	if (status)
		printf("a process that blocks all signals: status %#x\n", (unsigned int)status);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void children(int times)
{
	sigset_t set;

	sigemptyset(&set);
	for (int signo = SIGRTMAX; signo > SIGRTMAX - 4; signo--)
		sigaddset(&set, signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < times; i++) {
		int signo = SIGRTMAX - i % 4, status;
		pid_t pid = fork();

		if (pid == 0) {
			alarm(20);
			_exit(sigwaitinfo(&set, NULL) != signo);
		}
		kill(pid, signo);
		status = wait_for(pid);
		if (status)
			printf("a child that was sent signal %d at once: status %#x\n", signo, (unsigned int)status);
	}
}

/* ---- traps ------------------------------------------------------------------------------------------------------- */

static atomic_int go;

static int open_trap(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .sample_period = 1000000,
				       .disabled = 1,
				       .exclude_kernel = 1,
				       .remove_on_exec = 1};

	attr.sigtrap = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void spin_ms(int ms)
{
	struct timespec at, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += ms * 1000000L;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	while ((at.tv_sec - end.tv_sec) * 1000000000L + at.tv_nsec - end.tv_nsec < 0);
}

static void *open_and_spin(void *arg)
{
	sigset_t pending;

	block_all();
	while (!atomic_load(&go))
		sched_yield();
	open_trap(); /* which may be refused: nothing changes then */
	spin_ms(20);
	sigemptyset(&pending);
	sigpending(&pending);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (sigismember(&pending, signo) == 1)
			printf("signal %d is pending\n", signo);
	return arg;
}

static void traps(int times)
{
	pthread_t ids[64];

	for (int i = 0; i < times && i < 64; i++)
		start(&ids[i], open_and_spin, NULL);
	atomic_store(&go, 1);
	for (int i = 0; i < times && i < 64; i++)
		pthread_join(ids[i], NULL);
}

static const struct {
	const char *name;
	void (*run)(int times);
	int times;
} races[] = {
	{"ends", ends, 200},
	{"starts", starts, 20000},
	{"children", children, 200},
	{"traps", traps, 8},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(races) / sizeof(races[0]); i++) {
		if (strcmp(races[i].name, argv[1]) != 0)
			continue;
		races[i].run(argc > 2 ? atoi(argv[2]) : races[i].times);
		puts("done");
		return 0;
	}
	fprintf(stderr, "usage: races WHAT [TIMES]\n");
	return 2;
}
