/*
 * Text without libc's functions, which a program may have defined for itself: the objects call none of them.
 * Context: any.
 */
#ifndef CSINK_PLAIN_TEXT_H
#define CSINK_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern char **environ;

/** The rest of @text behind @begin, or NULL: it begins otherwise. */
static inline const char *csink_plain_behind(const char *text, const char *begin)
{
	for (; *begin; begin++, text++)
		if (*text != *begin)
			return NULL;
	return text;
}

/** The value of an environment variable, or "". @name ends with '='. */
static inline const char *csink_plain_variable(const char *name)
{
	for (char **entry = environ; entry && *entry; entry++) {
		const char *value = csink_plain_behind(*entry, name);

		if (value)
			return value;
	}
	return "";
}

static inline bool csink_plain_has(const char *text, const char *word)
{
	for (; *text; text++)
		if (csink_plain_behind(text, word))
			return true;
	return false;
}

/** Is the value of an option that is a flag yes? */
static inline bool csink_plain_is_yes(const char *value)
{
	return *value == '1' || *value == 'y' || *value == 't' || (*value == 'o' && value[1] == 'n');
}

/** The number that a text begins with; K, M or G behind it are 1,024 once, twice, thrice. 0: it is none. */
static inline uint64_t csink_plain_bytes(const char *text)
{
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9' && number < UINT64_MAX / 20; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	return *text == 'K' ? number << 10 : *text == 'M' ? number << 20 : *text == 'G' ? number << 30 : number;
}

/** Append to a text in a buffer, cut to its size. Returns where it ends. */
static inline char *csink_plain_append(char *to, const char *end, const char *text)
{
	while (*text && to + 1 < end)
		*to++ = *text++;
	*to = '\0';
	return to;
}

#endif
