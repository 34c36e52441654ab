/*
 * Seccomp filters that were there before us: a sandbox, a container or a service manager has put them onto the process,
 * and a process cannot read them. The agent's calls for which such a filter kills are found by making each in a child
 * first.
 *
 * Asked by the launcher, at its start, and by the library, at its own; both then leave out what is deadly. What the
 * library finds in a filter that it sees come is in preload/agent/interpose/confine.c.
 */
#ifndef CSINK_SECCOMP_PROBE_H
#define CSINK_SECCOMP_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"

/* The system calls for which a filter kills, as bits. */
enum csink_deadly {
	CSINK_DEADLY_PERF = 1 << 0,   /* perf_event_open, and what its events need */
	CSINK_DEADLY_TIMER = 1 << 1,  /* timers of a thread's CPU time */
	CSINK_DEADLY_SCAN = 1 << 2,   /* looking at memory that may be gone */
	CSINK_DEADLY_OTHER = 1 << 3,  /* something that nothing can be done without */
	CSINK_DEADLY_LOCK = 1 << 4,   /* unlocking our memory after mlockall(2) */
	CSINK_DEADLY_RIGHTS = 1 << 5, /* giving the run to the user that the program becomes */
	CSINK_DEADLY_ARM = 1 << 6,    /* having programs that cannot be injected sampled from outside */
};

/** Is so much of it deadly that nothing can be profiled? Without counters it takes timers. Context: any. */
static inline bool csink_filters_forbid_all(uint32_t deadly)
{
	const uint32_t engines = CSINK_DEADLY_PERF | CSINK_DEADLY_TIMER;

	return deadly & CSINK_DEADLY_OTHER || (deadly & engines) == engines;
}

/** The calls that are left out, in words; "" for none. Context: any. */
static inline const char *csink_filters_words(uint32_t deadly)
{
	return deadly & CSINK_DEADLY_PERF     ? "perf_event_open"
	       : deadly & CSINK_DEADLY_TIMER  ? "timer_create"
	       : deadly & CSINK_DEADLY_SCAN   ? "process_vm_readv"
	       : deadly & CSINK_DEADLY_LOCK   ? "munlock"
	       : deadly & CSINK_DEADLY_RIGHTS ? "fchown"
	       : deadly & CSINK_DEADLY_ARM    ? "socket"
					      : "";
}

/* A system call that we make in programs, with arguments as harmless as they are typical: EFAULT, EBADF and the like.
 */
struct csink_own_call {
	uint16_t number;
	uint16_t calls;  /* enum csink_calls: what cannot be done without it; 0: made at the start of a process alone */
	int16_t args[5]; /* for csink_own_call_arg(); the sixth is 0 */
};

extern const struct csink_own_call csink_own_calls[] CSINK_HIDDEN;
extern const uint32_t csink_nr_own_calls CSINK_HIDDEN;

/** The name of one of csink_own_calls[]. Context: any. */
const char *csink_own_call_name(const struct csink_own_call *call);

/** Its argument number @at, from 0 to 4. Context: any. */
int32_t csink_own_call_arg(const struct csink_own_call *call, size_t at);

/** The latest children that csink_filters_try made. */
extern int32_t csink_filters_children[8] CSINK_HIDDEN;

/** How many there are, and the first deadly call: the launcher's; 0 in the library. */
extern int csink_nr_filters CSINK_HIDDEN;
extern const char *csink_deadly_name CSINK_HIDDEN;

/** What is deadly here; csink_perf_open and csink_cputimer_open refuse it with -EPERM. Written at the start. */
extern uint32_t csink_deadly_calls CSINK_HIDDEN;

/**
 * Try every call, those that kill too, in children that the program cannot see: no SIGCHLD, no core, nothing for
 * wait(2) without __WALL. @first is set to the name of the first deadly one; it is left alone where there is none.
 * Returns bits of enum csink_deadly, or -errno where there can be no child. Context: init; takes a millisecond.
 */
int csink_filters_try(const char **first);

/** In a program of our own, at its start: try what there is, and leave out what is deadly. Sets csink_nr_filters and
 * csink_deadly_calls. Context: init. */
void csink_filters_begin(void);

#endif
