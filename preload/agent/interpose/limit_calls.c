/*
 * Limits that the program sets for itself. Of an address space that is about to be limited the recording takes little
 * more than it has. Any thread of the program, in its own call; not in our handlers.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/calls_off.h"

/* The headers declare the pointers nonnull, but programs pass NULL, and the kernel then fails with EFAULT. */
#pragma GCC diagnostic ignored "-Wnonnull-compare"

static void before_limit(int resource, bool is_limited)
{
	if (!csink_calls_are_off(CSINK_CALLS_LIFE) && resource == RLIMIT_AS && is_limited &&
	    atomic_load(&csink_process.active) && getpid() == csink_process.pid)
		csink_recording_restrict(&csink_own_recording);
}

CSINK_EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	before_limit((int)resource, limit && limit->rlim_cur != RLIM_INFINITY);
	return REAL(setrlimit)(resource, limit);
}

CSINK_EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	before_limit((int)resource, limit && limit->rlim_cur != RLIM64_INFINITY);
	return REAL(setrlimit64)(resource, limit);
}

CSINK_EXPORT int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *old)
{
	if (!pid || pid == csink_process.pid)
		before_limit((int)resource, limit && limit->rlim_cur != RLIM_INFINITY);
	return REAL(prlimit)(pid, resource, limit, old);
}

CSINK_EXPORT int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit, struct rlimit64 *old)
{
	if (!pid || pid == csink_process.pid)
		before_limit((int)resource, limit && limit->rlim_cur != RLIM64_INFINITY);
	return REAL(prlimit64)(pid, resource, limit, old);
}
