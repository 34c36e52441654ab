/* Tags of XML: see xml_tags.h. */
#include "launcher/gate/suite/xml_tags.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* The '>' of a tag; in a quoted value it is none. NULL: the text ends before. */
static const char *find_end(const char *at)
{
	char quote = '\0';

	for (; *at; at++) {
		if (quote)
			quote = *at == quote ? '\0' : quote;
		else if (*at == '"' || *at == '\'')
			quote = *at;
		else if (*at == '>')
			return at;
	}
	return NULL;
}

bool csink_xml_next(const char **at, struct csink_xml_tag *tag)
{
	const char *open, *end;

	while ((open = strchr(*at, '<'))) {
		if (!strncmp(open, "<!--", 4)) {
			end = strstr(open + 4, "-->");
			*at = end ? end + 3 : open + strlen(open);
			continue;
		}
		end = find_end(open);
		if (!end)
			return false;
		*at = end + 1;
		if (open[1] == '?' || open[1] == '!')
			continue;
		tag->name = open + 1;
		tag->len = 1 + strcspn(open + 2, BLANKS "/>");
		tag->end = end;
		return true;
	}
	return false;
}

bool csink_xml_is(const struct csink_xml_tag *tag, const char *name)
{
	return strlen(name) == tag->len && !strncmp(tag->name, name, tag->len);
}

/* The value between its quotes. */
static const char *find_value(const struct csink_xml_tag *tag, const char *name, size_t *len)
{
	const char *at = tag->name + tag->len;
	size_t own = strlen(name);

	while (at < tag->end) {
		const char *word = at + strspn(at, BLANKS), *equals = word + strcspn(word, "=>");
		const char *quote = *equals == '=' ? equals + 1 + strspn(equals + 1, BLANKS) : tag->end;
		const char *close = quote < tag->end && strchr("\"'", *quote) ? strchr(quote + 1, *quote) : NULL;

		if (!close || close > tag->end)
			return NULL;
		*len = (size_t)(close - quote - 1);
		if (!strncmp(word, name, own) && word + own + strspn(word + own, BLANKS) == equals)
			return quote + 1;
		at = close + 1;
	}
	return NULL;
}

/* The text that a reference stands for, into out, which has room for 4 bytes. Returns the reference's length; 0: it is
 * none. */
static size_t resolve(const char *at, char *out, size_t *nr)
{
	static const struct {
		const char *name;
		char byte;
	} known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	unsigned long code;
	char *end;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strncmp(at, known[i].name, strlen(known[i].name)) != 0)
			continue;
		out[(*nr)++] = known[i].byte;
		return strlen(known[i].name);
	}
	if (strncmp(at, "&#", 2) != 0)
		return 0;
	code = at[2] == 'x' ? strtoul(at + 3, &end, 16) : strtoul(at + 2, &end, 10);
	/* Others stay as they are written. */
	if (*end != ';' || !code || code > 0x7f)
		return 0;
	out[(*nr)++] = (char)code;
	return (size_t)(end - at) + 1;
}

bool csink_xml_attribute(const struct csink_xml_tag *tag, const char *name, char *out, size_t size)
{
	size_t len = 0, nr = 0;
	const char *value = find_value(tag, name, &len), *end = value ? value + len : NULL;

	while (value && value < end && nr + 1 < size) {
		size_t reference = *value == '&' ? resolve(value, out, &nr) : 0;

		if (!reference)
			out[nr++] = *value;
		value += reference ? reference : 1;
	}
	out[nr] = '\0';
	return value;
}

double csink_xml_number(const struct csink_xml_tag *tag, const char *name)
{
	char text[64], *end;
	double number;

	if (!csink_xml_attribute(tag, name, text, sizeof(text)))
		return NAN;
	number = strtod(text, &end);
	return end > text ? number : NAN;
}
