/*
 * "Did you mean": the few names that are nearest to a word that was not found. Used for events, modifiers, options and
 * commands. Callers offer every name they know, one after the other; nothing is allocated.
 */
#ifndef CSINK_INTERNAL_NEAREST_H
#define CSINK_INTERNAL_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#define CSINK_NEAREST_MAX 3
#define CSINK_NEAREST_NAME 64

struct csink_nearest {
	const char *word; /* what was asked for; need not be NUL-ended, must outlive this */
	uint32_t length;
	uint32_t nr; /* names kept, best first */
	struct {
		char name[CSINK_NEAREST_NAME];
		uint32_t distance;
	} best[CSINK_NEAREST_MAX];
};

/** Start a search for names near the length bytes at word. Context: any. */
void csink_nearest_init(struct csink_nearest *near, const char *word, size_t length);

/**
 * Offer a name (copied). Names too far from the word (more than about a third of its letters differ) are not kept; case
 * and the difference between '-' and '_' count for little, and a name that begins with the word counts as near.
 * Context: any.
 */
void csink_nearest_offer(struct csink_nearest *near, const char *name);

/**
 * Write "; did you mean 'a', 'b' or 'c'?" to buf, or "" if no name was near. Always NUL-ended.
 * Returns the number of names written. Context: any.
 */
int csink_nearest_print(const struct csink_nearest *near, char *buf, size_t size);

#endif
