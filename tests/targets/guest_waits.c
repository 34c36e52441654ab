/*
 * Every call that waits, a hundred times over, with a thread at work beside it and work in between: none of them is cut
 * short by a signal, but by the program's own.
 *   guest_waits WAY
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

#include "guest.h"

enum { TIMES = 100, WAIT_US = 500 };

static volatile sig_atomic_t over, nr_alarms;
static int quiet[2], epoll_fd, semaphores; /* quiet: nothing ever comes */
static sem_t never;

static void *work_beside(void *arg)
{
	while (!over)
		guest_burn(1);
	return arg;
}

static struct timespec soon(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_nsec += WAIT_US * 1000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

static int by_nanosleep(void)
{
	return nanosleep(&(struct timespec){0, WAIT_US * 1000}, NULL);
}

static int by_clock(void)
{
	struct timespec at = soon(CLOCK_MONOTONIC);

	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	return errno ? -1 : 0;
}

static int by_usleep(void)
{
	return usleep(WAIT_US);
}

static int by_poll(void)
{
	return poll(&(struct pollfd){quiet[0], POLLIN, 0}, 1, 1);
}

static int by_select(void)
{
	struct timeval time = {0, WAIT_US};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet[0], &set);
	return select(quiet[0] + 1, &set, NULL, NULL, &time);
}

static int by_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, 1);
}

/* These two return EAGAIN and ETIMEDOUT when their time is over. */
static int by_receive(void)
{
	char byte;

	return recv(quiet[0], &byte, 1, 0) < 0 && errno == EAGAIN ? 0 : -1;
}

static int by_semaphore(void)
{
	struct timespec at = soon(CLOCK_REALTIME);

	return sem_timedwait(&never, &at) && errno == ETIMEDOUT ? 0 : -1;
}

static int by_semtimedop(void)
{
	struct sembuf op = {0, -1, 0};

	return semtimedop(semaphores, &op, 1, &(struct timespec){0, WAIT_US * 1000}) && errno == EAGAIN ? 0 : -1;
}

static const struct {
	const char *name;
	int (*wait)(void);
} waits[] = {{"nanosleep", by_nanosleep}, {"clock_nanosleep", by_clock},   {"usleep", by_usleep},
	     {"poll", by_poll},           {"select", by_select},           {"epoll_wait", by_epoll},
	     {"recv", by_receive},        {"sem_timedwait", by_semaphore}, {"semtimedop", by_semtimedop}};

static int prepare(void)
{
	struct timeval time = {0, WAIT_US};
	struct epoll_event event = {.events = EPOLLIN};

	epoll_fd = epoll_create1(0);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	return socketpair(AF_UNIX, SOCK_STREAM, 0, quiet) || sem_init(&never, 0, 0) || semaphores < 0 ||
	       setsockopt(quiet[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) ||
	       epoll_ctl(epoll_fd, EPOLL_CTL_ADD, quiet[0], &event);
}

/* Not one wait ends before its time. */
static int undisturbed(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		int nr_short = 0;

		for (int k = 0; k < TIMES; k++) {
			nr_short += waits[i].wait() != 0;
			if (k % 20 == 0)
				guest_burn(1);
		}
		printf("%s: %d of %d cut short\n", waits[i].name, nr_short, TIMES);
	}
	return 0;
}

static void on_alarm(int signo)
{
	(void)signo;
	nr_alarms++;
}

