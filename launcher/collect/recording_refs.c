/* References between a recording's entries become indices, or are found to lead nowhere. */
#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/collect/recording_impl.h"

/* The index of the node at a reference, or CSINK_RECORDED_NONE. */
static uint32_t find_node(const struct csink_recorded *rec, csink_ref_t ref)
{
	const struct csink_rec_node *node = (const void *)((char *)rec->data + (uint64_t)ref * 8);

	if ((uint64_t)ref * 8 + sizeof(*node) > rec->bytes || node->flags >= rec->nr_nodes ||
	    rec->nodes[node->flags].ref != ref)
		return CSINK_RECORDED_NONE;
	return node->flags;
}

/* Threads are few and rows of one come in runs: a search, begun at the last answer. */
static uint32_t find_thread(const struct csink_recorded *rec, csink_ref_t ref, uint32_t hint)
{
	const struct csink_rec_thread *thread;
	uint32_t low;

	if ((uint64_t)ref * 8 >= rec->bytes)
		return CSINK_RECORDED_NONE;
	thread = (const void *)((char *)rec->data + (uint64_t)ref * 8);
	if (hint < rec->nr_threads && rec->threads[hint] == thread)
		return hint;
	low = CSINK_LOWER(rec->nr_threads, i, rec->threads[i] < thread);
	return low < rec->nr_threads && rec->threads[low] == thread ? low : CSINK_RECORDED_NONE;
}

uint32_t csink_recorded_row_at(const struct csink_recorded *rec, csink_ref_t ref)
{
	uint32_t low = CSINK_LOWER(rec->nr_rows, i, rec->rows[i].ref < ref);

	return low < rec->nr_rows && rec->rows[low].ref == ref ? low : CSINK_RECORDED_NONE;
}

const struct csink_rec_code *csink_recorded_code_at(const struct csink_recorded *rec, csink_ref_t ref)
{
	const struct csink_rec_code *code = (const void *)((char *)rec->data + (uint64_t)ref * 8);
	uint32_t low = CSINK_LOWER(rec->nr_codes, i, rec->codes[i] < code);

	return low < rec->nr_codes && rec->codes[low] == code ? code : NULL;
}

uint32_t csink_recorded_image_at(const struct csink_recorded *rec, csink_ref_t ref)
{
	const struct csink_rec_image *image = (const void *)((char *)rec->data + (uint64_t)ref * 8);
	uint32_t low = CSINK_LOWER(rec->nr_images, i, rec->images[i] < image);

	return low < rec->nr_images && rec->images[low] == image ? low : CSINK_RECORDED_NONE;
}

/*
 * Climb from a node until one is met whose root is known, or a root; then what was passed is known, too. What leads
 * nowhere, or to more callers than there are in any stack, as in a ring of nodes, is cut off, so that no reader climbs
 * there again.
 */
static void find_root(struct csink_recorded *rec, uint32_t index)
{
	struct csink_recorded_node *nodes = rec->nodes;
	uint32_t path[CSINK_MAX_DEPTH + 1], nr = 0, at = index;

	while (nodes[at].root == CSINK_RECORDED_NONE && nodes[at].parent != CSINK_RECORDED_NONE &&
	       nr < CSINK_ARRAY_SIZE(path)) {
		path[nr++] = at;
		at = nodes[at].parent;
	}
	if (nodes[at].root == CSINK_RECORDED_NONE || nodes[at].depth + nr > CSINK_MAX_DEPTH) {
		while (nr)
			nodes[path[--nr]].parent = CSINK_RECORDED_NONE;
		return;
	}
	while (nr) {
		struct csink_recorded_node *node = &nodes[path[--nr]];

		node->root = nodes[node->parent].root;
		node->depth = nodes[node->parent].depth + 1;
	}
}

/* Callers may come after their callees, in another thread's extent: so this is a pass of its own. */
static void resolve_nodes(struct csink_recorded *rec)
{
	for (uint32_t i = 0; i < rec->nr_nodes; i++) {
		struct csink_recorded_node *node = &rec->nodes[i];

		if (!node->parent) {
			node->root = i;
			node->parent = CSINK_RECORDED_NONE;
			continue;
		}
		node->parent = find_node(rec, node->parent);
		rec->nr_damaged += node->parent == CSINK_RECORDED_NONE;
	}
	for (uint32_t i = 0; i < rec->nr_nodes; i++)
		find_root(rec, i);
}

/*
 * Rows, too, may come before what they refer to. A row with a bad reference stays, without the part that cannot be
 * known: its time was spent all the same.
 */
static void resolve_rows(struct csink_recorded *rec)
{
	uint32_t hint = 0;

	for (uint32_t i = 0; i < rec->nr_rows; i++) {
		struct csink_recorded_row *row = &rec->rows[i];
		bool has_thread = row->thread, has_node = row->node;

		row->thread = has_thread ? find_thread(rec, row->thread, hint) : CSINK_RECORDED_NONE;
		row->node = has_node ? find_node(rec, row->node) : CSINK_RECORDED_NONE;
		if (row->node != CSINK_RECORDED_NONE && rec->nodes[row->node].root == CSINK_RECORDED_NONE)
			row->node = CSINK_RECORDED_NONE;
		rec->nr_damaged += (has_thread && row->thread == CSINK_RECORDED_NONE) ||
				   (has_node && row->node == CSINK_RECORDED_NONE);
		if (row->thread != CSINK_RECORDED_NONE)
			hint = row->thread;
	}
}

void csink_recorded_resolve(struct csink_recorded *rec)
{
	resolve_nodes(rec);
	resolve_rows(rec);
}
