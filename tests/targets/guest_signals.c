/*
 * Every way to block, wait for and ask about signals, tried with those that a profiler may have taken for itself:
 * SIGTRAP and the real-time signals, each with samples coming in between.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

#include "guest.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static volatile sig_atomic_t nr_caught, last_caught;

static void on_signal(int signo)
{
	nr_caught++;
	last_caught = signo;
}

static void catch (int signo, int flags)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(signo, &act, NULL);
}

static void block_all(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static void unblock_all(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static void print_caught(const char *what)
{
	printf("%s: caught %d, last %d\n", what, (int)nr_caught, (int)last_caught);
	nr_caught = 0;
}

static const int tried[] = {SIGTRAP, SIGUSR1, SIGPROF, 34, 50, 60, 61, 62, 63, 64};
#define EACH_TRIED(i) for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++)

/* Blocked, sent, pending, let through: for one signal at a time, and for all. */
static int masks(int argc, char **argv)
{
	sigset_t set, old;

	(void)argc;
	(void)argv;
	guest_print_signals("start");
	EACH_TRIED(i)
	{
		catch (tried[i], 0);
		sigemptyset(&set);
		sigaddset(&set, tried[i]);
		sigprocmask(SIG_BLOCK, &set, &old);
		guest_burn(3);
		raise(tried[i]);
		kill(getpid(), tried[i]);
		guest_burn(3);
		print_caught("blocked");
		guest_print_signals("one");
		sigprocmask(SIG_SETMASK, &old, &set);
		guest_print_set("was", &set);
		print_caught("let through");
	}
	block_all();
	EACH_TRIED(i) kill(getpid(), tried[i]);
	guest_burn(10);
	guest_print_signals("all");
	print_caught("all blocked");
	unblock_all();
	print_caught("all let through");
	guest_print_signals("end");
	return 0;
}

/* A timer's signal ends each wait; one that the mask lets through must, one that it keeps back must not. */
static void wait_by(const char *name, const sigset_t *mask)
{
	struct timespec short_time = {0, 20 * 1000 * 1000};
	struct pollfd none = {.fd = -1};
	struct epoll_event event;
	int epfd = epoll_create1(EPOLL_CLOEXEC), result = -2;

	errno = 0;
	if (!strcmp(name, "pselect"))
		result = pselect(0, NULL, NULL, NULL, &short_time, mask);
	else if (!strcmp(name, "ppoll"))
		result = ppoll(&none, 1, &short_time, mask);
	else if (!strcmp(name, "epoll_pwait"))
		result = epoll_pwait(epfd, &event, 1, 20, mask);
	else if (!strcmp(name, "epoll_pwait2"))
		result = epoll_pwait2(epfd, &event, 1, &short_time, mask);
	printf("%s: %d %s\n", name, result, result < 0 ? strerror(errno) : "");
	close(epfd);
}

static int suspend(int argc, char **argv)
{
	static const char *const names[] = {"pselect", "ppoll", "epoll_pwait", "epoll_pwait2"};
	sigset_t set, none;

	(void)argc;
	(void)argv;
	sigemptyset(&none);
	EACH_TRIED(i)
	{
		catch (tried[i], 0);
		for (int n = 0; n < 4; n++) {
			/* Sent while blocked: the wait lets it through at once. */
			sigfillset(&set);
			sigprocmask(SIG_SETMASK, &set, NULL);
			kill(getpid(), tried[i]);
			guest_burn(1);
			wait_by(names[n], &none);
			print_caught(names[n]);
			/* Kept back by the wait's mask, and after it. */
			kill(getpid(), tried[i]);
			wait_by(names[n], &set);
			print_caught(names[n]);
			unblock_all();
			print_caught("then");
			wait_by(names[n], NULL);
			wait_by(names[n], &set);
			guest_print_signals("after");
		}
		block_all();
		kill(getpid(), tried[i]);
		guest_burn(1);
		printf("sigsuspend: %d %s\n", sigsuspend(&none), strerror(errno));
		print_caught("sigsuspend");
		unblock_all();
	}
	guest_print_signals("end");
	return 0;
}

/* Another thread's alarm must wake what waits without a timeout. */
static void *send_later(void *arg)
{
	pthread_t main_thread = *(pthread_t *)arg;
	struct timespec while_ = {0, 10 * 1000 * 1000};

	while (!nr_caught) {
		nanosleep(&while_, NULL);
		pthread_kill(main_thread, SIGTRAP);
	}
	return NULL;
}

static int wake(int argc, char **argv)
{
	pthread_t self = pthread_self(), other;
	struct timespec nap = {3600, 0};
	sigset_t none;
	char byte;
	int fds[2];

	(void)argc;
	(void)argv;
	catch (SIGTRAP, 0);
	if (pipe(fds))
		return 1;
	sigemptyset(&none);
	for (int i = 0; i < 4; i++) {
		guest_burn(20);
		pthread_create(&other, NULL, send_later, &self);
		errno = 0;
		if (i == 0)
			printf("read %zd %s\n", read(fds[0], &byte, 1), strerror(errno));
		else if (i == 1)
			printf("nanosleep %d %s\n", nanosleep(&nap, NULL), strerror(errno));
		else if (i == 2)
			printf("sigsuspend %d %s\n", sigsuspend(&none), strerror(errno));
		else
			printf("ppoll %d %s\n", ppoll(NULL, 0, NULL, NULL), strerror(errno));
		pthread_join(other, NULL);
		printf("caught some: %d\n", nr_caught > 0);
		nr_caught = 0;
	}
	return 0;
}

