/* Which recordings there are, and which of them belong to one process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/proc.h"
#include "launcher/base/search.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment_impl.h"
#include "launcher/collect/run_directory.h"
#include "preload/core/record/run_dir.h"

/* ---- one ---- */

/* Events of all recordings together. What one process could not open is still a column if another could. */
static void add_events(struct collector *c, const struct csink_rec_header *header)
{
	const struct csink_rec_event *event;
	uint32_t i, k;

	for (i = 0; i < header->nr_events; i++) {
		event = &header->events[i];
		for (k = 0; k < c->nr_events && strcmp(c->events[k].name, event->name); k++)
			;
		if (event->flags & CSINK_EVENT_REFUSED || !*event->name)
			continue;
		if (k < c->nr_events)
			c->events[k].flags |= event->flags;
		else if (k < CSINK_MAX_EVENTS && !c->has_types)
			c->events[c->nr_events++] = *event;
		else
			csink_collect_tally(c, CSINK_FACT_WARNING, "%s has no column: %s", event->name,
					    c->has_types
						    ? "processes that ended before did not count it"
						    : "other processes count other events, and there are too many");
	}
}

bool csink_collect_is_over(const char *path, const struct csink_rec_header *header)
{
	if (header->state == CSINK_REC_LIVE)
		return false;
	return (header->state == CSINK_REC_EXECED && csink_run_directory_has_next(AT_FDCWD, path, header)) ||
	       (kill(header->pid, 0) < 0 && errno == ESRCH);
}

/* A recording with all columns, to which no process will add. */
static bool is_finished(const struct collector *c, const char *path, const struct csink_rec_header *header)
{
	for (uint32_t i = 0; i < header->nr_events; i++) {
		uint32_t k = 0;

		while (k < c->nr_events && strcmp(c->events[k].name, header->events[i].name))
			k++;
		if (header->events[i].flags & CSINK_EVENT_REFUSED || (c->has_types && k == c->nr_events))
			return false;
	}
	return header->nr_events && csink_collect_is_over(path, header);
}

struct image csink_collect_image(const struct csink_rec_header *header)
{
	struct image image = {
		.pid = header->pid,
		.ppid = header->ppid,
		.state = header->state,
		.start_realtime_ns = header->start_realtime_ns,
		.start_ns = header->start_monotonic_ns,
		.end_ns = header->end_monotonic_ns,
		.cpu_start_ns = header->cpu_start_ns,
		.cpu_end_ns = header->cpu_end_ns,
		.is_outside = header->engine == CSINK_ENGINE_OUTSIDE,
		.has_engine = header->engine != CSINK_ENGINE_OUTSIDE && header->engine != CSINK_ENGINE_NONE,
	};
	uint32_t flags = 0;

	memcpy(image.comm, header->comm, sizeof(image.comm));
	for (uint32_t i = 0; i < header->nr_events && i < CSINK_MAX_EVENTS; i++)
		flags |= header->events[i].flags;
	image.is_by_cpu = (flags & CSINK_EVENT_BY_CPU) != 0;
	image.is_left_out = (flags & CSINK_EVENT_NOT_FOLLOWED) != 0;
	return image;
}

/* Takes the path. */
bool csink_collect_is_running(const struct image *image)
{
	int written = csink_run_dir_is_written(AT_FDCWD, image->path);

	return written >= 0 ? written : csink_proc_is_running(image->pid, 0);
}

static int add_image(struct collector *c, char *path, const struct csink_rec_header *header, uint32_t nr_moment)
{
	struct image image = csink_collect_image(header);

	image.path = path;
	image.nr_moment = nr_moment;
	image.is_last = c->is_early &&
			!(header->state == CSINK_REC_EXECED && csink_run_directory_has_next(AT_FDCWD, path, header));
	if (!CSINK_APPEND(c->images, c->nr_images, c->cap_images, image)) {
		free(path);
		return -ENOMEM;
	}
	add_events(c, header);
	return csink_collect_rank(c, header);
}

/* Takes the path. */
static int add_file(struct collector *c, char *path)
{
	struct csink_rec_header header;
	char why[CSINK_WHY_BYTES];
	int err = csink_recorded_read_header(path, &header, why, sizeof(why));

	if (err && err != -ENOMEM && !c->is_early)
		csink_collect_tally(c, CSINK_FACT_WARNING, "%s is left out: %s", strrchr(path, '/') + 1, why);
	if (!err && !(c->is_early && !is_finished(c, path, &header)))
		return add_image(c, path, &header, 0);
	free(path);
	return err == -ENOMEM ? err : 0;
}

