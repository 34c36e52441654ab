/*
 * Pages: the fixed parts, and between them the title and the data: tables in JSON, each a list of numbers or texts for
 * each field, read by html/model.js.
 *
 * Samples are added up by function, thread and side; those with a time (--timeline) stay single, in order of time.
 */
#include "launcher/output/html.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/json.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/output/calltree.h"
#include "launcher/output/thread_names.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/interpreted.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/wall.h"

#define MAX_TYPES 16

/* What the data of a page is made from: one side, or base and now. */
struct page {
	const struct csink_html_side *sides;
	uint32_t nr_sides;
	const char *title;
	struct type {
		const char *name, *unit;
		uint32_t of_side[2]; /* index in the profile of each side */
	} types[MAX_TYPES];
	uint32_t nr_types, type; /* type: shown first */
};

/* html_pages.S: the page before and after its data, which the build makes of html/. */
extern const char csink_html_head[], csink_html_tail[];

struct row {
	uint32_t group, node; /* group: a thread of a side; numbered over both */
	uint32_t parallelism; /* hundredths; 0: not known */
	int64_t time_ns;
	int64_t values[MAX_TYPES];
};

struct data {
	FILE *out;
	const struct page *page;
	struct csink_calltree *tree;
	struct csink_threads threads[2];
	struct csink_interpreted interpreted; /* of both sides, where there are two */
	uint32_t *parallelism;                /* by sample; NULL: of two sides, or without times */
	struct row *rows;
	size_t nr_rows;
};

/* ---- samples ---- */

static void add_samples(struct data *d, uint32_t side)
{
	const struct csink_profile *p = d->page->sides[side].profile;
	const struct csink_thread_row *from;
	const int64_t *values;
	struct row *row;

	for (uint32_t i = 0; i < d->threads[side].nr_rows; i++) {
		from = &d->threads[side].rows[i];
		row = &d->rows[d->nr_rows++];
		row->time_ns = d->page->nr_sides > 1 ? CSINK_NO_TIME : from->time_ns; /* two runs share no time */
		row->group = from->thread + (side ? d->threads[0].nr_threads : 0);
		row->parallelism = d->parallelism ? d->parallelism[from->sample] : 0;
		row->node = d->tree->of_stack[side][p->samples[from->sample].stack];
		values = csink_profile_values(p, from->sample);
		for (uint32_t t = 0; t < d->page->nr_types; t++)
			row->values[t] = values[d->page->types[t].of_side[side]];
	}
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	int order = CSINK_COMPARE(a->time_ns, b->time_ns) ?: CSINK_COMPARE(a->group, b->group);

	return order ?: CSINK_COMPARE(a->node, b->node);
}

static void merge_rows(struct data *d)
{
	struct row *to = d->rows;

	if (!d->nr_rows)
		return;
	qsort(d->rows, d->nr_rows, sizeof(*d->rows), compare_rows);
	for (struct row *from = d->rows + 1; from < d->rows + d->nr_rows; from++) {
		if (from->time_ns == CSINK_NO_TIME && !compare_rows(to, from)) {
			for (uint32_t t = 0; t < d->page->nr_types; t++)
				to->values[t] = csink_add(to->values[t], from->values[t]);
		} else {
			*++to = *from;
		}
	}
	d->nr_rows = to + 1 - d->rows;
}

static int gather(struct data *d)
{
	size_t nr = 0;
	int err = 0;

	for (uint32_t s = 0; s < d->page->nr_sides; s++)
		nr += d->page->sides[s].profile->nr_samples;
	d->rows = calloc(CSINK_MAX(nr, 1), sizeof(*d->rows));
	d->tree = csink_calltree_create();
	if (!d->rows || !d->tree)
		return -ENOMEM;
	if (d->page->nr_sides > 1) {
		const struct csink_profile *both[] = {d->page->sides[0].profile, d->page->sides[1].profile};

		d->tree->by_base_name = true;
		d->tree->interpreted = &d->interpreted;
		err = csink_interpreted_build(&d->interpreted, both, 2);
	}
	for (uint32_t s = 0; s < d->page->nr_sides && !err; s++)
		err = csink_calltree_add(d->tree, d->page->sides[s].profile)
			      ?: csink_threads_build(&d->threads[s], d->page->sides[s].profile);
	if (!err)
		err = csink_calltree_finish(d->tree);
	if (!err && d->page->nr_sides == 1)
		err = csink_wall_parallelism(d->page->sides[0].profile, &d->parallelism);
	if (err == -ENODATA)
		err = 0;
	for (uint32_t s = 0; s < d->page->nr_sides && !err; s++)
		add_samples(d, s);
	if (!err)
		merge_rows(d);
	return err;
}

/* ---- writing ---- */

