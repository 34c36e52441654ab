/* Removing what a merge by several processes leaves beside the profiles (merge_tree.h): its own files, and no others.
 */
#ifndef CSINK_TREE_CLEAN_H
#define CSINK_TREE_CLEAN_H

#include <stdbool.h>

struct csink_tree_plan;

/**
 * Remove the results and claims of a merge from the directory that it has for them. That may be a link that another
 * user has made: it is not followed.
 * @has_mark  the mark of the output stays, else the directory is removed, too, if nothing else is in it.
 */
void csink_tree_clean(const char *work, bool has_mark);

/** Remove what is left of merges of other profiles, or to another output, that no process works on. */
void csink_tree_remove_older(const struct csink_tree_plan *plan);

#endif
