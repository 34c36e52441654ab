/* What the calltree*.c files share; no other file includes this. */
#ifndef CSINK_CALLTREE_IMPL_H
#define CSINK_CALLTREE_IMPL_H

#include "launcher/output/calltree.h"
#include "launcher/profile/profile.h"

/* What a frame is known by while the tree grows; strings are ids in build->strings. */
struct frame_key {
	csink_str_t name;
	csink_str_t signature; /* of a mangled symbol, 0: none */
	csink_str_t module;    /* what it is compared by */
	csink_str_t path;      /* of the module */
	csink_str_t file;
	int64_t start_line;
	bool is_pseudo, seen_inlined, seen_plain;
};

struct csink_calltree_private {
	struct csink_profile *strings; /* a pool of strings, nothing else */
	struct frame_key *keys;
	uint32_t cap_frames, cap_nodes;
	struct csink_table frame_table, node_table; /* ids: index + 1; node, but for the root */
};

#endif
