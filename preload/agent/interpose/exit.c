/* The calls by which a process ends itself. Where a signal ends it, the recording holds what was committed by then. */
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
