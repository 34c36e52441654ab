/*
 * Builds call trees (calltree.h). Each location is turned into frames once; a stack then costs a look-up for each of
 * its frames, in one table of all (caller node, frame) pairs.
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
#include "launcher/profile/function_name.h"
#include "launcher/profile/interpreted.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/rows.h"
#include "launcher/symbols/symbols.h"

/* What a frame is known by while the tree grows; strings are ids in build->strings. */
struct frame_key {
	csink_str_t name;
	csink_str_t signature; /* of a mangled symbol, 0: none */
	csink_str_t module;    /* what it is compared by */
	csink_str_t path;      /* of the module */
	csink_str_t file;
	int64_t start_line;
	bool is_pseudo, seen_inlined, seen_plain, is_interpreted;
};

struct csink_calltree_private {
	struct csink_profile *strings; /* a pool of strings, nothing else */
	struct frame_key *keys;
	uint32_t cap_frames, cap_nodes, nr_profiles;
	struct csink_table frame_table, node_table; /* ids: index + 1; node, but for the root */
};

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
		free(tree->build->keys);
		csink_table_free(&tree->build->frame_table);
		csink_table_free(&tree->build->node_table);
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
	const struct csink_interpreted *interpreted;
	uint32_t side; /* of the profile in it */
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

static void set_interpreted(struct adding *a, uint32_t index, struct frame_key *key)
{
	const struct csink_interpreted_function *function = &a->interpreted->all[index];
	const struct csink_profile *names = a->interpreted->names;
	struct csink_profile *strings = a->tree->build->strings;

	key->name = csink_profile_str(strings, csink_profile_text(names, function->name));
	key->module = key->path = key->file = csink_profile_str(strings, csink_profile_text(names, function->path));
	key->start_line = function->line;
	key->is_interpreted = true;
}

static int add_frame(struct adding *a, uint32_t function, const struct csink_profile_location *location,
		     const struct frame_key *module, bool is_inlined)
{
	const struct csink_profile_function *f = &a->p->functions[function];
	struct frame_key wanted = *module, *key;
	uint32_t frame, interpreted = a->interpreted->of[a->side][function];

	wanted.signature = a->signatures[function];
	wanted.name = copy_string(a, f->name);
	if (interpreted && csink_is_interpreted(a->p, location->mapping, function))
		set_interpreted(a, interpreted - 1, &wanted);
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
			err = add_frame(a, function, location, &module, k + 1 < location->nr_lines);
		}
		if (!location->nr_lines)
			err = add_frame(a, 0, location, &module, false);
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
	csink_str_t pseudo = csink_profile_str_find(p, CSINK_LABEL_PSEUDO);

	for (uint32_t i = 0; pseudo && i < p->nr_samples; i++) {
		const struct csink_profile_range *stack = &p->stacks[p->samples[i].stack];
		uint32_t first;

		if (!stack->nr || !csink_profile_label_find(p, p->samples[i].labels, pseudo))
			continue;
		first = a->map->spans[p->stack_ids[stack->first]].first;
		a->tree->build->keys[a->map->ids[first]].is_pseudo = true;
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
	csink_interpreted_free(&own);
	free(a.signatures);
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
	frame->is_interpreted = key->is_interpreted;
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
