/*
 * Every way to make a process and to replace one, with the traps of each: memory and errno that vfork shares, exec that
 * fails, environments that are empty, children without a wait. Each child burns in a function of its own name.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "guest.h"

extern char **environ;

static char self[4096];
static char *const no_environment[] = {NULL};

static __attribute__((noinline)) uint64_t child_work(uint64_t ms)
{
	__asm__ volatile("");
	return spin(ms, ms * ROUNDS_MS);
}

static int burn_and_leave(int status)
{
	guest_sink = child_work(40);
	return status;
}

/* What an exec'ed child does: says what it was given, burns, leaves with the status that is asked for. */
static int child(int argc, char **argv)
{
	printf("child %s: environment of %d", argc > 1 ? argv[1] : "?", getenv("GUEST") != NULL);
	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, "COUNTERSINK_", 12) && strncmp(*entry, "LD_PRELOAD=", 11))
			printf(" %.5s", *entry);
	printf("\n");
	guest_print_fds("child");
	fflush(stdout);
	return burn_and_leave(argc > 2 ? atoi(argv[2]) : 0);
}

/* ---- forks ---- */

static pid_t raw_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t raw_clone3(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int clone_child(void *arg)
{
	_exit(burn_and_leave((int)(intptr_t)arg));
}

static pid_t by_clone(int flags, int status)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	return clone(clone_child, stack + 65536, flags | SIGCHLD, (void *)(intptr_t)status);
}

static int forks(int argc, char **argv)
{
	static const char *const names[] = {"fork", "_Fork", "syscall(fork)", "clone", "clone with a stack", "clone3"};

	(void)argc;
	(void)argv;
	for (int i = 0; i < 6; i++) {
		pid_t pid;

		fflush(stdout);
		switch (i) {
		case 0:
			pid = fork();
			break;
		case 1:
			pid = _Fork();
			break;
		case 2:
#ifdef SYS_fork
			pid = (pid_t)syscall(SYS_fork);
#else
			pid = raw_clone(0); /* newer machines have no such call */
#endif
			break;
		case 3:
			pid = raw_clone(0);
			break;
		case 4:
			pid = by_clone(0, 20 + i);
			break;
		default:
			pid = raw_clone3();
			break;
		}
		if (pid == 0)
			_exit(burn_and_leave(20 + i));
		guest_print_status(names[i], guest_wait(pid));
		guest_burn(20);
	}
	printf("no child is left: %d %s\n", waitpid(-1, NULL, __WALL | WNOHANG), strerror(errno));
	return 0;
}

/* Threads, handlers and masks in a forked child, and children of children. */
static void *in_thread(void *arg)
{
	return (void *)(uintptr_t)child_work((uintptr_t)arg);
}

static void *fork_in_thread(void *arg)
{
	pthread_t thread;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0) {
		if (pthread_create(&thread, NULL, in_thread, (void *)30))
			_exit(1);
		pthread_join(thread, NULL);
		pid = fork();
		if (pid == 0)
			_exit(burn_and_leave(3));
		guest_print_status("grandchild", guest_wait(pid));
		fflush(stdout);
		/* Returns from the thread's function: in this process it is the only thread. */
		return NULL;
	}
	guest_print_status("child of a thread", guest_wait(pid));
	return NULL;
}

static int fork_from_thread(int argc, char **argv)
{
	pthread_t thread, busy;

	(void)argc;
	(void)argv;
	pthread_create(&busy, NULL, in_thread, (void *)100);
	pthread_create(&thread, NULL, fork_in_thread, NULL);
	pthread_join(thread, NULL);
	pthread_join(busy, NULL);
	return 0;
}

/* ---- vfork, and what is done in its child ---- */

static volatile int written;

