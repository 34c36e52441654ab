/*
 * Profiles of killed runs: see salvage.h.
 *
 * One process at a time has a directory, by its lock. The profile appears whole, under a name that follows from the
 * recordings, and replaces none: where it is there already, the process that wrote it was killed before it had removed
 * them. So what is left is to remove them.
 */
#include "launcher/session/salvage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "include/internal/recording_format.h"
#include "launcher/base/outfile.h"
#include "launcher/base/search.h"
#include "launcher/collect/lost_runs.h"
#include "launcher/collect/recording_read.h"
#include "launcher/collect/run_directory.h"
#include "launcher/collect/run_reading.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"
#include "launcher/session/slice_keeper.h"
#include "preload/core/record/run_dir.h"

/* A process that has made a directory makes its recording at once. */
#define STARTING_S 60

#define ENDING ".pb.gz"

/* What the recordings of a directory say about their run. */
struct run {
	char output[PATH_MAX];      /* "": none does */
	int32_t pid;                /* of its first process */
	uint64_t start_realtime_ns; /* 0: there is no readable recording */
	bool is_empty;              /* none has an entry */
};

static void take_output(struct run *run, const char *path)
{
	struct csink_recorded rec;

	if (csink_recorded_read(path, &rec, NULL, 0))
		return;
	for (uint32_t i = 0; i < rec.nr_notes; i++)
		if (rec.notes[i]->head.aux == CSINK_NOTE_OUTPUT)
			snprintf(run->output, sizeof(run->output), "%s", rec.notes[i]->text);
	csink_recorded_free(&rec);
}

/* Returns 0, or -errno of a recording that cannot be read now: a header that is damaged stays so. */
static int look(struct run *run, const char *directory, const struct csink_reading *reading)
{
	struct csink_rec_header header;
	char path[PATH_MAX];
	int err;

	*run = (struct run){.is_empty = true};
	for (int i = 0; i < reading->nr; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", directory, reading->entries[i]->d_name) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		err = csink_recorded_read_header(path, &header, NULL, 0);
		if (err == -EBADMSG)
			continue;
		if (err)
			return err;
		run->is_empty &= header.nr_blocks <= CSINK_REC_HEADER_BYTES / CSINK_REC_BLOCK;
		if (!*run->output)
			take_output(run, path);
		if (run->start_realtime_ns && header.start_realtime_ns >= run->start_realtime_ns)
			continue;
		run->start_realtime_ns = header.start_realtime_ns;
		run->pid = header.pid;
	}
	return 0;
}

/* In UTC: a clock's time that comes twice would not distinguish two runs. */
static int name_of(char to[PATH_MAX], const struct run *run, const char *directory)
{
	size_t length = strlen(run->output), ending = strlen(ENDING);
	time_t start = (time_t)(run->start_realtime_ns / CSINK_NS_PER_S);
	const char *unique = strrchr(directory, '-');
	char when[32];
	struct tm tm;

	if (length > ending && !strcmp(run->output + length - ending, ENDING))
		length -= ending;
	if (!gmtime_r(&start, &tm) || !strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm))
		return -EINVAL;
	return snprintf(to, PATH_MAX, "%.*s.killed-%s-%d%s" ENDING, (int)length, run->output, when, (int)run->pid,
			unique ? unique : "") >= PATH_MAX
		       ? -ENAMETOOLONG
		       : 0;
}

/* A device or a pipe has no place beside it for a profile. */
static bool is_named(const struct run *run)
{
	struct stat st;

	return *run->output == '/' && (stat(run->output, &st) || S_ISREG(st.st_mode));
}

static int publish(const char *directory, const char *to, char *why, size_t why_size)
{
	struct csink_profile *profile;
	int err = csink_outfile_check(to, CSINK_OUTFILE_ONCE);

	if (!err) {
		err = csink_profile_open(directory, &profile, why, why_size);
		if (err)
			return err;
		err = csink_pprof_write_as(profile, to, CSINK_OUTFILE_ONCE);
		csink_profile_free(profile);
	}
	if (err && err != -EEXIST)
		snprintf(why, why_size, "%s: %s", to, csink_outfile_error(-err));
	return err == -EEXIST ? 0 : err;
}

/* A process that was killed before it had a recording leaves an empty directory. */
static void remove_old(const char *directory, const struct csink_reading *reading)
{
	struct stat st;

	if (!fstat(reading->fd, &st) && time(NULL) - st.st_mtime > STARTING_S)
		csink_run_directory_clear(directory);
}