/* Threads that wait for every signal, others that have every signal blocked and work. */
static void *wait_all(void *arg)
{
	sigset_t set;
	siginfo_t info;
	int signo = 0, nr = 0;

	(void)arg;
	sigfillset(&set);
	for (;;) {
		if (nr % 3 == 0)
			sigwait(&set, &signo);
		else if (nr % 3 == 1)
			signo = sigwaitinfo(&set, &info);
		else
			signo = sigtimedwait(&set, &info, &(struct timespec){100, 0});
		if (signo == SIGTERM)
			break;
		printf("got %d\n", signo);
		nr++;
	}
	return NULL;
}

static void *work_blocked(void *arg)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	guest_sink = guest_work((uint64_t)(uintptr_t)arg);
	return NULL;
}

static int wait_for_all(int argc, char **argv)
{
	struct timespec soon = {0, 1000 * 1000};
	pthread_t waiter, workers[4];
	sigset_t set;

	(void)argc;
	(void)argv;
	block_all();
	pthread_create(&waiter, NULL, wait_all, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&workers[i], NULL, work_blocked, (void *)60);
	EACH_TRIED(i)
	{
		kill(getpid(), tried[i]);
		/* One at a time, so that their order is known. */
		do {
			nanosleep(&soon, NULL);
			sigpending(&set);
		} while (sigismember(&set, tried[i]) == 1);
		nanosleep(&soon, NULL);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i], NULL);
	kill(getpid(), SIGTERM);
	pthread_join(waiter, NULL);
	printf("nothing left: %d %s\n", sigtimedwait(&set, NULL, &(struct timespec){0, 0}), strerror(errno));
	guest_print_signals("end");
	return 0;
}

/* A signalfd for all signals, read while the program works: only what was sent may be there. */
static int by_fd(int argc, char **argv)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	(void)argc;
	(void)argv;
	block_all();
	sigfillset(&set);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	for (int i = 0; i < 20; i++) {
		guest_burn(5);
		if (i == 10)
			kill(getpid(), SIGUSR1);
		while (read(fd, &info, sizeof(info)) == sizeof(info))
			printf("read signal %u in round %d\n", info.ssi_signo, i);
	}
	signalfd(fd, &set, 0);
	printf("at the end: %zd %s\n", read(fd, &info, sizeof(info)), strerror(errno));
	return 0;
}

/* Threads made with all signals blocked by their attributes, and with their creator's mask. */
static void *print_mask(void *arg)
{
	guest_sink = guest_work(25);
	guest_print_signals(arg);
	return NULL;
}

static int attributes(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t set;

	(void)argc;
	(void)argv;
	pthread_attr_init(&attr);
	for (int i = 0; i < 3; i++) {
		sigfillset(&set);
		if (i == 1)
			sigdelset(&set, SIGTRAP);
		if (i == 2)
			sigemptyset(&set);
		pthread_attr_setsigmask_np(&attr, &set);
		pthread_create(&thread, &attr, print_mask, "by attributes");
		pthread_join(thread, NULL);
		sigprocmask(SIG_SETMASK, &set, NULL);
		pthread_create(&thread, NULL, print_mask, "by its creator");
		pthread_join(thread, NULL);
		guest_print_signals("creator");
	}
	return 0;
}

/* Jumps that restore masks behind everybody's back. */
static sigjmp_buf out;

static void jump(int signo)
{
	siglongjmp(out, signo);
}

static int jumps(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = jump};
	sigset_t set;

	(void)argc;
	(void)argv;
	sigfillset(&act.sa_mask);
	sigaction(SIGUSR1, &act, NULL);
	act.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &act, NULL);
	for (volatile int i = 0; i < 6; i++) {
		if (sigsetjmp(out, 1) == 0) {
			guest_burn(10);
			if (i % 3 == 2) {
				block_all();
				siglongjmp(out, 1);
			}
			raise(i % 3 ? SIGUSR1 : SIGUSR2);
		}
		guest_print_signals("after a jump");
		guest_burn(10);
	}
	/* Not restored: what the handler blocked stays blocked. */
	if (sigsetjmp(out, 0) == 0)
		raise(SIGUSR1);
	guest_print_signals("after a plain jump");
	guest_burn(20);
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	guest_print_signals("end");
	return 0;
}

