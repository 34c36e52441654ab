/* Goes over a recording's extents and entries, which become the arrays of struct csink_recorded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/collect/recording_impl.h"

/* The smallest sizes, by type: what follows is checked where the entry is taken. */
static const uint32_t least_bytes[] = {
	[CSINK_ENTRY_MODULE] = sizeof(struct csink_rec_module) + 1,
	[CSINK_ENTRY_THREAD] = sizeof(struct csink_rec_thread),
	[CSINK_ENTRY_NODES] = sizeof(struct csink_rec_nodes),
	[CSINK_ENTRY_CELLS] = sizeof(struct csink_rec_cells),
	[CSINK_ENTRY_ROW] = sizeof(struct csink_rec_row),
	[CSINK_ENTRY_PHASE] = sizeof(struct csink_rec_phase) + 1,
	[CSINK_ENTRY_NOTE] = sizeof(struct csink_rec_note) + 1,
	[CSINK_ENTRY_SPAWN] = sizeof(struct csink_rec_spawn) + 1,
	[CSINK_ENTRY_TIMELINE] = sizeof(struct csink_rec_timeline),
	[CSINK_ENTRY_CODE] = sizeof(struct csink_rec_code) + 2,
	[CSINK_ENTRY_IMAGE] = sizeof(struct csink_rec_image),
	[CSINK_ENTRY_WAIT] = sizeof(struct csink_rec_wait),
};

#define APPEND(array, nr, value) (CSINK_GROW_UNCAPPED(array, nr) ? -ENOMEM : ((array)[(nr)++] = (value), 0))

static bool has_end(const char *text, const struct csink_entry *head)
{
	return memchr(text, 0, (const char *)head + head->bytes - text) != NULL;
}

static csink_ref_t ref_of(const struct csink_recorded *rec, const void *at)
{
	return (csink_ref_t)(((const char *)at - (const char *)rec->data) / 8);
}

/* One more row, whose references are still to be resolved. */
static int append_row(struct csink_recorded *rec, const struct csink_recorded_row *row)
{
	uint32_t nr = rec->nr_rows;

	/* Weights grow in step: APPEND's rule, for nr_events at a time. */
	if (csink_grow_uncapped((void **)&rec->weights, nr,
				sizeof(*rec->weights) * CSINK_MAX(rec->header.nr_events, 1)))
		return -ENOMEM;
	return APPEND(rec->rows, rec->nr_rows, *row);
}

static int take_row(struct csink_recorded *rec, const struct csink_rec_row *row)
{
	uint32_t nr_events = rec->header.nr_events;
	struct csink_recorded_row to = {ref_of(rec, row), row->thread, row->node,
					row->head.aux,    row->leaf,   row->nr_samples};
	int err;

	if (nr_events > (row->head.bytes - sizeof(*row)) / sizeof(row->weights[0]))
		return -EBADMSG;
	err = append_row(rec, &to);
	if (!err)
		memcpy(rec->weights + (size_t)(rec->nr_rows - 1) * nr_events, row->weights,
		       nr_events * sizeof(row->weights[0]));
	return err;
}

static int take_cells(struct csink_recorded *rec, const struct csink_rec_cells *cells)
{
	uint32_t nr_events = rec->header.nr_events, each = csink_cell_bytes(nr_events);

	if (cells->nr > (cells->head.bytes - sizeof(*cells)) / each)
		return -EBADMSG;
	for (uint32_t i = 0; i < cells->nr; i++) {
		const struct csink_rec_cell *cell = (const void *)(cells->cells + (size_t)i * each);
		struct csink_recorded_row to = {ref_of(rec, cell),
						cells->thread,
						cell->node,
						cells->head.aux,
						(uint64_t)cell->leaf_high << 32 | cell->leaf_low,
						cell->nr_samples};

		if (append_row(rec, &to))
			return -ENOMEM;
		for (uint32_t e = 0; e < nr_events; e++)
			rec->weights[(size_t)(rec->nr_rows - 1) * nr_events + e] = cell->weights[e];
	}
	return 0;
}

/*
 * A node's place in the list is written over its flags, which means nothing to a reader: a reference can then be
 * proved with one look (find_node), without an index of our own.
 */
static int take_nodes(struct csink_recorded *rec, struct csink_rec_nodes *nodes)
{
	if (nodes->nr > (nodes->head.bytes - sizeof(*nodes)) / sizeof(nodes->nodes[0]))
		return -EBADMSG;
	for (uint32_t i = 0; i < nodes->nr; i++) {
		struct csink_rec_node *node = &nodes->nodes[i];
		struct csink_recorded_node to = {node->pc, ref_of(rec, node), node->parent, CSINK_RECORDED_NONE, 0};

		node->flags = rec->nr_nodes;
		if (APPEND(rec->nodes, rec->nr_nodes, to))
			return -ENOMEM;
	}
	return 0;
}

