/*
 * The functions that install handlers of signals: passed on, by a tail call, and noted. See handlers.h. Any thread, and
 * in handlers. A handler that the program installs by a system call of its own is not seen: it must not leave a sample
 * by a jump.
 */
#include "preload/alloc/handlers.h"

#include <pthread.h>
#include <signal.h>

#include "preload/objects/block.h"
#include "preload/objects/next.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

typedef void (*handler_fn)(int signo);

/* clang-format off */
#define NEXT(X) \
	X(int, sigaction, (int signo, const struct sigaction *act, struct sigaction *old), (signo, act, old)) \
	X(int, __sigaction, (int signo, const struct sigaction *act, struct sigaction *old), (signo, act, old)) \
	X(handler_fn, signal, (int signo, handler_fn handler), (signo, handler)) \
	X(handler_fn, bsd_signal, (int signo, handler_fn handler), (signo, handler)) \
	X(handler_fn, ssignal, (int signo, handler_fn handler), (signo, handler)) \
	X(handler_fn, sysv_signal, (int signo, handler_fn handler), (signo, handler)) \
	X(handler_fn, __sysv_signal, (int signo, handler_fn handler), (signo, handler)) \
	X(handler_fn, sigset, (int signo, handler_fn handler), (signo, handler)) \
	X(int, pthread_setcanceltype, (int type, int *old), (type, old))
/* clang-format on */
CSINK_NEXT_TABLE(NEXT)

/* libc has each of them. */
#define X(type, name, arguments, values)                                                                               \
	static type first_##name arguments                                                                             \
	{                                                                                                              \
		__atomic_store_n((void **)&next.name, csink_next_function(#name), __ATOMIC_RELAXED);                   \
		return next.name values;                                                                               \
	}
NEXT(X)
#undef X

_Atomic uint32_t csink_handlers_seen;

static void note(uint32_t bits)
{
	if (bits & ~atomic_load_explicit(&csink_handlers_seen, memory_order_relaxed))
		atomic_fetch_or_explicit(&csink_handlers_seen, bits, memory_order_relaxed);
}

static void note_handler(int signo, handler_fn handler, int flags)
{
	bool is_kept_out = signo > 0 && signo <= 64 && !(CSINK_OWN_FAULTS >> (signo - 1) & 1);

	/* sigset() takes SIG_HOLD, too: no handler, and no harm. */
	if (handler == SIG_DFL || handler == SIG_IGN)
		return;
	note((is_kept_out ? CSINK_HANDLERS_INTERRUPT : 0) | (flags & SA_ONSTACK ? CSINK_HANDLERS_ALTERNATE : 0));
}

#define ACTION(name)                                                                                                   \
	CSINK_EXPORT int name(int signo, const struct sigaction *act, struct sigaction *old)                           \
	{                                                                                                              \
		if (act)                                                                                               \
			note_handler(signo, act->sa_handler, act->sa_flags);                                           \
		return next.name(signo, act, old);                                                                     \
	}
#define HANDLER(name)                                                                                                  \
	CSINK_EXPORT handler_fn name(int signo, handler_fn handler);                                                   \
	CSINK_EXPORT handler_fn name(int signo, handler_fn handler)                                                    \
	{                                                                                                              \
		note_handler(signo, handler, 0);                                                                       \
		return next.name(signo, handler);                                                                      \
	}

CSINK_EXPORT int __sigaction(int signo, const struct sigaction *act, struct sigaction *old);
ACTION(sigaction)
ACTION(__sigaction)
HANDLER(signal)
HANDLER(bsd_signal)
HANDLER(ssignal)
HANDLER(sysv_signal)
HANDLER(__sysv_signal)
HANDLER(sigset)

CSINK_EXPORT int pthread_setcanceltype(int type, int *old)
{
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		note(CSINK_HANDLERS_INTERRUPT);
	return next.pthread_setcanceltype(type, old);
}