static int vforks(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = SIG_IGN}, now;
	sigset_t set, old;
	int errno_then;
	pid_t pid;

	(void)argc;
	(void)argv;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigaddset(&set, 62);
	for (volatile int i = 0; i < 4; i++) {
		guest_burn(10);
		errno = 0;
		fflush(stdout);
		pid = vfork();
		if (pid == 0) {
			written++;
			sigaction(SIGTRAP, &act, NULL);
			sigaction(62, &act, NULL);
			sigprocmask(SIG_BLOCK, &set, NULL);
			if (i == 1)
				execl("/does/not/exist", "x", NULL);
			if (i == 2)
				execl(self, self, "child", "vfork", "5", NULL);
			if (i == 3)
				execle("/proc/self/exe", self, "child", "vfork, empty", "6", NULL, no_environment);
			_exit(errno == ENOENT ? 44 : 4);
		}
		errno_then = errno;
		guest_print_status("vfork", guest_wait(pid));
		printf("written %d, errno %s\n", written, strerror(errno_then));
		sigaction(SIGTRAP, NULL, &now);
		sigprocmask(SIG_BLOCK, NULL, &old);
		printf("the parent's own: %d %d\n", now.sa_handler == SIG_DFL, sigismember(&old, SIGTRAP));
	}
	guest_print_signals("end");
	return 0;
}

/* ---- spawns ---- */

static int spawns(int argc, char **argv)
{
	char *const good[] = {self, "child", "spawned", "7", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t set;
	pid_t pid;
	int err;

	(void)argc;
	(void)argv;
	fflush(stdout);
	err = posix_spawn(&pid, self, NULL, NULL, good, environ);
	guest_print_status("child", guest_wait(pid));
	printf("posix_spawn %s\n", strerror(err));
	err = posix_spawn(&pid, self, NULL, NULL, good, no_environment);
	guest_print_status("child", guest_wait(pid));
	printf("posix_spawn %s\n", strerror(err));
	fflush(stdout);
	printf("posix_spawn %s\n", strerror(posix_spawn(&pid, "/does/not/exist", NULL, NULL, good, environ)));
	printf("posix_spawnp %s\n", strerror(posix_spawnp(&pid, "does-not-exist", NULL, NULL, good, environ)));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 7, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, 7, 9);
	posix_spawn_file_actions_addclosefrom_np(&actions, 8);
	posix_spawnattr_init(&attr);
	sigfillset(&set);
	posix_spawnattr_setsigdefault(&attr, &set);
	posix_spawnattr_setsigmask(&attr, &set);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	err = posix_spawn(&pid, self, &actions, &attr, good, environ);
	guest_print_status("child", guest_wait(pid));
	printf("posix_spawn with everything: %s\n", strerror(err));
	guest_burn(20);
	guest_print_signals("end");
	return 0;
}

/* What is ignored stays so, but for what the attributes set back. */
static int spawn_ignoring(int argc, char **argv)
{
	static const int signals[] = {SIGTRAP, SIGIO, SIGPROF, 60, 61, 62, 63};
	char *const args[] = {self, "child_signals", NULL};
	posix_spawnattr_t attr;
	sigset_t set;
	pid_t pid;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_IGN);
	fflush(stdout);
	for (int way = 0; way < 3; way++) {
		posix_spawnattr_init(&attr);
		sigemptyset(&set);
		sigaddset(&set, SIGTRAP);
		sigaddset(&set, 61);
		posix_spawnattr_setsigdefault(&attr, &set);
		posix_spawnattr_setflags(&attr, way == 1 ? POSIX_SPAWN_SETSIGDEF : 0);
		if (posix_spawn(&pid, self, NULL, way ? &attr : NULL, args, way == 2 ? no_environment : environ))
			return 1;
		guest_print_status("child", guest_wait(pid));
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		raise(signals[i]);
	guest_burn(40);
	guest_print_signals("end");
	return 0;
}

static int child_signals(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("our word is kept from it: %d\n", getenv("COUNTERSINK_IGNORED") == NULL);
	guest_print_signals("child");
	for (int signo = 60; signo < 64; signo++)
		if (signo != 61)
			raise(signo);
	return burn_and_leave(7);
}

/* ---- execs ---- */

