/* The end of building a call tree: frames get their names, and nodes their order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/output/calltree_impl.h"

/* ---- names ---- */

/* A frame with its name, while they are sorted. */
struct named {
	const struct frame_key *key;
	uint32_t frame;
};

static int compare_names(const void *left, const void *right)
{
	const struct frame_key *a = ((const struct named *)left)->key, *b = ((const struct named *)right)->key;

	return a->name != b->name ? (a->name < b->name ? -1 : 1) : 0;
}

static int compare_frames(const void *left, const void *right, void *frames)
{
	const struct csink_frame *a = (struct csink_frame *)frames + *(const uint32_t *)left;
	const struct csink_frame *b = (struct csink_frame *)frames + *(const uint32_t *)right;
	int names = strcmp(a->name, b->name);

	return names ? names : strcmp(a->module, b->module);
}

static void fill_frame(struct csink_calltree *tree, uint32_t i, bool is_overloaded)
{
	const struct frame_key *key = &tree->build->keys[i];
	const struct csink_profile *strings = tree->build->strings;
	struct csink_frame *frame = &tree->frames[i];

	frame->module = csink_profile_text(strings, key->path);
	frame->name = is_overloaded && key->signature ? csink_profile_text(strings, key->signature)
		      : key->name                     ? csink_profile_text(strings, key->name)
		      : *frame->module                ? "[no symbol]"
						      : "[unknown]";
	frame->file = csink_profile_text(strings, key->file);
	frame->start_line = key->start_line;
	frame->is_pseudo = key->is_pseudo;
	frame->is_inlined = key->seen_inlined && !key->seen_plain;
}

/* Parameters tell overloads apart; where a name is alone it needs none. */
static int name_frames(struct csink_calltree *tree)
{
	struct named *named = calloc(tree->nr_frames + 1, sizeof(*named));
	uint32_t i, k;

	free(tree->frames);
	tree->frames = calloc(tree->nr_frames + 1, sizeof(*tree->frames));
	if (!named || !tree->frames) {
		free(named);
		return -ENOMEM;
	}
	for (i = 0; i < tree->nr_frames; i++)
		named[i] = (struct named){&tree->build->keys[i], i};
	qsort(named, tree->nr_frames, sizeof(*named), compare_names);
	for (i = 0; i < tree->nr_frames; i = k) {
		bool differ = false;

		for (k = i; k < tree->nr_frames && named[k].key->name == named[i].key->name; k++)
			differ |= named[k].key->signature != named[i].key->signature;
		for (uint32_t n = i; n < k; n++)
			fill_frame(tree, named[n].frame, differ);
	}
	free(named);
	return 0;
}

/* ---- order ---- */

/* Nodes as lists of brothers, by name: frames are taken from the last name to the first, and put in front. */
struct families {
	uint32_t *first_child, *next, *by_frame, *frame_next, *frames;
};

static void link_families(const struct csink_calltree *tree, const struct families *f)
{
	uint32_t node;

	for (node = 1; node < tree->nr_nodes; node++) {
		f->frame_next[node] = f->by_frame[tree->nodes[node].frame];
		f->by_frame[tree->nodes[node].frame] = node;
	}
	for (uint32_t i = tree->nr_frames; i-- > 0;) {
		for (node = f->by_frame[f->frames[i]]; node; node = f->frame_next[node]) {
			f->next[node] = f->first_child[tree->nodes[node].parent];
			f->first_child[tree->nodes[node].parent] = node;
		}
	}
}

/* From the root down, without recursion: a stack may have hundreds of frames, and a tree may be as deep. */
static void number_nodes(const struct csink_calltree *tree, const struct families *f, struct csink_tree_node *sorted,
			 uint32_t *order)
{
	uint32_t node = 0, nr = 0;

	for (;;) {
		order[node] = nr;
		sorted[nr] = tree->nodes[node];
		sorted[nr++].parent = order[tree->nodes[node].parent];
		if (f->first_child[node]) {
			node = f->first_child[node];
			continue;
		}
		while (node && !f->next[node])
			node = tree->nodes[node].parent;
		if (!node)
			return;
		node = f->next[node];
	}
}

int csink_calltree_finish(struct csink_calltree *tree, uint32_t **order)
{
	size_t nr = (size_t)tree->nr_nodes + 1, frames = (size_t)tree->nr_frames + 1;
	struct families f = {calloc(nr, 4), calloc(nr, 4), calloc(frames, 4), calloc(nr, 4), calloc(frames, 4)};
	struct csink_tree_node *sorted = calloc(nr, sizeof(*sorted));
	int err = -ENOMEM;

	*order = calloc(nr, sizeof(**order));
	if (f.first_child && f.next && f.by_frame && f.frame_next && f.frames && sorted && *order)
		err = name_frames(tree);
	if (!err) {
		for (uint32_t i = 0; i < tree->nr_frames; i++)
			f.frames[i] = i;
		qsort_r(f.frames, tree->nr_frames, sizeof(*f.frames), compare_frames, tree->frames);
		link_families(tree, &f);
		number_nodes(tree, &f, sorted, *order);
		memcpy(tree->nodes, sorted, tree->nr_nodes * sizeof(*sorted));
	} else {
		free(*order);
		*order = NULL;
	}
	free(f.first_child);
	free(f.next);
	free(f.by_frame);
	free(f.frame_next);
	free(f.frames);
	free(sorted);
	return err;
}
