/*
 * The recording's reader (recording_read.h). Written by the injected library, possibly still being written, possibly by
 * an enemy: the file is copied into memory of ours first, so that nothing can change between a check and a use, and
 * nobody can shorten it under a mapping.
 */
#include "launcher/profile/recording_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"

__attribute__((format(printf, 4, 5))) static int fail(int err, char *why, size_t why_len, const char *fmt, ...)
{
	va_list ap;

	if (why_len) {
		va_start(ap, fmt);
		vsnprintf(why, why_len, fmt, ap);
		va_end(ap);
	}
	return err;
}

/* The smallest sizes, by type: what follows is checked where the entry is taken. */
static const uint32_t least_bytes[] = {
	[CSINK_ENTRY_MODULE] = sizeof(struct csink_rec_module) + 1,
	[CSINK_ENTRY_THREAD] = sizeof(struct csink_rec_thread),
	[CSINK_ENTRY_NODES] = sizeof(struct csink_rec_nodes),
	[CSINK_ENTRY_CELLS] = sizeof(struct csink_rec_cells),
	[CSINK_ENTRY_ROW] = sizeof(struct csink_rec_row),
	[CSINK_ENTRY_INTERVAL] = sizeof(struct csink_rec_interval),
	[CSINK_ENTRY_PHASE] = sizeof(struct csink_rec_phase) + 1,
	[CSINK_ENTRY_NOTE] = sizeof(struct csink_rec_note) + 1,
	[CSINK_ENTRY_SPAWN] = sizeof(struct csink_rec_spawn) + 1,
	[CSINK_ENTRY_TIMELINE] = sizeof(struct csink_rec_timeline),
};

