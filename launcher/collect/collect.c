/*
 * From a run directory to a profile: see collect.h. The flow, in the launcher's one thread: list the recordings
 * (collect_list.c), add their events as sample types, read each recording and add its modules, texts and samples
 * (recording_read.c, collect_notes.c, collect_samples.c), add CPU time that no sample covers (collect_account.c), find
 * symbols (collect_symbols.c), write the facts (collect_facts.c). Ranks of parallel jobs: collect_ranks.c. A run with
 * many processes is read in parts: csink_collect_take() reads finished recordings while the command still runs,
 * csink_collect_finish() reads the rest.
 */
#include "launcher/collect/collect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/search.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/lost_runs.h"
#include "launcher/collect/moment_impl.h"

#define MAX_TALLIES 256

void csink_collect_tally(struct collector *c, const char *key, const char *fmt, ...)
{
	csink_str_t text;
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text = csink_profile_str(c->p, line);
	for (uint32_t i = 0; i < c->nr_tallies; i++) {
		if (c->tallies[i].text == text && !strcmp(c->tallies[i].key, key)) {
			c->tallies[i].nr++;
			return;
		}
	}
	if (c->nr_tallies < MAX_TALLIES && !CSINK_GROW(c->tallies, c->nr_tallies, c->cap_tallies))
		c->tallies[c->nr_tallies++] = (struct tally){key, text, 1};
}

/* ---- columns ---- */

static int add_types(struct collector *c)
{
	struct csink_profile *p = c->p;
	uint32_t first = 0;

	c->cpu_event = -1;
	if (csink_profile_type_add(p, "samples", "count") < 0)
		return -ENOMEM;
	/* Nothing was recorded: the columns are those of the events that attach opened. */
	if (!c->nr_events && c->outside) {
		c->nr_events = c->outside->nr_attached_events;
		memcpy(c->events, c->outside->attached_events, c->nr_events * sizeof(*c->events));
	}
	/* Without those, the total is the CPU time that the kernel accounts. */
	if (!c->nr_events && c->outside) {
		c->events[c->nr_events++] = (struct csink_rec_event){
			.name = "task-clock", .unit = "nanoseconds", .flags = CSINK_EVENT_CPU_NS};
	}
	for (uint32_t i = 0; i < c->nr_events; i++) {
		if (csink_profile_type_add(p, c->events[i].name, *c->events[i].unit ? c->events[i].unit : "count") < 0)
			return -ENOMEM;
		if (c->events[i].flags & CSINK_EVENT_CPU_NS && c->cpu_event < 0)
			c->cpu_event = i;
		if (c->events[i].flags & CSINK_EVENT_LEADER && !p->period_type.name) {
			p->default_type = i + 1;
			p->period = c->events[i].period;
			p->period_type = p->types[i + 1];
		}
		if (c->events[i].flags & CSINK_EVENT_FIRST)
			first = i + 1;
	}
	if (!p->period_type.name && c->nr_events)
		p->default_type = CSINK_MAX(c->cpu_event, 0) + 1;
	if (first) {
		p->default_type = first;
		p->period = c->events[first - 1].period;
		p->period_type = p->types[first];
	}
	return 0;
}

/* ---- all together ---- */

/* The arguments of the first process, for runs without a launcher. */
static void take_command(struct collector *c, const struct csink_rec_header *header)
{
	char text[sizeof(header->cmdline)];
	size_t i, len = 0;

	memcpy(text, header->cmdline, sizeof(text));
	for (i = 0; i < sizeof(text) - 1; i++) {
		if (text[i])
			len = i + 1;
	}
	for (i = 0; i < len; i++)
		text[i] = text[i] ? text[i] : ' ';
	text[len] = 0;
	c->command = csink_profile_str(c->p, text);
}

