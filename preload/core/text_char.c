/* Characters of foreign text: see text_char.h. Any thread; async-signal-safe. */
#include "include/internal/text_char.h"

#include <string.h>

#include "include/internal/base.h"

struct range {
	uint32_t first, last;
};

/*
 * Not shown, in order: controls, what has no glyph and no width (Default_Ignorable_Code_Point of Unicode 15 without the
 * variation selectors that emoji and Mongolian are written with), what changes the direction of a line or ends it.
 */
static const struct range hidden[] = {
	{0x0000, 0x001f}, {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
	{0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
	{0x2060, 0x206f}, {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
	{0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};
/* Pictures, which a zero-width joiner makes one picture of: arrows to dingbats, emoji, what selects their look. */
static const struct range pictures[] = {{0x2190, 0x2bff}, {0xfe0f, 0xfe0f}, {0x1f000, 0x1faff}};

#define JOINER 0x200d

static bool is_in(const struct range *ranges, uint32_t nr, uint32_t code)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	}
	return false;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Bytes of the well-formed character at `at`, and its code; 0 if it is none (overlong forms and surrogates are none).
 */
static uint32_t decode(const char *at, uint32_t *code)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	unsigned char first = (unsigned char)*at;
	uint32_t bytes = 0, c;

	while (bytes < CSINK_ARRAY_SIZE(forms) && (first & forms[bytes].mask) != forms[bytes].lead)
		bytes++;
	if (bytes == CSINK_ARRAY_SIZE(forms))
		return 0;
	c = first & (unsigned char)~forms[bytes].mask;
	for (uint32_t i = 1; i <= bytes; i++) {
		if (!is_continuation(at[i]))
			return 0;
		c = c << 6 | ((unsigned char)at[i] & 0x3f);
	}
	if (c < forms[bytes].least || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	*code = c;
	return bytes + 1;
}

static bool is_picture(const char *at)
{
	uint32_t code;

	return *at && decode(at, &code) && is_in(pictures, CSINK_ARRAY_SIZE(pictures), code);
}

/* Whether the joiner at `at` makes one picture of two. */
static bool joins_pictures(const char *text, const char *at)
{
	const char *before = at;

	while (before > text && at - before < 4 && (before == at || is_continuation(*before)))
		before--;
	return before < at && is_picture(before) && is_picture(at + 3);
}

struct csink_text_char csink_text_next(const char *text, const char *at)
{
	struct csink_text_char c = {.bytes = 1, .code = (unsigned char)*at};
	uint32_t bytes = decode(at, &c.code);

	if (!bytes)
		return c;
	c.bytes = bytes;
	c.is_valid = true;
	c.is_shown = c.code < 0x7f ? c.code >= ' '
				   : !is_in(hidden, CSINK_ARRAY_SIZE(hidden), c.code) && (c.code & 0xfffe) != 0xfffe;
	if (c.code == JOINER && joins_pictures(text, at))
		c.is_shown = true;
	/* "##[error]" anywhere in a line is a command to the runner of GitHub's actions. */
	if (c.code == '[' && at - text >= 2 && at[-1] == '#' && at[-2] == '#')
		c.is_shown = false;
	return c;
}

size_t csink_text_plain(const char *text, const char *special)
{
	uint64_t stops[2] = {0, 1ULL << ('[' - 64)}; /* a bit for each character of ASCII */
	size_t nr = 0;

	for (; *special; special++)
		stops[(*special & 0x7f) / 64] |= 1ULL << *special % 64;
	/* No further than that: a caller that continues behind each stop goes over the text once. */
	while (text[nr] >= ' ' && text[nr] < 0x7f && !(stops[text[nr] / 64] >> text[nr] % 64 & 1))
		nr++;
	return nr;
}

uint32_t csink_text_escape(char *buf, const char *at, const struct csink_text_char *c)
{
	static const char digits[] = "0123456789abcdef";

	if (c->is_shown) {
		memcpy(buf, at, c->bytes);
		return c->bytes;
	}
	for (uint32_t i = 0; i < c->bytes; i++) {
		*buf++ = '\\';
		*buf++ = 'x';
		*buf++ = digits[(unsigned char)at[i] >> 4];
		*buf++ = digits[(unsigned char)at[i] & 15];
	}
	return 4 * c->bytes;
}

size_t csink_text_line(char *buf, size_t size, const char *text)
{
	struct csink_text_char c;
	char piece[CSINK_TEXT_ESCAPED];
	size_t used = 0, len;

	for (const char *at = text; *at; at += c.bytes) {
		c = csink_text_next(text, at);
		len = csink_text_escape(piece, at, &c);
		if (used + len >= size)
			break;
		memcpy(buf + used, piece, len);
		used += len;
	}
	buf[used] = 0;
	return used;
}
