/*
 * Lines of JavaScript functions. V8 gives where a function is in its script's source, counted in UTF-16 code units; the
 * line is found in the script's file.
 */
#ifndef CSINK_SCRIPT_LINES_H
#define CSINK_SCRIPT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/base/table.h"

/* Where the lines of one file end. All zero: nothing was read. */
struct csink_script {
	uint32_t *ends; /* code units before the end of each line but the last */
	uint32_t nr_ends, cap_ends;
	uint32_t length;   /* of the file, in code units */
	uint32_t has_mark; /* 1: a byte order mark is before the source, and not counted */
};

/**
 * Count the lines of UTF-8 text as JavaScript does: they end with CR, LF, CR LF, U+2028 or U+2029.
 * Returns 0 (csink_script_free it) or -ENOMEM. Context: any.
 */
int csink_script_read(struct csink_script *script, const char *text, size_t bytes);

void csink_script_free(struct csink_script *script);

/**
 * The line of a place in the source; 0: not known, since the file has not the length that the source had.
 * @at, @length  of the place, and of the source that V8 compiled; in code units.
 * Context: any.
 */
int64_t csink_script_line(const struct csink_script *script, uint32_t at, uint32_t length);

/**
 * The path of a script by its name, which may be a URL with "file:", in @path. Returns @name itself where it is none.
 * Context: any.
 */
const char *csink_script_path(const char *name, char *path, size_t bytes);

#define CSINK_SCRIPTS_MAX_BYTES (256UL << 20) /* of the texts of all files, and of what is kept of them */

/* Files of scripts, each read once, whatever paths lead to it. All zero: none yet. */
struct csink_scripts {
	struct csink_script_file {
		uint64_t dev, ino;
		struct csink_script lines;
	} * files;
	struct csink_script_name {
		uint32_t name, file; /* file: index + 1; 0: none that can be read */
	} * names;
	uint32_t nr_files, cap_files, nr_names, cap_names;
	struct csink_table file_table, name_table; /* index + 1 */
	uint64_t bytes;
	uint32_t nr_left_out; /* files that were not read since there are too many, or too large ones */
};

/**
 * The lines of a script's file; where it cannot be read, there are none.
 * @name  a number that is the path's alone
 * Returns NULL without memory. Valid until the next call. Context: thread.
 */
const struct csink_script *csink_scripts_find(struct csink_scripts *scripts, uint32_t name, const char *path);
void csink_scripts_free(struct csink_scripts *scripts);

#endif
