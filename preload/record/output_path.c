#include "preload/record/output_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"

const char *csink_output_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++) {
		const char *rank = getenv(names[i]);

		if (rank && *rank)
			return rank;
	}
	return "0";
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What a letter stands for; NULL if for nothing. */
static const char *value_of(char letter, const struct csink_output_names *names, char *number, size_t size)
{
	switch (letter) {
	case 'p':
		snprintf(number, size, "%d", names->pid);
		return number;
	case 'h':
		return names->host;
	case 'c':
		return last_component(names->command);
	case 'r':
		return names->rank;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

int csink_output_expand(const char *template, const struct csink_output_names *names, char *out, size_t size, char *why,
			size_t why_size)
{
	size_t n = 0;

	if (!*template) {
		snprintf(why, why_size, "the path is empty");
		return -EINVAL;
	}
	for (const char *c = template; *c; c++) {
		char literal[2] = {*c, 0}, number[16];
		const char *value = literal;

		if (*c == '%') {
			value = value_of(*++c, names, number, sizeof(number));
			if (!value) {
				snprintf(why, why_size,
					 "'%%%.1s' means nothing: %%p pid, %%h host, %%c command, %%r rank, "
					 "%%%% a percent sign",
					 c);
				return -EINVAL;
			}
		}
		for (; *value && n + 1 < size; value++)
			out[n++] = value != literal && *value == '/' ? '_' : *value;
		if (*value) {
			snprintf(why, why_size, "the path is too long");
			return -ENAMETOOLONG;
		}
	}
	out[n] = '\0';
	return 0;
}
