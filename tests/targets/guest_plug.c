/*
 * What a program loads at run time, in any way that the loader offers: does with threads, children and signals what
 * plug-ins do. Built as libguest_plug.so, and with a RUNPATH as libguest_outer.so, which loads the other one by its
 * name alone.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>

#include "guest.h"

enum { NR_CHILDREN = 40, BURN_MS = 60 };

extern char **environ;
static volatile sig_atomic_t ticks;

/* A function of its own, for the profile to name. */
static __attribute__((noinline, noclone)) uint64_t plug_work(uint64_t ms)
{
	__asm__ volatile("");
	return spin(ms, ms * ROUNDS_MS);
}

static void on_tick(int signo)
{
	(void)signo;
	ticks++;
}

static void *thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	guest_sink = plug_work(BURN_MS);
	return arg;
}

/* Each is busy up to the moment of its exec. */
static void run_children(void)
{
	char *const argv[] = {"sh", "-c", "exit 7", NULL};
	int nr_good = 0, status;

	for (int i = 0; i < NR_CHILDREN; i++) {
		pid_t pid;

		if (i & 1) {
			if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
				continue;
		} else {
			pid = fork();
			if (pid == 0) {
				guest_sink = plug_work(1);
				execve("/bin/sh", argv, environ);
				_exit(1);
			}
		}
		status = guest_wait(pid);
		nr_good += WIFEXITED(status) && WEXITSTATUS(status) == 7;
		if (!WIFEXITED(status))
			guest_print_status("plug: child", status);
	}
	printf("plug: %d of %d children as they should be\n", nr_good, NR_CHILDREN);
}

static void own_signals(void)
{
	struct sigaction act = {.sa_handler = on_tick}, old;
	static const int signals[] = {SIGTRAP, SIGPROF, SIGUSR1};

	for (int i = 0; i < 3; i++) {
		sigaction(signals[i], &act, &old);
		raise(signals[i]);
		guest_sink = plug_work(5);
		sigaction(signals[i], &old, NULL);
	}
	printf("plug: %d signals of its own\n", (int)ticks);
}

void plug_run(void);
void plug_run(void)
{
	pthread_t id;
	void *result = NULL;
	int err;

	guest_sink = plug_work(BURN_MS);
	err = pthread_create(&id, NULL, thread, (void *)&ticks);
	if (!err)
		pthread_join(id, &result);
	printf("plug: thread %s\n", result == &ticks ? "ran" : strerror(err));
	own_signals();
	run_children();
	fflush(stdout);
}

/* By its own RUNPATH: no other object's leads there. */
void plug_load(const char *name, int flags);
void plug_load(const char *name, int flags)
{
	void *object = dlopen(name, RTLD_NOW | flags);
	void (*run)(void) = object ? (void (*)(void))dlsym(object, "plug_run") : NULL;

	if (run)
		run();
	else
		printf("plug: %s\n", dlerror());
	fflush(stdout);
}
