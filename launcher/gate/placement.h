/*
 * Where the code of both sides lies in physical memory. The kernel keeps a file's pages where they are from run to run,
 * and by their addresses code is faster or slower (caches, prediction): of two copies of one program, each has an
 * offset of its own that no number of runs averages out. So the files that only one side uses are read again before
 * each of its runs, into other pages: the offset is random then, and averages out. Files are not changed; nothing needs
 * a privilege.
 */
#ifndef CSINK_PLACEMENT_H
#define CSINK_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/gate/stats/stats.h"

struct csink_profile;

/* A program or library that a side runs. */
struct csink_gate_file {
	char *path;
	dev_t dev;
	ino_t ino;
	bool sides[2];
	bool is_program; /* that the side's command names */
	bool is_kept;    /* could not be moved the last time, or not be read: see csink_gate_placement_kept */
};

struct csink_gate_placement {
	struct csink_gate_file *files;
	uint32_t nr, cap;
	char *pool; /* pages, some of which are freed before a file is read, so that it is read into these; NULL: none
		       yet */
	bool two_sides; /* the two sides differ; files that both use have the same offset in both and are not moved */
};

/** Remember a file that a side runs; one that is there already, or that is none, is ignored. Returns 0 or -ENOMEM. */
int csink_gate_placement_add(struct csink_gate_placement *placement, int side, const char *path);

/** The same for the program that the side's command names. */
int csink_gate_placement_add_program(struct csink_gate_placement *placement, int side, const char *path);

/** Remember the files that a run of a side had mapped. Returns 0 or -ENOMEM. */
int csink_gate_placement_learn(struct csink_gate_placement *placement, int side, const struct csink_profile *p);

/**
 * Move what a side alone uses to other pages, and have it in memory when this returns. Takes some tenths of a
 * millisecond (the first time, some milliseconds), and what it takes to read the files from disk.
 */
void csink_gate_placement_move(struct csink_gate_placement *placement, int side, struct csink_random *random);

/** Of two sides, the next program or library from *at on that both have in files of their own, and that stayed where it
 * was: another process has it mapped, or it is on a tmpfs. NULL: none, or unknown. */
const char *csink_gate_placement_kept(const struct csink_gate_placement *placement, uint32_t *at);

/** Have two files the same name, versions of a library apart (libz.so.1.2 and libz.so.1.3)? */
bool csink_gate_same_library(const char *left, const char *right);

void csink_gate_placement_free(struct csink_gate_placement *placement);

#endif
