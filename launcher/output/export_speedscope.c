/*
 * Speedscope's own format: one profile for each thread and type, samples in order of time where times are known.
 * The schema is https://www.speedscope.app/file-format-schema.json.
 */
#include <inttypes.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/output/calltree.h"
#include "launcher/output/export.h"
#include "launcher/output/thread_names.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

struct speedscope {
	FILE *out;
	const struct csink_profile *p;
	struct csink_calltree *tree;
	struct csink_threads threads;
};

/* A text behind its key, which is written as it is. */
static void put_text(FILE *out, const char *key, const char *text)
{
	fputs(key, out);
	csink_json_quote(out, text, false);
}

static void put_frames(struct speedscope *s)
{
	const struct csink_frame *frame = s->tree->frames;

	fputs("\"shared\":{\"frames\":[", s->out);
	for (uint32_t i = 0; i < s->tree->nr_frames; i++) {
		fputs(i ? ",\n{" : "\n{", s->out);
		put_text(s->out, "\"name\":", frame[i].name);
		if (*frame[i].file || *frame[i].module)
			put_text(s->out, ",\"file\":", *frame[i].file ? frame[i].file : frame[i].module);
		if (frame[i].start_line > 0)
			fprintf(s->out, ",\"line\":%" PRId64, frame[i].start_line);
		putc('}', s->out);
	}
	fputs("]},\n", s->out);
}

static void put_stack(struct speedscope *s, uint32_t node)
{
	const uint32_t *path = csink_calltree_path(s->tree, node);

	putc('[', s->out);
	for (uint32_t i = 0; i < s->tree->calls.nodes[node].depth; i++)
		fprintf(s->out, i ? ",%u" : "%u", path[i]);
	putc(']', s->out);
}

static const char *unit_of(const struct csink_profile *p, uint32_t type)
{
	static const char *const known[] = {"nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"};
	const char *unit = csink_profile_text(p, p->types[type].unit);

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(known); i++) {
		if (!strcmp(known[i], unit))
			return unit;
	}
	return "none";
}

/* Only rows that weigh something: an empty profile of a thread would only be in the way. */
static int64_t sum_of(const struct speedscope *s, const struct csink_thread *thread, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < thread->nr_rows; i++)
		sum = csink_add(sum, csink_profile_values(s->p, s->threads.rows[thread->first_row + i].sample)[type]);
	return sum;
}

static void put_profile(struct speedscope *s, const struct csink_thread *thread, uint32_t type, int64_t sum)
{
	const struct csink_thread_row *rows = s->threads.rows + thread->first_row;
	char name[256], who[192];

	csink_thread_describe(thread, who, sizeof(who));
	snprintf(name, sizeof(name), "%s, %s", who, csink_profile_text(s->p, s->p->types[type].name));
	put_text(s->out, "{\"type\":\"sampled\",\"name\":", name);
	put_text(s->out, ",\"unit\":", unit_of(s->p, type));
	fprintf(s->out, ",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[", sum);
	for (uint32_t i = 0; i < thread->nr_rows; i++) {
		if (i)
			putc(',', s->out);
		put_stack(s, s->tree->of_stack[0][s->p->samples[rows[i].sample].stack]);
	}
	fputs("],\n\"weights\":[", s->out);
	for (uint32_t i = 0; i < thread->nr_rows; i++)
		fprintf(s->out, i ? ",%" PRId64 : "%" PRId64, csink_profile_values(s->p, rows[i].sample)[type]);
	fputs("]}", s->out);
}

static void put_profiles(struct speedscope *s, uint32_t first_type)
{
	const char *between = "\n";
	int64_t sum;

	fputs("\"profiles\":[", s->out);
	for (uint32_t k = 0; k < s->p->nr_types; k++) {
		/* The chosen type's come first: they are what is shown. */
		uint32_t type = k == 0 ? first_type : k <= first_type ? k - 1 : k;

		for (uint32_t i = 0; i < s->threads.nr_threads; i++) {
			sum = sum_of(s, &s->threads.threads[i], type);
			if (!sum)
				continue;
			fputs(between, s->out);
			put_profile(s, &s->threads.threads[i], type, sum);
			between = ",\n";
		}
	}
	fputs("]}\n", s->out);
}

static int export(struct speedscope *s, uint32_t type)
{
	const char *command = csink_profile_fact(s->p, CSINK_FACT_COMMAND, 0);
	int err = csink_threads_build(&s->threads, s->p) ?: csink_calltree_build(&s->tree, s->p);

	if (err)
		return err;
	put_text(s->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":",
		 "countersink " CSINK_VERSION);
	put_text(s->out, ",\"name\":", command ? command : "countersink");
	fputs(",\"activeProfileIndex\":0,\n", s->out);
	put_frames(s);
	put_profiles(s, type);
	return 0;
}

int csink_export_speedscope(FILE *out, const struct csink_profile *p, uint32_t type)
{
	struct speedscope s = {.out = out, .p = p};
	int err = export(&s, CSINK_MIN(type, CSINK_MAX(p->nr_types, 1) - 1));

	csink_threads_free(&s.threads);
	csink_calltree_free(s.tree);
	return err;
}
