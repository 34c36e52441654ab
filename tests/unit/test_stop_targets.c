/*
 * Halting a tree leaves it as it was: no signal is lost, no call in which a thread waits fails, nothing is left stopped
 * when the stopping process is killed; a process that cannot be stopped is named, and act is called all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "preload/api/pmc/stop_targets.h"
#include "tests/unit/refuse.h"
#include "tests/unit/tap.h"

#define NR_THREADS 8
#define NR_STOPS 30
#define MAX_SENT 5000 /* a target that gets no CPU keeps them, of a number that all programs of the user share */
#define NR_KILLS 200
#define MAX_WHOLE_US 100000L /* of a stop, as long as some are caught within it: 200 of them are waited for */
#define DEADLINE_NS (120 * CSINK_NS_PER_S) /* then the test has failed */

static int act_calls;

static int count_call(struct csink_targets *targets, void *arg)
{
	(void)targets, (void)arg;
	act_calls++;
	return 0;
}

static int stop_once(int32_t pid, struct csink_stop *out)
{
	int err = csink_stop_targets(&pid, 1, true, true, count_call, NULL, out);

	csink_targets_free(&out->targets);
	return err;
}

/* In 't' or 'T', any of its threads or children's. */
static int is_stopped(int32_t pid)
{
	struct csink_targets targets = {0};
	struct csink_task task;
	int stopped = 0;

	csink_targets_scan(&targets, pid, true);
	for (uint32_t i = 0; i < targets.nr; i++)
		stopped |= !csink_task_read(targets.at[i].tid, &task) && (task.state == 't' || task.state == 'T');
	csink_targets_free(&targets);
	return stopped;
}

static int wait_until_going(int32_t pid)
{
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;

	while (is_stopped(pid)) {
		if (csink_monotonic_ns() > deadline_ns)
			return 0;
		usleep(1000);
	}
	return 1;
}

/* ---- targets ---- */

static int tell[2], hear[2];

static pid_t start(void (*serve)(void))
{
	char byte;
	pid_t pid;

	if (pipe(tell) || pipe(hear))
		abort();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(tell[1]);
		serve();
		_exit(0);
	}
	close(tell[0]);
	if (read(hear[0], &byte, 1) != 1)
		abort();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(tell[1]);
	close(hear[0]);
	close(hear[1]);
}

static void *work(void *arg)
{
	for (;;) {
		for (volatile int i = 0; i < 100000; i++)
			;
		usleep(500); /* on a busy machine, too, the test is to come to its end */
	}
	return arg;
}

/* Threads at work, and a child. */
static void serve_work(void)
{
	pid_t parent = getpid();
	pthread_t thread;

	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&thread, NULL, work, NULL);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it has been killed before that */
			_exit(0);
		work(NULL);
	}
	if (write(hear[1], "r", 1) == 1)
		work(NULL);
}

static long nr_signals;

static void count_signal(int signo)
{
	(void)signo;
	nr_signals++;
}

static void take_signals(void)
{
	signal(SIGRTMIN + 3, count_signal);
}

/* Both answer with how many signals came, on command. */
static void answer(void)
{
	sigset_t set;

	sigemptyset(&set);
	while (!sigpending(&set) && sigismember(&set, SIGRTMIN + 3))
		usleep(1000);
	if (write(hear[1], &nr_signals, sizeof(nr_signals)) != sizeof(nr_signals))
		_exit(1);
}

static void serve_signals_running(void)
{
	char byte;

	take_signals();
	fcntl(tell[0], F_SETFL, O_NONBLOCK);
	if (write(hear[1], "r", 1) != 1)
		_exit(1);
	while (read(tell[0], &byte, 1) != 1)
		for (volatile int i = 0; i < 100000; i++)
			;
	answer();
}

static void serve_signals_asleep(void)
{
	char byte;

	take_signals();
	if (write(hear[1], "r", 1) != 1)
		_exit(1);
	while (read(tell[0], &byte, 1) != 1)
		;
	answer();
}

/* Answers with what became of the call: 0, or its errno. */
static void serve_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(0), err;

	epoll_ctl(fd, EPOLL_CTL_ADD, tell[0], &event);
	if (write(hear[1], "r", 1) != 1)
		_exit(1);
	err = epoll_wait(fd, &event, 1, -1) == 1 ? 0 : errno;
	if (write(hear[1], &err, sizeof(err)) != sizeof(err))
		_exit(1);
}

/* ---- what must stay as it was ---- */

static _Atomic int is_over;
static _Atomic long nr_sent;

static void *send_signals(void *arg)
{
	union sigval value = {0};

	while (!is_over && nr_sent < MAX_SENT) {
		nr_sent += !sigqueue(*(pid_t *)arg, SIGRTMIN + 3, value);
		nanosleep(&(struct timespec){0, 20000}, NULL);
	}
	return NULL;
}

