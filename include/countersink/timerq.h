/*
 * countersink/timerq.h - a queue of periodic callbacks that may be driven from a signal handler.
 *
 * An event has an id, a function and a fixed schedule: the n-th firing (from 0) is due at t0 + start + n * delta, where
 * t0 is the time of registration; delays do not accumulate. Times are nanoseconds on CLOCK_MONOTONIC, so a step of the
 * wall clock has no effect. Events that are due together are called first-in first-out: in the order in which they were
 * queued, by registration or after their last firing. A late firing stands for all scheduled times that have passed;
 * these are skipped and counted as misses, and the next firing is on schedule again. With delta 0 an event fires once
 * and is then removed.
 *
 * Callbacks of a queue are serialized: never two at a time, never nested. A callback may call all functions of this
 * header except csink_timerq_fini, _destroy and _flush; it may unregister its own event. It must return (no longjmp, no
 * pthread_exit), and as it usually runs in a signal handler it may call only async-signal-safe functions. An event is
 * registered until its last call has returned.
 *
 * One queue can be driven in two ways:
 *
 * - Polled (the default). The program calls csink_timerq_run() when the time csink_timerq_next() has come; the
 *   callbacks run in that call. No signal, no timer, no EINTR. If several threads call, one dispatches and the others
 *   return at once.
 *
 * - Armed (CSINK_TIMERQ_ARMED). The queue owns a POSIX timer and a real-time signal, and callbacks run in the handler
 *   of that signal.
 *
 * Armed, which thread: with config.tid 0 the signal is directed to the process, and the kernel delivers it to any
 * thread that does not block it (depending on the kernel the running one or the main thread first). With a tid it is
 * always that thread, and when the thread exits callbacks stop. Threads that must not be interrupted block
 * csink_timerq_signal().
 *
 * Armed, how: the handler runs with all signals blocked except those of faults, on the alternate stack if the thread
 * has one, with SA_RESTART (poll, select, nanosleep and some others still return EINTR: see signal(7)), and preserves
 * errno. The interrupted code always makes progress: between two dispatches it has at least 50 us, and at least an
 * eighth of the time that the callbacks took.
 *
 * Armed, signal disposition: handler and timer exist only while an event is registered. The first registration saves
 * the signal's disposition; the removal of the last event restores it, unless the program has changed it meanwhile. A
 * signal of that number from another source goes to the saved handler, if there is one, else it is dropped. SIGALRM,
 * alarm() and setitimer() are never used. At exec the kernel deletes the timer and its pending signal.
 *
 * fork: in the child the queue is empty, unblocked, and usable; ids of the parent are unknown there (-ENOENT). With
 * CSINK_TIMERQ_KEEP_IN_CHILD the events continue in the child instead, unblocked, with the same ids and schedules, from
 * the first time after the fork and with misses 0. In a child that is created without fork(3) (clone, _Fork, raw system
 * calls) this happens at the first call of the child on the queue; on kernels before 4.14 such children are not
 * recognized. A vfork child shares the parent's queue.
 *
 * Functions that can fail return -errno; each value has one meaning for one function. Context: any = any thread and any
 * signal handler, even one that interrupts another call on the same queue; thread = not in a signal handler.
 */
#ifndef COUNTERSINK_TIMERQ_H
#define COUNTERSINK_TIMERQ_H

#include <countersink/version.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct csink_timerq;

/* id: the event's own; data: as registered. */
typedef void (*csink_timerq_func)(int id, void *data);

#define CSINK_TIMERQ_NEVER UINT64_MAX
#define CSINK_TIMERQ_MAX_NS (INT64_C(1) << 61) /* longest start or delta: 73 years */
#define CSINK_TIMERQ_MAX_EVENTS (1U << 20)     /* largest capacity */

enum csink_timerq_flags {
	CSINK_TIMERQ_ARMED = 1 << 0,         /* driven by a timer signal of its own */
	CSINK_TIMERQ_KEEP_IN_CHILD = 1 << 1, /* events go on in forked children */
};

/* All zero is a polled queue of 256 events. */
struct csink_timerq_config {
	uint32_t capacity;       /* events registered at one time; 0: 256 */
	uint32_t flags;          /* enum csink_timerq_flags */
	int signal;              /* armed: SIGRTMIN to SIGRTMAX; 0: the highest with default disposition */
	int tid;                 /* armed: TID of the thread to interrupt; 0: any of the process */
	uint64_t (*clock)(void); /* polled: the time, ns; async-signal-safe; NULL: CLOCK_MONOTONIC */
};

/**
 * Create a queue in memory of its own (one mmap; pages are used as events need them).
 * @config  copied; NULL: all zero.
 * Returns 0 and sets *q, or
 *   -EINVAL  unknown flag, capacity over the maximum, signal not a real-time one, negative tid, or a clock with
 *            CSINK_TIMERQ_ARMED (or signal or tid without it);
 *   -ENOMEM  no memory;
 *   -EBUSY   the signal is used by another queue; with signal 0: no signal is free;
 *   -ESRCH   tid is not a thread of this process;
 *   -EAGAIN  the kernel creates no more timers (RLIMIT_SIGPENDING).
 * Context: thread. Never calls malloc.
 */
int csink_timerq_create(struct csink_timerq **q, const struct csink_timerq_config *config);

/**
 * End a queue of csink_timerq_create as csink_timerq_fini does, and free its memory. NULL is ignored.
 * Returns 0, or -EDEADLK (called from one of its callbacks). Context: thread. No other call on the queue may be in
 * progress or follow.
 */
