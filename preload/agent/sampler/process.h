/*
 * The one state of the library in a process. Written by the constructor (and again in a forked child) before the first
 * sample, read by every thread and by the handler; what changes later is atomic.
 */
#ifndef CSINK_PROCESS_H
#define CSINK_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/internal/event.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/record/recording.h"

struct csink_thread;

struct csink_process {
	_Atomic uint32_t
		active; /* samples are taken; 0 before the constructor, after a failure, and once all is over */
	pid_t pid;
	struct csink_recording rec;

	uint32_t nr_events;
	/* Constant once the engine is chosen, but for the leaders' rates (csink_engine_slow_down). */
	struct csink_event_spec events[CSINK_MAX_EVENTS];
	/*
	 * The groups of events that are counted together: bit i is event i; the lowest one leads and samples. Each
	 * group has a ring of its own in every thread.
	 */
	uint8_t groups[CSINK_MAX_EVENTS];
	uint32_t nr_groups;
	uint8_t group_of[CSINK_MAX_EVENTS];
	uint8_t kin_of[CSINK_MAX_EVENTS];              /* bit g: group g counts the same on another kind of CPU */
	struct csink_rec_rate rates[CSINK_MAX_EVENTS]; /* as in the header */
	uint8_t time_groups; /* bit g: the samples of group g are given the CPU time that passed */
	uint32_t cpu_event;  /* index of the one that counts CPU time; there always is one */

	uint32_t off_cpu_event; /* index of the time off the CPU; CSINK_MAX_EVENTS: not asked for */

	bool is_traced;    /* it has begun under a debugger */
	int wanted_engine; /* enum csink_engine; CSINK_NR_ENGINES: the best that works */
	bool engine_decided;
	_Atomic enum csink_engine engine; /* of the main thread; another one may have to make do with less */
	_Atomic int signo;                /* the engine's signal, 0: none */
	_Atomic int timer_signo;          /* of the timer engine, 0: not installed */
	uint64_t period_ns;               /* of the timer engine */
	bool stay_on_stack;               /* the handler runs on the interrupted stack: valgrind mistrusts a change */
	int (*install_signal)(int signo); /* makes csink_signal_entry the kernel's handler, unseen by the program */

	void (*walk)(struct csink_walk *walk, const ucontext_t *uc); /* NULL: leaf only */
	uint32_t max_depth;
	bool timeline; /* keep the time of each sample */
};

extern struct csink_process csink_process;

/** Monotonic time in ns. Context: any (the vdso, no syscall). */
uint64_t csink_now_ns(void);

/** CPU time of a clock in ns, 0 if it cannot be read. Context: any (a syscall). */
uint64_t csink_cpu_ns(clockid_t clock);

#endif
