/*
 * The call tree of one or more profiles: stacks of functions merged from their outermost caller down. Written by the
 * exporters (html, folded, speedscope, firefox), which read frames and nodes from it.
 *
 * A frame is a function in a module, distinguished from its overloads, and from interpreted functions of the same name
 * in the same file, as in the report's table; a node is a frame under its callers. Inlined functions are frames of
 * their own. Context of all functions here: thread.
 */
#ifndef CSINK_CALLTREE_H
#define CSINK_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/profile/tree.h"

struct csink_frame {
	const char *name;     /* with parameters, if there are overloads of the name; with its line; "[no symbol]" */
	const char *module;   /* path; "": none */
	const char *file;     /* of the source; "": not known */
	const char *language; /* "Python"; "": native code, or not known */
	int64_t start_line;   /* 0: not known */
	bool is_pseudo;       /* no function: what was accounted or counted, and not sampled */
	bool is_inlined;      /* seen only inlined into others */
	bool is_interpreted;  /* the module is its source file */
};

struct csink_calltree {
	struct csink_frame *frames;
	uint32_t nr_frames, cap_frames;
	struct csink_tree calls; /* the row of a node is its frame; totals are not kept */
	/* Of each profile, in the order of their addition: the node of each of its stacks; 0 for the empty one. */
	uint32_t *of_stack[2], nr_stacks[2];
	uint32_t nr_profiles;
	/* Set before the first addition: modules are the same where the last parts of their paths are, as for builds
	 * that are compared. Else the whole path counts. */
	bool by_base_name;
	/* Set before the first addition if profiles are compared, and owned by the caller: the interpreted functions of
	 * all profiles, in the order in which they are added. NULL: those of each profile are found separately. */
	const struct csink_interpreted *interpreted;
	struct csink_profile *strings; /* the frames' texts */
	struct csink_profile *pairs;   /* ids of a name and a module, as a string of bytes: its id is the frame + 1 */
	uint32_t *path;                /* of csink_calltree_path() */
};

/** Returns an empty tree (csink_calltree_free it), or NULL without memory. */
struct csink_calltree *csink_calltree_create(void);
void csink_calltree_free(struct csink_calltree *tree);

/**
 * Add the functions of a profile alone, which must live until the map is there.
 * @map  rows of the profile by function, whose ids have become frames: map->ids[map->spans[location].first] is the
 *       innermost one. Where a location has lines, there is a frame for each.
 * Returns 0 (csink_rows_free it) or -ENOMEM.
 */
int csink_calltree_map(struct csink_calltree *tree, const struct csink_profile *p, struct csink_rows *map);

/** Add the stacks of a profile, the first or the second, which must live as long as this call. Returns 0 or -ENOMEM. */
int csink_calltree_add(struct csink_calltree *tree, const struct csink_profile *p);

/**
 * Renumber the nodes so that a parent has a smaller number than its children and each node is followed by all below it,
 * siblings sorted by name: the end of a subtree is the next node that is no deeper. Returns 0 or -ENOMEM.
 */
int csink_calltree_finish(struct csink_calltree *tree);

/** The finished tree of one profile: *tree (csink_calltree_free it in any case). Returns 0 or -ENOMEM. */
int csink_calltree_build(struct csink_calltree **tree, const struct csink_profile *p);

/** The frames that lead to a node of a finished tree, outermost first: as many as its depth. Valid until the next call.
 */
const uint32_t *csink_calltree_path(const struct csink_calltree *tree, uint32_t node);

#endif
