/*
 * An object with the symbols by which CPython is recognised; reloads loads it. When it is unloaded, it prints how often
 * the function was called that must not be called in a handler. Variants, by macros (tests/rules.mk):
 *
 *   VERSION=N      Py_Version (3.12.1)
 *   NO_GIL         what a build without a global lock begins its _PyRuntime with
 *   PYPY           the symbol by which PyPy is recognised, too, and none of CPython's
 *   LAZY           the thread's state comes from pthread_getspecific(3), which is bound at its first call; that call is
 *                  made at the start if LIKE_PYTHON_BINDS is set. Counts calls of that function of the object's.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default"), used))

#ifndef VERSION
#define VERSION 0x030c01f0
#endif

static int nr_calls;

#ifdef PYPY
SHOWN void rpython_startup_code(void)
{
}
#else
static char state[512];

SHOWN const unsigned long Py_Version = VERSION;
SHOWN char PyCode_Type[408];
#ifdef NO_GIL
SHOWN unsigned long _PyRuntime[512] = {0x7970677562656478UL /* xdebugpy */, VERSION, 1};
#else
SHOWN char _PyRuntime[4096];
#endif

SHOWN void *PyGILState_GetThisThreadState(void)
{
#ifdef LAZY
	nr_calls++;
	if (pthread_getspecific(0) == state)
		return NULL;
#endif
	return state;
}

/* Of a thread's own variable: the loader may allocate memory for it. */
SHOWN void *_PyThreadState_UncheckedGet(void)
{
	nr_calls++;
	return NULL;
}

SHOWN void _PyEval_EvalFrameDefault(void)
{
}
#endif

__attribute__((constructor)) static void begin(void)
{
	if (getenv("LIKE_PYTHON_BINDS"))
		pthread_getspecific(0);
}

__attribute__((destructor)) static void end(void)
{
	printf("unloaded, calls: %d\n", nr_calls);
}