/* Old names for the same things. */
static int old_names(int argc, char **argv)
{
	int mask, with_trap = 1 << (SIGTRAP - 1) | 1 << (SIGUSR1 - 1);

	(void)argc;
	(void)argv;
	EACH_TRIED(i)
	{
		printf("sigset %d\n", sigset(tried[i], on_signal) == SIG_DFL);
		printf("sighold %d\n", sighold(tried[i]));
		kill(getpid(), tried[i]);
		guest_burn(2);
		print_caught("held");
		guest_print_signals("held");
		printf("sigset: %d\n", sigset(tried[i], SIG_HOLD) == SIG_HOLD);
		printf("sigrelse %d\n", sigrelse(tried[i]));
		print_caught("released");
		printf("siginterrupt %d\n", siginterrupt(tried[i], 1));
		printf("sigignore %d\n", sigignore(tried[i]));
		kill(getpid(), tried[i]);
		guest_burn(2);
		print_caught("ignored");
		signal(tried[i], on_signal);
		raise(tried[i]);
		print_caught("signal");
		sysv_signal(tried[i], on_signal);
		raise(tried[i]);
		print_caught("sysv_signal");
		guest_print_signals("reset to the default");
	}
	mask = sigblock(with_trap);
	printf("sigblock %x\n", mask);
	guest_burn(5);
	printf("siggetmask %x\n", sigblock(0));
	guest_print_signals("blocked");
	printf("sigsetmask %x\n", sigsetmask(0));
	guest_print_signals("end");
	return 0;
}

/* Interval timers of every kind, and handlers that are replaced, reset and nested, while samples come. */
static void nested(int signo)
{
	nr_caught++;
	guest_sink = spin(1, ROUNDS_MS / 5);
	if (signo == SIGALRM && nr_caught == 1)
		raise(SIGPROF);
}

static int timers(int argc, char **argv)
{
	static const struct {
		int which, signo;
		const char *name;
	} kinds[] = {
		{ITIMER_REAL, SIGALRM, "real"}, {ITIMER_VIRTUAL, SIGVTALRM, "virtual"}, {ITIMER_PROF, SIGPROF, "prof"}};
	struct itimerval every = {{0, 4000}, {0, 4000}}, off = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = nested};

	(void)argc;
	(void)argv;
	for (int i = 0; i < 3; i++) {
		act.sa_flags = i == 1 ? SA_NODEFER : SA_RESTART;
		if (i == 2)
			sigfillset(&act.sa_mask);
		sigaction(SIGPROF, &act, NULL);
		sigaction(kinds[i].signo, &act, NULL);
		setitimer(kinds[i].which, &every, NULL);
		while (nr_caught < 20)
			guest_sink = spin(1, ROUNDS_MS / 10);
		setitimer(kinds[i].which, &off, NULL);
		printf("%s arrived\n", kinds[i].name);
		signal(kinds[i].signo, SIG_IGN);
		nr_caught = 0;
		guest_burn(10);
		act.sa_flags = (int)SA_RESETHAND;
		sigaction(SIGTRAP, &act, NULL);
		raise(SIGTRAP);
		sigaction(SIGTRAP, NULL, &act);
		printf("reset: %d, caught %d\n", act.sa_handler == SIG_DFL, (int)nr_caught);
		act.sa_handler = nested;
		nr_caught = 0;
	}
	guest_print_signals("end");
	return 0;
}

/* What the child of an exec gets: ignored and blocked signals, no others. */
static int inherit(int argc, char **argv)
{
	sigset_t set;

	if (argc > 1) {
		guest_burn(20);
		guest_print_signals(argv[1]);
		return 0;
	}
	guest_burn(20);
	signal(SIGTRAP, SIG_IGN);
	signal(62, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigaddset(&set, 61);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pid_t pid = i ? vfork() : fork();

		if (pid == 0) {
			execl("/proc/self/exe", "guest_signals", "inherit", i ? "vfork and exec" : "fork and exec",
			      NULL);
			_exit(127);
		}
		guest_print_status("child", guest_wait(pid));
	}
	guest_print_signals("parent");
	fflush(stdout);
	execl("/proc/self/exe", "guest_signals", "inherit", "exec", NULL);
	return 1;
}

/* Handlers that run long, with and without masks: their time is theirs. */
static __attribute__((noinline)) uint64_t handler_work(uint64_t ms)
{
	__asm__ volatile("");
	return spin(ms, ms * ROUNDS_MS);
}

static void work_in_handler(int signo)
{
	(void)signo;
	guest_sink = handler_work(60);
}

static int in_handlers(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = work_in_handler};

	(void)argc;
	(void)argv;
	sigfillset(&act.sa_mask);
	sigaction(SIGUSR1, &act, NULL);
	act.sa_handler = SIG_DFL;
	sigemptyset(&act.sa_mask);
	sigaction(SIGUSR1, NULL, &act);
	guest_print_set("sa_mask", &act.sa_mask);
	guest_burn(40);
	raise(SIGUSR1);
	signal(SIGUSR2, work_in_handler);
	raise(SIGUSR2);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {{"masks", masks},
						{"suspend", suspend},
						{"wake", wake},
						{"wait_for_all", wait_for_all},
						{"by_fd", by_fd},
						{"attributes", attributes},
						{"jumps", jumps},
						{"old_names", old_names},
						{"timers", timers},
						{"inherit", inherit},
						{"in_handlers", in_handlers},
						{NULL, NULL}};

	return guest_main(ways, argc, argv);
}
