/* Reading JSON: see json_read.h. Recursion is bounded by CSINK_JSON_DEPTH. */
#include "launcher/base/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"

static bool fail(struct csink_json_reader *r)
{
	r->is_bad = true;
	r->at = r->end;
	return false;
}

/* The next character that is no blank; 0 at the end. */
static char peek(struct csink_json_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

static bool take(struct csink_json_reader *r, char c)
{
	if (peek(r) != c)
		return false;
	r->at++;
	return true;
}

static bool take_word(struct csink_json_reader *r, const char *word)
{
	size_t bytes = strlen(word);

	peek(r);
	if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, word, bytes) != 0)
		return false;
	r->at += bytes;
	return true;
}

void csink_json_read_init(struct csink_json_reader *r, const char *text, size_t bytes)
{
	*r = (struct csink_json_reader){.at = text, .end = text + bytes};
}

bool csink_json_read_open(struct csink_json_reader *r, char bracket)
{
	if (r->is_bad || r->depth == CSINK_JSON_DEPTH || !take(r, bracket))
		return fail(r);
	r->depth++;
	r->is_first = true;
	return true;
}

/* To what follows in the innermost bracket. */
static bool next(struct csink_json_reader *r, char closing)
{
	bool is_first = r->is_first;

	r->is_first = false;
	if (r->is_bad)
		return false;
	if (take(r, closing)) {
		r->depth--;
		return false;
	}
	return is_first || take(r, ',') || fail(r);
}

bool csink_json_read_element(struct csink_json_reader *r)
{
	return next(r, ']');
}

bool csink_json_read_member(struct csink_json_reader *r, char **key)
{
	*key = NULL;
	if (!next(r, '}'))
		return false;
	if (peek(r) != '"')
		return fail(r);
	*key = csink_json_read_text(r);
	if (*key && take(r, ':'))
		return true;
	free(*key);
	*key = NULL;
	return fail(r);
}

/* ---- texts ---- */

static bool read_hex(struct csink_json_reader *r, uint32_t *code)
{
	*code = 0;
	if (r->end - r->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = *r->at++;

		*code = *code * 16 + (c >= '0' && c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a') + 10);
		if (!strchr("0123456789abcdefABCDEF", c) || !c)
			return false;
	}
	return true;
}

/* Behind "\u": a character, whose second half follows where it has two. NUL is none of a text. */
static bool read_code(struct csink_json_reader *r, uint32_t *code)
{
	uint32_t low;

	if (!read_hex(r, code) || !*code || (*code >= 0xdc00 && *code < 0xe000))
		return false;
	if (*code < 0xd800 || *code >= 0xdc00)
		return true;
	if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
		return false;
	r->at += 2;
	if (!read_hex(r, &low) || low < 0xdc00 || low >= 0xe000)
		return false;
	*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

static char *put_code(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
		return out;
	}
	if (code >= 0x10000) {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
	} else if (code >= 0x800) {
		*out++ = (char)(0xe0 | code >> 12);
	}
	*out++ = code >= 0x800 ? (char)(0x80 | (code >> 6 & 0x3f)) : (char)(0xc0 | code >> 6);
	*out++ = (char)(0x80 | (code & 0x3f));
	return out;
}

/* Behind a backslash. Returns the end of what was written, or NULL. */
static char *read_escape(struct csink_json_reader *r, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	uint32_t code;

	if (r->at == r->end)
		return NULL;
	if (*r->at == 'u') {
		r->at++;
		return read_code(r, &code) ? put_code(out, code) : NULL;
	}
	found = *r->at ? strchr(from, *r->at) : NULL;
	if (!found)
		return NULL;
	r->at++;
	*out = to[found - from];
	return out + 1;
}

char *csink_json_read_text(struct csink_json_reader *r)
{
	const char *closing;
	char *text, *out;

	if (r->is_bad || take_word(r, "null"))
		return NULL;
	if (!take(r, '"')) {
		fail(r);
		return NULL;
	}
	for (closing = r->at; closing < r->end && *closing != '"'; closing++)
		closing += *closing == '\\';
	/* No escape is shorter than what it stands for. */
	text = out = closing < r->end ? malloc((size_t)(closing - r->at) + 1) : NULL;
	while (out && r->at < closing) {
		char c = *r->at++;

		if (c == '\\')
			out = read_escape(r, out);
		else if ((unsigned char)c < ' ')
			out = NULL;
		else
			*out++ = c;
	}
	if (!out || r->at != closing) {
		free(text);
		fail(r);
		return NULL;
	}
	*out = '\0';
	r->at++;
	return text;
}

/* ---- other values ---- */

double csink_json_read_real(struct csink_json_reader *r)
{
	char number[64], *end;
	size_t bytes = 0;
	double value;

	if (r->is_bad || take_word(r, "null"))
		return NAN;
	peek(r);
	while (r->at < r->end && bytes < sizeof(number) - 1 && strchr("+-.0123456789eE", *r->at) && *r->at)
		number[bytes++] = *r->at++;
	number[bytes] = '\0';
	value = strtod(number, &end);
	if (end == number || *end || *number == '+' || *number == '.' || !isfinite(value)) {
		fail(r);
		return NAN;
	}
	return value;
}

void csink_json_read_skip(struct csink_json_reader *r)
{
	CSINK_AUTO_FREE char *text = NULL;
	char *key;

	switch (peek(r)) {
	case '{':
		csink_json_read_open(r, '{');
		while (csink_json_read_member(r, &key)) {
			free(key);
			csink_json_read_skip(r);
		}
		return;
	case '[':
		csink_json_read_open(r, '[');
		while (csink_json_read_element(r))
			csink_json_read_skip(r);
		return;
	case '"':
		text = csink_json_read_text(r);
		return;
	case 't':
	case 'f':
		if (!take_word(r, "true") && !take_word(r, "false"))
			fail(r);
		return;
	default:
		csink_json_read_real(r);
	}
}

bool csink_json_read_end(struct csink_json_reader *r)
{
	return !peek(r) && r->at == r->end && !r->is_bad && !r->depth;
}
