/*
 * Samples of whole CPUs, beside those of a run's processes, where the kernel lets us observe CPUs (root). The events of
 * a process begin with a whole period and end before the kernel frees its memory: programs that are shorter than a
 * period have no sample of their own, somewhat longer ones have theirs at the same moments in each process, and a large
 * one's end has none either. A CPU's samples do not begin with a program,
 * so that they hit all of that at random. Used by the launcher's one thread.
 */
#ifndef CSINK_CPU_SAMPLES_H
#define CSINK_CPU_SAMPLES_H

#include "launcher/attach/attach_counters.h"

/* A process with fewer samples of its own is brief: they are all taken at the same moments of its life, whatever the
 * program does between them. */
#define CSINK_BRIEF_SAMPLES 5

struct csink_cpu_samples {
	uint64_t period_ns; /* of each CPU; 0: there are none */
	int *fds;
	uint64_t *ids;
	uint32_t nr;
	/* Samples of tasks that had no memory: kernel threads, and processes that the kernel was ending. */
	struct csink_cpu_sample {
		int32_t pid;
		uint64_t time_ns;
	} * bare;
	uint32_t nr_bare, cap_bare;
};

/** Open an event on each CPU that has a ring, with the fields of the counters' samples. Where the kernel refuses one
 * there are none at all. */
void csink_cpu_samples_open(struct csink_cpu_samples *cpus, struct csink_attach_counters *c);

/** Is this the id of one of them? */
bool csink_cpu_samples_has(const struct csink_cpu_samples *cpus, uint64_t id);

/** A task without memory was sampled. */
void csink_cpu_samples_note_bare(struct csink_cpu_samples *cpus, int32_t pid, uint64_t time_ns);

/** Take no more samples. Those that there are stay. */
void csink_cpu_samples_stop(struct csink_cpu_samples *cpus);

/** The processes of a run have ended: give each the time that it was sampled after its events had ended. */
void csink_cpu_samples_give_ends(const struct csink_cpu_samples *cpus, struct csink_outside *out);

void csink_cpu_samples_free(struct csink_cpu_samples *cpus);

#endif
