/*
 * Builds call trees (calltree.h). Each location is turned into frames once; a stack then costs a look-up for each of
 * its frames, in one table of all (caller node, frame) pairs.
 */
#include "launcher/output/calltree_impl.h"
#include "launcher/profile/function_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/grow.h"
#include "launcher/base/hash.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/rows.h"
#include "launcher/symbols/symbols.h"

struct csink_calltree *csink_calltree_create(void)
{
	struct csink_calltree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->build = calloc(1, sizeof(*tree->build));
	tree->nodes = calloc(64, sizeof(*tree->nodes));
	if (tree->build)
		tree->build->strings = csink_profile_create();
	if (!tree->build || !tree->nodes || !tree->build->strings) {
		csink_calltree_destroy(tree);
		return NULL;
	}
	tree->build->cap_nodes = 64;
	tree->nr_nodes = 1;
	return tree;
}

void csink_calltree_destroy(struct csink_calltree *tree)
{
	if (!tree)
		return;
	if (tree->build) {
		csink_profile_destroy(tree->build->strings);
		free(tree->build->keys);
		csink_table_release(&tree->build->frame_table);
		csink_table_release(&tree->build->node_table);
	}
	free(tree->build);
	free(tree->frames);
	free(tree->nodes);
	free(tree);
}

/* ---- look-up ---- */

/* Returns the frame's index + 1, or 0 without memory. */
static uint32_t find_frame(struct csink_calltree *tree, const struct frame_key *wanted)
{
	struct csink_calltree_private *b = tree->build;
	uint32_t hash = (uint32_t)csink_hash_pair((uint64_t)wanted->name << 32 | wanted->module, wanted->signature);
	const struct frame_key *keys;
	struct csink_slot *slot;

	if (csink_table_room(&b->frame_table) || CSINK_GROW(b->keys, tree->nr_frames, b->cap_frames))
		return 0;
	keys = b->keys;
	CSINK_TABLE_PROBE(b->frame_table, hash, slot,
			  keys[id - 1].name == wanted->name && keys[id - 1].module == wanted->module &&
				  keys[id - 1].signature == wanted->signature);
	if (!slot->id) {
		b->keys[tree->nr_frames] = *wanted;
		csink_table_set(&b->frame_table, slot, hash, ++tree->nr_frames);
	}
	return slot->id;
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
	csink_str_t *signatures; /* of its functions, in the tree's strings */
	struct csink_frame_map *map;
	uint32_t nr_ids;
};

static csink_str_t copy_string(struct adding *a, csink_str_t id)
{
	return csink_profile_str(a->tree->build->strings, csink_profile_text(a->p, id));
}

static void sign(struct adding *a)
{
	struct csink_profile *strings = a->tree->build->strings;
	char *signature;

	for (uint32_t i = 1; i < a->p->nr_functions; i++) {
		if (a->p->functions[i].system_name == a->p->functions[i].name)
			continue;
		signature = csink_symbol_signature(csink_profile_text(a->p, a->p->functions[i].system_name));
		a->signatures[i] = signature ? csink_profile_str(strings, signature) : 0;
		free(signature);
	}
}

static int add_frame(struct adding *a, uint32_t function, const struct frame_key *module, bool is_inlined)
{
	const struct csink_profile_function *f = &a->p->functions[function];
	struct frame_key wanted = *module, *key;
	uint32_t frame;

	wanted.signature = a->signatures[function];
	wanted.name = copy_string(a, f->name);
	frame = find_frame(a->tree, &wanted);
	if (!frame)
		return -ENOMEM;
	key = &a->tree->build->keys[frame - 1];
	if (!key->file) {
		key->file = copy_string(a, f->file);
		key->start_line = f->start_line;
	}
	key->seen_inlined |= is_inlined;
	key->seen_plain |= !is_inlined;
	a->map->ids[a->nr_ids++] = frame - 1;
	return 0;
}

static void set_module(struct adding *a, uint32_t mapping, struct frame_key *key)
{
	struct csink_profile *strings = a->tree->build->strings;

	key->path = copy_string(a, mapping < a->p->nr_mappings ? a->p->mappings[mapping].file : 0);
	key->module = key->path;
	if (a->tree->by_base_name)
		key->module = csink_profile_str(strings, csink_base_name(csink_profile_text(strings, key->path)));
}

static int add_locations(struct adding *a)
{
	const struct csink_profile_location *location;
	struct frame_key module = {0};
	uint32_t function;
	int err = 0;

	for (uint32_t id = 1; id < a->p->nr_locations && !err; id++) {
		location = &a->p->locations[id];
		set_module(a, location->mapping, &module);
		a->map->spans[id].first = a->nr_ids;
		for (uint32_t k = 0; k < location->nr_lines && !err; k++) {
			function = a->p->lines[location->first_line + k].function;
			err = add_frame(a, function, &module, k + 1 < location->nr_lines);
		}
		if (!location->nr_lines)
			err = add_frame(a, 0, &module, false);
		a->map->spans[id].nr = a->nr_ids - a->map->spans[id].first;
	}
	return err ? err : csink_profile_error(a->tree->build->strings);
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
	const struct csink_profile_range *set, *stack;
	csink_str_t pseudo = 0;

	for (uint32_t i = 1; i < p->nr_strings && !pseudo; i++) {
		if (!strcmp(p->strings[i].text, CSINK_LABEL_PSEUDO))
			pseudo = i;
	}
	for (uint32_t i = 0; pseudo && i < p->nr_samples; i++) {
		set = &p->label_sets[p->samples[i].labels];
		stack = &p->stacks[p->samples[i].stack];
		for (uint32_t k = 0; k < set->nr && stack->nr; k++) {
			const struct csink_frame_span *span = &a->map->spans[p->stack_ids[stack->first]];

			if (p->labels[set->first + k].key == pseudo)
				a->tree->build->keys[a->map->ids[span->first]].is_pseudo = true;
		}
	}
}

int csink_calltree_map(struct csink_calltree *tree, const struct csink_profile *p, struct csink_frame_map *map)
{
	struct adding a = {.tree = tree, .p = p, .map = map};
	int err;

	a.signatures = calloc(CSINK_MAX(p->nr_functions, 1), sizeof(*a.signatures));
	map->spans = calloc(CSINK_MAX(p->nr_locations, 1), sizeof(*map->spans));
	map->ids = calloc((size_t)p->nr_lines + p->nr_locations + 1, sizeof(*map->ids));
	err = a.signatures && map->spans && map->ids ? 0 : -ENOMEM;
	if (!err) {
		sign(&a);
		err = add_locations(&a);
	}
	if (!err)
		mark_pseudo(&a);
	free(a.signatures);
	if (err)
		csink_frame_map_release(map);
	return err;
}

void csink_frame_map_release(struct csink_frame_map *map)
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
	csink_frame_map_release(&map);
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
		csink_calltree_destroy(*tree);
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
