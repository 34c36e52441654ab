/*
 * Builds call trees (calltree.h). Frames are the rows of the report (rows.h), into which each location is turned once;
 * a stack then costs a look-up for each of its frames, in one table of all (caller node, frame) pairs.
 */
#include "launcher/output/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/rows.h"

struct csink_calltree_private {
	struct csink_profile *strings; /* the frames' texts */
	struct csink_profile *pairs;   /* ids of a name and a module, as a string of bytes: its id is the frame + 1 */
	uint32_t cap_frames, cap_nodes, nr_profiles;
	struct csink_table node_table; /* of nodes, but for the root */
};

struct csink_calltree *csink_calltree_create(void)
{
	struct csink_calltree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->build = calloc(1, sizeof(*tree->build));
	tree->nodes = calloc(64, sizeof(*tree->nodes));
	if (tree->build) {
		tree->build->strings = csink_profile_create();
		tree->build->pairs = csink_profile_create();
	}
	if (!tree->build || !tree->nodes || !tree->build->strings || !tree->build->pairs) {
		csink_calltree_free(tree);
		return NULL;
	}
	tree->build->cap_nodes = 64;
	tree->nr_nodes = 1;
	return tree;
}

void csink_calltree_free(struct csink_calltree *tree)
{
	if (!tree)
		return;
	if (tree->build) {
		csink_profile_free(tree->build->strings);
		csink_profile_free(tree->build->pairs);
		csink_table_free(&tree->build->node_table);
	}
	free(tree->build);
	free(tree->frames);
	free(tree->nodes);
	free(tree);
}

/* ---- look-up ---- */

static csink_str_t string_of(const struct csink_calltree *tree, const char *text)
{
	return csink_profile_str(tree->build->strings, text);
}

/* The frame + 1 of a row, or 0 without memory. The module of an interpreted function is the file, whatever its name. */
static uint32_t frame_of(struct csink_calltree *tree, const struct csink_row_key *key)
{
	struct csink_calltree_private *b = tree->build;
	bool is_whole = !tree->by_base_name || key->is_interpreted;
	csink_str_t name = string_of(tree, key->name), module = string_of(tree, key->module);
	const csink_str_t pair[] = {key->name_id ? name : 0,
				    is_whole ? module : string_of(tree, csink_base_name(key->module))};
	csink_str_t frame = csink_profile_strn(b->pairs, (const char *)pair, sizeof(pair));

	if (frame == tree->nr_frames + 1) {
		if (CSINK_GROW(tree->frames, tree->nr_frames, b->cap_frames))
			return 0;
		tree->frames[tree->nr_frames++] =
			(struct csink_frame){.name = csink_profile_text(b->strings, name),
					     .module = csink_profile_text(b->strings, module),
					     .file = key->is_interpreted ? csink_profile_text(b->strings, module) : "",
					     .is_inlined = true,
					     .is_interpreted = key->is_interpreted};
	}
	return frame;
}

/* Returns the node, or 0 without memory. */
static uint32_t find_node(struct csink_calltree *tree, uint32_t parent, uint32_t frame)
{
	struct csink_calltree_private *b = tree->build;
	uint32_t hash = (uint32_t)csink_hash_pair(parent, frame);
	struct csink_slot *slot;

	if (csink_table_room(&b->node_table) || CSINK_GROW(tree->nodes, tree->nr_nodes, b->cap_nodes))
		return 0;
	CSINK_TABLE_PROBE(b->node_table, hash, slot,
			  tree->nodes[id].parent == parent && tree->nodes[id].frame == frame);
	if (!slot->id) {
		tree->nodes[tree->nr_nodes] = (struct csink_tree_node){
			.parent = parent, .frame = frame, .depth = tree->nodes[parent].depth + 1};
		csink_table_set(&b->node_table, slot, hash, tree->nr_nodes++);
	}
	return slot->id;
}

/* ---- from a profile ---- */

/* A profile while it is added. */
struct adding {
	struct csink_calltree *tree;
	const struct csink_profile *p;
	struct csink_frame_map *map;
	const struct csink_interpreted *interpreted;
	uint32_t side; /* of the profile in it */
};

/* Where a frame begins in the source, by one of the functions that it stands for. */
static void set_place(struct adding *a, struct csink_frame *frame, uint32_t function)
{
	const struct csink_profile_function *f = &a->p->functions[function];

	if (frame->is_interpreted)
		frame->start_line = a->interpreted->all[a->interpreted->of[a->side][function] - 1].line;
	if (*frame->file)
		return;
	frame->file =
		csink_profile_text(a->tree->build->strings, string_of(a->tree, csink_profile_text(a->p, f->file)));
	frame->start_line = f->start_line;
}

/* Rows become frames: in the map, and of each location. */
static int take_rows(struct adding *a, const struct csink_rows *rows)
{
	uint32_t *frames = calloc(rows->nr_keys + 1, sizeof(*frames));
	int err = frames ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < rows->nr_keys && !err; i++) {
		frames[i] = frame_of(a->tree, &rows->keys[i]);
		if (frames[i])
			a->tree->frames[frames[i] - 1].is_inlined &= !rows->keys[i].seen_plain;
		else
			err = -ENOMEM;
	}
	for (uint32_t id = 1; id < a->p->nr_locations && !err; id++) {
		const struct csink_profile_location *location = &a->p->locations[id];
		uint32_t *ids = a->map->ids + a->map->spans[id].first;

		for (uint32_t k = 0; k < a->map->spans[id].nr; k++) {
			ids[k] = frames[ids[k]] - 1;
			set_place(a, &a->tree->frames[ids[k]],
				  location->nr_lines ? a->p->lines[location->first_line + k].function : 0);
		}
	}
	free(frames);
	return err ? err : csink_profile_error(a->tree->build->strings);
}

