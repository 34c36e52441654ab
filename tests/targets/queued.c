/*
 * queued SIGNAL-OFFSET [limit]: real-time signals that pile up while they are blocked (SIGRTMAX less the offset).
 * Prints how many of each pile come, whether in their order and with their values; the same with and without a
 * profiler. limit: prints how many a sender may queue under a limit of 500.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int signo;
static sigset_t set;
static volatile int nr_handled, disorder, foreign;

static void spin(void)
{
	struct timespec now;
	uint64_t end = 0;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		if (!end)
			end = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + 10000000;
	} while ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec < end);
}

static void look(const siginfo_t *info, int expected)
{
	disorder += info->si_value.sival_int != expected;
	foreign += info->si_code != SI_QUEUE || info->si_signo != signo || info->si_pid <= 0;
}

static void on_signal(int got, siginfo_t *info, void *context)
{
	(void)got;
	(void)context;
	look(info, nr_handled);
	nr_handled++;
}

static void reset(void)
{
	nr_handled = disorder = foreign = 0;
}

static void tell(const char *what, int sent)
{
	printf("%s: %d of %d, %d out of order, %d foreign\n", what, nr_handled, sent, disorder, foreign);
	fflush(stdout);
}

static void send_to(pid_t pid, int nr)
{
	for (int i = 0; i < nr; i++)
		while (sigqueue(pid, signo, (union sigval){.sival_int = i}) && errno == EAGAIN)
			;
}

static void take_all(void)
{
	static const struct timespec at_once;
	siginfo_t info;

	while (sigtimedwait(&set, &info, &at_once) == signo)
		look(&info, nr_handled++);
}

static int is_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, signo);
}

static void try_number(int nr)
{
	char what[64];

	reset();
	send_to(getpid(), nr);
	spin();
	snprintf(what, sizeof(what), "taken, pending %d", is_pending());
	take_all();
	tell(what, nr);
	reset();
	send_to(getpid(), nr);
	spin();
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tell("handled", nr);
	spin();
}

static volatile int nr_others;

static void on_other(int got)
{
	(void)got;
	nr_others++;
}

/* Signals of the number before are let in at once with these, and their handler blocks all. */
static void try_beside(int nr)
{
	struct sigaction other = {.sa_handler = on_other};
	sigset_t all, before;
	siginfo_t info;
	int taken;

	sigfillset(&other.sa_mask);
	sigaction(signo - 1, &other, NULL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	reset();
	send_to(getpid(), nr);
	for (int i = 0; i < nr; i++)
		sigqueue(getpid(), signo - 1, (union sigval){0});
	for (taken = 0; taken < nr / 2 && sigwaitinfo(&set, &info) == signo; taken++)
		look(&info, nr_handled++);
	sigdelset(&before, signo);
	sigprocmask(SIG_SETMASK, &before, NULL);
	tell("handled beside others", nr);
	printf("the others: %d of %d\n", nr_others, nr);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void try_other_process(int nr)
{
	pid_t parent = getpid(), child;

	reset();
	child = fork();
	if (!child) {
		send_to(parent, nr);
		_exit(is_pending()); /* the parent's are not the child's */
	}
	for (int status = -1; waitpid(child, &status, WNOHANG) != child;)
		spin();
	take_all();
	tell("sent by a child", nr);
}

static void try_fork(void)
{
	int status = 0;
	pid_t child;

	send_to(getpid(), 200);
	child = fork();
	if (!child)
		_exit(is_pending());
	waitpid(child, &status, 0);
	reset();
	take_all();
	printf("pending in a child: %d\n", WEXITSTATUS(status));
	tell("in the parent", 200);
}

static void try_suspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	reset();
	send_to(getpid(), 5);
	for (int i = 1; i <= 5; i++) {
		sigsuspend(&none);
		printf("%d ", nr_handled);
	}
	tell("handled by sigsuspend", 5);
}

static void *receive(void *arg)
{
	int *go = arg;

	while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
		spin();
	take_all();
	return NULL;
}

static void try_thread(int nr)
{
	static int go;
	pthread_t thread;

	reset();
	pthread_create(&thread, NULL, receive, &go);
	for (int i = 0; i < nr; i++)
		pthread_sigqueue(thread, signo, (union sigval){.sival_int = i});
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	tell("to one thread", nr);
}

static void try_limit(void)
{
	struct rlimit limit = {500, 500};
	int nr = 0;

	setrlimit(RLIMIT_SIGPENDING, &limit);
	while (nr < 5000 && !sigqueue(getpid(), signo, (union sigval){.sival_int = nr}))
		nr++;
	printf("%d\n", nr);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	char *again[] = {argv[0], argv[1], (char *)"after exec", NULL};

	if (argc < 2)
		return 2;
	signo = SIGRTMAX - atoi(argv[1]);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(signo, &action, NULL);
	if (argc > 2) {
		if (!strcmp(argv[2], "limit")) {
			try_limit();
			return 0;
		}
		take_all();
		tell(argv[2], 300);
		return 0;
	}
	try_number(1);
	try_number(128);
	try_number(129);
	try_number(1000);
	try_number(5000);
	try_beside(200);
	try_other_process(3000);
	try_fork();
	try_suspend();
	try_thread(300);
	reset();
	send_to(getpid(), 300);
	execv("/proc/self/exe", again);
	return 1;
}
