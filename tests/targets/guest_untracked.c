/*
 * Untracked threads: created by clone(2) itself, or before the library was loaded.
 *   guest_untracked raw | ended | late LIBRARY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "guest.h"

static _Atomic int nr_running;
static volatile sig_atomic_t stop;

static __attribute__((noinline)) uint64_t untracked_work(uint64_t ms)
{
	__asm__ volatile("");
	return spin(ms, ms * ROUNDS_MS);
}

/* On another thread's TLS: nothing of libc's may be used. */
static int raw_thread(void *arg)
{
	char name[] = "raw-thread";

	guest_sink = untracked_work((uint64_t)(uintptr_t)arg);
	__asm__ volatile("" ::"r"(name) : "memory");
	nr_running--;
	while (!stop)
		;
#ifdef __x86_64__
	__asm__ volatile("syscall" ::"a"((long)SYS_exit), "D"(0L) : "rcx", "r11", "memory");
#else
	register long number __asm__("x8") = SYS_exit;
	register long status __asm__("x0") = 0;

	__asm__ volatile("svc #0" ::"r"(number), "r"(status) : "memory");
#endif
	return 0;
}

/* Returns its TID. */
static int start_raw(uint64_t ms)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int tid;

	nr_running++;
	tid = clone(raw_thread, stack + 65536,
		    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		    (void *)(uintptr_t)ms);
	if (tid < 0)
		exit(2);
	return tid;
}

static int raw(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	start_raw(40);
	start_raw(40);
	guest_burn(40);
	while (nr_running)
		sched_yield();
	puts("two threads go on to the end");
	return 5;
}

static int ended(int argc, char **argv)
{
	int tid;

	(void)argc;
	(void)argv;
	stop = 1;
	tid = start_raw(60);
	guest_burn(40);
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		sched_yield();
	puts("the thread has ended");
	return 5;
}

static void *work_on(void *arg)
{
	prctl(PR_SET_NAME, "older", 0, 0, 0);
	nr_running++;
	while (!stop)
		guest_sink = untracked_work(1);
	return arg;
}

static int late(int argc, char **argv)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work_on, NULL);
	while (nr_running < 2)
		sched_yield();
	if (argc > 1) {
		setenv("LD_PRELOAD", argv[1], 1);
		if (!dlopen(argv[1], RTLD_NOW))
			fprintf(stderr, "%s\n", dlerror());
	}
	guest_burn(60);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("the end");
	return 5;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {{"raw", raw}, {"ended", ended}, {"late", late}, {NULL, NULL}};

	return guest_main(ways, argc, argv);
}
