/* The units of a merge by several processes, and where their results are: see merge_tree.h. */
#ifndef CSINK_TREE_PLAN_H
#define CSINK_TREE_PLAN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_TREE_LEVELS 32

struct csink_tree_input {
	char *name;
	int64_t bytes, mtime_ns;
};

enum csink_unit_state { CSINK_UNIT_FREE, CSINK_UNIT_CLAIMED, CSINK_UNIT_DONE };

struct csink_tree_plan {
	char directory[PATH_MAX], work[PATH_MAX];
	struct csink_tree_input *inputs; /* by name */
	uint32_t nr_inputs, cap_inputs;
	uint32_t group;
	uint32_t nr_levels, nr_of_level[CSINK_TREE_LEVELS]; /* units; the last level has one */
	uint32_t first[CSINK_TREE_LEVELS];                  /* unit of a level, in state[] */
	uint32_t nr_units;
	uint8_t *state; /* enum csink_unit_state, when it was looked at last */
};

struct csink_merge_tree;

/**
 * List the profiles, and make the directory for the results if there is none: its name follows from the profiles and
 * what is to be made of them, so that other ones are never mixed up.
 * Returns 0 or -errno, with the reason; csink_tree_plan_free it in any case.
 */
int csink_tree_plan_make(struct csink_tree_plan *plan, const struct csink_merge_tree *how, char *why, size_t why_size);
void csink_tree_plan_free(struct csink_tree_plan *plan);

/** The level of a unit, and its place there. */
uint32_t csink_tree_level(const struct csink_tree_plan *plan, uint32_t unit, uint32_t *place);

/** The path of a unit's result or ("claim") claim. */
void csink_tree_path(const struct csink_tree_plan *plan, uint32_t unit, const char *ending, char path[PATH_MAX + 64]);

/** Look which units are done or claimed. Returns 0 or -errno (-ENOENT: the directory is gone). */
int csink_tree_look(struct csink_tree_plan *plan);

/** Are all results there that a unit needs? */
bool csink_tree_is_ready(const struct csink_tree_plan *plan, uint32_t unit);

#define CSINK_TREE_RESULT "pb.gz"
#define CSINK_TREE_CLAIM "claim"
#define CSINK_TREE_DONE "done" /* in the directory, once the output is written: its size and time */
#define CSINK_TREE_PREFIX ".countersink-merge-"

#endif