static int take_code(struct csink_recorded *rec, const struct csink_rec_code *code)
{
	uint32_t room = code->head.bytes - (uint32_t)sizeof(*code);
	const char *end = memchr(code->text, 0, CSINK_MIN((uint32_t)code->nr_names, room));

	if (code->nr_names > room || code->nr_table > room - code->nr_names || code->nr_table > CSINK_CODE_MAX_TABLE ||
	    !end || end + 1 == code->text + code->nr_names || code->text[code->nr_names - 1])
		return -EBADMSG;
	return APPEND(rec->codes, rec->nr_codes, code);
}

/* Take one entry. Returns 0, -EBADMSG (the entry is damaged) or -ENOMEM. */
static int take(struct csink_recorded *rec, struct csink_entry *head)
{
	union {
		struct csink_entry *head;
		struct csink_rec_module *module;
		struct csink_rec_thread *thread;
		struct csink_rec_nodes *nodes;
		struct csink_rec_row *row;
		struct csink_rec_cells *cells;
		struct csink_rec_note *note;
		struct csink_rec_spawn *spawn;
		struct csink_rec_phase *phase;
		struct csink_rec_timeline *timeline;
		struct csink_rec_code *code;
		struct csink_rec_image *image;
		struct csink_rec_wait *wait;
	} at = {head};

	switch (head->type) {
	case CSINK_ENTRY_MODULE:
		if (!has_end(at.module->path, head) || at.module->start >= at.module->end ||
		    at.module->build_id_len > sizeof(at.module->build_id))
			return -EBADMSG;
		return APPEND(rec->modules, rec->nr_modules, at.module);
	case CSINK_ENTRY_THREAD:
		at.thread->name[sizeof(at.thread->name) - 1] = 0;
		rec->nr_gone_threads += at.thread->nr_former;
		return APPEND(rec->threads, rec->nr_threads, at.thread);
	case CSINK_ENTRY_NODES:
		return take_nodes(rec, at.nodes);
	case CSINK_ENTRY_ROW:
		return take_row(rec, at.row);
	case CSINK_ENTRY_CELLS:
		return take_cells(rec, at.cells);
	case CSINK_ENTRY_TIMELINE:
		if (at.timeline->nr > (head->bytes - sizeof(*at.timeline)) / sizeof(at.timeline->moments[0]))
			return -EBADMSG;
		return APPEND(rec->timelines, rec->nr_timelines, at.timeline);
	case CSINK_ENTRY_CODE:
		return take_code(rec, at.code);
	case CSINK_ENTRY_IMAGE:
		if (at.image->nr_image > head->bytes - sizeof(*at.image))
			return -EBADMSG;
		return APPEND(rec->images, rec->nr_images, at.image);
	case CSINK_ENTRY_WAIT:
		return APPEND(rec->waits, rec->nr_waits, at.wait);
	case CSINK_ENTRY_NOTE:
		return has_end(at.note->text, head) ? APPEND(rec->notes, rec->nr_notes, at.note) : -EBADMSG;
	case CSINK_ENTRY_PHASE:
		return has_end(at.phase->name, head) ? APPEND(rec->phases, rec->nr_phases, at.phase) : -EBADMSG;
	case CSINK_ENTRY_SPAWN:
		return has_end(at.spawn->path, head) ? APPEND(rec->spawns, rec->nr_spawns, at.spawn) : -EBADMSG;
	}
	return 0; /* of a later minor version: not ours to judge */
}

/* Entries of one DATA extent, up to the first that was not committed. */
static int walk_extent(struct csink_recorded *rec, size_t at, size_t end)
{
	struct csink_entry *head;
	int err;

	while (end - at >= sizeof(*head)) {
		head = (struct csink_entry *)((char *)rec->data + at);
		if (!head->type)
			return 0;
		if (head->bytes % 8 || head->bytes < sizeof(*head) || head->bytes > end - at ||
		    (head->type < CSINK_ARRAY_SIZE(least_bytes) && head->bytes < least_bytes[head->type])) {
			rec->nr_damaged++;
			return 0;
		}
		err = take(rec, head);
		if (err == -EBADMSG)
			rec->nr_damaged++;
		else if (err)
			return err;
		at += head->bytes;
	}
	return 0;
}

int csink_recorded_walk(struct csink_recorded *rec)
{
	size_t at = CSINK_REC_HEADER_BYTES, len;
	const struct csink_rec_extent *extent;
	int err;

	err = walk_extent(rec, sizeof(rec->header), CSINK_REC_HEADER_BYTES);
	if (err)
		return err;
	while (rec->bytes - at >= CSINK_REC_BLOCK) {
		extent = (const void *)((char *)rec->data + at);
		if (csink_recorded_is_hole(rec, at) ||
		    !extent->kind) { /* handed out, never used; its length is not known either */
			at += CSINK_REC_BLOCK;
			continue;
		}
		len = (size_t)extent->nr_blocks * CSINK_REC_BLOCK;
		if (extent->kind != CSINK_EXTENT_DATA || !len) {
			rec->nr_damaged++; /* blocks that follow may still begin an extent */
			at += CSINK_REC_BLOCK;
			continue;
		}
		if (len > rec->bytes - at) {
			rec->nr_damaged += !rec->is_cut;
			len = rec->bytes - at;
		}
		err = walk_extent(rec, at + sizeof(*extent), at + len);
		if (err)
			return err;
		at += len;
	}
	return 0;
}
