/* Patterns of names: see names_match.h. Any thread; no state. Not fnmatch(3), which in a locale of several bytes for a
 * character allocates, and loads the locale's conversions. */
#include "preload/core/names_match.h"

#include <stddef.h>
#include <string.h>

/* Behind one character, which may be one of UTF-8. */
static const char *next_character(const char *name)
{
	name++;
	while (((unsigned char)*name & 0xc0) == 0x80)
		name++;
	return name;
}

/* Does @name begin with one of the characters of [...], from @pattern on? @after  behind it; NULL: it has no end. */
static bool is_in_set(const char *pattern, const char *end, const char *name, const char **after)
{
	bool is_negated = pattern < end && (*pattern == '!' || *pattern == '^'), is_in = false;
	const char *first = pattern + is_negated;
	unsigned char c = (unsigned char)*name;

	*after = NULL;
	for (pattern = first; pattern < end && (*pattern != ']' || pattern == first); pattern++) {
		unsigned char from = (unsigned char)*pattern, to = from;

		if (end - pattern > 2 && pattern[1] == '-' && pattern[2] != ']') {
			pattern += 2;
			to = (unsigned char)*pattern;
		}
		is_in |= from <= c && c <= to;
	}
	if (pattern < end)
		*after = pattern + 1;
	return is_in != is_negated;
}

/* Does one element of the pattern, which is no *, match at @name? Returns what is behind it; NULL: no. */
static const char *match_one(const char *pattern, const char *end, const char **name)
{
	const char *after, *at = *name;

	if (*pattern == '?') {
		*name = next_character(at);
		return pattern + 1;
	}
	if (*pattern == '[') {
		bool is_in = is_in_set(pattern + 1, end, at, &after);

		if (after) {
			*name = next_character(at);
			return is_in ? after : NULL;
		}
	}
	if (*pattern == '\\' && end - pattern > 1)
		pattern++;
	*name = at + 1;
	return *pattern == *at ? pattern + 1 : NULL;
}

/* The last * takes as little as it can: no other need be tried again. */
static bool matches(const char *pattern, const char *end, const char *name)
{
	const char *star = NULL, *star_name = NULL;

	for (;;) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			star_name = name;
			continue;
		}
		if (!*name && pattern == end)
			return true;
		if (!*name)
			return false;
		pattern = pattern < end ? match_one(pattern, end, &name) : NULL;
		if (pattern)
			continue;
		if (!star)
			return false;
		pattern = star;
		name = ++star_name;
	}
}

bool csink_names_match(const char *names, const char *name)
{
	size_t n;

	for (; *names; names += n + (names[n] == ',')) {
		n = strcspn(names, ",");
		if (n && matches(names, names + n, name))
			return true;
	}
	return false;
}