int csink_collect_add_gone(struct image **images, uint32_t *nr, uint32_t *cap, const struct image *gone)
{
	struct image image = *gone;

	image.tids = calloc(gone->nr_tids + 1UL, sizeof(*gone->tids));
	if (!image.tids || !CSINK_APPEND(*images, *nr, *cap, image)) {
		free(image.tids);
		return -ENOMEM;
	}
	memcpy(image.tids, gone->tids, gone->nr_tids * sizeof(*gone->tids));
	return 0;
}

int csink_collect_list_moment(struct collector *c)
{
	int err = 0;

	/* Slices have all of what was removed: it is listed for the sake of what its process became, and of the
	 * kernel's totals in the last one. */
	for (uint32_t i = 0; c->slice && i < c->now->nr_gone && !err; i++)
		if (c->slice->is_last || c->now->gone[i].state == CSINK_REC_EXECED)
			err = csink_collect_add_gone(&c->images, &c->nr_images, &c->cap_images, &c->now->gone[i]);
	for (uint32_t i = 0; i < c->now->nr && !err; i++) {
		char *path = strdup(c->now->at[i].path);

		err = path ? add_image(c, path, &c->now->at[i].copy.header, i + 1) : -ENOMEM;
	}
	return err;
}

/* ---- directories ---- */

static int add_named(struct collector *c, const char *directory, const char *name)
{
	char *path;

	if (!csink_run_dir_is_recording(name))
		return 0;
	return asprintf(&path, "%s/%s", directory, name) < 0 ? -ENOMEM : add_file(c, path);
}

int csink_collect_list(struct collector *c, const char *directory)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(directory);
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (!err && (entry = readdir(dir)))
		err = add_named(c, directory, entry->d_name);
	return err;
}

/*
 * Of processes that had given up their rights. The directory is another user's: it is held by its fd, whatever its name
 * comes to mean.
 */
static int list_one_beside(struct collector *c, const char *run_dir, const char *word)
{
	char path[CSINK_RUN_DIRECTORY_PATH + 16];
	int fd = csink_run_directory_beside(run_dir, word, path, sizeof(path));

	if (fd >= 0 && c->nr_beside == CSINK_ARRAY_SIZE(c->beside)) {
		close(fd);
		fd = -EMFILE;
	}
	if (fd < 0) {
		if (fd != -ENOENT)
			csink_collect_tally(c, CSINK_FACT_WARNING,
					    "recordings of processes that ran as user ID %d are left out: %s",
					    atoi(word), strerror(-fd));
		return 0;
	}
	c->beside[c->nr_beside++] = fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return csink_collect_list(c, path);
}

int csink_collect_list_beside(struct collector *c, const char *run_dir)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(run_dir);
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (!err && (entry = readdir(dir))) {
		if (strstr(entry->d_name, CSINK_RUN_DIR_USER))
			err = list_one_beside(c, run_dir, entry->d_name);
	}
	return err;
}

bool csink_collect_has_many(const char *directory, uint32_t least)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(directory);
	struct dirent *entry;
	uint32_t nr = 0;

	while (dir && nr < least && (entry = readdir(dir)))
		nr += csink_run_dir_is_recording(entry->d_name);
	return dir && nr >= least;
}

/* ---- images of one process ---- */

static int compare_images(const void *a, const void *b)
{
	const struct image *left = a, *right = b;

	return CSINK_COMPARE(left->start_ns, right->start_ns)
		       ?: (left->path && right->path ? strcmp(left->path, right->path) : 0);
}

CSINK_COMPARE_BY(compare_parts, struct csink_collect_part, pid, image)

struct csink_collect_part *csink_collect_parts(const struct collector *c)
{
	struct csink_collect_part *all = calloc((size_t)c->nr_images + 1, sizeof(*all));

	for (uint32_t i = 0; all && i < c->nr_images; i++)
		all[i] = (struct csink_collect_part){c->images[i].pid, i};
	if (all)
		qsort(all, c->nr_images, sizeof(*all), compare_parts);
	return all;
}

/* What was sampled from outside goes on, beside what the library records of the same process. */
static bool has_ended(const struct image *former, const struct image *next)
{
	return former->state == CSINK_REC_EXITED && !(former->is_outside && former->end_ns >= next->start_ns);
}

int csink_collect_link(struct collector *c)
{
	CSINK_AUTO_FREE struct csink_collect_part *all = NULL;

	if (c->nr_images)
		qsort(c->images, c->nr_images, sizeof(*c->images), compare_images);
	all = csink_collect_parts(c);
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->nr_images; i++) {
		c->images[all[i].image].is_last = true;
		if (!i || all[i].pid != all[i - 1].pid ||
		    has_ended(&c->images[all[i - 1].image], &c->images[all[i].image]))
			continue;
		c->images[all[i].image].former = all[i - 1].image + 1;
		c->images[all[i - 1].image].is_last = false;
	}
	return 0;
}
