/*
 * countersink/timerq.h - a queue of periodic callbacks that may be driven from a signal handler.
 *
 * An event has an id, a function and a lattice of times: the n-th firing (from 0) is due at t0 + start + n * delta, t0
 * being the time of the call that made it, whatever the callbacks cost. Times are nanoseconds on CLOCK_MONOTONIC, so a
 * step of the wall clock changes nothing. Events that are due together are called first-in first-out: in the order in
 * which they were queued, by registration or after their last firing. A firing that comes late stands for all lattice
 * points that have passed since; these are skipped and counted as misses, and the next firing is on the lattice again.
 * With delta 0 an event fires once and is gone.
 *
 * Callbacks are serial: never two at a time, never one inside another. A callback may call everything here except
 * csink_timerq_fini, _destroy and _flush; it may unregister itself. It must return (no longjmp, no pthread_exit), and
 * as it usually runs in a signal handler it may use async-signal-safe functions only. An event counts as registered
 * until its last call has returned.
 *
 * One queue can be driven in two ways:
 *
 * - Polled (the default). The embedder calls csink_timerq_run() from wherever it is, when csink_timerq_next() says that
 *   something is due. No signal, no timer, no EINTR; the callbacks run in that call. When several threads call, one
 *   dispatches and the others return at once.
 *
 * - Armed (CSINK_TIMERQ_ARMED). The queue owns a POSIX timer and a real-time signal, and callbacks run in the handler
 *   of that signal.
 *
 * Armed, which thread: with config.tid 0 the signal is directed to the process, so the kernel takes any thread that
 * does not block it (by preference the one that is running, or the main thread, depending on the kernel); this keeps
 * working when threads come and go. With a tid it is always that thread, and when it ends the queue falls silent.
 * Threads that must not be interrupted block csink_timerq_signal().
 *
 * Armed, how: the handler runs with every signal blocked but those of faults, on the alternate stack if the thread has
 * one, with SA_RESTART (poll, select, nanosleep and their like return EINTR all the same: see signal(7)), and keeps
 * errno. The interrupted code always makes progress: after each dispatch it has at least 50 us, and an eighth of the
 * time that the callbacks took, before the next one.
 *
 * Armed, as a guest: handler and timer are there only while an event is registered. The first registration saves the
 * signal's disposition; the end of the last event puts it back, unless the program has put its own in our place
 * meanwhile. A signal of that number sent by anyone else goes to the saved handler, if there is one, or is dropped.
 * SIGALRM, alarm() and setitimer() are never touched. Nothing survives exec: the kernel deletes the timer and what it
 * has pending.
 *
 * fork: in the child the queue is empty, unblocked, and usable; ids of the parent are unknown there (-ENOENT). With
 * CSINK_TIMERQ_KEEP_IN_CHILD its events go on in the child instead, under the same ids and on the same lattice, from
 * the first point after the fork and with misses 0, unblocked. In a child that is made without fork(3) (clone, _Fork,
 * raw syscalls) this happens at the first call that the child makes on the queue; on kernels before 4.14 such children
 * are not told apart from their parent. A vfork child shares the parent's queue.
 *
 * Every function that can fail returns -errno; each value means one thing for one function, and is listed with it.
 * Context says from where a function may be called: any = any thread and any signal handler, also one that interrupts
 * another call on the same queue; thread = not from a signal handler.
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
	int tid;                 /* armed: the thread to interrupt (gettid()); 0: the process */
	uint64_t (*clock)(void); /* polled: where "now" comes from, async-signal-safe; NULL: CLOCK_MONOTONIC */
};

/**
 * Make a queue in memory of its own (one mmap; pages are used as events need them).
 * @config  NULL is the same as all zero; copied.
 * Returns 0 and sets *q, or
 *   -EINVAL  unknown flag, capacity over the maximum, signal not a real-time one, negative tid, or a clock with
 *            CSINK_TIMERQ_ARMED (or signal or tid without it);
 *   -ENOMEM  no memory;
 *   -EBUSY   the signal belongs to another queue; with signal 0: none is free;
 *   -ESRCH   tid is not a thread of this process;
 *   -EAGAIN  the kernel gives no more timers (RLIMIT_SIGPENDING).
 * Context: thread. Never calls malloc.
 */
int csink_timerq_create(struct csink_timerq **q, const struct csink_timerq_config *config);

/**
 * As fini, and gives the memory back. NULL is ignored. Returns 0 or -EDEADLK (called from one of its callbacks).
 * Context: thread. No other call on the queue may be under way or follow.
 */
int csink_timerq_destroy(struct csink_timerq *q);

/* Bytes that a queue of so many events needs in the caller's memory, at any alignment; as a constant, and as a
 * function. */
