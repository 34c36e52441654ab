/*
 * Programs that leave where they came from: another root, other namespaces, fewer rights, no parent. What they burn
 * there is child_work().
 *   guest_rights WAY [DIRECTORY]
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "guest.h"

enum { UNPRIVILEGED_ID = 65534 };

static char self[4096];

static __attribute__((noinline)) uint64_t child_work(uint64_t ms)
{
	__asm__ volatile("");
	return spin(ms, ms * ROUNDS_MS);
}

static int child(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	guest_sink = child_work(40);
	guest_print_fds("child");
	return 5;
}

static void burn_in_fork(const char *who)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		guest_sink = child_work(40);
		_exit(4);
	}
	guest_print_status(who, guest_wait(pid));
}

static void burn_in_exec(const char *who)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execl(self, self, "child", NULL);
		_exit(127);
	}
	guest_print_status(who, guest_wait(pid));
}

/* A server: root makes a worker, which gives up its rights for good, and has children. */
static int drop(int argc, char **argv)
{
	pid_t pid;

	(void)argc;
	(void)argv;
	guest_burn(20);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) || setresgid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID) ||
		    setresuid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID))
			_exit(1);
		printf("root again: %d\n", setuid(0) == 0);
		guest_sink = child_work(30);
		burn_in_fork("fork");
		burn_in_exec("exec");
		guest_print_fds("worker");
		fflush(stdout);
		_exit(6);
	}
	guest_print_status("worker", guest_wait(pid));
	return 0;
}

/* For a while only. */
static int effective(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (seteuid(UNPRIVILEGED_ID))
		return 1;
	burn_in_fork("fork");
	burn_in_exec("exec");
	if (seteuid(0))
		return 1;
	guest_burn(30);
	burn_in_fork("fork as root");
	return 0;
}

static int other_root(int argc, char **argv)
{
	char directory[] = "root-XXXXXX";

	(void)argc;
	(void)argv;
	guest_burn(20);
	if (!mkdtemp(directory) || chroot(directory) || chdir("/"))
		return 1;
	guest_burn(60);
	burn_in_fork("fork");
	burn_in_exec("exec of what is not there");
	guest_print_fds("end");
	return 0;
}

static int other_directory(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (chdir("/"))
		return 1;
	burn_in_exec("exec");
	guest_burn(20);
	return 0;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static int user_namespace(int argc, char **argv)
{
	char map[64];

	(void)argc;
	(void)argv;
	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)geteuid());
	if (unshare(CLONE_NEWUSER)) {
		perror("unshare");
		return 1;
	}
	burn_in_fork("unmapped");
	printf("map: %d\n", write_text("/proc/self/uid_map", map));
	printf("root: %d\n", geteuid() == 0);
	burn_in_fork("fork");
	burn_in_exec("exec");
	guest_burn(20);
	return 0;
}

/* The first child is process 1 there; what it starts has small numbers. */
static int pid_namespace(int argc, char **argv)
{
	pid_t pid;

	(void)argc;
	(void)argv;
	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWPID : CLONE_NEWPID)) {
		perror("unshare");
		return 1;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		printf("I am %d\n", (int)getpid());
		burn_in_fork("fork");
		burn_in_exec("exec");
		fflush(stdout);
		_exit(3);
	}
	guest_print_status("first process", guest_wait(pid));
	guest_burn(20);
	return 0;
}

static void *in_thread(void *arg)
{
	return (void *)(uintptr_t)guest_work((uintptr_t)arg);
}

/* As programs with secrets do: no other process may look into it, not even by /proc. */
static int not_dumpable(int argc, char **argv)
{
	pthread_t thread;

	(void)argc;
	(void)argv;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	guest_burn(30);
	pthread_create(&thread, NULL, in_thread, (void *)60);
	pthread_join(thread, NULL);
	burn_in_fork("fork");
	burn_in_exec("exec");
	printf("dumpable: %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	return 0;
}

/* Goes on when its launcher is gone: until whoever looks makes a file, or a minute has passed. */
static int daemon_stays(int argc, char **argv)
{
	const char *sign = argc > 1 ? argv[1] : "sign";
	char path[4096], directory[4096];

	if (!getcwd(directory, sizeof(directory)))
		return 1;
	snprintf(path, sizeof(path), "%.4000s/%.90s", directory, sign);
	guest_burn(30);
	if (fork())
		_exit(9);
	setsid();
	if (daemon(1, 0))
		_exit(1);
	/* At least 120 ms of work: a start under load costs some 20 ms, and most of the samples are to be of this. */
	for (int i = 0; i < 6000 && (i < 60 || access(path, F_OK)); i++) {
		guest_sink = child_work(2);
		usleep(8000);
	}
	exit(0);
}

/* Little of everything that can be limited. */
static int limits(int argc, char **argv)
{
	static const struct {
		const char *name;
		int what;
		rlim_t value;
	} all[] = {{"memory", RLIMIT_AS, 64 << 20},
		   {"file", RLIMIT_FSIZE, 100000},
		   {"locked", RLIMIT_MEMLOCK, 0},
		   {"pending", RLIMIT_SIGPENDING, 0},
		   {"stack", RLIMIT_STACK, 256 << 10}};
	pthread_t thread;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			setrlimit(all[i].what, &(struct rlimit){all[i].value, all[i].value});
	guest_burn(20);
	pthread_create(&thread, NULL, in_thread, (void *)40);
	pthread_join(thread, NULL);
	burn_in_fork("fork");
	burn_in_exec("exec");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {{"child", child},
						{"drop", drop},
						{"effective", effective},
						{"other_root", other_root},
						{"other_directory", other_directory},
						{"user_namespace", user_namespace},
						{"pid_namespace", pid_namespace},
						{"not_dumpable", not_dumpable},
						{"daemon_stays", daemon_stays},
						{"limits", limits},
						{NULL, NULL}};

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	return guest_main(ways, argc, argv);
}