/* Millions of numbers: printf would take most of the time. */
static void put_number(FILE *out, int64_t value, bool is_first)
{
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char text[24], *at = text + sizeof(text);

	do {
		*--at = '0' + rest % 10;
		rest /= 10;
	} while (rest);
	if (value < 0)
		*--at = '-';
	if (!is_first)
		*--at = ',';
	fwrite_unlocked(at, 1, text + sizeof(text) - at, out);
}

/* A list of numbers: key:[expression, ...], the expression being of i, and the key written as it is. */
#define PUT_LIST(d, key, first, end, expression)                                                                       \
	do {                                                                                                           \
		fprintf((d)->out, "%s:[", key);                                                                        \
		for (size_t i = (first); i < (end); i++)                                                               \
			put_number((d)->out, expression, i == (first));                                                \
		fputs("]", (d)->out);                                                                                  \
	} while (0)

/* A text behind what is written as it is: its key, or a comma. */
static void put_text(struct data *d, const char *before, const char *text)
{
	fputs(before, d->out);
	csink_json_quote(d->out, text, true);
}

static void put_facts(struct data *d, const struct csink_profile *p)
{
	const char *text, *colon;
	char key[64];

	fputs(",\"facts\":[", d->out);
	for (uint32_t i = 0; i < p->nr_comments; i++) {
		text = csink_profile_text(p, p->comments[i]);
		colon = strstr(text, ": ");
		if (colon && (size_t)(colon - text) >= sizeof(key))
			colon = NULL;
		snprintf(key, sizeof(key), "%.*s", colon ? (int)(colon - text) : 0, text);
		put_text(d, i ? ",[" : "[", key);
		put_text(d, ",", colon ? colon + 2 : text);
		putc(']', d->out);
	}
	putc(']', d->out);
}

static void put_sides(struct data *d)
{
	const struct csink_html_side *side;

	fputs("\"sides\":[", d->out);
	for (uint32_t s = 0; s < d->page->nr_sides; s++) {
		side = &d->page->sides[s];
		put_text(d, s ? ",{\"name\":" : "{\"name\":", side->name);
		fprintf(d->out, ",\"runs\":%" PRId64 ",\"time_ns\":\"%" PRId64 "\",\"duration_ns\":%" PRId64,
			side->nr_runs ?: CSINK_MIN(csink_profile_runs(side->profile), (int64_t)UINT32_MAX),
			side->profile->time_ns, side->profile->duration_ns);
		put_facts(d, side->profile);
		putc('}', d->out);
	}
	fputs("],\n\"types\":[", d->out);
	for (uint32_t t = 0; t < d->page->nr_types; t++) {
		put_text(d, t ? ",{\"name\":" : "{\"name\":", d->page->types[t].name);
		put_text(d, ",\"unit\":", d->page->types[t].unit);
		putc('}', d->out);
	}
	fprintf(d->out, "],\"type\":%u,\n", d->page->type);
}

/* Modules and files are few: frames have their numbers in a list of texts. */
static int put_frames(struct data *d)
{
	const struct csink_frame *frame = d->tree->frames;
	CSINK_AUTO(csink_profile_done) struct csink_profile *texts = csink_profile_create();
	uint32_t nr = d->tree->nr_frames;

	if (!texts)
		return -ENOMEM;
	fputs("\"frames\":{\"name\":[", d->out);
	for (uint32_t i = 0; i < nr; i++)
		put_text(d, i ? "," : "", frame[i].name);
	PUT_LIST(d, "],\"module\"", 0, nr, csink_profile_str(texts, frame[i].module));
	PUT_LIST(d, ",\"file\"", 0, nr, csink_profile_str(texts, frame[i].file));
	PUT_LIST(d, ",\"language\"", 0, nr, csink_profile_str(texts, frame[i].language));
	PUT_LIST(d, ",\"line\"", 0, nr, frame[i].start_line);
	PUT_LIST(d, ",\"flags\"", 0, nr, frame[i].is_pseudo | frame[i].is_inlined << 1 | frame[i].is_interpreted << 2);
	fputs("},\n\"texts\":[", d->out);
	for (uint32_t i = 0; i < texts->nr_strings; i++)
		put_text(d, i ? "," : "", texts->strings[i].text);
	fputs("],\n", d->out);
	return 0;
}

static void put_nodes(struct data *d)
{
	const struct csink_tree *calls = &d->tree->calls;

	PUT_LIST(d, "\"nodes\":{\"depth\"", 1, calls->nr_nodes, calls->nodes[i].depth);
	PUT_LIST(d, ",\"frame\"", 1, calls->nr_nodes, calls->nodes[i].row);
	fputs("},\n", d->out);
}

