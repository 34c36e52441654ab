/*
 * Every way for a process to come to its end, with threads at work. What it had done until then is in the profile.
 *   guest_ends WAY [MS]
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ends.h"
#include "guest.h"

static void work_at_exit(void)
{
	guest_burn(5);
}

static __attribute__((destructor)) void destructor(void)
{
	puts("a destructor ran");
}

static volatile sig_atomic_t stop;

static void *work_on(void *arg)
{
	while (!stop)
		guest_burn(1);
	return arg;
}

static void *exit_from_here(void *arg)
{
	guest_burn(20);
	exit((int)(intptr_t)arg);
}

static void *outlive_main(void *arg)
{
	guest_burn(60);
	puts("the last thread ends");
	return arg;
}

/* The least that makes a debugger's core: its size is limited, that it is written is not. */
static void allow_core(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_CORE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CORE, &limit);
}

static __attribute__((noinline)) int overflow(int n)
{
	volatile char room[4096];

	room[n % 4096] = 1;
	return stop ? n : overflow(n + 1) + room[n % 4096];
}

/* As the kernel's killer comes: in the middle of touching memory. */
static void out_of_memory(void)
{
	size_t bytes = 64 << 20;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fork() == 0) {
		guest_burn(5);
		kill(getppid(), SIGKILL);
		_exit(0);
	}
	for (;;)
		memset(at, 1, bytes);
}

static int put(const char *directory, const char *file, const char *text)
{
	char path[200];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = write(fd, text, strlen(text));
		close(fd);
	}
	return n > 0 ? 0 : -1;
}

/* The kernel's killer itself: a child in a group that may have little memory, by either version's names. */
static int killed_for_memory(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
	char directory[100], number[16];
	int status = -1;
	size_t i = 0;
	pid_t pid;

	for (; i < 2; i++) {
		snprintf(directory, sizeof(directory), "%s/guest-ends-%d", roots[i], (int)getpid());
		if (!mkdir(directory, 0755) &&
		    (!put(directory, "memory.limit_in_bytes", "33554432") || !put(directory, "memory.max", "33554432")))
			break;
		rmdir(directory);
	}
	pid = i < 2 ? fork() : -1;
	if (pid == 0) {
		char *at = mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		snprintf(number, sizeof(number), "%d", (int)getpid());
		if (put(directory, "cgroup.procs", number))
			_exit(3);
		guest_burn(40);
		memset(at, 1, 256 << 20);
		_exit(4);
	}
	if (pid > 0)
		status = guest_wait(pid);
	while (i < 2 && rmdir(directory) && errno == EBUSY)
		usleep(1000);
	guest_print_status("the child", status);
	return 7;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "return";
	volatile int *volatile nowhere = (int *)8;
	pthread_t thread;

	atexit(work_at_exit);
	ends_prepare();
	pthread_create(&thread, NULL, work_on, NULL);
	guest_burn(arg_num(argc, argv, 2, 60));
	if (!strcmp(way, "return"))
		return 7;
	ends_by(way);
	if (!strcmp(way, "thread")) {
		pthread_create(&thread, NULL, exit_from_here, (void *)7);
		pthread_join(thread, NULL);
	}
	if (!strcmp(way, "pthread_exit")) {
		stop = 1;
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, outlive_main, NULL);
		pthread_exit(NULL);
	}
	if (!strcmp(way, "core")) {
		allow_core();
		raise(SIGQUIT);
	}
	if (!strcmp(way, "segv"))
		*nowhere = 1;
	if (!strcmp(way, "overflow"))
		guest_sink = (uint64_t)overflow(1);
	if (!strcmp(way, "trap"))
		raise(SIGTRAP);
	if (!strcmp(way, "rt"))
		raise(62);
	if (!strcmp(way, "term"))
		raise(SIGTERM);
	if (!strcmp(way, "kill"))
		raise(SIGKILL);
	if (!strcmp(way, "cgroup")) {
		stop = 1;
		pthread_join(thread, NULL);
		return killed_for_memory();
	}
	if (!strcmp(way, "oom"))
		out_of_memory();
	return 2;
}