static int execs(int argc, char **argv)
{
	char *const args[] = {self, "child", "execed", "8", NULL};
	const char *path = getenv("PATH");

	(void)argc;
	(void)argv;
	for (int i = 0; i < 11; i++) {
		int fd;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			guest_burn(5);
			fd = open(self, O_PATH | O_CLOEXEC);
			switch (i) {
			case 0:
				execve(self, args, environ);
				break;
			case 1:
				execv(self, args);
				break;
			case 2:
				execvp(self, args);
				break;
			case 3:
				execvpe(self, args, no_environment);
				break;
			case 4:
				execl(self, self, "child", "execl", "9", NULL);
				break;
			case 5:
				execlp(self, self, "child", "execlp", "9", NULL);
				break;
			case 6:
				execle(self, self, "child", "execle", "9", NULL, no_environment);
				break;
			case 7:
				fexecve(fd, args, environ);
				break;
			case 8:
				execveat(fd, "", args, no_environment, AT_EMPTY_PATH);
				break;
			case 9:
				syscall(SYS_execve, self, args, no_environment);
				break;
			default:
				unsetenv("PATH");
				execlp("true", "true", NULL);
				execlp("guest_does_not_exist", "x", NULL);
			}
			_exit(errno == ENOENT ? 127 : 126);
		}
		printf("way %d: ", i);
		guest_print_status("child", guest_wait(pid));
	}
	printf("PATH is what it was: %d\n", path == getenv("PATH"));
	return 0;
}

/* Execs that fail, in the process itself, with other threads at work: everything goes on. */
static int failed_execs(int argc, char **argv)
{
	pthread_t busy;

	(void)argc;
	(void)argv;
	signal(SIGTRAP, SIG_IGN);
	pthread_create(&busy, NULL, in_thread, (void *)200);
	for (int i = 0; i < 50; i++) {
		guest_burn(4);
		execl("/does/not/exist", "x", NULL);
		if (errno != ENOENT)
			printf("errno became %s\n", strerror(errno));
		execv("/", (char *const[]){"x", NULL});
		if (errno != EACCES)
			printf("errno became %s\n", strerror(errno));
	}
	pthread_join(busy, NULL);
	raise(SIGTRAP);
	guest_print_signals("end");
	return 0;
}

/* By a thread that is not the first one, with others at work. */
static void *exec_now(void *arg)
{
	(void)arg;
	guest_burn(20);
	execl(self, self, "child", "thread", "10", NULL);
	return NULL;
}

static int exec_from_thread(int argc, char **argv)
{
	pthread_t thread, busy[3];

	(void)argc;
	(void)argv;
	for (int i = 0; i < 3; i++)
		pthread_create(&busy[i], NULL, in_thread, (void *)1000000);
	pthread_create(&thread, NULL, exec_now, NULL);
	pthread_join(thread, NULL);
	return 1;
}

/* system() and popen(), also with an environment that was cleared. */
static int shells(int argc, char **argv)
{
	char command[4200], line[128];
	FILE *pipe;

	(void)argc;
	(void)argv;
	snprintf(command, sizeof(command), "'%s' child shell 11 3>&-", self);
	for (int i = 0; i < 2; i++) {
		guest_print_status("system", system(command));
		pipe = popen(command, "r");
		while (pipe && fgets(line, sizeof(line), pipe))
			fputs(line, stdout);
		guest_print_status("popen", pclose(pipe));
		printf("system(NULL) %d\n", system(NULL) != 0);
		guest_print_status("a command that is not there", system("does-not-exist 2>&-"));
		guest_print_status("one that ends by a signal", system("kill -TERM $$"));
		clearenv();
	}
	printf("environ is empty: %d\n", !environ || !*environ);
	guest_print_signals("end");
	return 0;
}

static void nothing_to_do(int signo)
{
	(void)signo;
}

/* What a shell is to find ignored or blocked; and INT and QUIT, which system() ignores as long as it runs. */
static int shells_and_signals(int argc, char **argv)
{
	static const int ignored[] = {SIGTRAP, SIGIO, SIGPROF, 60, 61, 62, 63},
			 blocked[] = {SIGTRAP, SIGPROF, SIGUSR2, 61, 63};
	char command[4200], line[300];
	sigset_t set;
	FILE *pipe;

	(void)argc;
	(void)argv;
	snprintf(command, sizeof(command), "exec '%s' child_signals", self);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
		sigaddset(&set, blocked[i]);
	for (int way = 0; way < 4; way++) {
		signal(SIGINT, way == 0 ? SIG_IGN : nothing_to_do);
		sigprocmask(way == 1 ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
		if (way == 3)
			clearenv();
		guest_print_status("system", system(command));
		guest_print_status("a signal in between", system("kill -INT $PPID; kill -QUIT $PPID; exit 3"));
		pipe = popen(command, "r");
		while (pipe && fgets(line, sizeof(line), pipe))
			fputs(line, stdout);
		guest_print_status("popen", pclose(pipe));
		guest_print_signals("after");
	}
	guest_burn(30);
	return 0;
}

/* Left behind: a daemon whose parents are gone, waited for by the end of a pipe. */
static int daemons(int argc, char **argv)
{
	int fds[2];
	char byte;
	pid_t pid;

	(void)argc;
	(void)argv;
	if (pipe(fds))
		return 1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork())
			_exit(0);
		if (daemon(0, 1))
			_exit(1);
		close(fds[0]);
		for (int fd = 3; fd < 1024; fd++)
			if (fd != fds[1])
				close(fd);
		umask(0);
		guest_sink = child_work(100);
		_exit(write(fds[1], "x", 1) != 1);
	}
	close(fds[1]);
	guest_print_status("first parent", guest_wait(pid));
	printf("the daemon said %zd\n", read(fds[0], &byte, 1));
	printf("then nothing: %zd\n", read(fds[0], &byte, 1));
	guest_burn(20);
	return 0;
}

