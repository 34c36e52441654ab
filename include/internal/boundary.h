/*
 * Where injected processes start programs that cannot be injected: the contract of launcher and library.
 *
 * Such a program is sampled by events that it inherits. The process that starts it opens them, before the exec, on the
 * thread that executes (which becomes the program, or whose child does), off until an exec, and one for each CPU that
 * it or its children may ever bind themselves to; it sends their descriptors to the launcher, whose rings they are to
 * write to. Below that the kernel inherits.
 *
 * Two files in the run directory: what to open, and the socket (SOCK_SEQPACKET) to send it to. Neither is there where
 * nothing is to be sampled in this way.
 */
#ifndef CSINK_INTERNAL_BOUNDARY_H
#define CSINK_INTERNAL_BOUNDARY_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "include/internal/recording_format.h"

#define CSINK_BOUNDARY_FILE "boundary"
#define CSINK_BOUNDARY_SOCKET "boundary.socket"
#define CSINK_BOUNDARY_MAGIC 0x3179726164627363ULL

/* How long a process waits at most for the answer, which the launcher sends when it has connected the events. */
#define CSINK_BOUNDARY_WAIT_MS 50

#define CSINK_BOUNDARY_MAX_CPUS 8192

/* The first file. The launcher writes it, and clears do_not_wait when it answers; a process that got no answer sets
 * that. */
struct csink_boundary_file {
	uint64_t magic;
	uint32_t bytes; /* of this structure */
	uint32_t do_not_wait;
	uint32_t needs_anchor; /* an event that is not inherited must stay open in a thread that stays armed */
	uint32_t nr_events;
	uint64_t cpus[CSINK_BOUNDARY_MAX_CPUS / 64]; /* those of the launcher's cpuset */
	struct csink_boundary_event {
		struct perf_event_attr attr;
		uint32_t number; /* the launcher's, to be sent with the descriptor */
		uint32_t leads;  /* a group; else it is in that of the one before */
	} events[CSINK_MAX_EVENTS];
};

/*
 * After it in the file: slots by TID modulo their number, tid 0 if free. Each is a thread on which the launcher has
 * opened events, since its children executed many such programs. Its later children inherit these, and ask for none.
 */
#define CSINK_BOUNDARY_PARENTS 64
struct csink_boundary_parent {
	int32_t tid;
	uint32_t reserved;
	uint64_t armed_ns; /* CLOCK_MONOTONIC */
};

/* Where the one of a TID is in the file. */
static inline uint64_t csink_boundary_parent_at(int32_t tid)
{
	return sizeof(struct csink_boundary_file) +
	       (uint32_t)tid % CSINK_BOUNDARY_PARENTS * sizeof(struct csink_boundary_parent);
}

#define CSINK_BOUNDARY_BATCH 16
#define CSINK_BOUNDARY_ANCHOR UINT16_MAX /* in place of an event's number: to be kept open, and nothing else */

enum csink_boundary_kind {
	CSINK_BOUNDARY_SOME = 1, /* events; more come */
	CSINK_BOUNDARY_LAST,     /* events; that is all: an answer of one byte is expected */
	CSINK_BOUNDARY_WITHDRAW, /* the exec failed: close what was sent with this token */
};

struct csink_boundary_message {
	uint32_t kind;  /* enum csink_boundary_kind */
	int32_t pid;    /* of the sender, as it sees itself */
	uint64_t token; /* the same in all messages about one exec; not 0 */
	uint32_t nr;    /* descriptors that come with it (SCM_RIGHTS) */
	int32_t parent; /* TID of the thread whose child executes the program; 0: it does so itself, or will again */
	struct {
		uint16_t event, cpu;
	} at[CSINK_BOUNDARY_BATCH]; /* of each */
};

#endif
