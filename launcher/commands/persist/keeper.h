/*
 * The keeper of persistent events: a process that holds their fds and rings, for one user and run directory. It starts
 * with a client's connection as fd 0, and ends when it has neither events nor clients, or by a signal. Prints nothing.
 */
#ifndef CSINK_KEEPER_H
#define CSINK_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "preload/api/persist/persist_wire.h"

/** Be the keeper of that run directory. Returns what to exit with. */
int csink_keeper_run(const char *directory);

struct csink_kept_member {
	int fd;
	int32_t cpu;
	uint32_t pages;
	void *ring; /* mapped, so that it goes on collecting; NULL: none */
	size_t ring_bytes;
};

struct csink_kept_members {
	struct csink_kept_member *at;
	uint32_t nr;
};

struct csink_kept {
	struct csink_persist_event event;
	struct csink_kept_members members; /* at least one */
	uint32_t nr_cpus;                  /* that they are on; 1: on any, or all on one */
};

/* All events, by ascending id. */
struct csink_keeper_events {
	struct csink_kept *kept;
	uint32_t nr, room;
	uint32_t nr_fds, limit; /* of all members, those that clients have just added included */
	int directory_fd;
	uid_t uid; /* the keeper's own */
};

/** Where among the events the first one is whose id is not less; events->nr: there is none. */
uint32_t csink_keeper_place(const struct csink_keeper_events *events, uint64_t id);

/** The event of that id, or NULL. */
struct csink_kept *csink_keeper_find(struct csink_keeper_events *events, uint64_t id);

/** The event that has one of this id among its members, or NULL. */
struct csink_kept *csink_keeper_find_member(struct csink_keeper_events *events, uint64_t id);

/**
 * Add an event to a set that is being made.
 * @fd  the keeper's from now on, also on failure (closed).
 * Returns 0, -EINVAL, -EMFILE or -ENOMEM.
 */
int csink_keeper_add(struct csink_keeper_events *events, struct csink_kept_members *members, int fd,
		     const struct csink_persist_event *event);

/** Close them all. */
void csink_kept_members_free(struct csink_keeper_events *events, struct csink_kept_members *members);

/**
 * Take an event, or a set of them.
 * @members  the keeper's from now on, also on failure (closed).
 * Returns 0 with *event completed, or -errno as csink_persist_detach.
 */
int csink_keeper_take(struct csink_keeper_events *events, struct csink_kept_members *members,
		      struct csink_persist_event *event);

/** Let go of an event. */
void csink_keeper_drop(struct csink_keeper_events *events, struct csink_kept *kept);

/** Read an event, of a set the sums; enabled_ns is the mean of its CPUs, on each of which it has events of the same
 * tasks. Returns 0, -ENODATA, or -EINVAL: its attr says otherwise. */
int csink_keeper_read(const struct csink_kept *kept, struct csink_persist_value *value);

/** May this user see and read it? The owner may do everything. */
bool csink_keeper_may_read(const struct csink_kept *kept, uid_t uid, gid_t gid);

/* The directory's files. */

/** Make the directory of the listing, empty. Returns 0 or -errno. */
int csink_keeper_listing_init(int directory_fd);

/** Describe an event in the listing. Returns 0 or -errno. */
int csink_keeper_listing_add(int directory_fd, const struct csink_persist_event *event);
void csink_keeper_listing_remove(int directory_fd, uint64_t id);

/** Let others in, or only the owner. */
void csink_keeper_listing_share(int directory_fd, bool shared);

#endif
