/*
 * An object with the symbols by which CPython 3.12 is recognised; reloads loads and unloads it. When it is unloaded, it
 * prints how often the function was called that must not be called in a handler.
 */
#include <stdio.h>

#define SHOWN __attribute__((visibility("default"), used))

static int nr_calls;

SHOWN const unsigned long Py_Version = 0x030c01f0;
SHOWN char PyCode_Type[408], _PyRuntime[4096];
static char state[512];

SHOWN void *PyGILState_GetThisThreadState(void)
{
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

__attribute__((destructor)) static void end(void)
{
	printf("unloaded, calls: %d\n", nr_calls);
}
