/*
 * Names that no code of the agent may call: the compiler refuses them. The Makefile includes this file before every
 * source of preload/agent.
 *
 * - A libc function that the agent interposes: the call would enter the agent's own wrapper, as if the program had made
 *   it. Call the next definition (lifecycle/real.h) or the kernel (include/internal/rawcall.h).
 * - The program's allocator, its stdio streams, and the loader: they take locks, and the interrupted code may hold
 * them.
 *
 * CSINK_ALLOW(name)(...) calls one all the same; the reason is a comment at the call, or at the head of the file.
 */
#ifndef CSINK_POISON_H
#define CSINK_POISON_H

#include <link.h>
#include <string.h>
#include <sys/wait.h>

#include "preload/agent/interposed.h"

/* clang-format off */
#define CSINK_POISONED(X) \
	CSINK_REALS(X) CSINK_YOUNG(X) X(execl) X(execle) X(execlp) X(execv) X(execvp) X(syscall) X(fork) X(vfork) \
	X(malloc) X(calloc) X(realloc) X(reallocarray) X(free) X(strdup) X(strndup) X(asprintf) X(posix_memalign) \
	X(fopen) X(printf) X(fprintf) X(puts) X(fputs) X(perror) \
	X(dlsym) X(dlvsym) X(dlclose) X(dladdr) X(dladdr1) X(dl_iterate_phdr)
/* clang-format on */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* clang takes this attribute on a first declaration only: there the names are not poisoned. */
#ifdef __clang__
#define POISON
#else
#define POISON __attribute__((error("poisoned in the agent: see preload/agent/poison.h")))
#endif
#define X(name)                                                                                                        \
	extern __typeof__(name) csink_allowed_##name __asm__(#name);                                                   \
	extern __typeof__(name) name POISON;
CSINK_POISONED(X)
#undef X
#undef POISON
#pragma GCC diagnostic pop

#define CSINK_ALLOW(name) csink_allowed_##name

#include "preload/agent/old_glibc.h"

#endif
