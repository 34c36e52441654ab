/*
 * Lines of JavaScript functions: see script_lines.h. Runs in the launcher, on the thread that collects. Paths come from
 * a profiled process: many may lead to one file, and that may be none of a script.
 */
#include "launcher/collect/script_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/regular.h"
#include "launcher/base/search.h"

#define MAX_SCRIPT_BYTES (64UL << 20)
#define LINE_SEPARATOR 0x2028 /* and the character behind it, the paragraph's */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* The bytes of the character that begins with this one. What is no UTF-8 counts as a character a byte. */
static uint32_t bytes_of(const unsigned char *at, const unsigned char *end)
{
	uint32_t nr = *at < 0xc2 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 1;

	for (uint32_t i = 1; i < nr; i++) {
		if (at + i >= end || (at[i] & 0xc0) != 0x80)
			return 1;
	}
	return nr;
}

static bool ends_line(const unsigned char *at, const unsigned char *end, uint32_t bytes)
{
	if (bytes == 3)
		return (((at[0] & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u)) & ~1u) == LINE_SEPARATOR;
	return *at == '\n' || (*at == '\r' && (at + 1 == end || at[1] != '\n'));
}

int csink_script_read(struct csink_script *script, const char *text, size_t bytes)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + bytes;

	*script = (struct csink_script){.has_mark = bytes >= 3 && !memcmp(text, BYTE_ORDER_MARK, 3)};
	at += script->has_mark ? 3 : 0;
	while (at < end) {
		uint32_t nr = bytes_of(at, end);

		script->length += nr == 4 ? 2 : 1;
		if (ends_line(at, end, nr)) {
			if (CSINK_GROW(script->ends, script->nr_ends, script->cap_ends)) {
				csink_script_free(script);
				return -ENOMEM;
			}
			script->ends[script->nr_ends++] = script->length;
		}
		at += nr;
	}
	return 0;
}

void csink_script_free(struct csink_script *script)
{
	free(script->ends);
	*script = (struct csink_script){0};
}

int64_t csink_script_line(const struct csink_script *script, uint32_t at, uint32_t length)
{
	if (!length || at > length)
		return 0;
	/* Some readers leave the mark in the source. */
	if (length == script->length + script->has_mark)
		at -= at > 0 ? script->has_mark : 0;
	else if (length != script->length)
		return 0;
	return 1 + (int64_t)CSINK_LOWER(script->nr_ends, i, script->ends[i] <= at);
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

const char *csink_script_path(const char *name, char *path, size_t bytes)
{
	static const char scheme[] = "file://";
	size_t nr = 0;

	if (strncmp(name, scheme, sizeof(scheme) - 1) != 0 || name[sizeof(scheme) - 1] != '/')
		return name;
	for (const char *at = name + sizeof(scheme) - 1; *at && *at != '?' && *at != '#' && nr + 1 < bytes; at++) {
		bool is_code =
			*at == '%' && digit_of(at[1]) >= 0 && digit_of(at[2]) >= 0 && (at[1] != '0' || at[2] != '0');

		path[nr++] = is_code ? (char)(digit_of(at[1]) << 4 | digit_of(at[2])) : *at;
		at += is_code ? 2 : 0;
	}
	path[nr] = 0;
	return path;
}

/* ---- files ---- */

/* The text of a file that is open, and is closed. Returns its bytes or -ENOMEM. */
static int64_t read_text(int fd, uint64_t max_bytes, char **text)
{
	CSINK_AUTO_FCLOSE FILE *file = csink_regular_stream(fd, max_bytes);
	size_t nr = 0, room = 1 << 16, got;

	if (!file)
		return -ENOMEM;
	do {
		if (csink_grow((void **)text, room *= 2, 1))
			return -ENOMEM;
		got = fread(*text + nr, 1, room - nr, file);
		nr += got;
	} while (nr == room);
	return (int64_t)nr;
}

/* Returns the index + 1; 0 without memory. The file is closed. */
static uint32_t add_file(struct csink_scripts *scripts, int fd, const struct stat *st)
{
	struct csink_script_file file = {.dev = st->st_dev, .ino = st->st_ino};
	uint64_t left = CSINK_SCRIPTS_MAX_BYTES - CSINK_MIN(scripts->bytes, CSINK_SCRIPTS_MAX_BYTES);
	CSINK_AUTO_FREE char *text = NULL;
	int64_t nr = 0;
	uint32_t id;

	if ((uint64_t)st->st_size > CSINK_MIN(left, MAX_SCRIPT_BYTES)) {
		scripts->nr_left_out++;
		close(fd);
	} else {
		nr = read_text(fd, CSINK_MIN(left, MAX_SCRIPT_BYTES), &text);
	}
	if (nr < 0 || csink_script_read(&file.lines, text, (size_t)nr))
		return 0;
	scripts->bytes += (uint64_t)nr + file.lines.nr_ends * sizeof(*file.lines.ends);
	id = CSINK_APPEND(scripts->files, scripts->nr_files, scripts->cap_files, file);
	if (!id)
		csink_script_free(&file.lines);
	return id;
}

/* The file at a path: its index + 1 in @file; 0: it cannot be read. Returns 0 or -ENOMEM. */
static int find_file(struct csink_scripts *scripts, const char *path, uint32_t *file)
{
	int fd = *path == '/' ? csink_regular_open(path, 0, CSINK_REGULAR_ANY) : -1;
	struct csink_slot *slot;
	uint32_t hash;
	struct stat st;

	*file = 0;
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || csink_table_room(&scripts->file_table)) {
		close(fd);
		return -ENOMEM;
	}
	hash = (uint32_t)csink_hash_pair(st.st_dev, st.st_ino);
	CSINK_TABLE_PROBE(scripts->file_table, hash, slot,
			  scripts->files[id - 1].dev == st.st_dev && scripts->files[id - 1].ino == st.st_ino);
	if (slot->id) {
		*file = slot->id;
		close(fd);
		return 0;
	}
	*file = add_file(scripts, fd, &st);
	if (!*file)
		return -ENOMEM;
	csink_table_set(&scripts->file_table, slot, hash, *file);
	return 0;
}

static uint32_t add_name(struct csink_scripts *scripts, uint32_t name, const char *path)
{
	struct csink_script_name to = {.name = name};

	if (find_file(scripts, path, &to.file))
		return 0;
	return CSINK_APPEND(scripts->names, scripts->nr_names, scripts->cap_names, to);
}

const struct csink_script *csink_scripts_find(struct csink_scripts *scripts, uint32_t name, const char *path)
{
	static const struct csink_script none;
	uint32_t at = CSINK_TABLE_INTERN(scripts->name_table, csink_hash_number(name),
					 scripts->names[id - 1].name == name, add_name(scripts, name, path));

	if (!at)
		return NULL;
	return scripts->names[at - 1].file ? &scripts->files[scripts->names[at - 1].file - 1].lines : &none;
}

void csink_scripts_free(struct csink_scripts *scripts)
{
	for (uint32_t i = 0; i < scripts->nr_files; i++)
		csink_script_free(&scripts->files[i].lines);
	free(scripts->files);
	free(scripts->names);
	csink_table_free(&scripts->file_table);
	csink_table_free(&scripts->name_table);
	*scripts = (struct csink_scripts){0};
}
