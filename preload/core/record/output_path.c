/* Expands the template of the profile's path: see output_path.h. Launcher and library; in no signal handler. */
#include "preload/core/record/output_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"

/* Each ended by NUL, so that none needs a relocation. */
#define WITH_NUL(name) #name "\0"
static const char rank_variables[] = CSINK_RANK_NUMBERS(WITH_NUL) CSINK_RANK_SIZES(WITH_NUL);

const char *csink_rank_take(char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES])
{
	const char *variable = rank_variables, *rank = NULL;

	for (int i = 0; *variable; i++) {
		const char *value = getenv(variable);

		variable += strlen(variable) + 1;
		if (!value)
			continue;
		snprintf(values[i], CSINK_RANK_VALUE_BYTES, "%s", value);
		if (i < CSINK_NR_RANK_NUMBERS && *value && !rank)
			rank = value;
	}
	return rank ? rank : "0";
}

/* The text that replaces a letter; NULL: no such letter. */
static const char *value_of(char letter, const struct csink_output_names *names, char *number, size_t size)
{
	switch (letter) {
	case 'p':
		snprintf(number, size, "%d", names->pid);
		return number;
	case 'h':
		return names->host;
	case 'c':
		return csink_output_name(names->command);
	case 'r':
		return names->rank;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

bool csink_output_has_pid(const char *template)
{
	const char *c = template;

	while ((c = strchr(c, '%')) && c[1] && c[1] != 'p')
		c += 2;
	return c && c[1];
}

#define MAX_VALUE 100 /* bytes of a value: one from the environment may be of any length */

/* The path so far. */
struct expansion {
	char *out;
	size_t size, used;
	size_t component; /* where the last component begins */
	bool has_value;   /* something was substituted in it */
};

static bool append(struct expansion *e, char c)
{
	if (e->used + 1 >= e->size)
		return false;
	e->out[e->used++] = c;
	return true;
}

/* A name that a value has made empty, "." or ".." would lead to another directory. */
static bool end_component(struct expansion *e)
{
	char *name = e->out + e->component;
	size_t len = e->used - e->component;

	if (e->has_value && !len && !append(e, '_'))
		return false;
	if (e->has_value && len && len <= 2 && name[0] == '.' && name[len - 1] == '.')
		memset(name, '_', len);
	e->has_value = false;
	return true;
}

/* A character of the template itself. */
static bool append_literal(struct expansion *e, char c)
{
	if (c == '/' && !end_component(e))
		return false;
	if (!append(e, c))
		return false;
	if (c == '/')
		e->component = e->used;
	return true;
}

/* The value of a letter: only part of a file name, without control characters. */
static bool append_value(struct expansion *e, const char *value)
{
	e->has_value = true;
	for (size_t i = 0; value[i] && i < MAX_VALUE; i++) {
		unsigned char c = (unsigned char)value[i];

		if (!append(e, c < ' ' || c == 0x7f || c == '/' ? '_' : value[i]))
			return false;
	}
	return true;
}

int csink_output_expand(const char *template, const struct csink_output_names *names, char *out, size_t size, char *why,
			size_t why_size)
{
	struct expansion e = {.out = out, .size = size};
	bool fits = true;

	if (!*template) {
		snprintf(why, why_size, "the path is empty");
		return -EINVAL;
	}
	for (const char *c = template; *c && fits; c++) {
		const char *value;
		char number[16];

		if (*c != '%') {
			fits = append_literal(&e, *c);
			continue;
		}
		value = value_of(*++c, names, number, sizeof(number));
		if (!value) {
			snprintf(why, why_size,
				 "'%%%.1s' means nothing: %%p pid, %%h host, %%c command, %%r rank, "
				 "%%%% a percent sign",
				 c);
			return -EINVAL;
		}
		fits = append_value(&e, value);
	}
	if (!fits || !end_component(&e)) {
		snprintf(why, why_size, "the path is too long");
		return -ENAMETOOLONG;
	}
	out[e.used] = '\0';
	return 0;
}
