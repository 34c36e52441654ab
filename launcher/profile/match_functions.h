/*
 * Which functions of source files are the same in two versions of a program, though its directory, its lines or the
 * name of its script changed. A function is its name in its file; functions of one name in one file (lambda
 * expressions, methods in versions of Python that record no qualified name) are distinguished by their first lines.
 */
#ifndef CSINK_MATCH_FUNCTIONS_H
#define CSINK_MATCH_FUNCTIONS_H

#include <stdint.h>

/* A function as one version has it. */
struct csink_place {
	const char *path; /* of the source file */
	const char *name;
	int64_t line; /* where the function begins; 0 unknown */
	int side;     /* the version: 0 or 1 */
};

/**
 * Find the places that are the same function.
 * @scripts  paths of the two versions' main files, which are one file whatever their names are; NULL: not known.
 * @same     receives, for each place, the index of the place that stands for its function.
 * @file     receives, for each place, the index of a place with the path that stands for its file.
 * Returns 0 or -ENOMEM. Context: thread.
 */
int csink_match_places(const struct csink_place *places, uint32_t nr, const char *const scripts[2], uint32_t *same,
		       uint32_t *file);

#endif
