/*
 * The line table of one unit, read for the addresses that are wanted and for nothing else. libdw makes a list of all
 * its lines and sorts it, which took a third of a report's time; in the order of the file the lines of each sequence
 * follow each other, so that each is compared with the next wanted address alone. What is not as expected (a
 * form that no compiler writes here, a table that is damaged before its lines begin) is left to libdw.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/symbols/symbols_impl.h"

#define MAX_FORMATS 8

struct file {
	const char *name;
	uint64_t directory;
	csink_str_t path; /* 0: not made yet */
};

struct csink_lines {
	const uint8_t *at, *end, *lengths; /* at: the program; lengths: operands of its opcodes, from 1 on */
	uint16_t version;
	uint8_t offset_size, least_bytes, nr_ops, range, first_special;
	int8_t base;
	const char *own_directory, **directories;
	struct file *files;
	uint32_t nr_directories, cap_directories, nr_files, cap_files;
};

/* ---- the header ---- */

static uint64_t take(const uint8_t **at, const uint8_t *end, uint32_t bytes)
{
	uint64_t value = csink_read_fixed(*at, end, bytes);

	*at = csink_advance(*at, end, bytes);
	return value;
}

static const char *text_at(struct csink_bytes section, uint64_t offset)
{
	return offset < section.nr ? (const char *)section.at + offset : NULL;
}

static const char *take_text(const uint8_t **at, const uint8_t *end)
{
	const char *text = (const char *)*at;
	const uint8_t *zero = memchr(*at, 0, end - *at);

	*at = zero ? zero + 1 : end;
	return zero ? text : NULL;
}

static int add_directory(struct csink_lines *l, const char *name)
{
	return CSINK_APPEND(l->directories, l->nr_directories, l->cap_directories, name) ? 0 : -ENOMEM;
}

static int add_file(struct csink_lines *l, const char *name, uint64_t directory)
{
	return CSINK_APPEND(l->files, l->nr_files, l->cap_files, (struct file){name, directory, 0}) ? 0 : -ENOMEM;
}

/* Up to version 4: texts up to an empty one. Directory 0 is the unit's, file 0 none. */
static int read_names(struct csink_lines *l, const uint8_t *at)
{
	const char *name;
	uint64_t directory;
	int err = add_directory(l, l->own_directory);

	while (!err && (name = take_text(&at, l->end)) && *name)
		err = add_directory(l, name);
	err = err ? err : add_file(l, NULL, 0);
	while (!err && (name = take_text(&at, l->end)) && *name) {
		directory = csink_read_leb(&at, l->end);
		csink_read_leb(&at, l->end); /* time */
		csink_read_leb(&at, l->end); /* length */
		err = add_file(l, name, directory);
	}
	return err;
}

struct format {
	uint64_t content, form;
};

/* One value of a name's description. Returns 0 or -ENOTSUP. */
static int read_value(const struct csink_lines *l, const struct csink_line_sections *sections, const uint8_t **at,
		      uint64_t form, const char **text, uint64_t *number)
{
	uint64_t bytes;

	switch (form) {
	case DW_FORM_string:
		*text = take_text(at, l->end);
		return *text ? 0 : -ENOTSUP;
	case DW_FORM_line_strp:
		*text = text_at(sections->line_str, take(at, l->end, l->offset_size));
		return *text ? 0 : -ENOTSUP;
	case DW_FORM_strp:
		*text = text_at(sections->str, take(at, l->end, l->offset_size));
		return *text ? 0 : -ENOTSUP;
	case DW_FORM_udata:
		*number = csink_read_leb(at, l->end);
		return 0;
	case DW_FORM_data1:
		*number = take(at, l->end, 1);
		return 0;
	case DW_FORM_data2:
		*number = take(at, l->end, 2);
		return 0;
	case DW_FORM_data4:
		*number = take(at, l->end, 4);
		return 0;
	case DW_FORM_data8:
		*number = take(at, l->end, 8);
		return 0;
	case DW_FORM_data16:
		take(at, l->end, 16);
		return 0;
	case DW_FORM_block:
		bytes = csink_read_leb(at, l->end);
		*at = csink_advance(*at, l->end, bytes);
		return 0;
	}
	return -ENOTSUP;
}

