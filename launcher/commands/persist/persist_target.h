/*
 * Opening what `persist detach` makes persistent: one event of a CPU or of a single thread, or a set of them on all
 * threads of a process.
 */
#ifndef CSINK_PERSIST_TARGET_H
#define CSINK_PERSIST_TARGET_H

#include "include/countersink/persist.h"
#include "include/internal/event.h"

struct csink_persist_set {
	struct csink_persist_member *at;
	uint32_t nr, room;
	int *ring_fds;  /* by CPU + 1: the event that has the ring there; -1: none yet */
	int stop_err;   /* why the process could not be stopped (a thread may be missing); 0: it was stopped */
	char text[640]; /* a message: what failed */
};

/**
 * Open the event or the set; it counts from then on.
 * @spec   completed with what a ring needs; made user-only where the kernel's side is refused.
 * @event  pid, cpu and pages; attr is set.
 * Returns 0; -ENOBUFS: no memory may be locked for its rings; or -errno, with text. Either way csink_persist_set_close
 * must follow. Context: thread.
 */
int csink_persist_set_open(struct csink_persist_set *set, struct csink_event_spec *spec,
			   struct csink_persist_event *event);

/** Close what was opened. The keeper has its own descriptors by then. */
void csink_persist_set_close(struct csink_persist_set *set);

#endif
