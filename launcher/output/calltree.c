/*
 * Builds call trees (calltree.h). Frames are the rows of the report (rows.h), into which each location is turned once;
 * a stack then costs a look-up for each of its frames.
 */
#include "launcher/output/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/rows.h"

struct csink_calltree *csink_calltree_create(void)
{
	struct csink_calltree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->strings = csink_profile_create();
	tree->pairs = csink_profile_create();
	if (tree->strings && tree->pairs && !csink_tree_init(&tree->calls))
		return tree;
	csink_calltree_free(tree);
	return NULL;
}

void csink_calltree_free(struct csink_calltree *tree)
{
	if (!tree)
		return;
	csink_profile_free(tree->strings);
	csink_profile_free(tree->pairs);
	csink_tree_free(&tree->calls);
	free(tree->of_stack[0]);
	free(tree->of_stack[1]);
	free(tree->frames);
	free(tree->path);
	free(tree);
}

/* ---- look-up ---- */

static csink_str_t string_of(const struct csink_calltree *tree, const char *text)
{
	return csink_profile_str(tree->strings, text);
}

/* The frame + 1 of a row, or 0 without memory. The module of an interpreted function is the file, whatever its name. */
static uint32_t frame_of(struct csink_calltree *tree, const struct csink_row_key *key)
{
	bool is_whole = !tree->by_base_name || key->is_interpreted;
	csink_str_t name = string_of(tree, key->name), module = string_of(tree, key->module);
	const csink_str_t pair[] = {key->name_id ? name : 0,
				    is_whole ? module : string_of(tree, csink_base_name(key->module))};
	csink_str_t frame = csink_profile_strn(tree->pairs, (const char *)pair, sizeof(pair));

	if (frame == tree->nr_frames + 1) {
		if (CSINK_GROW(tree->frames, tree->nr_frames, tree->cap_frames))
			return 0;
		tree->frames[tree->nr_frames++] = (struct csink_frame){
			.name = csink_profile_text(tree->strings, name),
			.module = csink_profile_text(tree->strings, module),
			.file = key->is_interpreted ? csink_profile_text(tree->strings, module) : "",
			.language = "",
			.is_inlined = true,
			.is_interpreted = key->is_interpreted};
	}
	return frame;
}

/* ---- from a profile ---- */

/* A profile while it is added. */
struct adding {
	struct csink_calltree *tree;
	const struct csink_profile *p;
	struct csink_rows *map;
	const struct csink_interpreted *interpreted;
	uint32_t side; /* of the profile in it: interpreted */
};

/* Where a frame begins in the source, by one of the functions that it stands for. */
static void set_place(struct adding *a, struct csink_frame *frame, uint32_t function)
{
	const struct csink_profile_function *f = &a->p->functions[function];

	if (f->language)
		frame->language =
			csink_profile_text(a->tree->strings, string_of(a->tree, csink_profile_text(a->p, f->language)));
	if (frame->is_interpreted)
		frame->start_line = a->interpreted->all[a->interpreted->of[a->side][function] - 1].line;
	if (*frame->file)
		return;
	frame->file = csink_profile_text(a->tree->strings, string_of(a->tree, csink_profile_text(a->p, f->file)));
	frame->start_line = f->start_line;
}

/* Rows become frames. */
static int take_rows(struct adding *a)
{
	struct csink_rows *map = a->map;
	CSINK_AUTO_FREE uint32_t *frames = calloc(map->nr_keys + 1UL, sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->nr_keys; i++) {
		frames[i] = frame_of(a->tree, &map->keys[i]);
		if (!frames[i])
			return -ENOMEM;
		a->tree->frames[frames[i] - 1].is_inlined &= !map->keys[i].seen_plain;
	}
	for (uint32_t id = 1; id < a->p->nr_locations; id++) {
		const struct csink_profile_location *location = &a->p->locations[id];
		uint32_t *ids = map->ids + map->spans[id].first;

		for (uint32_t k = 0; k < map->spans[id].nr; k++) {
			ids[k] = frames[ids[k]] - 1;
			set_place(a, &a->tree->frames[ids[k]],
				  location->nr_lines ? a->p->lines[location->first_line + k].function : 0);
		}
	}
	return csink_profile_error(a->tree->strings);
}

