/* What the recordings of a run hold at one moment: see moment.h. */
#include "launcher/collect/moment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
	int err = -ENOMEM;

	if (one.path)
		err = moment->is_last ? csink_recorded_copy_collected(image->path, &one.copy, why, sizeof(why))
				      : csink_recorded_copy(image->path, &one.copy, why, sizeof(why));
	one.is_collected = err > 0;
	err = CSINK_MIN(err, 0);
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

/* For the ledger of what slices have. */
static int add_given(struct csink_moment *moment)
{
	void *given = mmap(NULL, moment->nr * sizeof(*moment->given_ns), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (given == MAP_FAILED)
		return -ENOMEM;
	moment->given_ns = given;
	return 0;
}

static int take_moment(const char *run_dir, int32_t pid, bool is_last, struct csink_moment **out)
{
	struct csink_moment *moment = calloc(1, sizeof(*moment));
	int err;

	if (!moment)
		return -ENOMEM;
	moment->is_last = is_last;
	moment->first_ns = UINT64_MAX;
	moment->time_ns = csink_monotonic_ns();
	err = take(moment, run_dir, pid);
	if (!err)
		err = add_given(moment);
	if (err)
		csink_moment_free(moment);
	else
		*out = moment;
	return err;
}

int csink_moment_take(const char *run_dir, int32_t pid, struct csink_moment **out)
{
	return take_moment(run_dir, pid, false, out);
}

int csink_moment_take_last(const char *run_dir, struct csink_moment **out)
{
	return take_moment(run_dir, 0, true, out);
}

void csink_moment_free(struct csink_moment *moment)
{
	for (uint32_t i = 0; moment && i < moment->nr; i++) {
		csink_recorded_free(&moment->at[i].copy);
		free(moment->at[i].path);
	}
	if (moment && moment->given_ns)
		munmap(moment->given_ns, moment->nr * sizeof(*moment->given_ns));
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

int64_t csink_moment_find(const struct csink_moment *moment, const struct csink_rec_header *header)
{
	for (uint32_t i = 0; moment && i < moment->nr; i++) {
		const struct csink_rec_header *other = &moment->at[i].copy.header;

		if (other->pid == header->pid && other->seq == header->seq && other->engine == header->engine &&
		    other->start_monotonic_ns == header->start_monotonic_ns)
			return i;
	}
	return -1;
}

static int read_one(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
		    bool keeps_clocks, struct csink_recorded *rec, char *why, size_t why_len)
{
	const struct csink_recorded *copy = &now->at[index].copy, *former;
	int64_t found = csink_moment_find(before, &copy->header);
	struct csink_recorded base;
	int err = csink_recorded_parse(copy->data, copy->bytes, rec, why, why_len);

	/* What earlier profiles have of it is shown, too. */
	if (!err)
		rec->header.cut = (struct csink_rec_cut){0};
	if (err || found < 0)
		return err;
	former = &before->at[found].copy;
	err = csink_recorded_parse(former->data, former->bytes, &base, why, why_len);
	if (err) {
		csink_recorded_free(rec);
		return err;
	}
	csink_recorded_subtract(rec, &base, before->time_ns);
	/* CPU time without samples was accounted for until then: the process's clock is noted more seldom than samples.
	 */
	rec->header.cpu_start_ns = CSINK_MAX(rec->header.cpu_start_ns, base.header.cpu_end_ns);
	if (keeps_clocks)
		rec->header.cpu_start_ns = copy->header.cpu_start_ns;
	rec->header.cut = (struct csink_rec_cut){.is_continued = 1, .bytes = base.bytes};
	csink_recorded_free(&base);
	return 0;
}

int csink_moment_read(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
		      struct csink_recorded *rec, char *why, size_t why_len)
{
	return read_one(now, index, before, false, rec, why, why_len);
}

int csink_moment_read_slice(const struct csink_moment *now, uint32_t index, const struct csink_moment *before,
			    struct csink_recorded *rec, char *why, size_t why_len)
{
	return read_one(now, index, before, true, rec, why, why_len);
}
