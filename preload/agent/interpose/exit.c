/* The ways a process can end by its own will. What ends it from outside finds the recording committed as it stands. */
#include <stdlib.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/image.h"
#include "preload/agent/lifecycle/real.h"

/* After the program's own atexit handlers and destructors: a preloaded library is finished last. */
__attribute__((destructor)) static void at_exit(void)
{
	csink_image_end();
}

CSINK_EXPORT __attribute__((noreturn)) void _exit(int status)
{
	csink_image_end();
	REAL(_exit)(status);
	__builtin_unreachable();
}

CSINK_EXPORT __attribute__((noreturn)) void _Exit(int status)
{
	csink_image_end();
	REAL(_Exit)(status);
	__builtin_unreachable();
}

CSINK_EXPORT __attribute__((noreturn)) void quick_exit(int status)
{
	csink_image_end();
	REAL(quick_exit)(status);
	__builtin_unreachable();
}
