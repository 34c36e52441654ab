/*
 * Reading JSON of foreign origin, value by value, from a text in memory. Nothing is trusted: a value of another type
 * than is asked for, a text that ends early or nests too deep sets is_bad, and from then on every function fails.
 * Context: thread; allocates only where it says so.
 */
#ifndef CSINK_JSON_READ_H
#define CSINK_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_JSON_DEPTH 32

struct csink_json_reader {
	const char *at, *end;
	uint32_t depth;
	bool is_first; /* no member or element of the innermost bracket was read yet */
	bool is_bad;
};

/** Begin with a text, which needs no NUL at its end. */
void csink_json_read_init(struct csink_json_reader *reader, const char *text, size_t bytes);

/** Enter an object or array: '{' or '['. Returns whether there is one. */
bool csink_json_read_open(struct csink_json_reader *reader, char bracket);

/**
 * Go to the next element of an array; to the next member of an object, whose key is malloc'ed.
 * Returns false at the end, which is passed, and on an error.
 */
bool csink_json_read_element(struct csink_json_reader *reader);
bool csink_json_read_member(struct csink_json_reader *reader, char **key);

/** A text, malloc'ed. Returns NULL for null, without memory and on an error. */
char *csink_json_read_text(struct csink_json_reader *reader);

/** A number. Returns NAN for null and on an error. */
double csink_json_read_real(struct csink_json_reader *reader);

/** Pass any value. */
void csink_json_read_skip(struct csink_json_reader *reader);

/** Returns whether the text was valid and nothing but blanks follows. */
bool csink_json_read_end(struct csink_json_reader *reader);

#endif
