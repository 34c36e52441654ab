/*
 * System calls without libc: for code that runs in signal handlers, and where libc's function of that name may be one
 * that the agent interposes. They return the kernel's result, which is -errno on failure, and leave errno alone.
 * Context: any.
 */
#ifndef CSINK_INTERNAL_RAWCALL_H
#define CSINK_INTERNAL_RAWCALL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static inline long csink_rawcall6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long ret __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(ret) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
#else
#error "unsupported architecture"
#endif
	return ret;
}

/** Whether a result is an error. Needed where a valid result may look negative: addresses. Context: any. */
static inline bool csink_raw_failed(long result)
{
	return (unsigned long)result > -4096UL;
}

/** A raw call's result as libc's functions return it: -1 and errno on failure. For interposed calls. Context: any. */
static inline long csink_raw_to_libc(long result)
{
	if (!csink_raw_failed(result))
		return result;
	errno = (int)-result;
	return -1;
}

/* An argument that the call does not have: whatever its register holds. */
static inline long csink_raw_any(void)
{
	long any;

	__asm__ volatile("" : "=r"(any));
	return any;
}

/* csink_rawcall(SYS_name, arguments...): up to six, integers or pointers; all that the call looks at. */
#define csink_rawcall(...)                                                                                             \
	CSINK_RAWCALL_PAD(__VA_ARGS__, csink_raw_any(), csink_raw_any(), csink_raw_any(), csink_raw_any(),             \
			  csink_raw_any(), csink_raw_any(), 0)
#define CSINK_RAWCALL_PAD(number, a, b, c, d, e, f, ...)                                                               \
	csink_rawcall6((long)(number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/** End this process, without anything of libc's. */
static inline __attribute__((noreturn)) void csink_raw_exit(int status)
{
	for (;;)
		csink_rawcall(SYS_exit_group, status);
}

/** stat(2), lstat(2) and fstat(2): 0 or -errno. Context: any. */
static inline int csink_raw_stat(const char *path, struct stat *st)
{
	return (int)csink_rawcall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

static inline int csink_raw_lstat(const char *path, struct stat *st)
{
	return (int)csink_rawcall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static inline int csink_raw_fstat(int fd, struct stat *st)
{
	return (int)csink_rawcall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

/**
 * Try to load eight bytes: -EFAULT where they cannot be read, -EINVAL where they can, another error where the call is
 * refused. rt_sigprocmask(2) copies the set before it refuses to use it in the way -1, which it does not have. A null
 * pointer would be no set, and gives 0: callers know that it is none. Context: any.
 */
static inline long csink_raw_try_load(const void *at)
{
	return csink_rawcall(SYS_rt_sigprocmask, -1L, at, 0L, 8L);
}

#endif
