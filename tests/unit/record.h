/*
 * Makes recordings in memory, as the library would leave them, for the tests of whoever reads them. Entries are
 * appended to one DATA extent; the caller fills what matters to it.
 */
#ifndef CSINK_TESTS_RECORD_H
#define CSINK_TESTS_RECORD_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/recording_format.h"

struct record {
	unsigned char *bytes;
	size_t size; /* a multiple of the block */
	size_t at;   /* next entry */
	struct csink_rec_header *header;
};

static struct record record_new(uint32_t nr_blocks)
{
	struct record r = {.size = (size_t)nr_blocks * CSINK_REC_BLOCK};
	struct csink_rec_extent *extent;

	r.bytes = calloc(1, r.size);
	r.header = (struct csink_rec_header *)r.bytes;
	*r.header = (struct csink_rec_header){
		.magic = CSINK_REC_MAGIC,
		.version = CSINK_REC_VERSION,
		.header_bytes = CSINK_REC_HEADER_BYTES,
		.nr_blocks = nr_blocks,
		.nr_events = 1,
		.state = CSINK_REC_EXITED,
		.pid = 100,
		.engine = CSINK_ENGINE_SIGTRAP,
		.unwind = CSINK_UNWIND_DWARF,
		.start_realtime_ns = 1700000000000000000ULL,
		.start_monotonic_ns = 1000,
		.end_monotonic_ns = 2000000000ULL,
		.comm = "prog",
		.exe = "/bin/prog",
		.cmdline = "prog\0--fast",
	};
	r.header->events[0] = (struct csink_rec_event){.name = "task-clock",
						       .unit = "nanoseconds",
						       .flags = CSINK_EVENT_LEADER | CSINK_EVENT_CPU_NS,
						       .period = 1000000};
	extent = (struct csink_rec_extent *)(r.bytes + CSINK_REC_HEADER_BYTES);
	*extent = (struct csink_rec_extent){CSINK_EXTENT_DATA, nr_blocks - CSINK_REC_HEADER_BYTES / CSINK_REC_BLOCK};
	r.at = CSINK_REC_HEADER_BYTES + sizeof(*extent);
	return r;
}

static void *record_entry(struct record *r, uint16_t type, uint16_t aux, size_t bytes)
{
	struct csink_entry *entry = (struct csink_entry *)(r->bytes + r->at);

	bytes = (bytes + 7) & ~(size_t)7;
	if (r->at + bytes > r->size)
		abort(); /* the test asked for too few blocks */
	*entry = (struct csink_entry){bytes, type, aux};
	r->at += bytes;
	return entry;
}

__attribute__((unused)) static csink_ref_t record_ref(const struct record *r, const void *entry)
{
	return ((const unsigned char *)entry - r->bytes) / 8;
}

__attribute__((unused)) static struct csink_rec_module *record_module(struct record *r, const char *path, uint64_t bias,
								      uint64_t start, uint64_t end)
{
	struct csink_rec_module *module = record_entry(r, CSINK_ENTRY_MODULE, 0, sizeof(*module) + strlen(path) + 1);

	module->bias = bias;
	module->start = start;
	module->end = end;
	module->path_len = strlen(path);
	strcpy(module->path, path);
	return module;
}

__attribute__((unused)) static struct csink_rec_thread *record_thread(struct record *r, int32_t tid, const char *name)
{
	struct csink_rec_thread *thread = record_entry(r, CSINK_ENTRY_THREAD, 0, sizeof(*thread));

	thread->tid = tid;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	return thread;
}

