/*
 * Included before every source of the launcher and of the library for programs where they are built for other systems
 * than this one (make STATIC=1): what needs a newer glibc than the rest of it is done without. Of a system with an
 * older glibc (scripts/package tar --suite) this also has what its headers lack. The agent has a header of its own for
 * this (preload/agent/old_glibc.h).
 */
#ifndef CSINK_PACKAGING_OLD_GLIBC_H
#define CSINK_PACKAGING_OLD_GLIBC_H

#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* New versions since 2.29 do not set errno. */
#ifdef __x86_64__
__asm__(".symver exp,exp@GLIBC_2.2.5");
__asm__(".symver log,log@GLIBC_2.2.5");
__asm__(".symver pow,pow@GLIBC_2.2.5");
#else
__asm__(".symver exp,exp@GLIBC_2.17");
__asm__(".symver log,log@GLIBC_2.17");
__asm__(".symver pow,pow@GLIBC_2.17");
#endif

/* Since 2.30. */
#define gettid() ((pid_t)syscall(SYS_gettid))
#define tgkill(pid, tid, signo) ((int)syscall(SYS_tgkill, pid, tid, signo))

/* Since 2.33. The older one's numbers begin again at 4 GiB. */
#if !__GLIBC_PREREQ(2, 33)
struct csink_mallinfo {
	size_t uordblks, hblkhd;
};
static inline struct csink_mallinfo csink_mallinfo(void)
{
	struct mallinfo info = mallinfo();

	return (struct csink_mallinfo){.uordblks = (unsigned)info.uordblks, .hblkhd = (unsigned)info.hblkhd};
}
#define mallinfo2 csink_mallinfo
#endif

#endif
