/* From a run folder to a profile (collect.h): the order of things; the parts are in collect_*.c. */
#include "launcher/profile/collect.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/grow.h"
#include "launcher/profile/collect_impl.h"
#include "launcher/run/folder.h"
#include "preload/record/run_dir.h"

#define MAX_TALLIES 256

void csink_collect_tally(struct collector *c, const char *key, const char *fmt, ...)
{
	csink_str_t text;
	char line[1024];
	va_list ap;
	uint32_t i;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text = csink_profile_str(c->p, line);
	for (i = 0; i < c->nr_tallies; i++) {
		if (c->tallies[i].text == text && !strcmp(c->tallies[i].key, key)) {
			c->tallies[i].nr++;
			return;
		}
	}
	if (c->nr_tallies < MAX_TALLIES && !CSINK_GROW(c->tallies, c->nr_tallies, c->cap_tallies))
		c->tallies[c->nr_tallies++] = (struct tally){key, text, 1};
}

/* ---- which recordings there are ---- */

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
	}
}

/* Has this pid run another program since? Then nobody writes there any more. */
static bool has_next(const char *path, const struct csink_rec_header *header)
{
	char next[CSINK_FOLDER_PATH + 64];
	int folder = (int)(strrchr(path, '/') - path);

	snprintf(next, sizeof(next), "%.*s/%d.%u" CSINK_REC_SUFFIX, folder, path, (int)header->pid, header->seq + 1);
	return access(next, F_OK) == 0;
}

/* One whose columns are all there, and that nobody will ever add to. */
static bool is_finished(const struct collector *c, const char *path, const struct csink_rec_header *header)
{
	for (uint32_t i = 0; i < header->nr_events; i++) {
		uint32_t k = 0;

		while (k < c->nr_events && strcmp(c->events[k].name, header->events[i].name))
			k++;
		if (header->events[i].flags & CSINK_EVENT_REFUSED || (c->has_types && k == c->nr_events))
			return false;
	}
	if (!header->nr_events || header->state == CSINK_REC_LIVE)
		return false;
	return (header->state == CSINK_REC_EXECED && has_next(path, header)) ||
	       (kill(header->pid, 0) < 0 && errno == ESRCH);
}

static int add_image(struct collector *c, char *path)
{
	struct csink_rec_header header;
	char why[160];
	int err = csink_recorded_read_header(path, &header, why, sizeof(why));

	if (err == -ENOMEM)
		return err;
	if (err && !c->is_early)
		csink_collect_tally(c, CSINK_FACT_WARNING, "%s is left out: %s", strrchr(path, '/') + 1, why);
	if (err || (c->is_early && !is_finished(c, path, &header))) {
		free(path);
		return 0;
	}
	if (CSINK_GROW(c->images, c->nr_images, c->cap_images))
		return -ENOMEM;
	c->images[c->nr_images] = (struct image){
		.path = path,
		.pid = header.pid,
		.ppid = header.ppid,
		.state = header.state,
		.start_realtime_ns = header.start_realtime_ns,
		.start_ns = header.start_monotonic_ns,
		.end_ns = header.end_monotonic_ns,
		.cpu_start_ns = header.cpu_start_ns,
		.cpu_end_ns = header.cpu_end_ns,
		.is_last = c->is_early && !(header.state == CSINK_REC_EXECED && has_next(path, &header)),
	};
	memcpy(c->images[c->nr_images].comm, header.comm, sizeof(header.comm));
	c->nr_images++;
	add_events(c, &header);
	return 0;
}

static bool is_recording(const char *name)
{
	size_t len = strlen(name), suffix = strlen(CSINK_REC_SUFFIX);

	return len > suffix && !strcmp(name + len - suffix, CSINK_REC_SUFFIX);
}

static int list_folder(struct collector *c, const char *folder, bool is_run_dir);

/* Of processes that had given up their rights. The folder is another user's: it is held by its fd, whatever its name
 * comes to mean. */
static int list_beside(struct collector *c, const char *run_dir, const char *word)
{
	char path[CSINK_FOLDER_PATH + 16];
	int fd = csink_folder_beside(run_dir, word, path, sizeof(path));

	if (fd < 0 || c->nr_beside == CSINK_ARRAY_SIZE(c->beside)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	c->beside[c->nr_beside++] = fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return list_folder(c, path, false);
}

static int list_folder(struct collector *c, const char *folder, bool is_run_dir)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int err = 0;
	char *path;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		if (is_run_dir && strstr(entry->d_name, CSINK_RUN_DIR_USER))
			err = list_beside(c, folder, entry->d_name);
		if (!is_recording(entry->d_name))
			continue;
		if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
			err = -ENOMEM;
		else
			err = add_image(c, path);
	}
	closedir(dir);
	return err;
}

static int list_images(struct collector *c, const char *run_dir)
{
	return run_dir ? list_folder(c, run_dir, true) : 0;
}

static int compare_images(const void *a, const void *b)
{
	const struct image *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return left->path && right->path ? strcmp(left->path, right->path) : 0;
}

struct by_pid {
	int32_t pid;
	uint32_t image; /* ascending: by start */
};

static int compare_pids(const void *a, const void *b)
{
	const struct by_pid *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->image < right->image ? -1 : left->image > right->image;
}

