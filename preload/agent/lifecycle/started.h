/*
 * A program that this one is about to start. What it is decides about its environment (env.c); one that cannot be
 * preloaded into is noted in the recording, so that the report can name it where no launcher watches from outside.
 */
#ifndef CSINK_STARTED_H
#define CSINK_STARTED_H

#include <sys/types.h>

#include "preload/core/program_file.h"
#include "preload/core/record/recording.h"

struct csink_started {
	enum csink_program_kind kind;
	enum csink_spawn_reason reason; /* 0: it can be preloaded into */
	char path[256];                 /* for the recording; its end, if it is longer */
	struct csink_rec_spawn *entry;  /* in the recording, or NULL: not recorded */
};

/** Look at the file that execveat(2) would run. Context: thread; also in a vfork child. */
void csink_started_look(struct csink_started *started, int dirfd, const char *path);

/** The same for fexecve(3). Context: thread; also in a vfork child. */
void csink_started_look_fd(struct csink_started *started, int fd);

/** Look at the file that execvp(3) would run. Context: thread; also in a vfork child. */
void csink_started_search(struct csink_started *started, const char *name);

/**
 * Record that process @pid runs this program from now on, if it cannot be preloaded into.
 * Context: thread, its samples paused; or a vfork child.
 */
void csink_started_record(struct csink_started *started, pid_t pid);

/**
 * In a forked child that has no recording of its own: note that in its parent's. Context: init.
 */
void csink_started_record_child(struct csink_recording *parents, enum csink_spawn_reason reason);

/** Take it back: it could not be started. Context: thread; also in a vfork child. */
void csink_started_withdraw(struct csink_started *started);

#endif
