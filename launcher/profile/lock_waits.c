/* See lock_waits.h. */
#include "launcher/profile/lock_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/profile/append_functions.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/own_types.h"

static void describe_waiter(const struct csink_profile *p, uint32_t stack, char *text, size_t size)
{
	const struct csink_profile_range *range = &p->stacks[stack];

	csink_innermost_functions(p, p->stack_ids + range->first, range->nr, 3, text, size);
}

static int compare_cells(const void *a, const void *b)
{
	const struct csink_lock_wait *first = a, *second = b;
	int order = CSINK_COMPARE(first->lock, second->lock) ?: CSINK_COMPARE(first->holder, second->holder);

	return order ?: strcmp(first->waiter, second->waiter);
}

static int compare_delays(const void *a, const void *b)
{
	const struct csink_lock_wait *first = a, *second = b;

	return CSINK_COMPARE(second->delay_ns, first->delay_ns) ?: compare_cells(a, b);
}

/* One for each lock, holder and waiter. */
static void join(struct csink_lock_waits *waits)
{
	uint32_t nr = 0;

	if (waits->nr)
		qsort(waits->all, waits->nr, sizeof(*waits->all), compare_cells);
	for (uint32_t i = 0; i < waits->nr; i++) {
		const struct csink_lock_wait *from = &waits->all[i];
		struct csink_lock_wait *to = nr ? &waits->all[nr - 1] : NULL;

		if (!to || compare_cells(to, from)) {
			waits->all[nr++] = *from;
			continue;
		}
		to->delay_ns = csink_add(to->delay_ns, from->delay_ns);
		to->contentions = csink_add(to->contentions, from->contentions);
	}
	waits->nr = nr;
	if (nr)
		qsort(waits->all, nr, sizeof(*waits->all), compare_delays);
}

int csink_lock_waits_type(const struct csink_profile *p)
{
	int type = csink_profile_type_find(p, "delay");

	return type >= 0 && csink_own_kind(p, (uint32_t)type) == CSINK_OWN_LOCKS ? type : -ENOENT;
}

int csink_lock_waits_build(struct csink_lock_waits *waits, const struct csink_profile *p)
{
	int delay = csink_lock_waits_type(p), contentions = csink_profile_type_find(p, "contentions");
	csink_str_t lock_key = csink_profile_str_find(p, CSINK_LABEL_LOCK);
	csink_str_t holder_key = csink_profile_str_find(p, CSINK_LABEL_HOLDER);

	memset(waits, 0, sizeof(*waits));
	for (uint32_t i = 0; i < p->nr_samples && delay >= 0 && contentions >= 0; i++) {
		const int64_t *values = csink_profile_values(p, i);
		struct csink_lock_wait wait = {.delay_ns = values[delay], .contentions = values[contentions]};
		const struct csink_profile_label *lock, *holder;

		if (!wait.delay_ns && !wait.contentions)
			continue;
		lock = csink_profile_label_find(p, p->samples[i].labels, lock_key);
		holder = csink_profile_label_find(p, p->samples[i].labels, holder_key);
		wait.lock = lock ? lock->str : 0;
		wait.holder = holder ? holder->str : 0;
		describe_waiter(p, p->samples[i].stack, wait.waiter, sizeof(wait.waiter));
		waits->delay_ns = csink_add(waits->delay_ns, wait.delay_ns);
		waits->contentions = csink_add(waits->contentions, wait.contentions);
		if (!CSINK_APPEND(waits->all, waits->nr, waits->cap, wait)) {
			csink_lock_waits_free(waits);
			return -ENOMEM;
		}
	}
	join(waits);
	return 0;
}

void csink_lock_waits_free(struct csink_lock_waits *waits)
{
	free(waits->all);
	*waits = (struct csink_lock_waits){0};
}
