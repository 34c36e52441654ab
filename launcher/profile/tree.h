/*
 * Stacks as a tree: top-down from the outermost function, or bottom-up from chosen functions to their callers. A node
 * is a function called in one way; what it cost there is in it.
 */
#ifndef CSINK_TREE_H
#define CSINK_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/profile/rows.h"

struct csink_tree_node {
	uint32_t row;    /* in the rows that the tree was built from */
	uint32_t parent; /* node; 0: the root */
	uint32_t first;  /* child with the largest total; 0 none */
	uint32_t next;   /* sibling with the next smaller total; 0 none */
	uint32_t depth;  /* 1 below the root */
	int64_t self;    /* top-down: spent in the function itself, called this way; bottom-up: in no further caller */
	int64_t total;
};

/* Node 0 is the root, above all stacks, and has no row. */
struct csink_tree {
	struct csink_tree_node *nodes;
	uint32_t nr_nodes, cap_nodes;
	struct csink_table table; /* while it is built: nodes by parent and row */
};

/**
 * Build the tree of one type's values.
 * @rows  of functions, of this profile
 * @from  NULL: top-down. Else by row: whether it is chosen; the tree begins at the innermost chosen function of each
 *        stack and leads to its callers, stacks that have none are left out.
 * Returns 0 (csink_tree_free it) or -ENOMEM. Context: thread.
 */
int csink_tree_build(struct csink_tree *tree, const struct csink_profile *p, const struct csink_rows *rows,
		     uint32_t type, const bool *from);
void csink_tree_free(struct csink_tree *tree);

/* ---- node by node, for trees of other rows (calltree.h) ---- */

/** Begin with the root. Returns 0 (csink_tree_free it) or -ENOMEM. */
int csink_tree_init(struct csink_tree *tree);

/** Go down to the child of that row, which is made if there is none. Returns it, or 0 without memory. */
uint32_t csink_tree_child(struct csink_tree *tree, uint32_t parent, uint32_t row);

/** Once all nodes are there: set first and next. Children of equal totals are in the order of rank[row]. Returns 0 or
 * -ENOMEM. */
int csink_tree_link(struct csink_tree *tree, const uint32_t *rank);

#endif