static int read_image(struct collector *c, struct image *image)
{
	struct csink_recorded rec;
	char why[CSINK_WHY_BYTES];
	int err = !image->nr_moment ? csink_recorded_read(image->path, &rec, why, sizeof(why))
		  : c->slice ? csink_moment_read_slice(c->now, image->nr_moment - 1, c->before, &rec, why, sizeof(why))
			     : csink_moment_read(c->now, image->nr_moment - 1, c->before, &rec, why, sizeof(why));

	if (err == -ENOMEM)
		return err;
	if (err) {
		if (!c->is_early) /* else it is tried again */
			csink_collect_tally(c, CSINK_FACT_WARNING, "%s is left out: %s", strrchr(image->path, '/') + 1,
					    why);
		return 0;
	}
	/* A process that still runs has gone on since its header was first read. */
	image->state = rec.header.state;
	image->end_ns = rec.header.end_monotonic_ns;
	if (!image->is_outside) {
		image->cpu_end_ns = rec.header.cpu_end_ns;
		image->is_continued = rec.header.cut.is_continued && rec.header.cut.bytes;
	}
	if (image->is_continued) {
		image->start_realtime_ns = rec.header.start_realtime_ns;
		image->start_ns = rec.header.start_monotonic_ns;
		image->cpu_start_ns = rec.header.cpu_start_ns;
	}
	if (!c->command)
		take_command(c, &rec.header);
	if (c->slice && image->nr_moment)
		csink_collect_slice_image(c, image);
	err = csink_collect_recording(c, image, &rec);
	image->is_read = !err;
	csink_recorded_free(&rec);
	return err;
}

static void set_times(struct collector *c)
{
	uint64_t first = UINT64_MAX, end = 0, real = 0;

	for (uint32_t i = 0; i < c->nr_images; i++) {
		if (c->images[i].start_ns < first) {
			first = c->images[i].start_ns;
			real = c->images[i].start_realtime_ns;
		}
		end = CSINK_MAX(end, c->images[i].end_ns);
	}
	c->p->time_ns = real;
	c->p->duration_ns = end > first ? end - first : 0;
	if (c->outside && c->outside->wall_ns)
		c->p->duration_ns = c->outside->wall_ns;
}

static void note_scripts(struct collector *c)
{
	if (c->scripts.nr_left_out)
		csink_collect_tally(
			c, CSINK_FACT_WARNING,
			"%u JavaScript files are not read, since they are too large, alone or together: lines "
			"of their functions are not known",
			c->scripts.nr_left_out);
}

static int collect(struct collector *c, const char *run_dir)
{
	int err = run_dir ? csink_collect_list(c, run_dir) : 0;

	if (!err && run_dir)
		err = csink_collect_list_beside(c, run_dir);
	if (!err && c->now)
		err = csink_collect_list_moment(c);
	if (err == -ENOENT && c->outside)
		err = 0;
	if (!err && !c->nr_images && !c->outside)
		err = -ENOENT;
	if (err)
		return err;
	if (run_dir && csink_lost_runs(run_dir))
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%u killed runs before this one were not kept: recordings of killed runs took more "
				    "than --max-place",
				    csink_lost_runs(run_dir));
	err = csink_collect_link(c);
	if (!err)
		err = csink_collect_threads_prepare(c);
	if (!err && !c->has_types)
		err = add_types(c);
	/* What the library recorded decides which samples from outside count. */
	for (uint32_t i = 0; i < c->nr_images && !err; i++)
		if (!c->images[i].is_read && !c->images[i].is_outside)
			err = read_image(c, &c->images[i]);
	if (!err)
		err = csink_collect_outside_prepare(c);
	for (uint32_t i = 0; i < c->nr_images && !err; i++)
		if (!c->images[i].is_read && c->images[i].is_outside)
			err = read_image(c, &c->images[i]);
	if (!err) {
		set_times(c);
		csink_collect_account(c);
		note_scripts(c);
		err = csink_collect_symbols(c);
	}
	if (!err)
		csink_collect_holders(c);
	if (!err)
		csink_collect_facts(c);
	return err ? err : csink_profile_error(c->p);
}