/* A stack of callers, innermost first, in an entry of its own: a root and nr nodes. Returns the innermost one. */
__attribute__((unused)) static struct csink_rec_node *record_chain(struct record *r, uint64_t since_ns, uint32_t nr,
								   const uint64_t *frames)
{
	struct csink_rec_nodes *chunk =
		record_entry(r, CSINK_ENTRY_NODES, 0, sizeof(*chunk) + (nr + 1) * sizeof(chunk->nodes[0]));

	chunk->nr = nr + 1;
	chunk->nodes[0] = (struct csink_rec_node){.pc = since_ns, .flags = 0xabcdef};
	for (uint32_t i = 1; i <= nr; i++)
		chunk->nodes[i] =
			(struct csink_rec_node){.pc = frames[nr - i], .parent = record_ref(r, &chunk->nodes[i - 1])};
	return &chunk->nodes[nr];
}

/* weights: nr_events of the header. */
__attribute__((unused)) static struct csink_rec_row *record_row(struct record *r, const void *thread, const void *node,
								uint64_t leaf, uint64_t nr_samples,
								const uint64_t *weights)
{
	size_t bytes = r->header->nr_events * sizeof(*weights);
	struct csink_rec_row *row = record_entry(r, CSINK_ENTRY_ROW, 0, sizeof(*row) + bytes);

	row->thread = thread ? record_ref(r, thread) : 0;
	row->node = node ? record_ref(r, node) : 0;
	row->leaf = leaf;
	row->nr_samples = nr_samples;
	memcpy(row->weights, weights, bytes);
	return row;
}

/* An entry with one cell. */
__attribute__((unused)) static struct csink_rec_cell *record_cell(struct record *r, const void *thread,
								  const void *node, uint64_t leaf, uint16_t nr_samples,
								  const uint32_t *weights)
{
	struct csink_rec_cells *chunk =
		record_entry(r, CSINK_ENTRY_CELLS, 0, sizeof(*chunk) + csink_cell_bytes(r->header->nr_events));
	struct csink_rec_cell *cell = (struct csink_rec_cell *)chunk->cells;

	chunk->thread = thread ? record_ref(r, thread) : 0;
	chunk->nr = 1;
	cell->node = node ? record_ref(r, node) : 0;
	cell->leaf_low = (uint32_t)leaf;
	cell->leaf_high = (uint16_t)(leaf >> 32);
	cell->nr_samples = nr_samples;
	memcpy(cell->weights, weights, r->header->nr_events * sizeof(*weights));
	return cell;
}

/* A function of an interpreter. The table has nr bytes; NULL: all are 0. */
__attribute__((unused)) static struct csink_rec_code *record_code(struct record *r, uint16_t kind, const char *name,
								  const char *file, const void *table, uint32_t nr)
{
	size_t nr_names = strlen(name) + strlen(file) + 2;
	struct csink_rec_code *code = record_entry(r, CSINK_ENTRY_CODE, kind, sizeof(*code) + nr_names + nr);

	code->first_line = 1;
	code->nr_names = nr_names;
	code->nr_table = nr;
	strcpy(code->text, name);
	strcpy(code->text + strlen(name) + 1, file);
	if (table)
		memcpy(code->text + nr_names, table, nr);
	return code;
}

/* The frame of a position in it. */
__attribute__((unused)) static uint64_t record_code_frame(const struct record *r, const struct csink_rec_code *code,
							  uint32_t position)
{
	return CSINK_FRAME_CODE | (uint64_t)record_ref(r, code) << 32 | position;
}

__attribute__((unused)) static void record_note(struct record *r, int warning, const char *text)
{
	struct csink_rec_note *note = record_entry(r, CSINK_ENTRY_NOTE, warning, sizeof(*note) + strlen(text) + 1);

	strcpy(note->text, text);
}

__attribute__((unused)) static void record_spawn(struct record *r, uint16_t reason, const char *path)
{
	struct csink_rec_spawn *spawn = record_entry(r, CSINK_ENTRY_SPAWN, reason, sizeof(*spawn) + strlen(path) + 1);

	strcpy(spawn->path, path);
}

/* Write directory/NAME; the record can go on being used. */
__attribute__((unused)) static void record_write(const struct record *r, const char *directory, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, r->bytes, r->size) != (ssize_t)r->size)
		abort();
	close(fd);
}

#endif