int csink_timerq_destroy(struct csink_timerq *q);

/** The bytes that a queue of @capacity events needs in the caller's memory, at any alignment; as a constant, and as a
 * function. Context: any. */
#define CSINK_TIMERQ_BYTES(capacity) ((size_t)640 + (size_t)(capacity)*88)
size_t csink_timerq_bytes(uint32_t capacity);

/**
 * Create a queue in the caller's memory, of at least CSINK_TIMERQ_BYTES(capacity) bytes; *q points into it.
 * Returns 0, -ENOSPC (too few bytes), or an error of csink_timerq_create. Context: thread.
 */
int csink_timerq_init(void *mem, size_t bytes, const struct csink_timerq_config *config, struct csink_timerq **q);

/**
 * End a queue: waits for a callback in progress in another thread, removes all events, deletes the timer and restores
 * the signal's disposition. Returns 0, or -EDEADLK (called from one of its callbacks). Context: thread. No other call
 * on the queue may be in progress or follow.
 */
int csink_timerq_fini(struct csink_timerq *q);

/**
 * Register an event.
 * @start_ns  time from this call to the first firing; 0: at once.
 * @delta_ns  time between firings; 0: it fires once.
 * Returns its id (> 0; unique among registered events, and reused as late as possible), or
 *   -EINVAL  start_ns or delta_ns is negative, or func is NULL;
 *   -ERANGE  start_ns or delta_ns exceeds CSINK_TIMERQ_MAX_NS;
 *   -ENOSPC  the queue is full; the entry of an event that was removed while another thread dispatches is free after
 *            that dispatch;
 *   -EAGAIN  armed, in a forked child: the kernel creates no more timers.
 * "At once" is at the delivery of the signal (armed) or at the next run (polled), never inside a callback that makes
 * this call. Context: any.
 */
int csink_timerq_setup(struct csink_timerq *q, int64_t start_ns, int64_t delta_ns, void *data, csink_timerq_func func);

/** As csink_timerq_setup with start_ns = delta_ns; the same errors. Context: any. */
int csink_timerq_register(struct csink_timerq *q, int64_t delta_ns, void *data, csink_timerq_func func);

/**
 * Remove an event: no call of its function begins after this returns. A call in progress (in this thread or another)
 * continues; csink_timerq_flush waits for it.
 * Returns 0, -EINVAL (id is not positive) or -ENOENT (unknown, expired or already removed).
 * Context: any.
 */
int csink_timerq_unregister(struct csink_timerq *q, int id);

/**
 * Block all callbacks until as many calls of csink_timerq_unblock. Schedules continue: an event that becomes due
 * meanwhile fires late. A callback in progress in another thread continues; csink_timerq_flush waits for it.
 * Context: any.
 */
void csink_timerq_block(struct csink_timerq *q);

/** Undo one csink_timerq_block. Returns 0, or -EPERM (not blocked; nothing changes). Context: any. */
int csink_timerq_unblock(struct csink_timerq *q);

/** Returns 1 if no event is registered, else 0. Context: any. */
int csink_timerq_isempty(struct csink_timerq *q);

/**
 * Count the scheduled times that were skipped so far: of one event, or with id 0 of all events, removed ones included.
 * Returns the count, or -EINVAL (id is negative) or -ENOENT (unknown or expired id). Context: any.
 */
int64_t csink_timerq_misses(struct csink_timerq *q, int id);

/**
 * Returns when the next event is due, ns on the queue's clock; CSINK_TIMERQ_NEVER if there is no event or the queue is
 * blocked; 0 in a forked child until its first run. Cheap: a few relaxed loads. Context: any.
 */
uint64_t csink_timerq_next(const struct csink_timerq *q);

/**
 * Call the functions of all events that are due, each at most once.
 * @now_ns  the time on the queue's clock; may be in the past.
 * Returns the number of calls, or -EBUSY (another thread is dispatching, or this is one of the queue's callbacks).
 * Preserves errno; in a polled queue it makes no system call except for reading the clock. Context: any.
 */
int csink_timerq_run(struct csink_timerq *q, uint64_t now_ns);

/**
 * Wait until the callback in progress, if there is one, has returned: after csink_timerq_unregister or _block its data
 * can then be freed. Returns 0, or -EDEADLK (called from one of the queue's callbacks, or from a signal handler that
 * interrupted one). Context: thread.
 */
int csink_timerq_flush(struct csink_timerq *q);

/** Returns the signal number of an armed queue, 0 of a polled one. Context: any. */
int csink_timerq_signal(const struct csink_timerq *q);

/* Strict C99 has no struct timespec. */
#if defined(__cplusplus) || defined(_POSIX_C_SOURCE) || __STDC_VERSION__ >= 201112L
/**
 * Convert a timespec to nanoseconds for start_ns and delta_ns; times above the maximum stay above it.
 * Returns the nanoseconds, or -EINVAL (t is NULL or negative, or its tv_nsec is not below 1e9), which
 * csink_timerq_setup and _register refuse with the same error. Context: any.
 */
static inline int64_t csink_timerq_ns(const struct timespec *t)
{
	if (!t || t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec > 999999999)
		return -EINVAL;
	if ((int64_t)t->tv_sec > CSINK_TIMERQ_MAX_NS / 1000000000)
		return INT64_MAX;
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