/* A copy with all handlers reset, but what is ignored (clone3(2)). Older headers lack the flag. */
#define CLEAR_SIGHAND 0x100000000ULL

static void caught(int signo)
{
	(void)signo;
}

static int clear_handlers(int argc, char **argv)
{
	struct clone_args args = {.flags = CLEAR_SIGHAND, .exit_signal = SIGCHLD};
	const int caught_ones[] = {SIGTRAP, SIGUSR1, SIGPROF, SIGRTMIN};

	(void)argc;
	(void)argv;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(caught_ones) / sizeof(*caught_ones); i++)
			signal(caught_ones[i], round ? SIG_IGN : caught);
		fflush(stdout);
		pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

		if (pid == 0) {
			guest_print_signals("cleared");
			fflush(stdout);
			_exit(burn_and_leave(round));
		}
		guest_print_status("cleared", guest_wait(pid));
		guest_print_signals("parent");
	}
	return burn_and_leave(3);
}

/* A program that asks its parent to trace it, as those do that look for debuggers: by libc, or by number. */
static int traced(int argc, char **argv)
{
	guest_burn(30);
	for (int i = 0; i < 2; i++) {
		long result = argc > 1 && !strcmp(argv[1], "by_number")
				      ? syscall(SYS_ptrace, PTRACE_TRACEME, 0, NULL, NULL)
				      : ptrace(PTRACE_TRACEME, 0, NULL, NULL);

		printf("traced: %ld %s\n", result, result ? strerror(errno) : "");
	}
	fflush(stdout);
	guest_burn(60);
	return 3;
}

/* A tracer is to see only the stops that its child asks for. */
static int tracer(int argc, char **argv)
{
	pid_t pid;
	int status;

	(void)argc;
	(void)argv;
	guest_burn(30);
	for (int i = 0; i < 5; i++) {
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
				_exit(1);
			raise(SIGSTOP);
			burn_and_leave(0);
			raise(SIGUSR1);
			_exit(burn_and_leave(i));
		}
		while (status = guest_wait(pid), WIFSTOPPED(status)) {
			printf("stopped by %d\n", WSTOPSIG(status));
			ptrace(PTRACE_CONT, pid, NULL, NULL);
		}
		guest_print_status("traced", status);
	}
	return 0;
}

/* Children that the kernel reaps, and whose times no parent gets. */
static int unwaited(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 5; i++)
		if (fork() == 0)
			_exit(burn_and_leave(i));
	printf("wait: %d", (int)wait(NULL));
	printf(" %s\n", strerror(errno));
	return burn_and_leave(3);
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {{"child", child},
						{"forks", forks},
						{"fork_from_thread", fork_from_thread},
						{"vforks", vforks},
						{"spawns", spawns},
						{"spawn_ignoring", spawn_ignoring},
						{"child_signals", child_signals},
						{"execs", execs},
						{"failed_execs", failed_execs},
						{"exec_from_thread", exec_from_thread},
						{"shells", shells},
						{"shells_and_signals", shells_and_signals},
						{"daemons", daemons},
						{"clear_handlers", clear_handlers},
						{"traced", traced},
						{"tracer", tracer},
						{"unwaited", unwaited},
						{NULL, NULL}};

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	return guest_main(ways, argc, argv);
}
