/* See send_parts.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_parts.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

/* 0 where a sample has none, as those of other programs. */
static int64_t process_of(const struct csink_profile *p, uint32_t sample, csink_str_t key)
{
	const struct csink_profile_label *label = csink_profile_label_find(p, p->samples[sample].labels, key);

	return label ? label->num : 0;
}

static int compare(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;

	return CSINK_COMPARE(*left, *right);
}

/*
 * The first PID, in their order, that is in the second half: as many samples as possible, and half of them at most,
 * are before it, but those of one process in any case. @first is left as it is where there is one process alone.
 */
static void find_half(const int64_t *sorted, uint32_t nr, int64_t *first)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < nr && (!at || i <= nr / 2); i++) {
		if (sorted[i] != sorted[i - 1])
			at = i;
	}
	if (at)
		*first = sorted[at];
}

static int halve(struct csink_profile *p, bool is_second)
{
	uint32_t nr = p->nr_samples;
	csink_str_t key = csink_profile_str_find(p, CSINK_LABEL_PID);
	CSINK_AUTO_FREE int64_t *sorted = calloc((size_t)nr + 1, sizeof(*sorted));
	CSINK_AUTO_FREE bool *keep = calloc((size_t)nr + 1, sizeof(*keep));
	int64_t first = INT64_MIN;

	if (nr < 2)
		return -ENODATA;
	if (!sorted || !keep)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		sorted[i] = process_of(p, i, key);
	qsort(sorted, nr, sizeof(*sorted), compare);
	find_half(sorted, nr, &first);
	for (uint32_t i = 0; i < nr; i++)
		keep[i] = (first == INT64_MIN ? i >= nr / 2 : process_of(p, i, key) >= first) == is_second;
	csink_profile_keep(p, keep);
	return 0;
}

int csink_send_part_take(struct csink_profile *p, const char *part)
{
	int err = 0;

	for (; *part && !err; part++)
		err = halve(p, *part == '1');
	return err;
}

bool csink_send_part_halve(char part[CSINK_SEND_HALVINGS + 1])
{
	size_t len = strlen(part);

	if (len >= CSINK_SEND_HALVINGS)
		return false;
	strcpy(part + len, "0");
	return true;
}

bool csink_send_part_next(char part[CSINK_SEND_HALVINGS + 1])
{
	size_t len = strlen(part);

	while (len && part[len - 1] == '1')
		part[--len] = 0;
	if (len)
		part[len - 1] = '1';
	return len;
}