/* The program's own alarm ends each, and nothing is done over behind its back. */
static int interrupted(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = on_alarm};
	/* Again and again: on a busy machine the first may come before the wait. */
	const struct itimerval often = {{0, 20000}, {0, 20000}}, off = {{0, 0}, {0, 0}};
	struct epoll_event event;
	long result;
	char byte;

	(void)argc;
	(void)argv;
	sigaction(SIGALRM, &act, NULL);
	setsockopt(quiet[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, 0}, sizeof(struct timeval));
	for (int way = 0; way < 8; way++) {
		guest_burn(5);
		nr_alarms = 0;
		setitimer(ITIMER_REAL, &often, NULL);
		errno = 0;
		switch (way) {
		case 0:
			result = read(quiet[0], &byte, 1);
			break;
		case 1:
			result = nanosleep(&(struct timespec){100, 0}, NULL);
			break;
		case 2:
			result = poll(NULL, 0, -1);
			break;
		case 3:
			result = epoll_wait(epoll_fd, &event, 1, -1);
			break;
		case 4:
			result = select(0, NULL, NULL, NULL, NULL);
			break;
		case 5:
			result = sem_wait(&never);
			break;
		case 6:
			result = pause();
			break;
		default:
			result = recv(quiet[0], &byte, 1, 0);
			break;
		}
		setitimer(ITIMER_REAL, &off, NULL);
		printf("%d: %ld %s, alarms: %d\n", way, result, strerror(errno), nr_alarms > 0);
	}
	return 0;
}

static pthread_t waiter;
static volatile sig_atomic_t has_waited, is_inside;
static int both_inside;
static pthread_mutex_t inheriting;

/* Sends the signal until the call that it ends has ended. */
static void *send_until(void *arg)
{
	while (!has_waited) {
		pthread_kill(waiter, *(const int *)arg);
		usleep(2000);
	}
	return NULL;
}

static void *lock_and_look(void *arg)
{
	pthread_mutex_lock(&inheriting);
	both_inside = is_inside;
	pthread_mutex_unlock(&inheriting);
	return arg;
}

/* Each call is ended by the program's handler, whichever signal it is for; the lock is not. */
static int ended(int argc, char **argv)
{
	static const int signals[] = {SIGTRAP, SIGIO, SIGUSR1};
	struct sigaction act = {.sa_handler = on_alarm};
	pthread_mutexattr_t inherits;
	pthread_t sender;
	int empty[2], other[2];
	char byte;

	(void)argc;
	(void)argv;
	if (pipe(empty) || pipe(other))
		return 1;
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &inherits);
	for (int i = 0; i < 3; i++) {
		sigaction(signals[i], &act, NULL);
		for (int way = 0; way < 4; way++) {
			struct iovec to = {&byte, 1};
			struct mmsghdr message = {.msg_hdr = {.msg_iov = &to, .msg_iovlen = 1}};
			long result;

			waiter = pthread_self();
			has_waited = 0;
			errno = 0;
			pthread_create(&sender, NULL, send_until, (void *)&signals[i]);
			if (way == 0)
				result = splice(empty[0], NULL, other[1], NULL, 1, 0);
			else if (way == 1)
				result = tee(empty[0], other[1], 1, 0);
			else if (way == 2)
				result = preadv2(empty[0], &to, 1, -1, 0);
			else
				result = recvmmsg(quiet[1], &message, 1, 0, NULL);
			has_waited = 1;
			printf("%d, %d: %ld %s\n", i, way, result, strerror(errno));
			pthread_join(sender, NULL);
		}
		pthread_mutex_lock(&inheriting);
		is_inside = 1;
		pthread_create(&waiter, NULL, lock_and_look, NULL);
		for (int k = 0; k < 20; k++) {
			int before = nr_alarms;

			pthread_kill(waiter, signals[i]);
			while (nr_alarms == before && !both_inside)
				usleep(1000);
		}
		is_inside = 0;
		pthread_mutex_unlock(&inheriting);
		pthread_join(waiter, NULL);
		printf("%d: both inside: %d\n", i, both_inside);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {
		{"undisturbed", undisturbed}, {"interrupted", interrupted}, {"ended", ended}, {NULL, NULL}};
	pthread_t beside;
	int status;

	if (prepare())
		return 1;
	pthread_create(&beside, NULL, work_beside, NULL);
	guest_burn(20);
	status = guest_main(ways, argc, argv);
	over = 1;
	pthread_join(beside, NULL);
	semctl(semaphores, 0, IPC_RMID);
	return status;
}
