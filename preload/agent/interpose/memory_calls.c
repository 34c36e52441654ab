/*
 * Calls that map memory and take it away: pages that are known as readable stay so from one sample to the next
 * (kept_pages.h).
 * Any thread of the program, in signal handlers and before our constructor, too: allocators call these.
 */
#include "preload/agent/interpose/memory_calls.h"

#include <stdarg.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/libc.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/unwind/kept_pages.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Not where the program has some of these functions itself: calls that take memory away would not be seen. */
static bool all_are_ours(void)
{
	static int known; /* 0: not yet; any thread may find it out */
	int ours = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!ours) {
		ours = csink_libc_ours_is_first("munmap") && csink_libc_ours_is_first("mprotect") &&
				       csink_libc_ours_is_first("mremap")
			       ? 1
			       : -1;
		__atomic_store_n(&known, ours, __ATOMIC_RELAXED);
	}
	return ours > 0;
}

/* The next definition, or the kernel while none can be looked up. A function may be called with more integers than it
 * has, and with wider ones. */
static long pass_on(enum csink_real which, long number, long a, long b, long c, long d, long e, long f)
{
	long (*real)(long, long, long, long, long, long) = csink_real_or_none(which);

	return real ? real(a, b, c, d, e, f) : csink_raw_to_libc(csink_rawcall(number, a, b, c, d, e, f));
}

#define PASS_ON(name, ...) PASS_ON_PADDED(CSINK_REAL_##name, SYS_##name, __VA_ARGS__, 0, 0, 0, 0)
#define PASS_ON_PADDED(which, number, a, b, c, d, e, f, ...)                                                           \
	pass_on(which, number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Memory that stays there until a call takes it away: no file, which could be cut short, and no large pages. */
static bool is_lasting(int flags)
{
	return (flags & (MAP_TYPE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_GROWSDOWN)) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

static __attribute__((noinline)) void *map(void *at, size_t bytes, int prot, int flags, int fd, off_t offset,
					   enum csink_real which)
{
	bool changes = flags & MAP_FIXED && csink_kept_change(at, bytes, !is_lasting(flags));
	void *got = (void *)PASS_ON_PADDED(which, SYS_mmap, at, bytes, prot, flags, fd, offset, 0);

	csink_kept_changed(changes);
	if (got != MAP_FAILED && is_lasting(flags) && csink_kept_is_on() && all_are_ours())
		csink_kept_add(got, bytes);
	return got;
}

CSINK_EXPORT void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return map(at, bytes, prot, flags, fd, offset, CSINK_REAL_mmap);
}

CSINK_EXPORT void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return map(at, bytes, prot, flags, fd, offset, CSINK_REAL_mmap64);
}

CSINK_EXPORT int munmap(void *at, size_t bytes)
{
	bool changes = csink_kept_change(at, bytes, true);
	int result = (int)PASS_ON(munmap, at, bytes);

	csink_kept_changed(changes);
	return result;
}

CSINK_EXPORT int mprotect(void *at, size_t bytes, int prot)
{
	bool changes = !(prot & PROT_READ) && csink_kept_change(at, bytes, false);
	int result = (int)PASS_ON(mprotect, at, bytes, prot);

	csink_kept_changed(changes);
	return result;
}

/* Neither a handler nor another thread need have the right to read what has a key: it is in no area any more. */
CSINK_EXPORT int pkey_mprotect(void *at, size_t bytes, int prot, int key)
{
	bool changes = csink_kept_change(at, bytes, key > 0);
	int result = (int)PASS_ON(pkey_mprotect, at, bytes, prot, key);

	csink_kept_changed(changes);
	return result;
}

CSINK_EXPORT void *mremap(void *at, size_t old_bytes, size_t bytes, int flags, ...)
{
	bool changes = csink_kept_change(at, old_bytes, true), covers;
	void *to, *got;
	va_list more;

	va_start(more, flags);
	to = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? va_arg(more, void *) : NULL;
	va_end(more);
	covers = to && csink_kept_change(to, bytes, true);
	got = (void *)PASS_ON(mremap, at, old_bytes, bytes, flags, to);
	csink_kept_changed(changes);
	csink_kept_changed(covers);
	return got;
}

CSINK_EXPORT int madvise(void *at, size_t bytes, int advice)
{
	bool changes = advice == MADV_GUARD_INSTALL && csink_kept_change(at, bytes, false);
	int result = (int)PASS_ON(madvise, at, bytes, advice);

	csink_kept_changed(changes);
	return result;
}

/* All that it may take away is given up. */
long csink_memory_call(long number, long a, long b, long c, long d, long e, long f)
{
	bool changes = (number != SYS_mmap || d & MAP_FIXED) && csink_kept_change((void *)a, (size_t)b, true);
	bool covers = number == SYS_mremap && d & MREMAP_FIXED && csink_kept_change((void *)e, (size_t)c, true);
	long result = csink_raw_to_libc(csink_rawcall(number, a, b, c, d, e, f));

	csink_kept_changed(changes);
	csink_kept_changed(covers);
	return result;
}
