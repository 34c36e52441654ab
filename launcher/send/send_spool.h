/*
 * A spool: a directory in which profiles that could not be sent are kept until they are. It belongs to this user, and
 * no other may write it. Of each profile it has NAME.pb.gz, a copy, and NAME.todo (send_todo.h); NAME begins with the
 * time, so that the order of names is that in which they were added. The profile is there only once both are whole.
 * What was refused is in refused/, with the server's words in NAME.why.
 *
 * Several processes use it at once: .adding is locked (flock) while one adds or removes the oldest, .sending.SERVER, of
 * which SERVER is a hash, while one sends there. Locks go with their process, so that one that is killed leaves nothing
 * to be undone but files that the next one removes.
 */
#ifndef CSINK_SEND_SPOOL_H
#define CSINK_SEND_SPOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/send/send_todo.h"

#define CSINK_SPOOL_NAME 40 /* room for a NAME */

struct csink_spool {
	char path[PATH_MAX];
	int fd, sending_fd; /* -1: not open */
	uint64_t max_bytes;
	char (*dropped)[CSINK_SPOOL_NAME]; /* names that were removed to make room, malloc'ed */
	uint32_t nr_dropped, cap_dropped;
};

/* NAMEs, in their order. */
struct csink_spool_names {
	char (*at)[CSINK_SPOOL_NAME]; /* malloc'ed */
	uint32_t nr, cap;
};

/**
 * Open it, and make it where it is not there.
 * @path  "auto": csink_own_state() has its place.
 * @why   on failure, one line for people, which begins with its place.
 * Returns 0, -EACCES (it is another user's, or others may write it) or -errno. csink_spool_close() in any case.
 * Context: init.
 */
int csink_spool_open(struct csink_spool *spool, const char *path, uint64_t max_bytes, char *why, size_t why_bytes);
void csink_spool_close(struct csink_spool *spool);

/**
 * Add a copy of a file, at once or not at all; the oldest are removed until all is within max_bytes. One that is there
 * already, for the same server, is not added again.
 * @name  receives its NAME.
 * Returns 0, -E2BIG (it is larger than max_bytes), -ETIMEDOUT (other processes add) or -errno. Context: thread.
 */
int csink_spool_add(struct csink_spool *spool, const char *file, const struct csink_send_todo *todo,
		    uint64_t deadline_ns, char name[CSINK_SPOOL_NAME]);

/** Become the one process that sends to a server, until the end. Returns 0, -ETIMEDOUT (another one sends) or -errno.
 */
int csink_spool_begin(struct csink_spool *spool, const struct csink_send_settings *s, uint64_t deadline_ns);

/** The profiles in it, the oldest first. free(names->at) in any case. Returns 0 or -errno. Context: thread. */
int csink_spool_list(const struct csink_spool *spool, struct csink_spool_names *names);

/** Open its todo, to be read and updated. Returns a descriptor or -errno. Context: thread. */
int csink_spool_open_todo(const struct csink_spool *spool, const char *name);

/** The path of a profile. Returns whether it fits. */
bool csink_spool_file(const struct csink_spool *spool, const char *name, char path[PATH_MAX]);

/** Whether a profile is in it; was refused; was removed by this process to make room. Context: thread. */
bool csink_spool_has(const struct csink_spool *spool, const char *name);
bool csink_spool_has_refused(const struct csink_spool *spool, const char *name);
bool csink_spool_has_dropped(const struct csink_spool *spool, const char *name);

/** A profile was sent: remove it. Returns 0 or -errno: then it stays. Context: thread. */
int csink_spool_remove(const struct csink_spool *spool, const char *name);

/** Move a profile to refused/. @words  the reason. Returns 0 or -errno: then it stays. Context: thread. */
int csink_spool_refuse(const struct csink_spool *spool, const char *name, const char *words);

#endif
