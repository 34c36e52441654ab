/*
 * lent_state LIBPYTHON: the main thread makes a state for a second one, which runs Python with it for 0.4 seconds; the
 * main thread runs no Python meanwhile.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "guest.h"

static void *python;
static void *state;
static volatile int has_ended;

static void *function(const char *name)
{
	return dlsym(python, name);
}

static __attribute__((noinline, noclone)) void only_native(void)
{
	guest_burn(100);
}

static void *run_python(void *arg)
{
	void (*acquire)(void *) = (void (*)(void *))function("PyEval_AcquireThread");
	void (*release)(void *) = (void (*)(void *))function("PyEval_ReleaseThread");
	int (*run)(const char *, void *) = (int (*)(const char *, void *))function("PyRun_SimpleStringFlags");

	acquire(state);
	run("import time\n"
	    "def lent(n):\n"
	    "    return 0 if n == 0 else 1 + lent(n - 1)\n"
	    "end = time.time() + 0.4\n"
	    "while time.time() < end: lent(50)\n",
	    NULL);
	release(state);
	has_ended = 1;
	return arg;
}

int main(int argc, char **argv)
{
	void (*begin)(int), (*threads)(void), *(*save)(void), *(*head)(void), *(*make)(void *);
	pthread_t thread;

	python = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (!python)
		return 1;
	begin = (void (*)(int))function("Py_InitializeEx");
	save = (void *(*)(void))function("PyEval_SaveThread");
	head = (void *(*)(void))function("PyInterpreterState_Head");
	make = (void *(*)(void *))function("PyThreadState_New");
	threads = (void (*)(void))function("PyEval_InitThreads"); /* 3.6 has no GIL before it */
	begin(0);
	if (threads)
		threads();
	state = make(head());
	save();
	if (pthread_create(&thread, NULL, run_python, NULL))
		return 1;
	while (!has_ended)
		only_native();
	pthread_join(thread, NULL);
	_exit(3);
}
