/* CPU time that the kernel accounts, and events do not count, or the other way round: see attach_gap.h. */
#include "launcher/commands/attach/attach_gap.h"

#include <errno.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "launcher/session/outside.h"

#define LITTLE 100 /* one part in so many of the CPU time is not worth a note */

int64_t csink_attach_gap(struct csink_attach_follow *f, uint64_t event_ns)
{
	const struct csink_attach_counters *c = &f->counters;
	/* Else events may count what no clock is read of. */
	bool is_whole = !f->outside->attached_gap_has_more && !c->no_rings && !c->rings.nr_lost;

	if (csink_attach_counters_cpu_event(c) < 0)
		return 0;
	return csink_attach_clock_gap(&f->clock, event_ns, is_whole);
}

void csink_attach_gap_note(const struct csink_attach_follow *f, struct csink_outside *outside)
{
	const struct csink_attach_clock *clock = &f->clock;

	if (csink_attach_counters_cpu_event(&f->counters) < 0)
		return;
	if (!clock->is_known)
		csink_outside_note(outside,
				   "the kernel's clock of their CPU time cannot be read: what switches between "
				   "threads take, which no event counts, is missing");
	else if (clock->nr_unread || clock->shift_ns > (int64_t)clock->used_ns / LITTLE)
		csink_outside_note(outside, "processes ended that none of the others waited for: their CPU time since "
					    "it was last read, or all of it, is what events counted");
	if (outside->attached_gap_ns < -(int64_t)(outside->attached_cpu_ns / 2))
		csink_outside_note(outside,
				   "events counted %.1f ms of CPU time, %.1f ms more than the kernel accounts: rows "
				   "are scaled to half of what was counted, not to less",
				   (double)outside->attached_cpu_ns / 1e6, (double)-outside->attached_gap_ns / 1e6);
}

static int type_of(const struct csink_profile *p)
{
	const char *name = csink_profile_fact(p, CSINK_FACT_CPU_TYPE, 0);

	return name ? csink_profile_type_find(p, name) : -ENOENT;
}

int64_t csink_attach_gap_sum(const struct csink_profile *p)
{
	int type = type_of(p);

	return type < 0 ? 0 : csink_profile_sum(p, (uint32_t)type);
}

int64_t csink_attach_gap_take_off(struct csink_profile *p, int64_t gap_ns)
{
	int64_t sum = csink_attach_gap_sum(p), off_ns = CSINK_MIN(-gap_ns, sum / 2), given = 0, before = 0;
	int type = type_of(p);

	if (type < 0 || off_ns <= 0)
		return 0;
	/* By the sum up to each row, so that rounding adds up to nothing. */
	for (uint32_t i = 0; i < p->nr_samples; i++) {
		int64_t *ns = &p->values[(uint64_t)i * p->nr_types + (uint32_t)type], upto;

		before += *ns;
		upto = (int64_t)((double)off_ns * ((double)before / (double)sum) + 0.5);
		*ns -= upto - given;
		given = upto;
	}
	return -given;
}