/* Room for one more element, by doubling. */
static int grow(void **array, uint32_t nr, size_t size)
{
	void *grown;

	if (nr & (nr - 1) || nr == 1) /* not 0 and not a power of two: there is room (one element has room for two) */
		return 0;
	grown = realloc(*array, (nr ? (size_t)nr * 2 : 2) * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

#define APPEND(array, nr, value)                                                                                       \
	(grow((void **)&(array), nr, sizeof(*(array))) ? -ENOMEM : ((array)[(nr)++] = (value), 0))

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
	if (grow((void **)&rec->weights, nr, sizeof(*rec->weights) * CSINK_MAX(rec->header.nr_events, 1)))
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
		struct csink_rec_interval *interval;
		struct csink_rec_note *note;
		struct csink_rec_spawn *spawn;
		struct csink_rec_phase *phase;
		struct csink_rec_timeline *timeline;
	} at = {head};

	switch (head->type) {
	case CSINK_ENTRY_MODULE:
		if (!has_end(at.module->path, head) || at.module->start >= at.module->end ||
		    at.module->build_id_len > sizeof(at.module->build_id))
			return -EBADMSG;
		return APPEND(rec->modules, rec->nr_modules, at.module);
	case CSINK_ENTRY_THREAD:
		at.thread->name[sizeof(at.thread->name) - 1] = 0;
		return APPEND(rec->threads, rec->nr_threads, at.thread);
	case CSINK_ENTRY_NODES:
		return take_nodes(rec, at.nodes);
	case CSINK_ENTRY_ROW:
		return take_row(rec, at.row);
	case CSINK_ENTRY_CELLS:
		return take_cells(rec, at.cells);
	case CSINK_ENTRY_INTERVAL:
		return APPEND(rec->intervals, rec->nr_intervals, at.interval);
	case CSINK_ENTRY_TIMELINE:
		if (at.timeline->nr > (head->bytes - sizeof(*at.timeline)) / sizeof(at.timeline->moments[0]))
			return -EBADMSG;
		return APPEND(rec->timelines, rec->nr_timelines, at.timeline);
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

static int walk_extents(struct csink_recorded *rec)
{
	size_t at = CSINK_REC_HEADER_BYTES, len;
	const struct csink_rec_extent *extent;
	int err;

	while (rec->bytes - at >= CSINK_REC_BLOCK) {
		extent = (const void *)((char *)rec->data + at);
		if (!extent->kind) { /* handed out, never used; its length is not known either */
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
	uint32_t low = 0, high = rec->nr_threads, middle;

	if ((uint64_t)ref * 8 >= rec->bytes)
		return CSINK_RECORDED_NONE;
	thread = (const void *)((char *)rec->data + (uint64_t)ref * 8);
	if (hint < rec->nr_threads && rec->threads[hint] == thread)
		return hint;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (rec->threads[middle] < thread)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rec->nr_threads && rec->threads[low] == thread ? low : CSINK_RECORDED_NONE;
}

uint32_t csink_recorded_row_at(const struct csink_recorded *rec, csink_ref_t ref)
{
	uint32_t low = 0, high = rec->nr_rows, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (rec->rows[middle].ref < ref)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rec->nr_rows && rec->rows[low].ref == ref ? low : CSINK_RECORDED_NONE;
}

/*
 * Climb from a node until one is met whose root is known, or a root; then what was passed is known, too. What leads
 * nowhere, or to more callers than there are in any stack, as in a ring of nodes, is cut off, so that nobody climbs
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

/* Callers may come after whom they called, in another thread's extent: so this is a pass of its own. */
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

static int check_header(const void *data, size_t len, struct csink_rec_header *header, char *why, size_t why_len)
{
	uint32_t i;

	if (len < sizeof(*header))
		return fail(-EBADMSG, why, why_len, "too short for a recording (%zu bytes)", len);
	memcpy(header, data, sizeof(*header));
	if (header->magic != CSINK_REC_MAGIC)
		return fail(-EBADMSG, why, why_len, "not a recording");
	if (header->version != CSINK_REC_VERSION)
		return fail(-EPROTO, why, why_len, "a recording of version %u, this program reads version %u",
			    header->version, CSINK_REC_VERSION);
	if (header->header_bytes != CSINK_REC_HEADER_BYTES || header->nr_events > CSINK_MAX_EVENTS)
		return fail(-EBADMSG, why, why_len, "a recording with a damaged header");
	for (i = 0; i < CSINK_MAX_EVENTS; i++) {
		header->events[i].name[sizeof(header->events[i].name) - 1] = 0;
		header->events[i].unit[sizeof(header->events[i].unit) - 1] = 0;
	}
	header->engine_reason[sizeof(header->engine_reason) - 1] = 0;
	header->unwind_reason[sizeof(header->unwind_reason) - 1] = 0;
	header->comm[sizeof(header->comm) - 1] = 0;
	header->exe[sizeof(header->exe) - 1] = 0;
	header->cmdline[sizeof(header->cmdline) - 1] = 0;
	if (header->engine > CSINK_ENGINE_OUTSIDE)
		header->engine = CSINK_ENGINE_NONE;
	if (header->unwind >= CSINK_NR_UNWINDS)
		header->unwind = CSINK_UNWIND_NONE;
	return 0;
}

/* How much of a file of that size is in use. */
static size_t used_bytes(const struct csink_rec_header *header, size_t file_bytes)
{
	size_t used = (size_t)header->nr_blocks * CSINK_REC_BLOCK;

	return CSINK_MIN(CSINK_MIN(used, file_bytes), CSINK_REC_MAX_BYTES) & ~(size_t)7;
}

/* rec->data, bytes and header are set. */
static int parse(struct csink_recorded *rec, size_t file_bytes)
{
	int err;

	rec->is_cut = (uint64_t)rec->header.nr_blocks * CSINK_REC_BLOCK > file_bytes;
	if (rec->bytes < CSINK_REC_HEADER_BYTES)
		return 0; /* nothing was recorded before it was cut: the header says who and when */
	err = walk_extents(rec);
	if (!err) {
		resolve_nodes(rec);
		resolve_rows(rec);
	}
	return err;
}

void csink_recorded_release(struct csink_recorded *rec)
{
	free(rec->modules);
	free(rec->threads);
	free(rec->nodes);
	free(rec->rows);
	free(rec->weights);
	free(rec->intervals);
	free(rec->notes);
	free(rec->spawns);
	free(rec->phases);
	free(rec->timelines);
	if (rec->data)
		munmap(rec->data, rec->bytes);
	memset(rec, 0, sizeof(*rec));
}

/* Zero pages until written: holes of a sparse file, and what it promises but does not have, cost nothing. */
static int allocate(struct csink_recorded *rec, size_t bytes)
{
	void *data = mmap(NULL, CSINK_MAX(bytes, 1), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	rec->data = data;
	rec->bytes = CSINK_MAX(bytes, 1);
	return 0;
}

static int parse_or_release(struct csink_recorded *rec, size_t file_bytes, char *why, size_t why_len)
{
	int err = parse(rec, file_bytes);

	if (err) {
		csink_recorded_release(rec);
		return fail(err, why, why_len, "no memory");
	}
	return 0;
}

int csink_recorded_parse(const void *buf, size_t len, struct csink_recorded *rec, char *why, size_t why_len)
{
	size_t bytes;
	int err;

	memset(rec, 0, sizeof(*rec));
	err = check_header(buf, len, &rec->header, why, why_len);
	if (err)
		return err;
	bytes = used_bytes(&rec->header, len);
	if (allocate(rec, bytes))
		return fail(-ENOMEM, why, why_len, "no memory");
	memcpy(rec->data, buf, bytes);
	return parse_or_release(rec, len, why, why_len);
}

/* Copy what the file has between two offsets, leaving holes out. Stops quietly where the file ends. */
static int read_data(int fd, char *to, off_t at, off_t end)
{
	off_t hole;
	ssize_t got;

	while (at < end) {
		at = lseek(fd, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : -errno;
		hole = lseek(fd, at, SEEK_HOLE);
		if (hole < 0)
			return errno == ENXIO ? 0 : -errno;
		for (hole = CSINK_MIN(hole, end); at < hole; at += got) {
			got = pread(fd, to + at, hole - at, at);
			if (got < 0 && errno != EINTR)
				return -errno;
			if (!got)
				return 0;
			got = CSINK_MAX(got, 0);
		}
	}
	return 0;
}

static int open_recording(const char *path, char *why, size_t why_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return fail(-errno, why, why_len, "%s", strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return fail(-EBADMSG, why, why_len, "not a regular file");
	}
	return fd;
}

static int read_header(int fd, struct csink_rec_header *header, char *why, size_t why_len)
{
	struct csink_rec_header raw;
	ssize_t got = pread(fd, &raw, sizeof(raw), 0);

	if (got < 0)
		return fail(-errno, why, why_len, "%s", strerror(errno));
	return check_header(&raw, got, header, why, why_len);
}

int csink_recorded_read_header(const char *path, struct csink_rec_header *header, char *why, size_t why_len)
{
	int fd = open_recording(path, why, why_len), err;

	if (fd < 0)
		return fd;
	err = read_header(fd, header, why, why_len);
	close(fd);
	return err;
}

static int read_fd(int fd, struct csink_recorded *rec, char *why, size_t why_len)
{
	struct stat st;
	int err = read_header(fd, &rec->header, why, why_len);

	if (err)
		return err;
	if (fstat(fd, &st))
		return fail(-errno, why, why_len, "%s", strerror(errno));
	if (allocate(rec, used_bytes(&rec->header, st.st_size)))
		return fail(-ENOMEM, why, why_len, "no memory");
	err = read_data(fd, rec->data, 0, rec->bytes);
	if (err) {
		csink_recorded_release(rec);
		return fail(err, why, why_len, "%s", strerror(-err));
	}
	return parse_or_release(rec, st.st_size, why, why_len);
}

int csink_recorded_read(const char *path, struct csink_recorded *rec, char *why, size_t why_len)
{
	int fd = open_recording(path, why, why_len), err;

	memset(rec, 0, sizeof(*rec));
	if (fd < 0)
		return fd;
	err = read_fd(fd, rec, why, why_len);
	close(fd);
	return err;
}
