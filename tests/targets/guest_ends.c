/*
 * Every way for a process to come to its end, with threads at work. What it had done until then is in the profile.
 *   guest_ends WAY [MS]
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "guest.h"

static void at_exit_handler(void)
{
	puts("atexit ran");
	guest_burn(5);
}

static void at_quick_exit_handler(void)
{
	puts("at_quick_exit ran");
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

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "return";
	volatile int *volatile nowhere = (int *)8;
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	atexit(at_exit_handler);
	at_quick_exit(at_quick_exit_handler);
	pthread_create(&thread, NULL, work_on, NULL);
	guest_burn(arg_num(argc, argv, 2, 60));
	if (!strcmp(way, "return"))
		return 7;
	if (!strcmp(way, "exit"))
		exit(7);
	if (!strcmp(way, "_exit"))
		_exit(7);
	if (!strcmp(way, "_Exit"))
		_Exit(7);
	if (!strcmp(way, "exit_group"))
		syscall(SYS_exit_group, 7);
	if (!strcmp(way, "quick_exit"))
		quick_exit(7);
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
	if (!strcmp(way, "abort"))
		abort();
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
	if (!strcmp(way, "oom"))
		out_of_memory();
	return 2;
}
