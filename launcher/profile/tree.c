/* See tree.h. */
#include "launcher/profile/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/search.h"

/*
 * While the tree is built, the first children of a node are a list (first, next) in the order of insertion, and only
 * further ones are in the hash: nearly all nodes have few children, and a slot of the hash is a cache miss in a large
 * tree.
 */
#define MAX_LISTED 8

int csink_tree_init(struct csink_tree *t)
{
	*t = (struct csink_tree){0};
	return CSINK_APPEND(t->nodes, t->nr_nodes, t->cap_nodes, (struct csink_tree_node){0}) ? 0 : -ENOMEM;
}

/* There is room. */
static uint32_t add_node(struct csink_tree *t, uint32_t parent, uint32_t row)
{
	t->nodes[t->nr_nodes] =
		(struct csink_tree_node){.row = row, .parent = parent, .depth = t->nodes[parent].depth + 1};
	return t->nr_nodes++;
}

uint32_t csink_tree_child(struct csink_tree *t, uint32_t parent, uint32_t row)
{
	uint32_t *link, listed = 0;

	if (CSINK_GROW(t->nodes, t->nr_nodes, t->cap_nodes))
		return 0;
	for (link = &t->nodes[parent].first; *link && listed < MAX_LISTED; link = &t->nodes[*link].next, listed++) {
		if (t->nodes[*link].row == row)
			return *link;
	}
	if (listed < MAX_LISTED)
		return *link = add_node(t, parent, row);
	return CSINK_TABLE_INTERN(t->table, (uint32_t)csink_hash_pair(parent, row),
				  t->nodes[id].parent == parent && t->nodes[id].row == row, add_node(t, parent, row));
}

static void add(int64_t *to, int64_t value)
{
	*to = csink_add(*to, value);
}

/* The rows of a stack, innermost first, one after the other. */
struct walk {
	const struct csink_rows *rows;
	uint32_t *ids;
	uint32_t nr, cap;
};

static int unroll(struct walk *w, const struct csink_profile *p, uint32_t stack)
{
	w->nr = 0;
	CSINK_EACH_ROW(w->rows, p, &p->stacks[stack], at)
	{
		if (!CSINK_APPEND(w->ids, w->nr, w->cap, *at))
			return -ENOMEM;
	}
	return 0;
}

static int add_sample(struct csink_tree *t, const struct walk *w, int64_t value, const bool *from)
{
	uint32_t node = 0, i = 0;

	while (from && i < w->nr && !from[w->ids[i]])
		i++;
	if (from && i == w->nr)
		return 0;
	add(&t->nodes[0].total, value);
	for (; i < w->nr; i++) {
		node = csink_tree_child(t, node, from ? w->ids[i] : w->ids[w->nr - 1 - i]);
		if (!node)
			return -ENOMEM;
		add(&t->nodes[node].total, value);
	}
	add(&t->nodes[node].self, value);
	return 0;
}

/* ---- order ---- */

struct order {
	const struct csink_tree_node *nodes;
	const uint32_t *rank;
};

/* By parent; of one parent the largest last, so that linking from the front leaves it first. */
static int compare_nodes(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct csink_tree_node *left = &order->nodes[*(const uint32_t *)a],
				     *right = &order->nodes[*(const uint32_t *)b];
	int by = CSINK_COMPARE(left->parent, right->parent) ?: CSINK_COMPARE(left->total, right->total);

	return by ?: CSINK_COMPARE(order->rank[right->row], order->rank[left->row]);
}

int csink_tree_link(struct csink_tree *t, const uint32_t *rank)
{
	struct order context = {t->nodes, rank};
	CSINK_AUTO_FREE uint32_t *order = csink_sorted(t->nr_nodes, compare_nodes, &context);

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nr_nodes; i++)
		t->nodes[i].first = t->nodes[i].next = 0;
	for (uint32_t i = 0; i < t->nr_nodes; i++) {
		struct csink_tree_node *node = &t->nodes[order[i]], *parent = &t->nodes[node->parent];

		if (!order[i]) /* the root */
			continue;
		node->next = parent->first;
		parent->first = order[i];
	}
	return 0;
}

static int compare_keys(const void *a, const void *b, void *context)
{
	const struct csink_row_key *keys = context, *left = &keys[*(const uint32_t *)a],
				   *right = &keys[*(const uint32_t *)b];

	return strcmp(left->name, right->name) ?: strcmp(left->module, right->module);
}

static int link_by_name(struct csink_tree *t, const struct csink_rows *rows)
{
	CSINK_AUTO_FREE uint32_t *rank = csink_ranks(rows->nr_keys, compare_keys, rows->keys);

	return rank ? csink_tree_link(t, rank) : -ENOMEM;
}

int csink_tree_build(struct csink_tree *t, const struct csink_profile *p, const struct csink_rows *rows, uint32_t type,
		     const bool *from)
{
	struct walk w = {.rows = rows};
	int err = csink_tree_init(t);

	for (uint32_t i = 0; i < p->nr_samples && !err; i++) {
		err = unroll(&w, p, p->samples[i].stack);
		if (!err)
			err = add_sample(t, &w, csink_profile_values(p, i)[type], from);
	}
	if (!err)
		err = link_by_name(t, rows);
	free(w.ids);
	csink_table_free(&t->table);
	if (err)
		csink_tree_free(t);
	return err;
}

void csink_tree_free(struct csink_tree *t)
{
	free(t->nodes);
	csink_table_free(&t->table);
	*t = (struct csink_tree){0};
}
