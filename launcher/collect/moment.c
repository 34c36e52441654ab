/* What the recordings of a run hold at one moment: see moment.h. */
#include "launcher/collect/moment.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment_impl.h"
#include "launcher/collect/recording_cut.h"
#include "launcher/collect/run_directory.h"

/* ---- taking ---- */

/* Of a recording without a cut: its file is as large as it can become. */
static uint32_t used_percent(const struct csink_moment_recording *one)
{
	uint64_t used = (uint64_t)one->copy.header.nr_blocks * CSINK_REC_BLOCK;
	struct stat st;

	if (one->copy.header.cut.bytes || stat(one->path, &st) || st.st_size <= 0)
		return 0;
	return (uint32_t)CSINK_MIN(used * 100 / (uint64_t)st.st_size, (uint64_t)100);
}

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
	one.used_percent = err ? 0 : used_percent(&one);
	err = CSINK_MIN(err, 0);
	/* Its process has not come to say which one it is: a later moment has it. */
	if (!err && !one.copy.header.state) {
		csink_recorded_free(&one.copy);
		free(one.path);
		return 0;
	}
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

static struct csink_moment *new_moment(void)
{
	struct csink_moment *moment = calloc(1, sizeof(*moment));

	if (!moment)
		return NULL;
	moment->first_ns = UINT64_MAX;
	moment->time_ns = csink_monotonic_ns();
	return moment;
}

int csink_moment_take(const char *run_dir, int32_t pid, struct csink_moment **out)
{
	struct csink_moment *moment = new_moment();
	int err = moment ? take(moment, run_dir, pid) : -ENOMEM;

	if (err)
		csink_moment_free(moment);
	else
		*out = moment;
	return err;
}

static int follow(struct csink_moment *moment, const struct csink_moment *former)
{
	int err = 0;

	for (uint32_t i = 0; former && i < former->nr_gone && !err; i++)
		err = csink_collect_add_gone(&moment->gone, &moment->nr_gone, &moment->cap_gone, &former->gone[i]);
	return err;
}

int csink_moment_take_after(const char *run_dir, const struct csink_moment *former, bool is_last,
			    struct csink_moment **out)
{
	struct csink_moment *moment = new_moment();
	int err;

	if (!moment)
		return -ENOMEM;
	moment->is_last = is_last;
	err = take(moment, run_dir, 0);
	if (err == -ENOENT && former)
		err = 0;
	if (!err)
		moment->given_ns = calloc(moment->nr + 1UL, sizeof(*moment->given_ns));
	err = err ?: moment->given_ns ? follow(moment, former) : -ENOMEM;
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
	for (uint32_t i = 0; moment && i < moment->nr_gone; i++)
		free(moment->gone[i].tids);
	if (moment) {
		free(moment->gone);
		free(moment->given_ns);
		free(moment->at);
	}
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

uint64_t csink_moment_last_ns(const struct csink_moment *moment)
{
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < moment->nr; i++)
		last_ns = CSINK_MAX(last_ns, moment->at[i].copy.header.end_monotonic_ns);
	return last_ns;
}

uint32_t csink_moment_nr(const struct csink_moment *moment)
{
	return moment->nr;
}

uint32_t csink_moment_nr_unread(const struct csink_moment *moment)
{
	return moment->nr_unread;
}

/* ---- what has ended ---- */

/* The process may have put something else there meanwhile. */
static bool is_recording(int fd)
{
	struct csink_rec_header header;
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) && header.magic == CSINK_REC_MAGIC &&
	       header.version == CSINK_REC_VERSION;
}