/* Version 5: a list of directories or files that says itself how it is written. */
static int read_list(struct csink_lines *l, const struct csink_line_sections *sections, const uint8_t **at, bool files)
{
	uint32_t nr = (uint32_t)take(at, l->end, 1), i;
	struct format formats[MAX_FORMATS];
	uint64_t count;
	int err = 0;

	if (!nr || nr > MAX_FORMATS)
		return -ENOTSUP;
	for (i = 0; i < nr; i++) {
		formats[i].content = csink_read_leb(at, l->end);
		formats[i].form = csink_read_leb(at, l->end);
	}
	for (count = csink_read_leb(at, l->end); count && !err; count--) {
		const char *name = NULL, *text = NULL;
		uint64_t directory = 0, number = 0;

		if (*at >= l->end)
			return -ENOTSUP;
		for (i = 0; i < nr && !err; i++) {
			err = read_value(l, sections, at, formats[i].form, &text, &number);
			if (formats[i].content == DW_LNCT_path)
				name = text;
			else if (formats[i].content == DW_LNCT_directory_index)
				directory = number;
		}
		if (!err)
			err = files ? add_file(l, name, directory) : add_directory(l, name);
	}
	return err;
}

static int read_header(struct csink_lines *l, const struct csink_line_sections *sections, uint64_t offset)
{
	const uint8_t *at = sections->line.at + offset, *program;
	uint64_t bytes;
	int err;

	l->end = sections->line.at + sections->line.nr;
	bytes = take(&at, l->end, 4);
	l->offset_size = bytes == UINT32_MAX ? 8 : 4;
	if (bytes == UINT32_MAX)
		bytes = take(&at, l->end, 8);
	if (bytes > (uint64_t)(l->end - at))
		return -ENOTSUP;
	l->end = at + bytes;
	l->version = (uint16_t)take(&at, l->end, 2);
	if (l->version < 2 || l->version > 5)
		return -ENOTSUP;
	if (l->version == 5)
		take(&at, l->end, 2); /* sizes of an address, of a segment */
	bytes = take(&at, l->end, l->offset_size);
	program = csink_advance(at, l->end, bytes);
	l->least_bytes = (uint8_t)take(&at, l->end, 1);
	l->nr_ops = l->version >= 4 ? (uint8_t)take(&at, l->end, 1) : 1;
	take(&at, l->end, 1); /* whether a line is a statement */
	l->base = (int8_t)take(&at, l->end, 1);
	l->range = (uint8_t)take(&at, l->end, 1);
	l->first_special = (uint8_t)take(&at, l->end, 1);
	l->lengths = at - 1;
	if (!l->range || !l->first_special || l->nr_ops != 1 || program - at < l->first_special)
		return -ENOTSUP;
	at += l->first_special - 1;
	l->at = program;
	if (l->version < 5)
		return read_names(l, at);
	err = read_list(l, sections, &at, false);
	return err ? err : read_list(l, sections, &at, true);
}

int csink_lines_open(const struct csink_line_sections *sections, uint64_t offset, const char *own_directory,
		     struct csink_lines **out)
{
	struct csink_lines *l;
	int err;

