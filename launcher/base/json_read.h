/*
 * Reading JSON that other programs wrote: the whole text becomes a tree of values. It is untrusted: it may be cut off,
 * nested without end, or no JSON at all.
 */
#ifndef CSINK_JSON_READ_H
#define CSINK_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum csink_json_kind {
	CSINK_JSON_NULL,
	CSINK_JSON_FALSE,
	CSINK_JSON_TRUE,
	CSINK_JSON_NUMBER,
	CSINK_JSON_TEXT,
	CSINK_JSON_ARRAY,
	CSINK_JSON_OBJECT,
};

struct csink_json_value {
	enum csink_json_kind kind;
	char *key;                      /* in an object; NULL elsewhere */
	char *text;                     /* of a text, as UTF-8 without its NULs; else NULL */
	double number;                  /* of a number */
	struct csink_json_value *first; /* of an array's or an object's members */
	struct csink_json_value *next;  /* of the same array or object */
};

/**
 * Read a text that holds one value, and nothing behind it but blanks.
 * Returns a tree for csink_json_free(), or NULL: no JSON, nested deeper than 64 levels, or no memory. Context: thread.
 */
struct csink_json_value *csink_json_read(const char *text, size_t size);
void csink_json_free(struct csink_json_value *value);

/** The member of an object; NULL: there is none, or value is NULL or no object. Context: any. */
const struct csink_json_value *csink_json_get(const struct csink_json_value *value, const char *key);

/** The first member of an array or an object; NULL: there is none, or value is NULL or neither. Context: any. */
static inline const struct csink_json_value *csink_json_first(const struct csink_json_value *value)
{
	return value ? value->first : NULL;
}

/** The member's text, or NULL if it is none; its number, or NAN. Context: any. */
const char *csink_json_get_text(const struct csink_json_value *value, const char *key);
double csink_json_get_number(const struct csink_json_value *value, const char *key);

/** Is the member there, and true? Context: any. */
bool csink_json_get_true(const struct csink_json_value *value, const char *key);

#endif
