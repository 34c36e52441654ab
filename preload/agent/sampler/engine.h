/*
 * The engines: how a thread's samples are raised. Chosen once for the process, in the main thread, best first; a thread
 * that cannot have it (fds, locked memory) uses the timer engine.
 */
#ifndef CSINK_ENGINE_H
#define CSINK_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "include/internal/recording_format.h"

struct csink_thread;

/* How the samples of the process are raised. @wanted and @install_signal are set before the first csink_engine_open(),
 * which sets the others in the main thread; alternate_stack may change before and after. Read by every thread and by
 * the handler; what changes later is atomic. */
struct csink_engine_state {
	_Atomic enum csink_engine engine; /* of the main thread; another thread may have the timer engine instead */
	_Atomic int signo;                /* the engine's signal, 0: none */
	_Atomic int timer_signo;          /* of the timer engine, 0: not installed */
	uint64_t period_ns;               /* of the timer engine */
	int wanted;                       /* enum csink_engine; CSINK_NR_ENGINES: the best that works */
	bool is_decided;
	bool stay_on_stack; /* the handler runs on the interrupted stack: valgrind takes a change for an error */
	/*
	 * SA_ONSTACK: our signals come on the alternate stack of a thread that has one. 0: they do not, and the handler
	 * runs on the interrupted stack where that has room. So it is with LeakSanitizer, until the program asks for
	 * the alternate stack itself, as Go must: LeakSanitizer stops threads anywhere, and of one whose stack pointer
	 * is not in its stack, all of the stack counts, also what returned calls have left there, and leaks are missed.
	 */
	_Atomic int alternate_stack;
	int (*install_signal)(int signo); /* makes csink_signal_entry the kernel's handler, unseen by the program */
};

extern struct csink_engine_state csink_engine_state CSINK_HIDDEN;

/** "sigtrap", "signal", "timer", "none". */
const char *csink_engine_name(enum csink_engine engine);

/** Is the program made by Go's own linker? Its runtime executes programs past libc. Context: init. */
bool csink_engine_is_go(void);

/** The engine of a name, -EINVAL if there is none; "auto" is CSINK_NR_ENGINES. Context: any. */
int csink_engine_parse(const char *name);

/**
 * Open the process's engine for the calling thread, whose state is csink_self.
 * The first call, in the main thread, chooses it: csink_engine_state.wanted, or the best that opens here. It sets
 * the rest of csink_engine_state and (where the kernel must be left out) flags of csink_plan.events, and writes the
 * choice with its reason to the recording's header. A later thread that cannot have the process's engine gets the timer
 * engine. Returns 0 or -errno of the last engine tried; thread->engine says what it has. Context: thread.
 */
int csink_engine_open(struct csink_thread *thread);

/** Free what the calling thread's engine holds; after csink_engine_pause, or csink_engine_ends_at_once. Context:
 * thread. */
void csink_engine_close(struct csink_thread *thread);

/**
 * True where nothing needs to be stopped before it is freed: all that is counted is CPU time, which the thread's clock
 * has afterwards, too. Saves a thread that ends a call. Context: thread.
 */
bool csink_engine_ends_at_once(const struct csink_thread *thread);

/**
 * Stop and resume the calling thread's samples; nothing is pending after a pause. Its groups are closed and opened
 * again, which leaves events of the program's alone. Under a filter of the program's own that kills for opening them
 * they stay open, and all events of the task are stopped, unless the program opened some itself. Context: thread.
 */
void csink_engine_pause(struct csink_thread *thread);
void csink_engine_resume(struct csink_thread *thread);

/**
 * Bring the groups' user pages up to date, except for CPU time: see csink_group_page_count. If they are not up to date,
 * the thread sleeps for a moment, so that the kernel writes them.
 * @software  also for the kernel's own events; false: for those of hardware alone.
 * Context: thread.
 */
void csink_engine_refresh(struct csink_thread *thread, bool software);

/** Between these the handler leaves the thread's groups open as they are; see csink_engine_slow_down. Context: thread.
 */
void csink_engine_hold(struct csink_thread *thread);
void csink_engine_release(struct csink_thread *thread);

/**
 * Have the calling thread, and those that start later, sampled less often, since the samples leave it no time: a leader
 * that has its rate still gets a quarter of it, and the thread's groups are opened again. Nothing that they counted is
 * lost, and the recording says from what to what. A thread that is just opening or closing its groups has our signals
 * blocked until that is done.
 * @g          the group to slow down; CSINK_MAX_EVENTS: all of them.
 * @throttled  it is for the kernel's stopping it; false: for the time that it takes.
 * @context    what the handler returns to, a ucontext_t.
 * Returns 0; or -EPERM (seccomp forbids the calls), -EINVAL (no perf engine), -ERANGE (it is sampled rarely already) or
 * -errno of the opening: then the thread is not sampled on. Context: signal.
 */
int csink_engine_slow_down(struct csink_thread *thread, uint32_t g, bool throttled, void *context);

/**
 * Have all events sampled less often from now on, since samples take more than the budget; or more often again, up to
 * what was asked for, since they take far less. Threads that start open their groups, or set their timer, so; the
 * others do in csink_engine_keep_rate(). Context: signal.
 */
void csink_engine_lower_rates(void);
void csink_engine_raise_rates(void);

/**
 * Bring the calling thread to the rates of now, if they are others than its own. Where its groups cannot be opened
 * again it goes on at the rate that it has, which the recording says. Context: signal, after a sample was stored.
 */
void csink_engine_keep_rate(struct csink_thread *thread);

/** Set csink_engine_state.period_ns by the rate of CPU time. Context: signal. */
void csink_engine_set_timer_period(void);

/** Are the calls allowed by which a handler opens groups again? Context: signal. */
bool csink_engine_can_reopen(void);

/** Block our signals in the context that a handler returns to: the thread then takes no samples. Context: signal. */
void csink_engine_block_in(void *context);

/**
 * Where code has come that knows nothing of our SIGTRAP, but may set its handler or exec past us: the calling thread
 * and those that start later are sampled by another signal from now on. Context: thread.
 */
void csink_engine_leave_sigtrap(struct csink_thread *thread, const char *why);

#endif
