/*
 * Calls by which a program closes or takes over numbers of file descriptors: signs that it may hit those of ours that
 * are open for a moment (preload/agent/sampler/fd_guard.h). Each is the program's own call, as it is. Any thread of the
 * program, in its own call, also in its signal handlers; what is added to the calls is async-signal-safe.
 */
#include <errno.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/interpose/sanitizer.h"
#include "preload/agent/lifecycle/finish.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/fd_guard.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/calls_off.h"

static void alarm_guard(void)
{
	/* A vfork child's table is its own. */
	if (atomic_load_explicit(&csink_process.active, memory_order_relaxed) &&
	    !csink_calls_are_off(CSINK_CALLS_LIFE) && !csink_fd_guard_is_alarmed() && !csink_in_vfork_child())
		csink_fd_guard_alarm();
}

CSINK_EXPORT int close(int fd)
{
	int (*real)(int) = REAL(close), result;

	/* The standard numbers are closed to be opened again. */
	if (CSINK_UNLIKELY((unsigned int)fd < 3))
		alarm_guard();
	csink_tsan_enter(__builtin_return_address(0));
	/* There is none while the loader has not relocated us, and runs a resolver of another object's (IFUNC). */
	result = real ? real(fd) : (int)csink_raw_to_libc(csink_rawcall(SYS_close, fd));
	csink_tsan_leave();
	/* The mark of a loop over all numbers. */
	if (CSINK_UNLIKELY(result < 0 && errno == EBADF && fd >= 0)) {
		alarm_guard();
		errno = EBADF;
	}
	return result;
}

CSINK_EXPORT int fclose(FILE *stream)
{
	if (CSINK_UNLIKELY(stream == stderr) && atomic_load(&csink_process.active) && !csink_in_vfork_child())
		csink_finish_keep_stderr();
	return REAL(fclose)(stream);
}

CSINK_EXPORT void closefrom(int low)
{
	alarm_guard();
	REAL(closefrom)(low);
}

CSINK_EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	alarm_guard();
	return REAL(close_range)(first, last, flags);
}

CSINK_EXPORT int dup2(int from, int to)
{
	alarm_guard();
	return REAL(dup2)(from, to);
}

CSINK_EXPORT int dup3(int from, int to, int flags)
{
	alarm_guard();
	return REAL(dup3)(from, to, flags);
}
