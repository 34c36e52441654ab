/* Lines of JavaScript functions: see script_lines.h. Runs in the launcher, on the thread that collects. */
#include "launcher/collect/script_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
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

int csink_script_open(struct csink_script *script, const char *path)
{
	CSINK_AUTO_FCLOSE FILE *file = *path == '/' ? csink_regular_fopen(path, 0, MAX_SCRIPT_BYTES) : NULL;
	CSINK_AUTO_FREE char *text = NULL;
	size_t nr = 0, room = 1 << 16, got;

	*script = (struct csink_script){0};
	if (!file)
		return 0;
	do {
		char *more = realloc(text, room *= 2);

		if (!more)
			return -ENOMEM;
		text = more;
		got = fread(text + nr, 1, room - nr, file);
		nr += got;
	} while (nr == room);
	return csink_script_read(script, text, nr);
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
