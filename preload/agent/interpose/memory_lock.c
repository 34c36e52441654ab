/*
 * mlockall(2). It locks all that is mapped, the library's own memory included, which the program would find in its
 * VmLck and in its RLIMIT_MEMLOCK. So ours is unlocked again: recording, tables, states of threads, and the library's
 * segments. The kernel itself leaves the counters' rings out.
 *
 * Locks end with fork(2) and exec(2): a child's recording is not locked.
 */
#include "preload/agent/interpose/memory_lock.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/interp/interp.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/stacks.h"

/* Where the library begins and ends, by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static void unlock_ours(int flags)
{
	uintptr_t page = getauxval(AT_PAGESZ), from = (uintptr_t)__ehdr_start & ~(page - 1);

	/* First the memory that will be mapped from now on. */
	csink_private_unlock(flags & MCL_FUTURE);
	csink_recording_unlock(&csink_own_recording);
	csink_stacks_unlock();
	csink_code_ids_unlock();
	csink_rawcall(SYS_munlock, from, CSINK_ALIGN_UP((uintptr_t)_end, page) - from);
}

/* A vfork child shares our memory, and with it what is locked: its call is as the parent's own. */
static bool has_memory(void)
{
	return csink_own_recording.header && !csink_calls_are_off(CSINK_CALLS_LOCK | CSINK_CALLS_LIFE);
}

long csink_memory_lock(int flags)
{
	long result = csink_rawcall(SYS_mlockall, flags);

	if (result == 0 && has_memory())
		unlock_ours(flags);
	return csink_raw_to_libc(result);
}

CSINK_EXPORT int mlockall(int flags)
{
	/* The mlockall of a sanitizer, if there is one, does nothing. */
	int result = REAL(mlockall)(flags);

	if (result == 0 && has_memory())
		unlock_ours(flags);
	return result;
}
