/*
 * The CPythons among the attached processes: found in what they have mapped, handed to the threads that read their
 * frames (readers.h), and merged into the samples' stacks. Written and read by the attach command's one thread.
 */
#ifndef CSINK_PYTHONS_H
#define CSINK_PYTHONS_H

#include "launcher/attach/attach_sample.h"
#include "launcher/attach/images.h"
#include "launcher/attach/merge_frames.h"
#include "launcher/attach/readers.h"
#include "launcher/collect/collect.h"

/* --frames, as in preload/agent/interp/interp.h. */
enum csink_attach_frames {
	CSINK_ATTACH_FRAMES_AUTO,
	CSINK_ATTACH_FRAMES_NATIVE,
	CSINK_ATTACH_FRAMES_BOTH,
};

struct csink_attach_pythons {
	enum csink_attach_frames frames;
	struct csink_attach_codes codes;
	struct csink_attach_readers *readers; /* NULL: no frames are read */
	bool is_started, has_any;             /* has_any: a process has a CPython */
	int start_err;                        /* 0, or why they could not be started */
	bool has_no_copies;                   /* the stacks are not walked over copies, which frames are merged with */
	/* Processes whose thread states have been searched, and may be again. */
	struct csink_attach_searched {
		int32_t pid;
		uint32_t nr_tries;
		uint64_t again_ns;
	} * searched;
	uint32_t nr_searched, cap_searched;
	uint64_t counts[CSINK_NR_READ_STATES]; /* stacks that have a call of the evaluator, or Python frames */
	int32_t denied_pid, late_pid; /* its memory must not be read; it ran Python when nothing was prepared for it */
};

/**
 * Look into an object that a process has mapped, for images->on_object. Before csink_attach_pythons_start(), the thread
 * states are searched, too, for which the process must run.
 */
void csink_attach_pythons_object(void *arg, int32_t pid, struct csink_attach_object *object, uint64_t bias);

/**
 * If a process that was looked into has a CPython, prepare to read frames: before the counters are opened. If that
 * fails, frames are not read, and a note will say why.
 * @is_expected  a command will be started that is one.
 */
void csink_attach_pythons_start(struct csink_attach_pythons *pythons, struct csink_attach_counters *counters,
				bool is_expected);

/* Records of the kernel. */
void csink_attach_pythons_fork(struct csink_attach_pythons *pythons, int32_t pid, int32_t ppid);
void csink_attach_pythons_exec(struct csink_attach_pythons *pythons, int32_t pid);

/**
 * Merge the Python frames of a sample's thread into its native stack.
 * @to  CSINK_MAX_DEPTH frames, of which at most max are set, and what they lack.
 * Returns how many frames @to has; -1: there are none to merge.
 */
int32_t csink_attach_pythons_merge(struct csink_attach_pythons *pythons, const struct csink_attach_sample *s,
				   const struct csink_native_stack *native, uint64_t *to, uint32_t max,
				   struct csink_merge_faults *faults);

/** At the end: what was not read, as notes. */
void csink_attach_pythons_note(const struct csink_attach_pythons *pythons, const struct csink_attach_counters *counters,
			       struct csink_outside *outside);

/** False: some of it, and the counters, are still used by threads that did not end. */
bool csink_attach_pythons_free(struct csink_attach_pythons *pythons);

#endif
