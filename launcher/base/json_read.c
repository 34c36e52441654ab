/* Reading JSON: see json_read.h. A recursive reader, whose depth is limited. Context: thread. */
#include "launcher/base/json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"

#define MAX_DEPTH 64

struct reader {
	const char *at, *end;
};

static struct csink_json_value *read_value(struct reader *r, uint32_t depth);

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
}

static bool take(struct reader *r, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(r);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return false;
	r->at += len;
	return true;
}

/* Four hexadecimal digits, or -1. */
static int32_t read_hex(struct reader *r)
{
	int32_t code = 0;

	if (r->end - r->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = *r->at++;

		if (!isxdigit((unsigned char)c))
			return -1;
		code = code * 16 + (isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return code;
}

static char *put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		/* A NUL would end the text. */
		if (code)
			*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	}
	return out;
}

/* What follows a backslash. Returns the end of what was written, or NULL. */
static char *read_escape(struct reader *r, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	int32_t code, low;
	char c;

	if (r->at == r->end)
		return NULL;
	c = *r->at++;
	if (c != 'u') {
		found = c ? strchr(from, c) : NULL;
		if (!found)
			return NULL;
		*out++ = to[found - from];
		return out;
	}
	code = read_hex(r);
	if (code < 0)
		return NULL;
	if (code >= 0xd800 && code < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
		r->at += 2;
		low = read_hex(r);
		if (low < 0xdc00 || low > 0xdfff)
			return NULL;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	return put_utf8(out, (uint32_t)code);
}

/* A text behind its opening quote. An escape is never shorter than what it stands for. */
static char *read_text(struct reader *r)
{
	const char *close = r->at;
	char *text, *out;

	while (close < r->end && *close != '"')
		close += *close == '\\' ? 2 : 1;
	if (close >= r->end)
		return NULL;
	text = out = malloc((size_t)(close - r->at) + 1);
	while (out && r->at < close) {
		if (*r->at != '\\') {
			*out = *r->at++;
			out += *out ? 1 : 0;
			continue;
		}
		r->at++;
		out = read_escape(r, out);
	}
	if (!out) {
		free(text);
		return NULL;
	}
	*out = '\0';
	r->at = close + 1;
	return text;
}

static bool read_number(struct reader *r, double *out)
{
	char text[64];
	size_t len = 0;
	char *end;

	while (r->at + len < r->end && len + 1 < sizeof(text) && r->at[len] && strchr("+-.0123456789eE", r->at[len]))
		len++;
	if (!len)
		return false;
	memcpy(text, r->at, len);
	text[len] = '\0';
	*out = strtod(text, &end);
	r->at += len;
	return !*end;
}

/* The members of an array or object up to its end. */
static bool read_members(struct reader *r, struct csink_json_value *value, uint32_t depth)
{
	const char *close = value->kind == CSINK_JSON_OBJECT ? "}" : "]";
	struct csink_json_value **last = &value->first;

	if (take(r, close))
		return true;
	do {
		char *key = NULL;

		if (value->kind == CSINK_JSON_OBJECT) {
			key = take(r, "\"") ? read_text(r) : NULL;
			if (!key || !take(r, ":")) {
				free(key);
				return false;
			}
		}
		*last = read_value(r, depth + 1);
		if (!*last) {
			free(key);
			return false;
		}
		(*last)->key = key;
		last = &(*last)->next;
	} while (take(r, ","));
	return take(r, close);
}

static bool fill_value(struct reader *r, struct csink_json_value *value, uint32_t depth)
{
	static const struct {
		const char *word;
		enum csink_json_kind kind;
	} words[] = {
		{"null", CSINK_JSON_NULL},
		{"false", CSINK_JSON_FALSE},
		{"true", CSINK_JSON_TRUE},
		/* Not of JSON, but written by google-benchmark and by Python: no number is known. */
		{"NaN", CSINK_JSON_NULL},
		{"Infinity", CSINK_JSON_NULL},
		{"-Infinity", CSINK_JSON_NULL},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(words); i++) {
		value->kind = words[i].kind;
		if (take(r, words[i].word))
			return true;
	}
	if (take(r, "\"")) {
		value->kind = CSINK_JSON_TEXT;
		value->text = read_text(r);
		return value->text;
	}
	value->kind = take(r, "{") ? CSINK_JSON_OBJECT : take(r, "[") ? CSINK_JSON_ARRAY : CSINK_JSON_NUMBER;
	return value->kind == CSINK_JSON_NUMBER ? read_number(r, &value->number) : read_members(r, value, depth);
}

static struct csink_json_value *read_value(struct reader *r, uint32_t depth)
{
	struct csink_json_value *value = depth < MAX_DEPTH ? calloc(1, sizeof(*value)) : NULL;

	if (value && !fill_value(r, value, depth)) {
		csink_json_free(value);
		return NULL;
	}
	return value;
}

struct csink_json_value *csink_json_read(const char *text, size_t size)
{
	struct reader r = {text, text + size};
	struct csink_json_value *value = read_value(&r, 0);

	skip_blanks(&r);
	if (value && r.at != r.end) {
		csink_json_free(value);
		return NULL;
	}
	return value;
}

void csink_json_free(struct csink_json_value *value)
{
	while (value) {
		struct csink_json_value *next = value->next;

		csink_json_free(value->first);
		free(value->key);
		free(value->text);
		free(value);
		value = next;
	}
}

const struct csink_json_value *csink_json_get(const struct csink_json_value *value, const char *key)
{
	const struct csink_json_value *member = value && value->kind == CSINK_JSON_OBJECT ? value->first : NULL;

	while (member && strcmp(member->key, key) != 0)
		member = member->next;
	return member;
}

bool csink_json_get_true(const struct csink_json_value *value, const char *key)
{
	const struct csink_json_value *member = csink_json_get(value, key);

	return member && member->kind == CSINK_JSON_TRUE;
}

const char *csink_json_get_text(const struct csink_json_value *value, const char *key)
{
	const struct csink_json_value *member = csink_json_get(value, key);

	return member && member->kind == CSINK_JSON_TEXT ? member->text : NULL;
}

double csink_json_get_number(const struct csink_json_value *value, const char *key)
{
	const struct csink_json_value *member = csink_json_get(value, key);

	return member && member->kind == CSINK_JSON_NUMBER ? member->number : NAN;
}