void csink_collect_free(struct collector *c)
{
	for (uint32_t i = 0; i < c->nr_images; i++) {
		free(c->images[i].path);
		free(c->images[i].tids);
	}
	for (uint32_t i = 0; i < c->nr_beside; i++)
		close(c->beside[i]);
	for (uint32_t i = 0; i < c->nr_modules; i++) {
		free(c->modules[i].wants);
		free(c->modules[i].image);
	}
	free(c->holders);
	csink_table_free(&c->known_holders);
	free(c->made_locks);
	csink_table_free(&c->known_made_locks);
	csink_lock_names_free(c->lock_names);
	free(c->images);
	free(c->modules);
	csink_table_free(&c->module_table);
	csink_table_free(&c->location_table);
	csink_table_free(&c->source_table);
	csink_table_free(&c->line_table);
	csink_table_free(&c->pseudo_table);
	csink_scripts_free(&c->scripts);
	free(c->pseudo);
	free(c->unseen);
	free(c->is_shared);
	free(c->tallies);
	csink_table_free(&c->spawned_table);
	free(c->spawned);
	csink_table_free(&c->ranked_table);
	free(c->ranked);
	free(c->threads);
	free(c);
}

struct collector *csink_collect_begin(const struct csink_outside *outside)
{
	struct collector *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->outside = outside;
	if (outside)
		csink_collect_own_rank(c);
	c->p = csink_profile_create();
	if (c->p)
		return c;
	free(c);
	return NULL;
}

CSINK_COMPARE_BY(compare_starts, struct csink_collect_start, pid, start_ns)

static uint32_t add_starts(struct csink_collect_start *starts, uint32_t nr, const struct collector *c)
{
	for (uint32_t i = 0; c && i < c->nr_images; i++)
		if (c->images[i].has_engine)
			starts[nr++] = (struct csink_collect_start){c->images[i].pid, c->images[i].start_ns};
	return nr;
}

uint32_t csink_collect_starts(const struct collector *c, const char *run_dir, struct csink_collect_start **out)
{
	struct collector *there = csink_collect_begin(NULL);
	uint32_t nr = 0;

	*out = NULL;
	if (!there)
		return 0;
	csink_collect_list(there, run_dir); /* without one of them, its samples are taken for the library's, too */
	csink_collect_list_beside(there, run_dir);
	*out = malloc((there->nr_images + (c ? c->nr_images : 0) + 1UL) * sizeof(**out));
	if (*out) {
		nr = add_starts(*out, add_starts(*out, 0, c), there);
		qsort(*out, nr, sizeof(**out), compare_starts);
	}
	csink_profile_free(there->p);
	csink_collect_free(there);
	return nr;
}

/* Of the images from first on, those that can be read; their files are gone then. */
static int take_images(struct collector *c, uint32_t first)
{
	int nr = 0, err = 0;

	for (uint32_t i = first; i < c->nr_images; i++) {
		struct image *image = &c->images[i];

		if (!err)
			err = read_image(c, image);
		if (image->is_read) {
			nr += unlink(image->path) == 0;
			free(image->path);
			image->path = NULL;
			continue;
		}
		free(image->path);
		free(image->tids);
		*image = c->images[--c->nr_images];
		i--;
	}
	return err ? err : nr;
}

int csink_collect_take(struct collector *c, const char *run_dir, uint32_t least)
{
	uint32_t first = c->nr_images;
	int err;

	if (!csink_collect_has_many(run_dir, least))
		return 0;
	c->is_early = true;
	err = csink_collect_list(c, run_dir);
	if (!err && c->nr_images > first && !c->has_types) {
		err = add_types(c);
		c->has_types = !err;
	}
	err = err ? err : take_images(c, first);
	c->is_early = false;
	return err;
}

int csink_collect_finish(struct collector *c, const char *run_dir, struct csink_profile **out)
{
	int err = collect(c, run_dir);

	if (err)
		csink_profile_free(c->p);
	else
		*out = c->p;
	csink_collect_free(c);
	return err;
}

int csink_collect(const char *run_dir, const struct csink_outside *outside, struct csink_profile **out)
{
	struct collector *c = csink_collect_begin(outside);

	return c ? csink_collect_finish(c, run_dir, out) : -ENOMEM;
}

int csink_collect_between(const struct csink_moment *before, const struct csink_moment *now,
			  const struct csink_outside *outside, struct csink_profile **out)
{
	struct collector *c = csink_collect_begin(outside);

	if (!c)
		return -ENOMEM;
	c->now = now;
	c->before = before;
	return csink_collect_finish(c, NULL, out);
}