static void keeps_signals(void (*serve)(void), const char *what)
{
	pid_t pid = start(serve);
	struct csink_stop stop;
	pthread_t sender;
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;
	long got = -1;
	int failed = 0;

	nr_sent = is_over = 0;
	pthread_create(&sender, NULL, send_signals, &pid);
	/* The sender gets a CPU when the machine has one for it: go on until more signals than stops were made. */
	for (int i = 0; i < NR_STOPS || (nr_sent <= NR_STOPS && csink_monotonic_ns() < deadline_ns); i++)
		failed += stop_once(pid, &stop) != 0;
	is_over = 1;
	pthread_join(sender, NULL);
	is_num(failed, 0, "a target that is stopped many times is stopped each time");
	if (write(tell[1], "x", 1) != 1 || read(hear[0], &got, sizeof(got)) != sizeof(got))
		got = -1;
	is_num(got, nr_sent, what);
	ok(nr_sent > NR_STOPS, "there are more signals than stops: %ld", (long)nr_sent);
	end(pid);
}

static void keeps_calls(void)
{
	pid_t pid = start(serve_epoll);
	struct csink_stop stop;
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;
	struct csink_task task;
	int err = -1, stopped;

	while (!csink_task_read(pid, &task) && task.state != 'S')
		usleep(1000);
	/* Where the stop itself gets no CPU for a second, it is given up. */
	do
		stopped = stop_once(pid, &stop);
	while (!stopped && stop.err == -ETIMEDOUT && csink_monotonic_ns() < deadline_ns);
	is_num(stopped, 0, "a target that sleeps in epoll_wait is stopped");
	is_num(stop.nr_asleep, 1, "a sleeping target is not woken");
	is_num(stop.err, 0, "a sleeping target is no error");
	if (write(tell[1], "x", 1) != 1 || read(hear[0], &err, sizeof(err)) != sizeof(err))
		err = -1;
	is_num(err, 0, "a sleeping target's epoll_wait ends without an error");
	end(pid);
}

/* ---- killed at any moment ---- */

static void is_killed(void)
{
	pid_t pid = start(serve_work);
	uint64_t before_ns = csink_monotonic_ns(), deadline_ns = before_ns + DEADLINE_NS;
	int left = 0, caught = 0;
	struct csink_stop stop;
	long whole_us;

	stop_once(pid, &stop);
	whole_us = CSINK_MIN((long)((csink_monotonic_ns() - before_ns) / 1000), MAX_WHOLE_US);
	srand(1);
	/* Where the machine got so busy since that none is caught stopping, they get more time, and there are more. */
	for (int i = 0; (i < NR_KILLS || (!caught && csink_monotonic_ns() < deadline_ns)) && !left; i++) {
		pid_t killed = fork();

		if (!killed) {
			for (;;)
				stop_once(pid, &stop);
		}
		if (!caught && i % 50 == 49)
			whole_us = CSINK_MIN(2 * whole_us, 1000000L);
		usleep((unsigned)(rand() % (2 * whole_us + 2000)));
		caught += is_stopped(pid);
		kill(killed, SIGKILL);
		waitpid(killed, NULL, 0);
		left += !wait_until_going(pid);
	}
	is_num(left, 0, "killed 200 times at odd moments: nothing is left stopped");
	ok(caught > 0, "killed %d times while the targets were stopped", caught);
	is_num(kill(pid, 0), 0, "the target survives 200 killed stops");
	end(pid);
}

/* ---- refusals ---- */

/* Where ptrace is refused: Yama, seccomp. */
static int refused_by_kernel(pid_t pid)
{
	struct csink_stop stop;

	refuse_syscall(SYS_ptrace, EPERM);
	return stop_once(pid, &stop) || stop.err != -EPERM || act_calls != 1 || stop.stopped_ns;
}

static int asked_not_to(pid_t pid)
{
	struct csink_stop stop;
	int err = csink_stop_targets(&pid, 1, true, false, count_call, NULL, &stop);

	csink_targets_free(&stop.targets);
	return err || stop.err != -ECANCELED || act_calls != 1 || stop.stopped_ns;
}

static int traced_by_another(pid_t pid)
{
	struct csink_stop stop;
	int ready[2], status;
	char byte;
	pid_t tracer;

	if (pipe(ready))
		return 1;
	tracer = fork();
	if (!tracer) {
		status = ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? 1 : write(ready[1], "r", 1) != 1;
		while (!status)
			pause();
		_exit(status);
	}
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	status = stop_once(pid, &stop) || stop.err != -EBUSY || stop.tracer != tracer || act_calls != 1;
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	return status;
}

static int gone(pid_t pid)
{
	struct csink_stop stop;
	pid_t dead = fork();

	(void)pid;
	if (!dead)
		_exit(0);
	waitpid(dead, NULL, 0);
	return stop_once(dead, &stop) != -ESRCH || act_calls != 0;
}

static void in_child(int (*part)(pid_t pid), const char *what)
{
	pid_t target = start(serve_work), pid;
	int status = -1;

	pid = fork();
	if (!pid) {
		act_calls = 0;
		_exit(part(target));
	}
	waitpid(pid, &status, 0);
	is_num(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, what);
	ok(wait_until_going(target), "the target runs on");
	end(target);
}

int main(void)
{
	keeps_signals(serve_signals_running, "a running target gets each signal");
	keeps_signals(serve_signals_asleep, "a sleeping target gets each signal");
	keeps_calls();
	is_killed();
	in_child(refused_by_kernel, "EPERM where ptrace is refused; the callback is called");
	in_child(asked_not_to, "ECANCELED where no process may be stopped; the callback is called");
	in_child(traced_by_another, "EBUSY and the tracer's PID where a target is traced; the callback is called");
	in_child(gone, "ESRCH where there is no such process; nothing is done");
	return done();
}
