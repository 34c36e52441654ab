/*
 * Where the pictures of `countersink top` come from: the recordings of a run that goes on, of which nothing is changed,
 * or processes that are sampled from outside, as `countersink attach` does it.
 */
#ifndef CSINK_TOP_SOURCE_H
#define CSINK_TOP_SOURCE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_moment;
struct csink_profile;
struct csink_top_attach;

/* What was done in the last interval, and in all. */
struct csink_top_sight {
	struct csink_profile *last, *all; /* last NULL: there was none before */
	uint64_t ns[2];                   /* that each of them took, as in struct csink_top_picture */
	uint32_t nr_unread;               /* recordings that are left out */
	bool is_over;                     /* this is the last one */
};

void csink_top_sight_free(struct csink_top_sight *sight);

struct csink_top_source {
	struct csink_top_attach *attach; /* NULL: the run directory is read */
	struct csink_moment *moment;     /* there, at the last sight; NULL: none yet */
	char path[PATH_MAX];             /* the run directory, as it is reached */
	char name[PATH_MAX];             /* what was asked for, for people */
	int32_t pid;                     /* of the one process that is watched; 0: all of the run */
	int32_t own_pid;                 /* as it calls itself */
};

/**
 * Find what is asked for.
 * @path    a run directory; NULL: by @pid, whose recording is read if there is one, or by @cgroup.
 * @cgroup  a control group; NULL: none.
 * @why     on failure, one line.
 * Returns 0, -ENOTDIR or -ENOENT (no run directory), -ESRCH (no process), -EACCES (another user's), -ESTALE (a run that
 * has ended), or what attaching gave. Context: thread.
 */
int csink_top_source_open(struct csink_top_source *source, const char *path, int32_t pid, const char *cgroup, char *why,
			  size_t why_len);
void csink_top_source_close(struct csink_top_source *source);

/**
 * Take what there is now. Returns 0 and *sight (csink_top_sight_free it), -ESTALE (the run, or the process, has ended),
 * or another -errno; then the next sight has this interval, too.
 */
int csink_top_source_take(struct csink_top_source *source, struct csink_top_sight *sight);

/** An fd that becomes readable when csink_top_source_drain() is due, at the latest every 50 ms; -1: never. */
int csink_top_source_fd(const struct csink_top_source *source);
/** Returns false once no process that is sampled from outside lives: no interval goes on then. */
bool csink_top_source_drain(struct csink_top_source *source);

enum { CSINK_TOP_DRAIN_MS = 50 };

#endif