void csink_moment_give_back(const struct csink_moment *moment)
{
	for (uint32_t i = 0; i < moment->nr; i++) {
		const struct csink_moment_recording *one = &moment->at[i];
		CSINK_AUTO_CLOSE int fd = one->copy.header.state != CSINK_REC_LIVE || one->is_collected
						  ? -1
						  : open(one->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		/* Where it fails, the recording grows on. */
		if (fd >= 0 && is_recording(fd) &&
		    pwrite(fd, &moment->time_ns, sizeof(moment->time_ns), offsetof(struct csink_rec_header, saved_ns)) <
			    0)
			errno = 0;
	}
}

/* A rank is found by its recording, or that of a process above it. */
static bool is_rank(const struct csink_rec_header *header)
{
	for (uint32_t i = 0; i < CSINK_NR_RANK_VARIABLES; i++)
		if (*header->rank_values[i])
			return true;
	return false;
}

static int note_gone(struct csink_moment *moment, uint32_t index)
{
	const struct csink_recorded *copy = &moment->at[index].copy;
	struct image gone = csink_collect_image(&copy->header);
	CSINK_AUTO_FREE int32_t *tids = NULL;
	struct csink_recorded rec;
	char why[CSINK_WHY_BYTES];
	int err = csink_recorded_parse_copy(copy, &rec, why, sizeof(why));

	if (err)
		return err;
	gone.is_read = gone.is_past = gone.is_continued = true;
	gone.lacks_tids = rec.nr_gone_threads != 0;
	gone.covered_cpu_ns = moment->given_ns[index];
	gone.tids = tids = calloc(rec.nr_threads + 1UL, sizeof(*tids));
	for (uint32_t i = 0; tids && i < rec.nr_threads; i++)
		if (!(rec.threads[i]->flags & CSINK_THREAD_NOT_SAMPLED))
			tids[gone.nr_tids++] = rec.threads[i]->tid;
	err = tids ? csink_collect_add_gone(&moment->gone, &moment->nr_gone, &moment->cap_gone, &gone) : -ENOMEM;
	csink_recorded_free(&rec);
	return err;
}

/* The last one takes the place of one that is removed. */
static void forget(struct csink_moment *moment, uint32_t index)
{
	csink_recorded_free(&moment->at[index].copy);
	free(moment->at[index].path);
	moment->at[index] = moment->at[moment->nr - 1];
	moment->given_ns[index] = moment->given_ns[--moment->nr];
}

uint32_t csink_moment_take_ended(struct csink_moment *moment, uint32_t least)
{
	uint32_t nr = 0;

	if (moment->nr < least)
		return 0;
	for (uint32_t i = moment->nr; i-- > 0;) {
		const struct csink_moment_recording *one = &moment->at[i];

		if (one->copy.header.engine == CSINK_ENGINE_OUTSIDE || is_rank(&one->copy.header) ||
		    !csink_collect_is_over(one->path, &one->copy.header) || note_gone(moment, i))
			continue;
		nr += !unlink(one->path);
		forget(moment, i);
	}
	return nr;
}

/* ---- reading ---- */

int64_t csink_moment_find(const struct csink_moment *moment, const struct csink_rec_header *header)
{
	for (uint32_t i = 0; moment && i < moment->nr; i++) {
		const struct csink_rec_header *other = &moment->at[i].copy.header;

		if (other->pid == header->pid && other->seq == header->seq &&
		    (other->engine == CSINK_ENGINE_OUTSIDE) == (header->engine == CSINK_ENGINE_OUTSIDE) &&
		    other->start_monotonic_ns == header->start_monotonic_ns)
			return i;
	}
	return -1;
}

static int read_one(const struct csink_moment *now, uint32_t index, const struct csink_moment *before, bool keeps_all,
		    struct csink_recorded *rec, char *why, size_t why_len)
{
	const struct csink_recorded *copy = &now->at[index].copy, *former;
	int64_t found = csink_moment_find(before, &copy->header);
	CSINK_AUTO_FREE const struct csink_rec_spawn **spawns = NULL;
	struct csink_recorded base;
	uint32_t nr_spawns;
	int err = csink_recorded_parse_copy(copy, rec, why, why_len);

	/* What earlier profiles have of it is shown, too. */
	if (!err)
		rec->header.cut = (struct csink_rec_cut){0};
	if (err || found < 0)
		return err;
	former = &before->at[found].copy;
	err = csink_recorded_parse_copy(former, &base, why, why_len);
	if (err) {
		csink_recorded_free(rec);
		return err;
	}
	nr_spawns = rec->nr_spawns;
	if (keeps_all && nr_spawns)
		spawns = malloc(nr_spawns * sizeof(*spawns));
	if (spawns)
		memcpy(spawns, rec->spawns, nr_spawns * sizeof(*spawns));
	csink_recorded_subtract(rec, &base, before->time_ns);
	rec->nr_former_threads = base.nr_threads + base.nr_gone_threads;
	if (spawns) {
		memcpy(rec->spawns, spawns, nr_spawns * sizeof(*spawns));
		rec->nr_spawns = nr_spawns;
	}
	/* CPU time without samples was accounted for until then: the process's clock is noted more seldom than samples.
	 */
	rec->header.cpu_start_ns = CSINK_MAX(rec->header.cpu_start_ns, base.header.cpu_end_ns);
	if (keeps_all)
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
