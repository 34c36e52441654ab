/* What the recordings of a run hold at one moment: see moment.h. */
#include "launcher/collect/moment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment_impl.h"
#include "launcher/collect/recording_cut.h"

/* ---- taking ---- */

/* One that was removed since it was listed belongs to a process that has ended. */
static int take_one(struct csink_moment *moment, const struct image *image)
{
	struct csink_moment_recording one = {.path = strdup(image->path)};
	char why[CSINK_WHY_BYTES];
	int err = one.path ? csink_recorded_copy(image->path, &one.copy, why, sizeof(why)) : -ENOMEM;

	if (!err && CSINK_APPEND(moment->at, moment->nr, moment->cap, one)) {
		moment->first_ns = CSINK_MIN(moment->first_ns, one.copy.header.start_monotonic_ns);
		return 0;
	}
	if (!err)
		csink_recorded_free(&one.copy);
	free(one.path);
	if (!err || err == -ENOMEM)
		return -ENOMEM;
	moment->nr_unread += err != -ENOENT;
	return 0;
}

static int take(struct csink_moment *moment, const char *run_dir, int32_t pid)
{
	struct collector *c = csink_collect_begin(NULL);
	int err = c ? csink_collect_list(c, run_dir) : -ENOMEM;

	if (!err)
		err = csink_collect_list_beside(c, run_dir);
	for (uint32_t i = 0; !err && i < c->nr_images; i++)
		if (!pid || c->images[i].pid == pid)
			err = take_one(moment, &c->images[i]);
	if (c) {
		for (uint32_t i = 0; i < c->nr_tallies; i++) /* all of them say what was left out */
			moment->nr_unread += c->tallies[i].nr;
		csink_profile_free(c->p);
		csink_collect_free(c);
	}
	return err ? err : moment->nr ? 0 : -ENOENT;
}

int csink_moment_take(const char *run_dir, int32_t pid, struct csink_moment **out)
{
	struct csink_moment *moment = calloc(1, sizeof(*moment));
	int err;

	if (!moment)
		return -ENOMEM;
	moment->first_ns = UINT64_MAX;
	moment->time_ns = csink_monotonic_ns();
	err = take(moment, run_dir, pid);
	if (err)
		csink_moment_free(moment);
	else
		*out = moment;
	return err;
}

void csink_moment_free(struct csink_moment *moment)
{
	for (uint32_t i = 0; moment && i < moment->nr; i++) {
		csink_recorded_free(&moment->at[i].copy);
		free(moment->at[i].path);
	}
	if (moment)
		free(moment->at);
	free(moment);
}

uint64_t csink_moment_ns(const struct csink_moment *moment)
{
	return moment->time_ns;
}

uint64_t csink_moment_first_ns(const struct csink_moment *moment)
{
	return moment->first_ns;
}

uint32_t csink_moment_nr(const struct csink_moment *moment)
{
	return moment->nr;
}

uint32_t csink_moment_nr_unread(const struct csink_moment *moment)
{
	return moment->nr_unread;
}

/* ---- reading ---- */

static const struct csink_recorded *find(const struct csink_moment *moment, const struct csink_rec_header *header)
{
	for (uint32_t i = 0; moment && i < moment->nr; i++) {
		const struct csink_rec_header *other = &moment->at[i].copy.header;

		if (other->pid == header->pid && other->seq == header->seq && other->engine == header->engine &&
		    other->start_monotonic_ns == header->start_monotonic_ns)
			return &moment->at[i].copy;
	}
	return NULL;
}

int csink_moment_read(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
		      struct csink_recorded *rec, char *why, size_t why_len)
{
	const struct csink_recorded *copy = &now->at[index].copy, *former = find(before, &copy->header);
	struct csink_recorded base;
	int err = csink_recorded_parse(copy->data, copy->bytes, rec, why, why_len);

	/* What earlier profiles have of it is shown, too. */
	if (!err)
		rec->header.cut = (struct csink_rec_cut){0};
	if (err || !former)
		return err;
	err = csink_recorded_parse(former->data, former->bytes, &base, why, why_len);
	if (err) {
		csink_recorded_free(rec);
		return err;
	}
	csink_recorded_subtract(rec, &base, before->time_ns);
	/* CPU time without samples was accounted for until then: the process's clock is noted more seldom than samples.
	 */
	rec->header.cpu_start_ns = CSINK_MAX(rec->header.cpu_start_ns, base.header.cpu_end_ns);
	rec->header.cut = (struct csink_rec_cut){.is_continued = 1, .bytes = base.bytes};
	csink_recorded_free(&base);
	return 0;
}
