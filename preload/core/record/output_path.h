/* The template of the profile's path, as the launcher and the library without one expand it. Context of everything
 * here: thread. */
#ifndef CSINK_OUTPUT_PATH_H
#define CSINK_OUTPUT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "include/internal/recording_format.h"

/*
 * The values of %p %h %c %r. Whatever the environment says, it is part of a file's name: '/' and control
 * characters become '_', as do the dots of a component that would be "." or ".." by it; 100 bytes of it are taken.
 */
struct csink_output_names {
	int32_t pid;
	const char *host;
	const char *command; /* its last path component is taken */
	const char *rank;
};

/** What a path has behind its last '/'. */
static inline const char *csink_output_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/**
 * Copy what the environment has of the variables of CSINK_RANK_NUMBERS and _SIZES. A value is cut to its room; of one
 * that is not set nothing is written. Returns the first of the numbers that is not empty, else "0".
 */
const char *csink_rank_take(char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES]);

/** Has a template %p? */
bool csink_output_has_pid(const char *template);

/**
 * Expand a template: %p pid, %h host, %c command, %r rank, %% a percent sign.
 * @why  on failure, a phrase for people.
 * Returns 0, -EINVAL (another letter after %, or an empty path) or -ENAMETOOLONG.
 */
int csink_output_expand(const char *template, const struct csink_output_names *names, char *out, size_t size, char *why,
			size_t why_size);

#endif