static int salvage(struct csink_reading *reading, const char *directory, char to[PATH_MAX], char *why, size_t why_size)
{
	struct run run;
	int err = look(&run, directory, reading);

	*to = '\0';
	if (err) {
		snprintf(why, why_size, "%s: %s", directory,
			 err == -EPROTO ? "recorded by another version of countersink" : strerror(-err));
		return err;
	}
	err = csink_slice_keeper_salvage(directory, to, why, why_size);
	if (!err) {
		csink_reading_remove(reading, directory);
		return CSINK_SALVAGED_PROFILE;
	}
	/* What cannot be read of its slices does not keep the run from its profile. */
	if (err != -ENOENT && err != -EBADMSG)
		return err;
	*to = '\0';
	if (run.is_empty && !*run.output) {
		csink_reading_remove(reading, directory);
		return CSINK_SALVAGED_EMPTY;
	}
	if (!is_named(&run))
		return CSINK_SALVAGED_UNNAMED;
	err = name_of(to, &run, directory);
	if (!err)
		err = publish(directory, to, why, why_size);
	else
		snprintf(why, why_size, "%s: %s", run.output, strerror(-err));
	if (err)
		return err;
	csink_reading_remove(reading, directory);
	return CSINK_SALVAGED_PROFILE;
}

int csink_salvage(const char *directory, char to[PATH_MAX], char *why, size_t why_size)
{
	struct csink_reading reading;
	int result = csink_reading_take(&reading, directory) ? CSINK_SALVAGED_NONE : 1;

	*to = '\0';
	if (result && !reading.nr) {
		remove_old(directory, &reading);
		result = CSINK_SALVAGED_NONE;
	} else if (result) {
		result = salvage(&reading, directory, to, why, why_size);
	}
	csink_reading_close(&reading);
	return result;
}

void csink_salvage_each(const char *place, void (*use)(const char *directory, void *context), void *context)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(place);
	char path[PATH_MAX];
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, CSINK_RUN_DIR_PREFIX, strlen(CSINK_RUN_DIR_PREFIX)) ||
		    strchr(entry->d_name, '.') ||
		    snprintf(path, sizeof(path), "%s/%s", place, entry->d_name) >= (int)sizeof(path))
			continue;
		/* Six letters by mkdtemp(3): other directories of such a name are not run directories. */
		if (strlen(entry->d_name) == strlen(CSINK_RUN_DIR_PREFIX) + 6 && csink_run_dir_is_of(path, geteuid()))
			use(path, context);
	}
}

/* ---- the bound ---- */

struct dead {
	char *path;
	uint64_t start_realtime_ns, bytes;
};

struct dead_runs {
	struct dead *runs;
	uint32_t nr, cap;
	uint64_t bytes;
};

static void weigh(const char *directory, void *context)
{
	struct dead_runs *all = context;
	struct csink_reading reading;
	struct dead dead = {0};
	struct stat st;
	struct run run;

	/* Those alone of which a profile was tried: the mark that is left then is a time to come. */
	if (!csink_reading_take(&reading, directory) && !fstat(reading.fd, &st) && !st.st_mtim.tv_nsec &&
	    st.st_mtime > time(NULL) && !look(&run, directory, &reading) && *run.output &&
	    !CSINK_GROW(all->runs, all->nr, all->cap)) {
		for (int i = 0; i < reading.nr; i++)
			if (!fstatat(reading.fd, reading.entries[i]->d_name, &st, AT_SYMLINK_NOFOLLOW))
				dead.bytes += (uint64_t)st.st_blocks * 512;
		dead.start_realtime_ns = run.start_realtime_ns;
		dead.path = strdup(directory);
		all->bytes += dead.bytes;
		if (dead.path)
			all->runs[all->nr++] = dead;
	}
	csink_reading_close(&reading);
}

CSINK_COMPARE_BY(compare_dead, struct dead, start_realtime_ns, bytes)

/* It is counted before it is gone, so that a program that starts then has the number: twice, if this process is killed
 * in between. */
static bool drop(const char *place, const struct dead *dead)
{
	struct csink_reading reading;
	bool is_dropped = !csink_reading_take(&reading, dead->path) && !csink_reading_claim(&reading, dead->path);

	if (is_dropped) {
		csink_lost_runs_add(place, 1);
		csink_run_directory_clear(dead->path);
	}
	csink_reading_close(&reading);
	return is_dropped;
}

uint32_t csink_salvage_bound(const char *place, uint64_t max_bytes)
{
	struct dead_runs all = {0};
	uint32_t nr_dropped = 0;

	csink_salvage_each(place, weigh, &all);
	if (all.nr)
		qsort(all.runs, all.nr, sizeof(*all.runs), compare_dead);
	for (uint32_t i = 0; i < all.nr && all.bytes > max_bytes; i++) {
		all.bytes -= all.runs[i].bytes;
		nr_dropped += drop(place, &all.runs[i]);
	}
	for (uint32_t i = 0; i < all.nr; i++)
		free(all.runs[i].path);
	free(all.runs);
	return nr_dropped;
}

void csink_salvage_announce(const char *directory, int seconds)
{
	time_t until = time(NULL) + seconds;
	struct timespec times[2] = {{.tv_sec = until}, {.tv_sec = until}};
	struct csink_reading reading;

	/* A time without a fraction is a mark: a directory does not get such a time by what is done in it. */
	if (!csink_reading_take(&reading, directory) && reading.nr)
		futimens(reading.fd, times);
	csink_reading_close(&reading);
}
