/*
 * The keeper of persistent events: a process that holds their fds and rings, for one user and run folder. It starts
 * with a client's connection as fd 0, and ends when it has neither events nor clients, or by a signal. Prints nothing.
 */
#ifndef CSINK_LAUNCHER_PERSIST_KEEPER_H
#define CSINK_LAUNCHER_PERSIST_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "preload/counters/persist_wire.h"

/** Be the keeper of that run folder. Returns what to exit with. */
int csink_keeper_run(const char *folder);

struct csink_kept {
	struct csink_persist_event event;
	int fd;
	void *ring; /* mapped, so that it goes on collecting; NULL: none */
	size_t ring_bytes;
};

/* All events, by ascending id. */
struct csink_keeper_events {
	struct csink_kept *kept;
	uint32_t nr, room, limit;
	int folder_fd;
	uid_t uid; /* the keeper's own */
};

/** Where among the events the first one is whose id is not less; events->nr: there is none. */
uint32_t csink_keeper_place(const struct csink_keeper_events *events, uint64_t id);

/** The event of that id, or NULL. */
struct csink_kept *csink_keeper_find(struct csink_keeper_events *events, uint64_t id);

/**
 * Take an event.
 * @fd  the keeper's from now on, also on failure (closed).
 * Returns 0 with *event completed, or -errno as csink_persist_detach.
 */
int csink_keeper_take(struct csink_keeper_events *events, int fd, struct csink_persist_event *event);

/** Let go of an event. */
void csink_keeper_drop(struct csink_keeper_events *events, struct csink_kept *kept);

/** Read an event. Returns 0, -ENODATA, or -EINVAL: its attr says otherwise. */
int csink_keeper_read(const struct csink_kept *kept, struct csink_persist_value *value);

/** May this user see and read it? The owner may do everything. */
bool csink_keeper_lets_read(const struct csink_kept *kept, uid_t uid, gid_t gid);

/* The folder's files. */

/** Make the folder of the listing, empty. Returns 0 or -errno. */
int csink_keeper_listing_init(int folder_fd);

/** Describe an event in the listing. Returns 0 or -errno. */
int csink_keeper_listing_add(int folder_fd, const struct csink_persist_event *event);
void csink_keeper_listing_remove(int folder_fd, uint64_t id);

/** Let others in, or only the owner. */
void csink_keeper_listing_share(int folder_fd, bool shared);

#endif