static int add_stacks(struct csink_calltree *tree, const struct csink_profile *p, const struct csink_rows *map,
		      uint32_t *nodes)
{
	for (uint32_t s = 1; s < p->nr_stacks; s++) {
		const uint32_t *ids = p->stack_ids + p->stacks[s].first;

		for (uint32_t i = p->stacks[s].nr; i-- > 0;) {
			for (uint32_t k = map->spans[ids[i]].nr; k-- > 0;) {
				nodes[s] = csink_tree_child(&tree->calls, nodes[s],
							    map->ids[map->spans[ids[i]].first + k]);
				if (!nodes[s])
					return -ENOMEM;
			}
		}
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

int csink_calltree_map(struct csink_calltree *tree, const struct csink_profile *p, struct csink_rows *map)
{
	CSINK_AUTO(csink_interpreted_free) struct csink_interpreted own = {0};
	struct adding a = {.tree = tree, .p = p, .map = map, .interpreted = tree->interpreted};
	int err = 0;

	if (a.interpreted)
		a.side = tree->nr_profiles;
	else
		err = csink_interpreted_build(&own, &p, 1);
	if (err)
		return err;
	a.interpreted = a.interpreted ? a.interpreted : &own;
	err = csink_rows_build_found(map, p, CSINK_BY_FUNCTION, a.interpreted, a.side) ?: take_rows(&a);
	if (err)
		csink_rows_free(map);
	else
		mark_pseudo(&a);
	return err;
}

int csink_calltree_add(struct csink_calltree *tree, const struct csink_profile *p)
{
	CSINK_AUTO(csink_rows_free) struct csink_rows map = {0};
	int err = csink_calltree_map(tree, p, &map);
	uint32_t *nodes;

	if (err)
		return err;
	nodes = tree->of_stack[tree->nr_profiles] = calloc(CSINK_MAX(p->nr_stacks, 1), sizeof(*nodes));
	tree->nr_stacks[tree->nr_profiles++] = p->nr_stacks;
	return nodes ? add_stacks(tree, p, &map, nodes) : -ENOMEM;
}

int csink_calltree_build(struct csink_calltree **tree, const struct csink_profile *p)
{
	int err;

	*tree = csink_calltree_create();
	err = *tree ? csink_calltree_add(*tree, p) : -ENOMEM;
	return err ? err : csink_calltree_finish(*tree);
}

const uint32_t *csink_calltree_path(const struct csink_calltree *tree, uint32_t node)
{
	const struct csink_tree_node *nodes = tree->calls.nodes;

	for (; node; node = nodes[node].parent)
		tree->path[nodes[node].depth - 1] = nodes[node].row;
	return tree->path;
}

/* ---- order ---- */

static int compare_frames(const void *left, const void *right, void *frames)
{
	const struct csink_frame *a = (struct csink_frame *)frames + *(const uint32_t *)left;
	const struct csink_frame *b = (struct csink_frame *)frames + *(const uint32_t *)right;

	return strcmp(a->name, b->name) ?: strcmp(a->module, b->module);
}

/* From the root down, without recursion: a stack may have hundreds of frames, and a tree may be as deep. Returns the
 * greatest depth. */
static uint32_t number_nodes(const struct csink_tree_node *nodes, uint32_t *number)
{
	uint32_t node = 0, nr = 0, deepest = 0;

	for (;;) {
		number[node] = nr++;
		deepest = CSINK_MAX(deepest, nodes[node].depth);
		if (nodes[node].first) {
			node = nodes[node].first;
			continue;
		}
		while (node && !nodes[node].next)
			node = nodes[node].parent;
		if (!node)
			return deepest;
		node = nodes[node].next;
	}
}

int csink_calltree_finish(struct csink_calltree *tree)
{
	struct csink_tree *calls = &tree->calls;
	CSINK_AUTO_FREE uint32_t *rank = csink_ranks(tree->nr_frames, compare_frames, tree->frames);
	CSINK_AUTO_FREE uint32_t *number = calloc(calls->nr_nodes, sizeof(*number));
	struct csink_tree_node *sorted = calloc(calls->nr_nodes, sizeof(*sorted));

	if (rank && number && sorted && !csink_tree_link(calls, rank))
		tree->path = calloc((size_t)number_nodes(calls->nodes, number) + 1, sizeof(*tree->path));
	if (!tree->path) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < calls->nr_nodes; i++) {
		struct csink_tree_node node = calls->nodes[i];

		node.parent = number[node.parent];
		node.first = number[node.first];
		node.next = number[node.next];
		sorted[number[i]] = node;
	}
	free(calls->nodes);
	calls->nodes = sorted;
	for (uint32_t side = 0; side < tree->nr_profiles; side++) {
		for (uint32_t i = 0; i < tree->nr_stacks[side]; i++)
			tree->of_stack[side][i] = number[tree->of_stack[side][i]];
	}
	return 0;
}
