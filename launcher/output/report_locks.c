/* The report's table of waits for locks: which function waited for which lock, and who held it. */
#include "include/internal/base.h"
#include "launcher/output/report_impl.h"
#include "launcher/profile/lock_waits.h"

enum { LOCK_COLUMNS = 72 };

static void print_rows(const struct printer *r, const struct csink_lock_waits *rows)
{
	uint32_t limit = csink_report_third(r) ?: rows->nr, lock_width = 4, waiter_width = 6;
	struct csink_scale scale = csink_scale_for(rows->delay_ns, "nanoseconds");
	char lock[200], waiter[200], holder[1000];

	limit = CSINK_MIN(limit, rows->nr);
	for (uint32_t i = 0; i < limit; i++) {
		lock_width = CSINK_MAX(lock_width,
				       csink_format_text(lock, sizeof(lock),
							 csink_profile_text(r->p, rows->all[i].lock), LOCK_COLUMNS));
		waiter_width =
			CSINK_MAX(waiter_width, csink_format_text(waiter, sizeof(waiter), rows->all[i].waiter, 40));
	}
	csink_report_style(r, STYLE_BOLD);
	csink_text_print(r->out, "%8s%13s %11s  %-*s  %-*s  %s\n", "delay %", "delay", "contentions", (int)lock_width,
			 "lock", (int)waiter_width, "waiter", "holder");
	csink_report_style(r, STYLE_NONE);
	for (uint32_t i = 0; i < limit; i++) {
		const struct csink_lock_wait *row = &rows->all[i];
		uint32_t used_lock =
			csink_format_text(lock, sizeof(lock), csink_profile_text(r->p, row->lock), LOCK_COLUMNS);
		uint32_t used_waiter = csink_format_text(waiter, sizeof(waiter), row->waiter, 40);

		csink_format_text(holder, sizeof(holder), csink_profile_text(r->p, row->holder),
				  r->o->width > 120 ? r->o->width - 60 : 90);
		csink_text_print(r->out, "%8.2f%13s %11lld  %s%*s  %s%*s  %s\n",
				 csink_report_percent(row->delay_ns, rows->delay_ns),
				 csink_amount_at(row->delay_ns, &scale).text, (long long)row->contentions, lock,
				 (int)(lock_width - CSINK_MIN(used_lock, lock_width)), "", waiter,
				 (int)(waiter_width - CSINK_MIN(used_waiter, waiter_width)), "", holder);
	}
	if (limit < rows->nr)
		csink_text_print(r->out, "          in %u more rows: --all\n", rows->nr - limit);
}

int csink_report_locks(const struct printer *r)
{
	CSINK_AUTO(csink_lock_waits_free) struct csink_lock_waits waits;
	int err = csink_lock_waits_build(&waits, r->p);

	if (err || !waits.nr)
		return err;
	csink_text_print(r->out, "\nWaits for locks, %s of all threads together in %lld waits:\n",
			 csink_amount(waits.delay_ns, "nanoseconds").text, (long long)waits.contentions);
	print_rows(r, &waits);
	return 0;
}
