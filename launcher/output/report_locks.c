/* The report's table of waits for locks: which function waited for which lock, and who held it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/output/report_impl.h"
#include "launcher/profile/append_functions.h"

struct wait_row {
	csink_str_t lock, holder;
	char waiter[200];
	int64_t delay, contentions;
};

struct wait_rows {
	struct wait_row *all;
	uint32_t nr, cap;
};

/* The innermost functions of a sample, as holders have them: "take < work < main". */
static void waiter_of(const struct csink_profile *p, uint32_t stack, char *text, size_t size)
{
	const struct csink_profile_range *range = &p->stacks[stack];
	uint32_t left = 3;

	*text = '\0';
	for (uint32_t i = range->first; i < range->first + range->nr && left; i++)
		left = csink_append_functions(p, p->stack_ids[i], left, text, size);
}

static int compare_cells(const void *a, const void *b)
{
	const struct wait_row *first = a, *second = b;

	if (first->lock != second->lock)
		return first->lock < second->lock ? -1 : 1;
	if (first->holder != second->holder)
		return first->holder < second->holder ? -1 : 1;
	return strcmp(first->waiter, second->waiter);
}

/* One row for each lock, holder and waiter. */
static void join_rows(struct wait_rows *rows)
{
	uint32_t nr = 0;

	if (rows->nr)
		qsort(rows->all, rows->nr, sizeof(*rows->all), compare_cells);
	for (uint32_t i = 0; i < rows->nr; i++) {
		struct wait_row *row = nr ? &rows->all[nr - 1] : NULL;

		if (!row || compare_cells(row, &rows->all[i])) {
			rows->all[nr++] = rows->all[i];
			continue;
		}
		row->delay = csink_add(row->delay, rows->all[i].delay);
		row->contentions = csink_add(row->contentions, rows->all[i].contentions);
	}
	rows->nr = nr;
}

static int compare_delays(const void *a, const void *b)
{
	const struct wait_row *first = a, *second = b;

	if (first->delay != second->delay)
		return first->delay < second->delay ? 1 : -1;
	if (first->lock != second->lock)
		return first->lock < second->lock ? -1 : 1;
	return first->holder < second->holder ? -1 : first->holder > second->holder;
}

static int collect_rows(const struct csink_profile *p, uint32_t delay, uint32_t contentions, struct wait_rows *rows)
{
	csink_str_t lock_key = csink_profile_str_find(p, CSINK_LABEL_LOCK);
	csink_str_t holder_key = csink_profile_str_find(p, CSINK_LABEL_HOLDER);
	int err = 0;

	for (uint32_t i = 0; i < p->nr_samples && !err; i++) {
		const int64_t *values = csink_profile_values(p, i);
		const struct csink_profile_label *lock, *holder;
		struct wait_row row = {.delay = values[delay], .contentions = values[contentions]};

		if (!row.delay && !row.contentions)
			continue;
		lock = csink_profile_label_find(p, p->samples[i].labels, lock_key);
		holder = csink_profile_label_find(p, p->samples[i].labels, holder_key);
		row.lock = lock ? lock->str : 0;
		row.holder = holder ? holder->str : 0;
		waiter_of(p, p->samples[i].stack, row.waiter, sizeof(row.waiter));
		err = CSINK_APPEND(rows->all, rows->nr, rows->cap, row) ? 0 : -ENOMEM;
	}
	join_rows(rows);
	return err;
}

static void print_rows(const struct printer *r, const struct wait_rows *rows, int64_t all)
{
	uint32_t limit = r->o->limit ? (r->o->limit + 2) / 3 : rows->nr, lock_width = 4, waiter_width = 6;
	struct csink_scale scale = csink_scale_for(all, "nanoseconds");
	char lock[200], waiter[200], holder[1000];

	limit = CSINK_MIN(limit, rows->nr);
	for (uint32_t i = 0; i < limit; i++) {
		lock_width = CSINK_MAX(lock_width, csink_format_text(lock, sizeof(lock),
								     csink_profile_text(r->p, rows->all[i].lock), 30));
		waiter_width =
			CSINK_MAX(waiter_width, csink_format_text(waiter, sizeof(waiter), rows->all[i].waiter, 40));
	}
	csink_report_style(r, STYLE_BOLD);
	csink_text_print(r->out, "%8s%13s %11s  %-*s  %-*s  %s\n", "delay %", "delay", "contentions", (int)lock_width,
			 "lock", (int)waiter_width, "waiter", "holder");
	csink_report_style(r, STYLE_NONE);
	for (uint32_t i = 0; i < limit; i++) {
		const struct wait_row *row = &rows->all[i];
		uint32_t used_lock = csink_format_text(lock, sizeof(lock), csink_profile_text(r->p, row->lock), 30);
		uint32_t used_waiter = csink_format_text(waiter, sizeof(waiter), row->waiter, 40);

		csink_format_text(holder, sizeof(holder), csink_profile_text(r->p, row->holder),
				  r->o->width > 120 ? r->o->width - 60 : 90);
		csink_text_print(r->out, "%8.2f%13s %11lld  %s%*s  %s%*s  %s\n", csink_report_percent(row->delay, all),
				 csink_amount_at(row->delay, &scale).text, (long long)row->contentions, lock,
				 (int)(lock_width - CSINK_MIN(used_lock, lock_width)), "", waiter,
				 (int)(waiter_width - CSINK_MIN(used_waiter, waiter_width)), "", holder);
	}
	if (limit < rows->nr)
		csink_text_print(r->out, "          in %u more rows: --all\n", rows->nr - limit);
}

int csink_report_locks(const struct printer *r)
{
	int delay = csink_profile_type_find(r->p, "delay"), contentions = csink_profile_type_find(r->p, "contentions");
	struct wait_rows rows = {NULL, 0, 0};
	int64_t all = 0, nr = 0;
	int err;

	if (delay < 0 || contentions < 0 || csink_own_kind(r->p, (uint32_t)delay) != CSINK_OWN_LOCKS)
		return 0;
	err = collect_rows(r->p, (uint32_t)delay, (uint32_t)contentions, &rows);
	for (uint32_t i = 0; i < rows.nr; i++) {
		all = csink_add(all, rows.all[i].delay);
		nr = csink_add(nr, rows.all[i].contentions);
	}
	if (!err && rows.nr) {
		qsort(rows.all, rows.nr, sizeof(*rows.all), compare_delays);
		csink_text_print(r->out, "\nWaits for locks, %s of all threads together in %lld waits:\n",
				 csink_amount(all, "nanoseconds").text, (long long)nr);
		print_rows(r, &rows, all);
	}
	free(rows.all);
	return err;
}