/* A pid's images follow each other by exec, but not after an exit: then the pid was used again. */
static int link_images(struct collector *c)
{
	struct by_pid *all = calloc((size_t)c->nr_images + 1, sizeof(*all));
	uint32_t i;

	if (!all)
		return -ENOMEM;
	if (c->nr_images)
		qsort(c->images, c->nr_images, sizeof(*c->images), compare_images);
	for (i = 0; i < c->nr_images; i++)
		all[i] = (struct by_pid){c->images[i].pid, i};
	qsort(all, c->nr_images, sizeof(*all), compare_pids);
	for (i = 0; i < c->nr_images; i++) {
		c->images[all[i].image].is_last = true;
		if (!i || all[i].pid != all[i - 1].pid || c->images[all[i - 1].image].state == CSINK_REC_EXITED)
			continue;
		c->images[all[i].image].former = all[i - 1].image + 1;
		c->images[all[i - 1].image].is_last = false;
	}
	free(all);
	return 0;
}

/* ---- columns ---- */

static int add_types(struct collector *c)
{
	struct csink_profile *p = c->p;
	uint32_t i;

	c->cpu_event = -1;
	if (csink_profile_type_add(p, "samples", "count") < 0)
		return -ENOMEM;
	/* Nothing was recorded, but the kernel has totals: they are CPU time. */
	if (!c->nr_events && c->outside) {
		c->events[c->nr_events++] = (struct csink_rec_event){
			.name = "task-clock", .unit = "nanoseconds", .flags = CSINK_EVENT_CPU_NS};
	}
	for (i = 0; i < c->nr_events; i++) {
		if (csink_profile_type_add(p, c->events[i].name, *c->events[i].unit ? c->events[i].unit : "count") < 0)
			return -ENOMEM;
		if (c->events[i].flags & CSINK_EVENT_CPU_NS && c->cpu_event < 0)
			c->cpu_event = i;
		if (c->events[i].flags & CSINK_EVENT_LEADER && !p->period_type.name) {
			p->default_type = i + 1;
			p->period = c->events[i].period;
			p->period_type = p->types[i + 1];
		}
	}
	if (!p->period_type.name && c->cpu_event >= 0)
		p->default_type = c->cpu_event + 1;
	return 0;
}

/* ---- all together ---- */

/* The arguments of the first process, for runs that have no launcher to tell them. */
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
	char why[160];
	int err = csink_recorded_read(image->path, &rec, why, sizeof(why));

	if (err == -ENOMEM)
		return err;
	if (err) {
		csink_collect_tally(c, CSINK_FACT_WARNING, "%s is left out: %s", strrchr(image->path, '/') + 1, why);
		return 0;
	}
	/* A process that still runs has gone on since its header was first read. */
	image->state = rec.header.state;
	image->end_ns = rec.header.end_monotonic_ns;
	image->cpu_end_ns = rec.header.cpu_end_ns;
	if (!c->command)
		take_command(c, &rec.header);
	err = csink_collect_recording(c, image, &rec);
	image->is_read = !err;
	csink_recorded_release(&rec);
	return err;
}

static void set_times(struct collector *c)
{
	uint64_t first = UINT64_MAX, end = 0, real = 0;
	uint32_t i;

	for (i = 0; i < c->nr_images; i++) {
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

static int collect(struct collector *c, const char *run_dir)
{
	int err = list_images(c, run_dir);
	uint32_t i;

	if (err == -ENOENT && c->outside)
		err = 0;
	if (!err && !c->nr_images && !c->outside)
		err = -ENOENT;
	if (err)
		return err;
	err = link_images(c);
	if (!err && !c->has_types)
		err = add_types(c);
	for (i = 0; i < c->nr_images && !err; i++)
		if (!c->images[i].is_read)
			err = read_image(c, &c->images[i]);
	if (!err) {
		set_times(c);
		csink_collect_account(c);
		err = csink_collect_symbols(c);
	}
	if (!err)
		csink_collect_facts(c);
	return err ? err : csink_profile_error(c->p);
}

static void release(struct collector *c)
{
	uint32_t i;

	for (i = 0; i < c->nr_images; i++)
		free(c->images[i].path);
	for (i = 0; i < c->nr_beside; i++)
		close(c->beside[i]);
	for (i = 0; i < c->nr_modules; i++)
		free(c->modules[i].wants);
	free(c->images);
	free(c->modules);
	free(c->slots);
	free(c->pseudo);
	free(c->tallies);
	free(c->spawned);
	free(c);
}

struct collector *csink_collect_begin(const struct csink_outside *outside)
{
	struct collector *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->outside = outside;
	c->p = csink_profile_create();
	if (c->p)
		return c;
	free(c);
	return NULL;
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
		*image = c->images[--c->nr_images];
		i--;
	}
	return err ? err : nr;
}

static bool has_many(const char *folder, uint32_t least)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	uint32_t nr = 0;

	if (!dir)
		return false;
	while (nr < least && (entry = readdir(dir)))
		nr += is_recording(entry->d_name);
	closedir(dir);
	return nr >= least;
}

int csink_collect_take(struct collector *c, const char *run_dir, uint32_t least)
{
	uint32_t first = c->nr_images;
	int err;

	if (!has_many(run_dir, least))
		return 0;
	c->is_early = true;
	err = list_folder(c, run_dir, false);
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
		csink_profile_destroy(c->p);
	else
		*out = c->p;
	release(c);
	return err;
}

int csink_collect(const char *run_dir, const struct csink_outside *outside, struct csink_profile **out)
{
	struct collector *c = csink_collect_begin(outside);

	return c ? csink_collect_finish(c, run_dir, out) : -ENOMEM;
}
