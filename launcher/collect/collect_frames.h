/* The frames of one recording as locations of the profile; used by collect_samples.c alone. */
#ifndef CSINK_COLLECT_FRAMES_H
#define CSINK_COLLECT_FRAMES_H

#include "launcher/collect/collect_impl.h"
#include "launcher/collect/epochs.h"

struct csink_frames {
	struct collector *c;
	const struct csink_recorded *rec;
	int32_t pid;
	struct csink_epochs epochs;
	uint32_t *modules;   /* by the recording's index: ours + 1; 0 not looked up yet */
	uint32_t *images;    /* likewise, of its images */
	uint32_t anon;       /* our module of code in no object, + 1 */
	uint32_t *locations; /* by the recording's node; 0 not looked up yet */
	struct csink_frame_place *cache;
	struct csink_script_place *scripts; /* files of interpreted functions, each looked for once */
	uint32_t nr_scripts, cap_scripts;
	struct csink_table script_table; /* index + 1, by the names in the recording */
	uint64_t table_bytes;            /* of line tables, each as often as it was read */
	bool has_unread_tables;
	bool leaf_is_evaluator; /* of the latest callers: the first of them replaces the leaf */
	int err;                /* -ENOMEM from the first failure on */
};

/** Returns 0 or -ENOMEM; csink_frames_close it in any case. The recording is there until then. */
int csink_frames_open(struct csink_frames *f, struct collector *c, const struct csink_recorded *rec, int32_t pid);
void csink_frames_close(struct csink_frames *f);

/** The location of a leaf, at a time of the recording's clock: always one of the profile; 0 with f->err set. */
uint32_t csink_frames_leaf(struct csink_frames *f, uint64_t address, uint64_t time_ns);

/**
 * The callers of a row's node (or CSINK_RECORDED_NONE), innermost first, without those that are our library. Returns
 * how many; room is for CSINK_MAX_DEPTH.
 */
uint32_t csink_frames_callers(struct csink_frames *f, uint32_t node, uint32_t *callers);

#endif
