/*
 * One thread's state: its counters, where it writes, its stack. Made by the thread that creates it (or the
 * constructor), then used by the thread itself and its handler only; the list of them all is read by flushes.
 *
 * States live in slabs of private memory, never in TLS: TLS is carved out of small stacks. One TLS pointer leads there.
 */
#ifndef CSINK_THREAD_H
#define CSINK_THREAD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "preload/agent/interp/interp.h"
#include "preload/agent/sampler/group.h"
#include "preload/agent/sampler/stuck.h"
#include "preload/agent/sampler/timeline.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/record/recording.h"
#include "preload/core/record/stacks.h"

/* The stack of the handler, where it does not stay on the interrupted one: that one may be a small alternate one, a
 * coroutine's, or nearly full.
 */
enum { CSINK_HANDLER_STACK = 32 * 1024 };

/* Of it, from the bottom: what longjmp needs now and then, a thread that opens counters for this one, the handler. */
enum { CSINK_JUMP_STACK = 4096, CSINK_OPENER_STACK = 12 * 1024 };

/* Why our signals were blocked while a thread changed its groups. */
enum csink_held {
	CSINK_HELD_SAMPLES = 1, /* samples left the thread no time for anything else */
	CSINK_HELD_PENDING = 2, /* the kernel queues the program's signals of our numbers */
};

/* Our signals in this thread, as the program sees them. preload/agent/lifecycle/hidden_masks.c has the rules. */
struct csink_hidden {
	uint64_t signals; /* kept out of its sight here (bit signo - 1); the kernel never blocks them for long, but for
			     queued */
	uint64_t blocked; /* those that it has blocked, as of its last call */
	/* Real-time ones that the kernel does block, since it keeps some for the program; the thread takes no samples.
	 */
	uint64_t queued;
	uint64_t waiting;     /* signals that it waits for in sigwait(3) or a similar call */
	uint64_t swap;        /* the mask of the sigsuspend(2), ppoll(2) or similar call that it is in */
	bool swapped;         /* it is in such a call */
	bool ended_by_sample; /* a sample ended that call, which is repeated */
	bool deferred;        /* one is pending in a forked child that has not begun, and blocked by the kernel */
	int8_t anchor;        /* whether the anchor signal was blocked at that call; CSINK_ANCHOR_ANY: of no interest */
};
#define CSINK_ANCHOR_ANY 2

struct csink_thread {
	/* what each sample touches */
	struct csink_group groups[CSINK_MAX_EVENTS]; /* csink_plan.groups */
	uint64_t last[CSINK_MAX_EVENTS];             /* counts at the last sample, as counted */
	uint64_t last_enabled_ns[CSINK_MAX_EVENTS], last_running_ns[CSINK_MAX_EVENTS]; /* of each group */
	uint64_t last_waited_ns[CSINK_MAX_EVENTS]; /* by a group and its counterparts for other kinds of CPU: at the
						      first of them */
	struct csink_rec_thread *entry;
	struct csink_row last_row;
	struct csink_rec_row
		*_Atomic remainder; /* what another thread gave it at the end of an image that did not end */
	struct csink_writer writer;
	struct csink_timeline timeline;
	struct csink_stack_bounds stack;
	csink_ref_t ref;
	struct csink_group switches;      /* the thread's own context switches, where time off the CPU is asked for */
	uint64_t off_wall_ns, off_cpu_ns; /* clocks at the last sample of them */
	struct csink_row off_row;         /* and its row */
	enum csink_engine engine;
	struct csink_module_memo leaf_module;
	struct csink_stuck stuck;
	uint64_t governed_ns; /* of its CPU time, what csink_housekeeping_account() knows */
	/* The thread itself is opening or closing its groups: its handler must not. */
	_Atomic uint8_t engine_busy;
	_Atomic uint8_t is_held; /* meanwhile our signals were blocked: enum csink_held */
	bool is_armed;           /* it has events for what it or its children execute (lifecycle/arm_thread.h) */
	bool program_has_events; /* the program called perf_event_open(2) in this thread */
	bool keeps_rate;         /* its groups could not be opened again at the rate of now */
	bool is_stopped_open;    /* csink_engine_pause stopped its groups and left them open */
	bool is_in_handler;      /* which runs on the interrupted stack */
	uint16_t phase;
	bool is_paused;          /* by the program: csink_phase_now() */
	uint16_t phases[15];     /* that the current one is in */
	uint32_t nr_phases;      /* may be more than there is room for */
	_Atomic uint8_t is_mute; /* csink_thread_mute */
	_Atomic uint8_t state;   /* enum csink_thread_state */

	/* the rest */
	timer_t timer;
	uint64_t timer_period_ns; /* that it has; csink_engine_state.period_ns is the one that it is to have */
	uint64_t cpu_base_ns;     /* the thread's CPU clock when the counters were opened */
	/* The entry of the thread that had this state before, and what this one found there if it goes on with it;
	 * NULL: there is none to go on with. */
	struct csink_rec_thread *former;
	char former_name[16];
	uint32_t former_flags; /* CSINK_THREAD_RENAMED */
	struct csink_hidden hidden;
	int32_t tid;
	int32_t forked_by;         /* of a forked child's first thread: the TID of the one that forked it; 0 */
	struct csink_thread *next; /* all states ever made; never unlinked */
	struct csink_thread *next_free;
	void *(*start)(void *);
	void *arg;
	size_t stack_bytes;
	uint64_t inherited_mask; /* of our signals, those that the program has blocked as the thread starts */
	struct csink_alloc_counts *_Atomic allocations; /* in its own memory, while it lives; NULL: none yet */
	/* Short stacks touch the ends of these: in this order, few pages. */
	struct csink_walk_memo walk_memo; /* of walks into frames */
	uint64_t frames[CSINK_MAX_DEPTH];
	struct csink_interp_room *interp; /* buffers of csink_interp_merge(); NULL before its first use */
	struct csink_stack_memo memo;
	_Alignas(64) char handler_stack[CSINK_HANDLER_STACK]; /* only what is touched is ever real memory */
	_Alignas(64) char apart_stack[CSINK_HANDLER_STACK];   /* likewise: to store what preload objects measure */
};

