/*
 * Slices of a run: the profile of what came between two moments, so that those of all slices add up to the profile of
 * the run. Samples are differences, which is exact. CPU time that no sample has is not: of a program that goes on, a
 * later sample may have it. It is given once, when the program has ended, less what all slices have by then.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "include/internal/base.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment_impl.h"

enum { HALF_FULL = 50, FULL = 99 }; /* per cent */

/* Has the program of a recording ended, so that no sample follows? Of one that was killed, that is known when the run
 * is over: its recording was collected as if its process went on. */
static bool has_ended(const struct collector *c, const struct image *image)
{
	const struct csink_moment_recording *one = &c->now->at[image->nr_moment - 1];

	return one->copy.header.state != CSINK_REC_LIVE ||
	       (c->slice->is_last && !(one->is_collected && csink_collect_is_running(image)));
}

/* Where it can still be helped: the program goes on. */
static void warn_of_full(struct collector *c, const struct csink_moment_recording *one)
{
	const struct csink_rec_header *header = &one->copy.header;

	if (header->state != CSINK_REC_LIVE || header->engine == CSINK_ENGINE_OUTSIDE || one->used_percent < HALF_FULL)
		return;
	csink_collect_tally(c, CSINK_FACT_WARNING,
			    one->used_percent < FULL
				    ? "the recording of a %s process is more than half full: once it is full, new "
				      "stacks have no functions (--max-memory; a new start has a new one)"
				    : "the recording of a %s process is full: new stacks have no functions "
				      "(--max-memory; a new start has a new one)",
			    header->comm);
}

void csink_collect_slice_image(struct collector *c, struct image *image)
{
	int64_t former = csink_moment_find(c->before, &c->now->at[image->nr_moment - 1].copy.header);

	image->is_open = !has_ended(c, image);
	warn_of_full(c, &c->now->at[image->nr_moment - 1]);
	if (former < 0)
		return;
	image->covered_cpu_ns = c->before->given_ns[former];
	image->is_past = c->before->at[former].copy.header.state != CSINK_REC_LIVE;
	image->is_continued = true;
}

void csink_collect_slice_given(struct collector *c, const struct image *image)
{
	if (c->slice && image->nr_moment)
		c->slice_now->given_ns[image->nr_moment - 1] = image->covered_cpu_ns;
}

int csink_collect_slice(const struct csink_moment *before, struct csink_moment *now, const struct csink_slice *slice,
			struct csink_profile **out)
{
	struct collector *c = csink_collect_begin(slice->is_last ? slice->outside : NULL);

	if (!c)
		return -ENOMEM;
	c->now = c->slice_now = now;
	c->before = before;
	c->slice = slice;
	return csink_collect_finish(c, NULL, out);
}

int csink_collect_slice_directory(const char *directory, const struct csink_slice *slice, struct csink_profile **out)
{
	struct collector *c = csink_collect_begin(slice->outside);

	if (!c)
		return -ENOMEM;
	c->slice = slice;
	return csink_collect_finish(c, directory, out);
}

/* ---- the comments ---- */

static const char *utc(uint64_t realtime_ns, char text[40])
{
	time_t seconds = (time_t)(realtime_ns / CSINK_NS_PER_S);
	struct tm tm = {0};
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, 40 - n, ".%03" PRIu64 "Z", (uint64_t)(realtime_ns % CSINK_NS_PER_S / 1000000));
	return text;
}

void csink_collect_slice_facts(struct collector *c)
{
	const struct csink_slice *slice = c->slice;
	char text[40];

	csink_profile_fact_add(c->p, CSINK_FACT_SLICE, "%" PRIu64, slice->number);
	csink_profile_fact_add(c->p, CSINK_FACT_SLICE_START, "%s", utc(slice->start_realtime_ns, text));
	csink_profile_fact_add(c->p, CSINK_FACT_RUN_START, "%s", utc(slice->run_start_realtime_ns, text));
	csink_profile_fact_add(c->p, CSINK_FACT_RUN_STATE, "%s", slice->is_last ? "ended" : "goes on");
	if (slice->nr_missed)
		csink_collect_tally(
			c, CSINK_FACT_WARNING,
			"%" PRIu32 " slice%s before this one %s not written%s%s: this one has their time, too",
			slice->nr_missed, slice->nr_missed == 1 ? "" : "s", slice->nr_missed == 1 ? "was" : "were",
			*slice->missed_why ? ", " : "", slice->missed_why);
	c->p->time_ns = (int64_t)slice->start_realtime_ns;
	c->p->duration_ns = (int64_t)slice->duration_ns;
}
