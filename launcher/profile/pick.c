/* See pick.h. */
#include "launcher/profile/pick.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/nearest.h"
#include "launcher/base/message.h"

/* Is a name the pattern, alone or followed by parameters, template arguments, or the line that distinguishes
 * functions of one name? */
static bool is_name(const char *name, const char *pattern)
{
	size_t len = strlen(pattern);

	return !strncmp(name, pattern, len) && (!name[len] || name[len] == '(' || name[len] == '<' ||
						(name[len] == ':' && isdigit((unsigned char)name[len + 1])));
}

/* "parse" also picks "ns::Reader::parse" and "Reader.parse". */
static bool is_last_part(const char *name, const char *pattern)
{
	const char *at = name;

	while ((at = strstr(at, pattern))) {
		if (at > name + 1 && (at[-1] == '.' || (at[-1] == ':' && at[-2] == ':')) && is_name(at, pattern))
			return true;
		at++;
	}
	return false;
}

static uint32_t pick_if(const struct csink_rows *rows, const char *pattern, bool *picked,
			bool (*matches)(const char *name, const char *pattern))
{
	uint32_t i, nr = 0;

	for (i = 0; i < rows->nr_keys; i++) {
		picked[i] = matches(rows->keys[i].name, pattern);
		nr += picked[i];
	}
	return nr;
}

static void say_none(const struct csink_rows *rows, const char *pattern, char *why, size_t why_len)
{
	struct csink_nearest near;
	char hint[256];
	uint32_t i;

	csink_nearest_init(&near, pattern, strlen(pattern));
	for (i = 0; i < rows->nr_keys; i++) {
		if (strlen(rows->keys[i].name) < CSINK_NEAREST_NAME)
			csink_nearest_offer(&near, rows->keys[i].name);
	}
	csink_nearest_print(&near, hint, sizeof(hint));
	snprintf(why, why_len, "no function of the profile matches '%s'%s", pattern, hint);
}

int csink_pick_functions(const struct csink_rows *rows, const char *pattern, bool **out, char *why, size_t why_len)
{
	bool *picked = calloc(rows->nr_keys + 1UL, sizeof(*picked));
	char text[128];
	int64_t nr = -ENOMEM;

	if (picked)
		nr = pick_if(rows, pattern, picked, is_name) ?: pick_if(rows, pattern, picked, is_last_part);
	if (!nr) {
		free(picked);
		picked = NULL;
		nr = csink_rows_match(rows, pattern, &picked, text, sizeof(text));
	}
	if (nr > 0) {
		*out = picked;
		return 0;
	}
	free(picked);
	if (nr == -EINVAL)
		return csink_why(-EINVAL, why, why_len,
				 "no function is called '%s', and it is no regular expression: %s", pattern, text);
	if (nr == -ENOMEM)
		return csink_why(-ENOMEM, why, why_len, "no memory");
	say_none(rows, pattern, why, why_len);
	return -ENODATA;
}
