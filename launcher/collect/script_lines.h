/*
 * Lines of JavaScript functions. V8 gives where a function is in its script's source, counted in UTF-16 code units; the
 * line is found in the script's file.
 */
#ifndef CSINK_SCRIPT_LINES_H
#define CSINK_SCRIPT_LINES_H

#include <stddef.h>
#include <stdint.h>

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

/** The same of a file; where it cannot be read, there are no lines. Returns 0 or -ENOMEM. Context: thread. */
int csink_script_open(struct csink_script *script, const char *path);
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

#endif