enum csink_thread_state {
	CSINK_THREAD_FREE,
	CSINK_THREAD_NEW, /* handed out, its thread has not started */
	CSINK_THREAD_LIVE,
};

/* The calling thread's state; NULL: not known to us. */
extern __thread struct csink_thread *csink_self;

/** The calling thread's state, proved to be one: for signals that may arrive in threads whose TLS is not libc's. NULL:
 * none. Context: signal. */
struct csink_thread *csink_thread_checked(void);

/** The newest of all states ever made; the others follow by ->next. Context: signal. */
struct csink_thread *csink_threads_first(void);

/** A stack for opening the calling thread's counters elsewhere, unless there is no other thread yet. Context: thread,
 * signal. */
void csink_thread_opener_stack(struct csink_thread *thread, struct csink_group_open *open);

/** Take a state, NEW. NULL when no memory is left. Context: thread. */
struct csink_thread *csink_thread_get(void);

/** Give a state back. Context: thread. */
void csink_thread_put(struct csink_thread *thread);

/** Make @thread, NEW, the calling thread's state: signals of the program that arrive in it before csink_thread_start()
 * are treated by its masks. Context: thread. */
void csink_thread_enter(struct csink_thread *thread);

/**
 * Begin with the calling thread: entry in the recording, counters opened, csink_self set.
 * @flags  enum csink_thread_flags for the entry.
 * On failure of the engine the next one is tried; a thread that nothing can sample is marked so and counted.
 * Context: thread.
 */
void csink_thread_start(struct csink_thread *thread, uint32_t flags);

/** Note the name that the calling thread has by now: most name themselves after their start. Context: thread, signal.
 */
void csink_thread_name(struct csink_thread *thread);

/** Stop the calling thread's counters for good, flush its last partial period, end its entry. Context: thread. */
void csink_thread_stop(struct csink_thread *thread);

/** Free the state of the calling thread, which has been stopped. Context: thread. */
void csink_thread_end(struct csink_thread *thread);

/**
 * Attribute what was counted since the last sample. The thread goes on being sampled.
 * Context: thread, by the thread itself, with its samples stopped (csink_thread_pause) or dropped (csink_thread_mute),
 * or all signals blocked.
 */
void csink_thread_flush(struct csink_thread *thread);

/** Stop and resume the calling thread's own samples. After a stop nothing of ours is pending. Context: thread. */
void csink_thread_pause(struct csink_thread *thread);
/* Not while the kernel blocks its signal for the program (hidden.queued). */
void csink_thread_resume(struct csink_thread *thread);

/** Whether the thread's samples come by this signal, which is not SIGTRAP. Context: signal. */
bool csink_thread_samples_by(const struct csink_thread *thread, int signo);

/**
 * Samples of the calling thread that come while it is mute are dropped; what they counted is the next one's. Enough for
 * a flush, and for writing what the handler writes. Context: thread.
 */
void csink_thread_mute(struct csink_thread *thread, bool mute);

/** Attribute the CPU time of every other live thread up to now, from their clocks. Context: thread, at the end. */
void csink_threads_flush_others(void);

/** Take back what the former gave: the threads go on and count it themselves. A thread that takes a sample does it for
 * itself. Context: signal (one thread), thread (all). */
void csink_thread_unflush(struct csink_thread *thread);
void csink_threads_unflush_others(void);

/** In a forked child: every state but the caller's is free again. Context: init. */
void csink_threads_reset(void);

/** CPU time of all threads that are known, up to their last flush, and how many there were. Context: thread. */
uint64_t csink_threads_cpu_ns(uint32_t *nr_threads);

/* sample.c */

/** The handler of every engine's signal. Context: signal, with all signals blocked. */
void csink_sample_handler(int signo, siginfo_t *info, void *context);

/** True if a signal that our handler got was raised by our engine and not by the program or its debugger. */
bool csink_sample_is_ours(int signo, const siginfo_t *info);

/** Store a sample of something that the library counts itself. Context: thread, mute. */
struct csink_row csink_sample_apart(struct csink_thread *thread, const ucontext_t *uc, const uint64_t *weights);

/** Store weights that belong to no sample: the last, partial period. Context: thread. */
void csink_sample_remainder(struct csink_thread *thread, const uint64_t *weights);

/* weigh.c */

/**
 * What each event of a group counted since its last sample; scaled where the kernel had to share the counters out. CPU
 * time that no leader counts is the time that the group was enabled, which passes only while the thread runs, and is
 * right also where the group had to wait for its counters.
 * @weights  of all events of the process; set.
 * Context: signal.
 */
void csink_sample_weigh(struct csink_thread *thread, uint32_t g, const struct csink_group_read *read,
			uint64_t *weights);

#endif
