/*
 * A thread in each call that a program may wait in; prints which of them failed with EINTR though no signal came.
 * usage: blocking_calls; it prints "ready" when all wait, and ends with its standard input: "CALL: interrupted",
 * status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 1000

static int a_pipe[2], full_pipe[2], locked_fd;

static long in_read(void)
{
	char byte;

	return read(a_pipe[0], &byte, 1);
}

static long in_write(void)
{
	return write(full_pipe[1], "", 1);
}

static long in_nanosleep(void)
{
	return nanosleep(&(struct timespec){LONG_S, 0}, NULL);
}

static long in_clock_nanosleep(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LONG_S;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return errno ? -1 : 0;
}

static long in_futex(void)
{
	static int word;

	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static long in_timed_futex(void)
{
	static int word;

	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){LONG_S, 0}, NULL, 0);
}

static long in_poll(void)
{
	return poll(&(struct pollfd){a_pipe[0], POLLIN, 0}, 1, LONG_S * 1000);
}

static long in_ppoll(void)
{
	return ppoll(&(struct pollfd){a_pipe[0], POLLIN, 0}, 1, &(struct timespec){LONG_S, 0}, NULL);
}

static long in_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(a_pipe[0], &set);
	return select(a_pipe[0] + 1, &set, NULL, NULL, &(struct timeval){LONG_S, 0});
}

static long in_epoll_wait(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	long result;

	epoll_ctl(fd, EPOLL_CTL_ADD, a_pipe[0], &event);
	result = epoll_wait(fd, &event, 1, -1);
	return result;
}

static long in_epoll_pwait(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	sigset_t set;

	sigemptyset(&set);
	epoll_ctl(fd, EPOLL_CTL_ADD, a_pipe[0], &event);
	return epoll_pwait(fd, &event, 1, LONG_S * 1000, &set);
}

static long in_accept(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "countersink-waits-%d", (int)getpid());
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) || listen(fd, 1))
		return 0;
	return accept(fd, NULL, NULL);
}

static long in_recv(void)
{
	int fds[2];
	char byte;

	return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) ? 0 : recv(fds[0], &byte, 1, 0);
}

/* With a time limit of its own. */
static long in_timed_recv(void)
{
	struct timeval limit = {LONG_S, 0};
	int fds[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 0;
	setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return recv(fds[0], &byte, 1, 0);
}

static long in_sigwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	/* The C library's sigwait would try again. */
	return syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, _NSIG / 8);
}

static long in_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} message;
	int id = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
	long result = id < 0 ? 0 : msgrcv(id, &message, sizeof(message.text), 0, 0);

	return result;
}

static long in_semop(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600 | IPC_CREAT);

	return id < 0 ? 0 : semop(id, &(struct sembuf){0, -1, 0}, 1);
}

static long in_semtimedop(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600 | IPC_CREAT);

	return id < 0 ? 0 : semtimedop(id, &(struct sembuf){0, -1, 0}, 1, &(struct timespec){LONG_S, 0});
}

static long in_waitpid(void)
{
	int status;

	return waitpid(-1, &status, 0);
}

static long in_flock(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	return flock(fd, LOCK_EX);
}

static long in_io_getevents(void)
{
	aio_context_t context = 0;
	struct io_event event;

	if (syscall(SYS_io_setup, 1, &context))
		return 0;
	return syscall(SYS_io_getevents, context, 1, 1, &event, NULL);
}

static long in_eventfd(void)
{
	uint64_t value;

	return read(eventfd(0, 0), &value, sizeof(value));
}

static struct wait {
	const char *name;
	long (*call)(void);
	_Atomic pid_t tid;
	_Atomic int interrupted, failed;
} waits[] = {
	{.name = "read", .call = in_read},
	{.name = "write", .call = in_write},
	{.name = "nanosleep", .call = in_nanosleep},
	{.name = "clock_nanosleep", .call = in_clock_nanosleep},
	{.name = "futex", .call = in_futex},
	{.name = "futex with a time", .call = in_timed_futex},
	{.name = "poll", .call = in_poll},
	{.name = "ppoll", .call = in_ppoll},
	{.name = "select", .call = in_select},
	{.name = "epoll_wait", .call = in_epoll_wait},
	{.name = "epoll_pwait", .call = in_epoll_pwait},
	{.name = "accept", .call = in_accept},
	{.name = "recv", .call = in_recv},
	{.name = "recv with a time", .call = in_timed_recv},
	{.name = "sigtimedwait", .call = in_sigwait},
	{.name = "msgrcv", .call = in_msgrcv},
	{.name = "semop", .call = in_semop},
	{.name = "semtimedop", .call = in_semtimedop},
	{.name = "waitpid", .call = in_waitpid},
	{.name = "flock", .call = in_flock},
	{.name = "io_getevents", .call = in_io_getevents},
	{.name = "read of an eventfd", .call = in_eventfd},
};

enum { NR_WAITS = sizeof(waits) / sizeof(waits[0]) };

static void *wait_on(void *arg)
{
	struct wait *wait = arg;

	wait->tid = (pid_t)syscall(SYS_gettid);
	for (;;) {
		if (wait->call() < 0 && errno == EINTR) {
			wait->interrupted++;
			continue;
		}
		wait->failed = 1; /* it is not to return at all */
		return NULL;
	}
}

static char state_of(pid_t tid)
{
	char path[64], text[512] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = 0;
		fclose(file);
	}
	end = strrchr(text, ')');
	return end ? end[2] : 'X';
}

static void wait_until_asleep(const struct wait *wait)
{
	while (!wait->failed && (!wait->tid || state_of(wait->tid) != 'S'))
		usleep(1000);
}

int main(void)
{
	int status = 0, byte;
	pthread_t thread;
	char block[4096] = "";
	sigset_t set;
	pid_t child;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	locked_fd = open("/proc/self/exe", O_RDONLY);
	if (pipe(a_pipe) || pipe(full_pipe) || flock(locked_fd, LOCK_EX))
		return 2;
	fcntl(full_pipe[1], F_SETFL, O_NONBLOCK);
	while (write(full_pipe[1], block, sizeof(block)) > 0)
		;
	fcntl(full_pipe[1], F_SETFL, 0);
	child = fork(); /* for waitpid */
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	for (int i = 0; i < NR_WAITS; i++) {
		if (pthread_create(&thread, NULL, wait_on, &waits[i]))
			return 2;
		wait_until_asleep(&waits[i]);
	}
	printf("ready\n");
	fflush(stdout);
	while ((byte = getchar()) != EOF)
		;
	for (int i = 0; i < NR_WAITS; i++) {
		if (waits[i].interrupted)
			printf("%s: interrupted\n", waits[i].name);
		if (waits[i].failed)
			printf("%s: returned\n", waits[i].name);
		status |= waits[i].interrupted || waits[i].failed;
	}
	kill(child, SIGKILL);
	return status;
}
