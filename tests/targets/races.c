/*
 * Threads of a process that do at the same moment what is rarely done at the same moment.  races WHAT [TIMES]
 *
 *   ends      each of TIMES children exits while others of its threads start and end
 *   starts    threads start and end, with all signals blocked, while TIMES signals are sent to the process
 *   children  each of TIMES children is sent a signal that it blocks as soon as there is a child
 *   traps     TIMES threads that block all signals, and begin before they do, open events that raise SIGTRAP
 *   actions   each of TIMES children sets handlers while another thread opens such an event
 *   filters   each of TIMES children has threads that install different seccomp filters at once
 *   waits     two threads wake each other TIMES times by a signal that they let in only as they wait
 *   calls     a timer's signals interrupt TIMES reads of a pipe, ending them or, by SA_RESTART, not
 *
 * Prints what went otherwise than in a program that runs alone, and "done".
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
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

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static void on_usr1(int signo)
{
	(void)signo;
}

static void on_usr1_too(int signo)
{
	(void)signo;
}

static void *change_actions(void *arg)
{
	struct sigaction act = {.sa_flags = SA_RESTART}, now;
	int *ready = arg;

	for (int i = 0; i < 2000; i++) {
		act.sa_handler = i % 2 ? on_usr1 : on_usr1_too;
		sigaction(SIGUSR1, &act, NULL);
		sigaction(SIGUSR1, NULL, &now);
		if (now.sa_handler != act.sa_handler)
			_exit(3);
		*(volatile int *)ready = 1;
	}
	return arg;
}

static void actions(int times)
{
	for (int i = 0; i < times; i++) {
		int status, ready = 0;
		pid_t pid = fork();
		pthread_t id;

		if (pid == 0) {
			start(&id, change_actions, &ready);
			while (!*(volatile int *)&ready)
				sched_yield();
			open_trap();
			pthread_join(id, NULL);
			_exit(0);
		}
		status = wait_for(pid);
		if (status)
			printf("a handler that was set is not there: status %#x\n", (unsigned int)status);
	}
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

/* Install a filter that kills for a system call which the program itself does not make. */
static void *confine(void *arg)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)(long)arg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	while (!atomic_load(&go))
		;
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	for (volatile int i = 0; i < 1000000; i++)
		;
	return NULL;
}

static void filters(int times)
{
	static const long numbers[] = {SYS_clock_gettime, SYS_process_vm_readv, SYS_mremap, SYS_munlock};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int i = 0; i < times; i++) {
		pid_t pid = fork();
		pthread_t ids[4];
		int status;

		if (pid == 0) {
			for (int k = 0; k < 4; k++)
				start(&ids[k], confine, (void *)numbers[k]);
			atomic_store(&go, 1);
			for (int k = 0; k < 4; k++)
				pthread_join(ids[k], NULL);
			_exit(0);
		}
		status = wait_for(pid);
		if (status)
			printf("threads that install filters: status %#x\n", (unsigned int)status);
	}
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

static pthread_t waiting[2];
static int wait_times, wait_signal;
static __thread volatile int nr_woken;

static void on_wake(int signo)
{
	(void)signo;
	nr_woken++;
}

static int wait_by(int way, const sigset_t *mask, int epfd)
{
	struct epoll_event event;

	switch (way) {
	case 0:
		return sigsuspend(mask);
	case 1:
		return ppoll(NULL, 0, NULL, mask);
	case 2:
		return pselect(0, NULL, NULL, NULL, NULL, mask);
	default:
		return epoll_pwait(epfd, &event, 1, -1, mask);
	}
}

static void *wait_and_wake(void *other)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	for (int i = 0; i < wait_times; i++) {
		if (wait_by(i % 4, &none, epfd) != -1 || errno != EINTR || nr_woken != i + 1) {
			printf("wait %d ended after %d signals: %s\n", i + 1, nr_woken, strerror(errno));
			fflush(stdout);
			_exit(1);
		}
		pthread_kill(*(pthread_t *)other, wait_signal);
	}
	close(epfd);
	return NULL;
}

static void wait_for_each_other(int signo, int times)
{
	sigset_t set, before;

	wait_signal = signo;
	wait_times = times;
	nr_woken = 0;
	signal(signo, on_wake);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_BLOCK, &set, &before);
	waiting[0] = pthread_self();
	start(&waiting[1], wait_and_wake, &waiting[0]);
	pthread_kill(waiting[0], signo);
	alarm(40);
	wait_and_wake(&waiting[1]);
	alarm(0);
	pthread_join(waiting[1], NULL);
	pthread_kill(waiting[0], signo);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void waits(int times)
{
	wait_for_each_other(SIGTRAP, times);
	for (int signo = SIGRTMAX; signo > SIGRTMAX - 3; signo--)
		wait_for_each_other(signo, times / 4);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int tick_pipe[2], ticks_a_byte; /* 0: none is ever written */
static volatile sig_atomic_t nr_ticks, nr_goes_on;

/* Will the interrupted read go on when the handler returns, although the handler should end it? */
static bool goes_on(const ucontext_t *uc)
{
#if defined(__x86_64__)
	const unsigned char *at = (const unsigned char *)uc->uc_mcontext.gregs[REG_RIP];

	return at[0] == 0x0f && at[1] == 0x05 && uc->uc_mcontext.gregs[REG_RAX] == SYS_read;
#else
	(void)uc; /* a known gap of the agent's (countersink(7)) */
	return false;
#endif
}

static void on_tick(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	nr_goes_on += goes_on(context);
	if (++nr_ticks == ticks_a_byte) {
		nr_ticks = 0;
		if (write(tick_pipe[1], "", 1) != 1)
			_exit(1);
	}
}

static void read_under_a_timer(int times, int flags)
{
	struct sigaction act = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | flags};
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	ssize_t wanted = flags & SA_RESTART ? 1 : -1, got = wanted;
	char byte;

	nr_ticks = 0;
	ticks_a_byte = flags & SA_RESTART ? 4 : 0;
	if (pipe(tick_pipe) < 0 || sigaction(SIGALRM, &act, NULL) < 0 || setitimer(ITIMER_REAL, &often, NULL) < 0)
		_exit(1);
	for (int i = 0; i < times && got == wanted; i++) {
		for (volatile int work = 0; work < 20000; work++)
			;
		got = read(tick_pipe[0], &byte, 1);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	if (got != wanted)
		printf("read returned %zd: %s\n", got, strerror(errno));
	close(tick_pipe[0]);
	close(tick_pipe[1]);
}

/* A timer's signal ends read(2), or does not, as its SA_RESTART says. */
static void calls(int times)
{
	read_under_a_timer(times, 0);
	/* The signal may come between the agent's look and its return. */
	if (nr_goes_on * 100 > times)
		printf("%d of %d calls went on\n", (int)nr_goes_on, times);
	read_under_a_timer(times / 4, SA_RESTART);
}

static const struct {
	const char *name;
	void (*run)(int times);
	int times;
} races[] = {
	{"ends", ends, 200},       {"starts", starts, 20000}, {"children", children, 200}, {"traps", traps, 8},
	{"actions", actions, 100}, {"filters", filters, 100}, {"waits", waits, 20000},     {"calls", calls, 1000},
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
