/* Writing JSON: values with their escapes, and the commas between them. Used by commands that take --json. */
#ifndef CSINK_JSON_H
#define CSINK_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct csink_json {
	FILE *out;
	uint32_t depth;
	bool wrote[16]; /* something, at each depth: a comma comes before the next */
};

/* @bracket  the object or array that is opened; 0: none yet. */
void csink_json_init(struct csink_json *json, FILE *out, char bracket);

/* Begin and end an object or an array; key is NULL inside an array and at the top. At most 15 deep. */
void csink_json_open(struct csink_json *json, const char *key, char bracket);
void csink_json_close(struct csink_json *json, char bracket);

/* One value. A NULL text is null. */
void csink_json_text(struct csink_json *json, const char *key, const char *text);
void csink_json_number(struct csink_json *json, const char *key, int64_t value);
void csink_json_real(struct csink_json *json, const char *key, double value); /* null, if it is no number */
void csink_json_bool(struct csink_json *json, const char *key, bool value);
void csink_json_null(struct csink_json *json, const char *key);
/* A number, or null where it is not known. */
void csink_json_known(struct csink_json *json, const char *key, bool is_known, int64_t value);
/* An array of texts. */
void csink_json_texts(struct csink_json *json, const char *key, char *const *texts, uint32_t nr);

/**
 * Write one text between quotes, with its escapes: \uNNNN for a character that is not shown as it is (text.h), and the
 * four characters \xNN for a byte that is no UTF-8. A NULL text is null.
 * @in_html  nothing in it can end a <script> element or begin markup, either, and what is not shown is \xNN as well:
 * the page shows what a terminal would.
 */
void csink_json_quote(FILE *out, const char *text, bool in_html);

/** Write one number of so many digits; null, if it is none. */
void csink_json_put_real(FILE *out, double value, int digits);

#endif