#define CSINK_TIMERQ_BYTES(capacity) ((size_t)640 + (size_t)(capacity)*88)
size_t csink_timerq_bytes(uint32_t capacity);

/**
 * Make a queue in the caller's memory, of at least CSINK_TIMERQ_BYTES(capacity) bytes; *q points into it.
 * Returns 0 or as create, and -ENOSPC (too few bytes). Context: thread.
 */
int csink_timerq_init(void *mem, size_t bytes, const struct csink_timerq_config *config, struct csink_timerq **q);

/**
 * End a queue: waits for a callback that is under way in another thread, drops all events, deletes the timer and puts
 * the signal's disposition back. Returns 0 or -EDEADLK (called from one of its callbacks). Context: thread. No other
 * call on the queue may be under way or follow.
 */
int csink_timerq_fini(struct csink_timerq *q);

/**
 * Register an event.
 * @start_ns  its first firing is due that long after this call; 0 is at once.
 * @delta_ns  time between firings; 0: it fires once.
 * Returns its id (> 0, not given again while the event is registered, and as late as possible after), or
 *   -EINVAL  start_ns or delta_ns negative, or no func;
 *   -ERANGE  start_ns or delta_ns over CSINK_TIMERQ_MAX_NS;
 *   -ENOSPC  as many events as the queue has room for; the place of one that was removed while another thread
 *            dispatches is free again when that is done;
 *   -EAGAIN  armed, in a forked child: the kernel gives no more timers.
 * "At once" is: armed, as soon as the signal is taken; polled, at the next run. It never is inside this call's caller's
 * callback. Context: any.
 */
int csink_timerq_setup(struct csink_timerq *q, int64_t start_ns, int64_t delta_ns, void *data, csink_timerq_func func);

/* As setup with start_ns = delta_ns. Context: any. */
int csink_timerq_register(struct csink_timerq *q, int64_t delta_ns, void *data, csink_timerq_func func);

/**
 * Remove an event for good: no call of it begins after this returns. One that is under way (in this thread or another)
 * goes on; csink_timerq_flush waits for it.
 * Returns 0, -EINVAL (id not positive: never one of ours) or -ENOENT (unknown, expired or already removed).
 * Context: any.
 */
int csink_timerq_unregister(struct csink_timerq *q, int id);

/**
 * Hold back all callbacks until as many calls of unblock. Times go on: an event that passes its time meanwhile fires
 * late. A callback under way in another thread goes on; csink_timerq_flush waits for it. Context: any.
 */
void csink_timerq_block(struct csink_timerq *q);

/* Undo one block. Returns 0, or -EPERM (not blocked; nothing changes). Context: any. */
int csink_timerq_unblock(struct csink_timerq *q);

/* 1: no event is registered; else 0. Context: any. */
int csink_timerq_isempty(struct csink_timerq *q);

/**
 * Lattice points that had no call of their own so far: of one event, or with id 0 of all, also those that are gone.
 * Returns the count, -EINVAL (id negative) or -ENOENT (unknown or expired id). Context: any.
 */
int64_t csink_timerq_misses(struct csink_timerq *q, int id);

/**
 * When csink_timerq_run has something to do: ns on the queue's clock; CSINK_TIMERQ_NEVER: no event, or blocked; 0 in a
 * forked child until its first run. For the hot path: a few relaxed loads. Context: any.
 */
uint64_t csink_timerq_next(const struct csink_timerq *q);

/**
 * Call what is due, each event once at most.
 * @now_ns  the time, on the queue's clock; may be older than the present.
 * Returns how many callbacks were called, or -EBUSY (another thread is dispatching, or this is one of its callbacks).
 * Keeps errno; makes no system call in a polled queue (but what reading the clock costs). Context: any.
 */
int csink_timerq_run(struct csink_timerq *q, uint64_t now_ns);

/**
 * Wait until the callback that is under way now, if there is one, has returned: after unregister or block, what it used
 * can be freed. Returns 0 or -EDEADLK (called from one of the queue's callbacks, or from a handler over one).
 * Context: thread.
 */
int csink_timerq_flush(struct csink_timerq *q);

/* The signal of an armed queue; 0 of a polled one. Context: any. */
int csink_timerq_signal(const struct csink_timerq *q);

/* Strict C99 has no struct timespec. */
#if defined(__cplusplus) || defined(_POSIX_C_SOURCE) || __STDC_VERSION__ >= 201112L
/**
 * A timespec as nanoseconds for start_ns and delta_ns. -EINVAL, which setup and register refuse in their turn, if t is
 * NULL, negative, or its tv_nsec is not below 1e9; times over the maximum stay over it. Context: any.
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
