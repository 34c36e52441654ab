/*
 * Functions that glibc 2.34 moved from libdl and libpthread into libc. A reference to one means the newest version,
 * GLIBC_2.34, and the linker demands it of every program that we are preloaded into, also if the reference is weak: an
 * older loader then refuses such a program its start. So the references here mean the versions that these functions
 * have always had, and that libc still defines. They are weak: with an older glibc a function is NULL where the program
 * did not load libdl or libpthread at its start, and each caller asks. What is younger is looked up by its name
 * (lifecycle/real.h, unwind/find_object.h). tests/cli/api.t has the versions that the agent may need.
 *
 * The Makefile includes this file before every source of preload/agent, by poison.h.
 */
#ifndef CSINK_OLD_GLIBC_H
#define CSINK_OLD_GLIBC_H

#include <dlfcn.h>
#include <pthread.h>

#if defined(__x86_64__)
#define CSINK_SINCE(x86_64) x86_64
#elif defined(__aarch64__)
#define CSINK_SINCE(x86_64) "GLIBC_2.17"
#endif

/* X(the name here, the function, since when) */
/* clang-format off */
#define CSINK_OLD_GLIBC(X) \
	X(csink_allowed_dlsym, dlsym, "GLIBC_2.2.5") \
	X(csink_allowed_dlvsym, dlvsym, "GLIBC_2.2.5") \
	X(csink_allowed_dlclose, dlclose, "GLIBC_2.2.5") \
	X(csink_allowed_dladdr1, dladdr1, "GLIBC_2.3.3") \
	X(dlerror, dlerror, "GLIBC_2.2.5") \
	X(pthread_getspecific, pthread_getspecific, "GLIBC_2.2.5") \
	X(pthread_attr_getstacksize, pthread_attr_getstacksize, "GLIBC_2.2.5") \
	X(__pthread_register_cancel, __pthread_register_cancel, "GLIBC_2.3.3") \
	X(__pthread_unregister_cancel, __pthread_unregister_cancel, "GLIBC_2.3.3") \
	X(__pthread_unwind_next, __pthread_unwind_next, "GLIBC_2.3.3")
/* clang-format on */

#define X(here, name, since)                                                                                           \
	extern __typeof__(here) here __attribute__((weak));                                                            \
	__asm__(".symver " #name "," #name "@" CSINK_SINCE(since));
CSINK_OLD_GLIBC(X)
#undef X

/** Did the program load libpthread at its start? Since glibc 2.34 it has it in libc. Context: any. */
#define CSINK_HAS_LIBPTHREAD (&__pthread_register_cancel != NULL)

#endif
