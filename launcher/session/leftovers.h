/*
 * Run directories without a collector: of programs without launcher that were killed, or of a launcher that
 * was killed. Their recordings are complete.
 */
#ifndef CSINK_LEFTOVERS_H
#define CSINK_LEFTOVERS_H

#include <stdint.h>

struct csink_leftover {
	char path[256];
	char comm[16]; /* of the first process */
	uint32_t nr_processes;
	uint64_t data_bytes;        /* on disk */
	uint64_t start_realtime_ns; /* of the first process */
};

/**
 * Find the caller's own, newest first: directories that the library or a launcher made, in the places where they make
 * them, whose owner is dead, with no process that still writes there. Nothing is changed. Returns how many there are;
 * the first max of them are in out.
 */
uint32_t csink_leftovers_find(struct csink_leftover *out, uint32_t max);

/** The same of runs that go on. */
uint32_t csink_live_runs_find(struct csink_leftover *out, uint32_t max);

#endif
