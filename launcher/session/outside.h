/*
 * Exact totals from outside: counters that every process of the command's tree inherits, whatever it is linked with,
 * and what wait4(2) says. Gives the struct csink_outside of launcher/collect/collect.h.
 *
 * Order: open, fork the command, wait for it (draining when the fd asks for it), finish, close. The events are opened
 * on the launcher itself, off, and come on with the exec of each child; so only one child may be forked between open
 * and close.
 */
#ifndef CSINK_OUTSIDE_H
#define CSINK_OUTSIDE_H

#include <stdint.h>

#include "include/internal/event.h"
#include "launcher/base/message.h"
#include "launcher/collect/collect.h"
#include "launcher/session/run_clocks.h"

struct csink_process_tree;

struct csink_outside_watch {
	struct csink_process_tree *tree; /* NULL: refused */
	uint32_t nr_events;
	struct {
		struct csink_event_spec spec;
		int fd;  /* < 0: refused; the tree's own: not to be closed */
		int err; /* then -errno of it */
	} events[CSINK_MAX_EVENTS];
	struct csink_clocks clocks;
	char tree_reason[CSINK_WHY_BYTES]; /* why there is no tree */
};

/**
 * Open what the kernel lets us open; what it refuses is remembered with its reason. Never fails as a whole.
 * Events that are pinned or exclusive are so for the samples: these totals must not keep counters from them.
 */
void csink_outside_open(struct csink_outside_watch *watch, const struct csink_event_spec *specs, uint32_t nr);

/** An fd that becomes readable when csink_outside_drain should be called; -1: there is none. */
int csink_outside_fd(const struct csink_outside_watch *watch);
void csink_outside_drain(struct csink_outside_watch *watch);

/* How one event is opened. */
struct csink_outside_how {
	int cpu;                                              /* -1: all of them */
	int group_fd;                                         /* its leader's; -1: it leads */
	void (*add)(struct perf_event_attr *attr, void *arg); /* what else is asked for; NULL: nothing */
	void *arg;
};

/**
 * Open an event on the caller, off until a child execs, and inherited by all that come from there. Where the kernel may
 * not be observed it is left out, and spec's flags say so.
 * @attr  set to what was opened, or refused last.
 * Returns the fd (CLOEXEC) or -errno.
 */
int csink_outside_open_event(struct csink_event_spec *spec, const struct csink_outside_how *how,
			     struct perf_event_attr *attr);

/** Open an event on the caller that is off and counts nothing, as how says. Returns the fd (CLOEXEC) or -errno. */
int csink_outside_open_dummy(const struct csink_outside_how *how);

/**
 * Open an event that counts nothing, to keep beside inherited ones as long as they are open: contexts of which only one
 * has it are not swapped between parent and child, which would mix their counts. Returns the fd (CLOEXEC) or -errno.
 */
int csink_outside_open_anchor(void);

struct rusage;

/**
 * Fill in what was counted: out->counts, processes and the rest, wall_ns, command_status and command apart (the
 * caller's). Notes are appended with csink_outside_note.
 * @usage        wait4(2)'s; NULL: unknown.
 * @command_pid  the command.
 * @reason       why it could not be injected, or CSINK_SPAWN_UNREADABLE; 0 if it could.
 */
void csink_outside_finish(struct csink_outside_watch *watch, const struct rusage *usage, int32_t command_pid,
			  enum csink_spawn_reason reason, struct csink_outside *out);

/** Close all. */
void csink_outside_close(struct csink_outside_watch *watch);

/**
 * Add an event's count to out->counts, which must have room.
 * @value     of the kernel's, scaled for the time that it had no counter; the event's own unit is seen to here
 * @could_ns  how long it could have run, @running_ns how long it did
 */
void csink_outside_add_count(struct csink_outside *out, const struct csink_event_spec *spec, uint64_t value,
			     uint64_t could_ns, uint64_t running_ns);

/** Append a note (copied; without memory it is dropped). */
__attribute__((format(printf, 2, 3))) void csink_outside_note(struct csink_outside *out, const char *fmt, ...);

/** Free what out owns: processes and notes. */
void csink_outside_free(struct csink_outside *out);

#endif