static int add_rows(struct adding *a)
{
	struct csink_rows rows;
	int err = csink_rows_build_found(&rows, a->p, CSINK_BY_FUNCTION, a->interpreted, a->side);

	*a->map = (struct csink_frame_map){rows.spans, rows.ids};
	rows.spans = NULL;
	rows.ids = NULL;
	if (!err)
		err = take_rows(a, &rows);
	csink_rows_free(&rows);
	return err;
}

static int add_stacks(struct adding *a, uint32_t *nodes)
{
	const uint32_t *ids;
	uint32_t node;

	nodes[0] = 0;
	for (uint32_t s = 1; s < a->p->nr_stacks; s++) {
		ids = a->p->stack_ids + a->p->stacks[s].first;
		node = 0;
		for (uint32_t i = a->p->stacks[s].nr; i-- > 0;) {
			for (uint32_t k = a->map->spans[ids[i]].nr; k-- > 0;) {
				node = find_node(a->tree, node, a->map->ids[a->map->spans[ids[i]].first + k]);
				if (!node)
					return -ENOMEM;
			}
		}
		nodes[s] = node;
	}
	return 0;
}

/* Mark what samples with the label stand for. */
static void mark_pseudo(struct adding *a)
{
	const struct csink_profile *p = a->p;
	csink_str_t pseudo = csink_profile_str_find(p, CSINK_LABEL_PSEUDO);

	for (uint32_t i = 0; pseudo && i < p->nr_samples; i++) {
		const struct csink_profile_range *stack = &p->stacks[p->samples[i].stack];

		if (stack->nr && csink_profile_label_find(p, p->samples[i].labels, pseudo))
			a->tree->frames[a->map->ids[a->map->spans[p->stack_ids[stack->first]].first]].is_pseudo = true;
	}
}

int csink_calltree_map(struct csink_calltree *tree, const struct csink_profile *p, struct csink_frame_map *map)
{
	struct adding a = {.tree = tree, .p = p, .map = map, .interpreted = tree->interpreted};
	struct csink_interpreted own = {0};
	int err = 0;

	if (a.interpreted)
		a.side = tree->build->nr_profiles++;
	else
		err = csink_interpreted_build(&own, &p, 1);
	if (err)
		return err;
	a.interpreted = a.interpreted ? a.interpreted : &own;
	err = add_rows(&a);
	if (!err)
		mark_pseudo(&a);
	csink_interpreted_free(&own);
	if (err)
		csink_frame_map_free(map);
	return err;
}

void csink_frame_map_free(struct csink_frame_map *map)
{
	free(map->spans);
	free(map->ids);
	map->spans = NULL;
	map->ids = NULL;
}

int csink_calltree_add(struct csink_calltree *tree, const struct csink_profile *p, uint32_t *nodes)
{
	struct csink_frame_map map;
	struct adding a = {.tree = tree, .p = p, .map = &map};
	int err = csink_calltree_map(tree, p, &map);

	if (err)
		return err;
	err = add_stacks(&a, nodes);
	csink_frame_map_free(&map);
	return err;
}

int csink_calltree_build(struct csink_calltree **tree, const struct csink_profile *p, uint32_t *nodes)
{
	uint32_t *order;
	int err;

	*tree = csink_calltree_create();
	if (!*tree)
		return -ENOMEM;
	err = csink_calltree_add(*tree, p, nodes);
	if (!err)
		err = csink_calltree_finish(*tree, &order);
	if (err) {
		csink_calltree_free(*tree);
		*tree = NULL;
		return err;
	}
	for (uint32_t i = 0; i < p->nr_stacks; i++)
		nodes[i] = order[nodes[i]];
	free(order);
	return 0;
}

uint32_t csink_calltree_depth(const struct csink_calltree *tree)
{
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < tree->nr_nodes; i++)
		deepest = CSINK_MAX(deepest, tree->nodes[i].depth);
	return deepest;
}

/* ---- order ---- */

static int compare_frames(const void *left, const void *right, void *frames)
{
	const struct csink_frame *a = (struct csink_frame *)frames + *(const uint32_t *)left;
	const struct csink_frame *b = (struct csink_frame *)frames + *(const uint32_t *)right;

	return strcmp(a->name, b->name) ?: strcmp(a->module, b->module);
}

/* Lists of siblings, sorted by name: frames are taken from the last name to the first, each put at its list's head. */
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
	int err = 0;

	*order = calloc(nr, sizeof(**order));
	if (f.first_child && f.next && f.by_frame && f.frame_next && f.frames && sorted && *order) {
		for (uint32_t i = 0; i < tree->nr_frames; i++)
			f.frames[i] = i;
		qsort_r(f.frames, tree->nr_frames, sizeof(*f.frames), compare_frames, tree->frames);
		link_families(tree, &f);
		number_nodes(tree, &f, sorted, *order);
		memcpy(tree->nodes, sorted, tree->nr_nodes * sizeof(*sorted));
	} else {
		err = -ENOMEM;
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
