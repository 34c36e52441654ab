/*
 * Merging the profiles of a directory by several processes at once, on one machine or on several that share it. There
 * is no coordinator: in each process, whatever starts it and however often, the same units of work follow from the
 * names of the profiles.
 *
 * The profiles, in the order of their names, are the leaves of a tree of fixed shape; a unit is one inner node, and its
 * result a file in a directory beside them (.countersink-merge-*). A process takes a unit that is ready by making a
 * hard link, its claim; what a process that has died had claimed is taken again. Claims only save work: merging is
 * associative, and files appear whole, so that two processes that do one unit make the same file.
 */
#ifndef CSINK_MERGE_TREE_H
#define CSINK_MERGE_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct csink_merge_tree {
	const char *directory; /* of the profiles, NAME.pb.gz */
	const char *output;    /* if it is in there, it is none of them */
	uint32_t flags;        /* enum csink_merge_flags */
	uint32_t group;        /* how many profiles, or results, a unit merges: 2 or more */
	bool is_quiet;
};

/**
 * Take part until the output is there: written by this process or by another. What fails is reported.
 * Returns 0 or -errno; what was done stays for the next call. Context: main.
 */
int csink_merge_tree(const struct csink_merge_tree *asked);

#endif
