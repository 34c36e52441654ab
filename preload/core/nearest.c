/* Nearest names by edit distance. The words are short, so the plain table in two rows is enough; nothing allocates. */
#include "include/internal/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"

/* Costs in tenths of an edit: what people get wrong most (case, '-' for '_') is nearly free. */
enum { COST_EDIT = 10, COST_CASE = 1 };

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' ? '-' : c;
}

static uint32_t substitution(char a, char b)
{
	if (a == b)
		return 0;
	return fold(a) == fold(b) ? COST_CASE : COST_EDIT;
}

/* Optimal string alignment: edits and swaps of neighbours. Both words have at most CSINK_NEAREST_NAME letters. */
static uint32_t distance(const char *a, uint32_t na, const char *b, uint32_t nb)
{
	uint32_t rows[3][CSINK_NEAREST_NAME + 1];
	uint32_t *before = rows[0], *last = rows[1], *row = rows[2], *swap;

	for (uint32_t j = 0; j <= nb; j++)
		last[j] = j * COST_EDIT;
	for (uint32_t i = 1; i <= na; i++) {
		row[0] = i * COST_EDIT;
		for (uint32_t j = 1; j <= nb; j++) {
			uint32_t best = last[j - 1] + substitution(a[i - 1], b[j - 1]);

			best = CSINK_MIN(best, last[j] + COST_EDIT);
			best = CSINK_MIN(best, row[j - 1] + COST_EDIT);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = CSINK_MIN(best, before[j - 2] + COST_EDIT);
			row[j] = best;
		}
		swap = before;
		before = last;
		last = row;
		row = swap;
	}
	return last[nb];
}

/* How many letters two names have in common at their beginnings, but for case; at most so many. */
static uint32_t common(const char *a, const char *b, uint32_t most)
{
	uint32_t nr = 0;

	while (nr < most && a[nr] && fold(a[nr]) == fold(b[nr]))
		nr++;
	return nr;
}

void csink_nearest_init(struct csink_nearest *near, const char *word, size_t length)
{
	near->word = word;
	near->length = (uint32_t)CSINK_MIN(length, (size_t)CSINK_NEAREST_NAME);
	near->nr = 0;
}

/* Of names that differ in case alone (libpfm4 has the kernel's events in capitals) the nearest one is enough. */
static bool is_kept(struct csink_nearest *near, const char *name, uint32_t far)
{
	for (uint32_t i = 0; i < near->nr; i++) {
		uint32_t same = common(near->best[i].name, name, CSINK_NEAREST_NAME);

		if (near->best[i].name[same] || name[same])
			continue;
		if (near->best[i].distance <= far)
			return true;
		near->nr--;
		memmove(&near->best[i], &near->best[i + 1], (near->nr - i) * sizeof(near->best[0]));
	}
	return false;
}

static void insert(struct csink_nearest *near, const char *name, uint32_t length, uint32_t far)
{
	uint32_t place;

	if (is_kept(near, name, far))
		return;
	place = near->nr;
	while (place && near->best[place - 1].distance > far)
		place--;
	if (place == CSINK_NEAREST_MAX)
		return;
	near->nr = CSINK_MIN(near->nr + 1, (uint32_t)CSINK_NEAREST_MAX);
	for (uint32_t i = near->nr - 1; i > place; i--)
		near->best[i] = near->best[i - 1];
	memcpy(near->best[place].name, name, length);
	near->best[place].name[length] = '\0';
	near->best[place].distance = far;
}

void csink_nearest_offer(struct csink_nearest *near, const char *name)
{
	uint32_t length = (uint32_t)strnlen(name, CSINK_NEAREST_NAME);
	uint32_t limit = (CSINK_MAX(near->length, length) * COST_EDIT) / 3;
	uint32_t far;

	if (!near->length || length == CSINK_NEAREST_NAME)
		return;
	limit = CSINK_MAX(limit, (uint32_t)COST_EDIT);
	far = distance(near->word, near->length, name, length);
	if (far > limit && near->length >= 3 && common(name, near->word, near->length) == near->length)
		far = limit;
	/* All letters replaced is not near, however short the word. */
	if (far <= limit && far < CSINK_MIN(near->length, length) * COST_EDIT)
		insert(near, name, length, far);
}

int csink_nearest_print(const struct csink_nearest *near, char *buf, size_t size)
{
	size_t used = 0;

	if (size)
		buf[0] = '\0';
	for (uint32_t i = 0; i < near->nr && used < size; i++) {
		const char *lead = !i ? "; did you mean " : i + 1 == near->nr ? " or " : ", ";

		used += (size_t)snprintf(buf + used, size - used, "%s'%s'", lead, near->best[i].name);
	}
	if (near->nr && used < size)
		snprintf(buf + used, size - used, "?");
	return (int)near->nr;
}