static void put_groups(struct data *d)
{
	const struct csink_thread *thread;
	const char *between = "";

	fputs("\"groups\":[", d->out);
	for (uint32_t s = 0; s < d->page->nr_sides; s++) {
		for (uint32_t i = 0; i < d->threads[s].nr_threads; i++) {
			thread = &d->threads[s].threads[i];
			fprintf(d->out, "%s{\"side\":%u,\"pid\":%d,\"tid\":%d,", between, s, thread->pid, thread->tid);
			put_text(d, "\"process\":", thread->process);
			put_text(d, ",\"thread\":", thread->thread);
			putc('}', d->out);
			between = ",";
		}
	}
	fputs("],\n", d->out);
}

static void put_rows(struct data *d, const char *key, size_t first, size_t end)
{
	fprintf(d->out, "\"%s\":{", key);
	PUT_LIST(d, "\"group\"", first, end, d->rows[i].group);
	PUT_LIST(d, ",\"node\"", first, end, d->rows[i].node);
	fputs(",\"values\":{", d->out);
	for (uint32_t t = 0; t < d->page->nr_types; t++) {
		char index[16];

		snprintf(index, sizeof(index), "%s\"%u\"", t ? "," : "", t);
		PUT_LIST(d, index, first, end, d->rows[i].values[t]);
	}
	putc('}', d->out);
}

/* Times are microseconds, each from the one before it, the first from the start of the run. */
static void put_samples(struct data *d)
{
	size_t timed = 0;
	int64_t start, time_ns;

	while (timed < d->nr_rows && d->rows[timed].time_ns == CSINK_NO_TIME)
		timed++;
	put_rows(d, "samples", 0, timed);
	fputs("},\n", d->out);
	put_rows(d, "moments", timed, d->nr_rows);
	time_ns = timed < d->nr_rows ? d->rows[timed].time_ns : 0;
	start = d->page->sides[0].profile->time_ns;
	if (!start || start > time_ns)
		start = time_ns;
	PUT_LIST(d, ",\"time_us\"", timed, d->nr_rows,
		 (d->rows[i].time_ns - start) / 1000 - (i == timed ? 0 : (d->rows[i - 1].time_ns - start) / 1000));
	if (d->parallelism)
		PUT_LIST(d, ",\"parallelism\"", timed, d->nr_rows, d->rows[i].parallelism);
	putc('}', d->out);
}

static int put_all(struct data *d)
{
	int err;

	put_text(d, "{\"format\":1,\"title\":", d->page->title);
	fputs(",\n", d->out);
	put_sides(d);
	err = put_frames(d);
	put_nodes(d);
	put_groups(d);
	put_samples(d);
	fputs("}\n", d->out);
	return err;
}

static int write_data(FILE *out, const struct page *page)
{
	struct data d = {.out = out, .page = page};
	int err = gather(&d);

	if (!err)
		err = put_all(&d);
	csink_calltree_free(d.tree);
	csink_interpreted_free(&d.interpreted);
	csink_threads_free(&d.threads[0]);
	csink_threads_free(&d.threads[1]);
	free(d.rows);
	free(d.parallelism);
	return err;
}

/* ---- pages ---- */

static const char *type_name(const struct csink_profile *p, uint32_t type)
{
	return csink_profile_text(p, p->types[type].name);
}

/* The types that all sides have. A profile has one type of a name. */
static void find_types(struct page *page, const char *first)
{
	const struct csink_profile *p = page->sides[0].profile;
	struct type *type;
	int other = 0;

	for (uint32_t i = 0; i < p->nr_types && page->nr_types < MAX_TYPES; i++) {
		if (page->nr_sides > 1)
			other = csink_profile_type_find(page->sides[1].profile, type_name(p, i));
		if (other < 0)
			continue;
		if (first ? !strcmp(first, type_name(p, i)) : i == p->default_type)
			page->type = page->nr_types;
		type = &page->types[page->nr_types++];
		type->name = type_name(p, i);
		type->unit = csink_profile_text(p, p->types[i].unit);
		type->of_side[0] = i;
		type->of_side[1] = other;
	}
}

void csink_html_put_head(FILE *out, const char *head, const char *title)
{
	const char *mark = "@TITLE@", *at = strstr(head, mark);

	fwrite(head, 1, at - head, out);
	csink_text_put(out, CSINK_TEXT_XML, title);
	fputs(at + strlen(mark), out);
}

static int write_page(FILE *out, const struct page *page)
{
	int err;

	csink_html_put_head(out, csink_html_head, page->title);
	err = write_data(out, page);
	fputs(csink_html_tail, out);
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	return err;
}

int csink_html_write(FILE *out, const struct csink_html_page *given)
{
	const struct csink_profile *p = given->sides[given->nr_sides - 1].profile;
	struct page page = {.sides = given->sides, .nr_sides = given->nr_sides};

	page.title = given->title ?: csink_profile_fact(p, CSINK_FACT_COMMAND, 0) ?: "countersink";
	find_types(&page, given->type);
	return page.nr_types || page.nr_sides == 1 ? write_page(out, &page) : -ENOENT;
}