	if (offset >= sections->line.nr)
		return -ENOTSUP;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->own_directory = own_directory;
	err = read_header(l, sections, offset);
	if (err) {
		csink_lines_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void csink_lines_close(struct csink_lines *l)
{
	if (!l)
		return;
	free(l->directories);
	free(l->files);
	free(l);
}

static csink_str_t make_path(const struct csink_lines *l, struct csink_profile *p, const struct file *file)
{
	const char *directory, *above;
	char path[4096];
	int len;

	if (!file->name || *file->name == '/' || *file->name == '<') /* <built-in>, <artificial> */
		return csink_profile_str(p, file->name);
	directory = file->directory < l->nr_directories ? l->directories[file->directory] : NULL;
	if (!directory)
		return csink_profile_str(p, file->name);
	/* A relative directory is counted from the one that the unit was compiled in. */
	above = *directory != '/' && l->own_directory && directory != l->own_directory ? l->own_directory : NULL;
	len = snprintf(path, sizeof(path), "%s%s%s/%s", above ? above : "", above ? "/" : "", directory, file->name);
	return csink_profile_str(p, len > 0 && (size_t)len < sizeof(path) ? path : file->name);
}

csink_str_t csink_lines_file(struct csink_lines *l, struct csink_profile *p, uint64_t file)
{
	if (file >= l->nr_files)
		return 0;
	if (!l->files[file].path)
		l->files[file].path = make_path(l, p, &l->files[file]);
	return l->files[file].path;
}

/* ---- the program ---- */

struct row {
	uint64_t address, file;
	uint32_t line;
};

struct walk {
	const struct csink_lines *l;
	struct csink_bounds *bounds; /* get the addresses of all rows; then there is no batch. NULL: none */
	struct csink_lines *files;   /* the same table, to make paths */
	struct csink_batch *batch;
	int err;
	uint32_t id, first, last, next; /* next: the first want that is not below the row */
	struct row row;
	bool has_row, is_dead; /* is_dead: a sequence of code that the linker threw away */
};

static void give(struct walk *w, uint32_t want)
{
	struct csink_found *found = &w->batch->found[want];

	if (found->unit != w->id || found->line)
		return;
	found->line = w->row.line;
	found->file = csink_lines_file(w->files, w->batch->p, w->row.file);
	w->batch->flags |= CSINK_FOUND_LINES;
}

/* Where linkers put what has no place: at 0, or at one of the last addresses, from which its end wraps around. */
static bool is_nowhere(uint64_t address)
{
	return !address || address >= UINT64_MAX - 1;
}

/* The row before reaches up to this one; the wants between are its. */
static inline void emit(struct walk *w, const struct row *row, bool is_end)
{
	const struct csink_want *wants;

	if (w->bounds) {
		w->err = w->err ? w->err : csink_bounds_add(w->bounds, row->address);
		return;
	}
	wants = w->batch->wants;
	if (!w->has_row || row->address < w->row.address) {
		if (!w->has_row)
			w->is_dead = is_nowhere(row->address);
		w->next = CSINK_MAX(csink_batch_lower(w->batch, row->address), w->first);
	} else {
		for (; w->next < w->last && wants[w->next].address < row->address; w->next++) {
			if (!w->is_dead)
				give(w, w->next);
		}
	}
	w->row = *row;
	w->has_row = !is_end;
}

/* Opcode 0: its length, then what it is. */
static const uint8_t *walk_extended(struct walk *w, struct row *row, const uint8_t *at)
{
	const uint8_t *end = w->l->end, *behind;
	uint64_t bytes = csink_read_leb(&at, end);

	behind = csink_advance(at, end, bytes);
	if (at >= behind)
		return behind;
	switch (*at++) {
	case DW_LNE_end_sequence:
		emit(w, row, true);
		*row = (struct row){.file = 1, .line = 1};
		break;
	case DW_LNE_set_address:
		row->address = csink_read_fixed(at, behind, (uint32_t)(behind - at));
		break;
	}
	return behind;
}

static const uint8_t *walk_standard(struct walk *w, struct row *row, uint8_t opcode, const uint8_t *at)
{
	const uint8_t *end = w->l->end;

	switch (opcode) {
	case DW_LNS_copy:
		emit(w, row, false);
		return at;
	case DW_LNS_advance_pc:
		row->address += csink_read_leb(&at, end) * w->l->least_bytes;
		return at;
	case DW_LNS_advance_line:
		row->line += (uint32_t)csink_read_sleb(&at, end);
		return at;
	case DW_LNS_set_file:
		row->file = csink_read_leb(&at, end);
		return at;
	case DW_LNS_const_add_pc:
		row->address += (uint64_t)((255 - w->l->first_special) / w->l->range) * w->l->least_bytes;
		return at;
	case DW_LNS_fixed_advance_pc:
		row->address += csink_read_fixed(at, end, 2);
		return csink_advance(at, end, 2);
	}
	for (uint32_t i = 0; i < w->l->lengths[opcode]; i++)
		csink_read_leb(&at, end);
	return at;
}

static void walk_rows(struct walk *w)
{
	const struct csink_lines *l = w->l;
	struct row row = {.file = 1, .line = 1};
	const uint8_t *at = l->at;

	while (at < l->end && !w->err) {
		uint8_t opcode = *at++;

		if (opcode >= l->first_special) {
			opcode -= l->first_special;
			row.address += (uint64_t)(opcode / l->range) * l->least_bytes;
			row.line += (uint32_t)(l->base + opcode % l->range);
			emit(w, &row, false);
		} else {
			at = opcode ? walk_standard(w, &row, opcode, at) : walk_extended(w, &row, at);
		}
	}
}

int csink_lines_bounds(const struct csink_lines *l, struct csink_bounds *bounds)
{
	struct walk w = {.l = l, .bounds = bounds};

	walk_rows(&w);
	return w.err;
}

void csink_lines_find(struct csink_lines *l, struct csink_batch *batch, uint32_t id, uint32_t first, uint32_t last)
{
	struct walk w = {.l = l, .files = l, .batch = batch, .id = id, .first = first, .last = last};

	walk_rows(&w);
}
