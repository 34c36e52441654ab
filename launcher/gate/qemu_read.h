/*
 * What a run under qemu-user executed, from the files that countersink's plugin wrote
 * (include/internal/simulated_counts.h).
 */
#ifndef CSINK_QEMU_READ_H
#define CSINK_QEMU_READ_H

#include "launcher/gate/gate.h"
#include "launcher/gate/placement.h"

/* What a simulation did not count, and what it counted besides instructions. */
struct csink_gate_uncounted {
	uint64_t nr_calls;    /* system calls */
	uint32_t nr_programs; /* that were executed in place of a simulated process */
	char programs[512];   /* their names, each once, with how often: "sort (2), ls" */
	uint32_t nr_blocks;   /* of code, for which there was no room */
	uint32_t nr_processes;
	bool has_threads; /* counters of several threads lose additions */
};

/**
 * Fill a run in with the instructions that each function executed, and their sum; add calls that are seen in the code
 * to the functions, and the files to those of the run's side.
 * @why  on failure: a phrase.
 * Returns 0, -ENOENT (the plugin wrote nothing: qemu did not load it), -EBADMSG, -ENOMEM or what opening gave.
 */
int csink_gate_qemu_read(const char *directory, struct csink_gate_functions *functions,
			 struct csink_gate_placement *placement, struct csink_gate_run *run,
			 struct csink_gate_uncounted *uncounted, char *why, size_t why_size);

#endif
