/* See merge_tree.h. Runs in the launcher's one thread. */
#include "launcher/commands/merge/merge_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/rank.h"
#include "launcher/commands/merge/say_merged.h"
#include "launcher/commands/merge/tree_clean.h"
#include "launcher/commands/merge/tree_plan.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"
#include "preload/core/task_stat.h"

/* A claim is given up when its time has not moved for so long, by our clock: its process is on another machine, or in
 * another PID namespace, and has died, or it is stopped. A process moves its claim's time at each profile that it
 * reads. */
#define STALE_NS (30 * CSINK_NS_PER_S)
#define FIRST_PAUSE_NS (20 * 1000000)
#define LAST_PAUSE_NS (500 * 1000000)
#define MAX_ID 256

/* What was last seen of a claim. */
struct seen {
	int64_t mtime_ns;
	uint64_t since_ns;
};

struct worker {
	const struct csink_merge_tree *how; /* the output has an absolute path */
	const char *shown;                  /* the output as the user named it */
	struct csink_tree_plan plan;
	char id[MAX_ID];           /* the machine, its boot, the PID namespace; then the process */
	size_t nr_place;           /* how much of it is the same for processes that see each other */
	char claim[PATH_MAX + 64]; /* the file that claims are links to; "": claims are files of their own */
	struct seen *seen;         /* by unit */
	uint32_t begin;            /* the unit to look at first, so that few want the same one */
};

/* ---- the name of this process ---- */

static void read_word(const char *path, char *word, size_t size)
{
	CSINK_AUTO_FCLOSE FILE *file = fopen(path, "re");

	if (!file || !fgets(word, (int)size, file))
		*word = '\0';
	word[strcspn(word, "\n ")] = '\0';
}

static void identify(struct worker *w)
{
	char host[65] = "", boot[48], space[64] = "";
	struct csink_task_stat stat = {0};

	gethostname(host, sizeof(host) - 1);
	read_word("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (readlink("/proc/self/ns/pid", space, sizeof(space) - 1) < 0)
		*space = '\0';
	csink_task_stat_read(getpid(), &stat);
	w->nr_place = (size_t)snprintf(w->id, sizeof(w->id), "%s %s %s ", host, boot, space);
	snprintf(w->id + w->nr_place, sizeof(w->id) - w->nr_place, "%d %" PRIu64, getpid(), (uint64_t)stat.start_ticks);
}

static int write_id(const struct worker *w, const char *path)
{
	CSINK_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	size_t len = strlen(w->id);

	if (fd < 0)
		return -errno;
	return write(fd, w->id, len) == (ssize_t)len ? 0 : -EIO;
}

static void prepare_claims(struct worker *w)
{
	uint64_t hash = 0;

	for (const char *c = w->id; *c; c++)
		hash = hash * 31 + (unsigned char)*c;
	snprintf(w->claim, sizeof(w->claim), "%s/process-%d-%016" PRIx64, w->plan.work, getpid(), hash);
	unlink(w->claim); /* of a process with all the same */
	if (write_id(w, w->claim))
		*w->claim = '\0';
}

/* ---- claims ---- */

/* Has the process that made a claim ended, or stopped? */
static bool is_dead(struct worker *w, uint32_t unit, const char *path)
{
	CSINK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct csink_task_stat task;
	char id[MAX_ID] = "";
	uint64_t start, now = csink_monotonic_ns();
	struct seen *seen = &w->seen[unit];
	struct stat st;
	int64_t mtime_ns;
	int pid;

	if (fd < 0 || read(fd, id, sizeof(id) - 1) < 0 || fstat(fd, &st))
		return false; /* it is gone by now */
	if (!strncmp(id, w->id, w->nr_place) && sscanf(id + w->nr_place, "%d %" SCNu64, &pid, &start) == 2 &&
	    (csink_task_stat_read(pid, &task) || task.start_ticks != start || task.state == 'Z'))
		return true;
	mtime_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)CSINK_NS_PER_S + st.st_mtim.tv_nsec;
	if (!seen->since_ns || seen->mtime_ns != mtime_ns)
		*seen = (struct seen){mtime_ns, now};
	return now - seen->since_ns > STALE_NS;
}

/* Returns 0, or -EEXIST: it is another process's. */
static int take(struct worker *w, uint32_t unit)
{
	char path[PATH_MAX + 64];
	int err = -EPERM;

	csink_tree_path(&w->plan, unit, CSINK_TREE_CLAIM, path);
	if (w->plan.state[unit] == CSINK_UNIT_CLAIMED) {
		if (!is_dead(w, unit, path))
			return -EEXIST;
		unlink(path);
	}
	if (*w->claim)
		err = link(w->claim, path) ? -errno : 0;
	/* Where there are no hard links. A claim that cannot be made is none: it only saves work. */
	if (err && err != -EEXIST)
		err = write_id(w, path);
	return err == -EEXIST ? err : 0;
}

static void give_back(struct worker *w, uint32_t unit)
{
	char path[PATH_MAX + 64];

	csink_tree_path(&w->plan, unit, CSINK_TREE_CLAIM, path);
	unlink(path);
}

/* For processes elsewhere: this one goes on. */
static void show_life(const struct worker *w, uint32_t unit)
{
	char path[PATH_MAX + 64];

	csink_tree_path(&w->plan, unit, CSINK_TREE_CLAIM, path);
	utimensat(AT_FDCWD, *w->claim ? w->claim : path, NULL, 0);
}

/* ---- the output ---- */

static void done_path(const struct worker *w, char path[PATH_MAX + 64])
{
	snprintf(path, PATH_MAX + 64, "%s/" CSINK_TREE_DONE, w->plan.work);
}

static bool stamp_of(const char *output, char *stamp, size_t size)
{
	struct stat st;

	if (stat(output, &st))
		return false;
	snprintf(stamp, size, "%lld %lld.%09ld\n", (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		 st.st_mtim.tv_nsec);
	return true;
}

/* Is the output there, as it was written? One that was removed or replaced since is made again. */
static bool is_done(const struct worker *w)
{
	char path[PATH_MAX + 64], is[96] = "", was[96] = "";
	CSINK_AUTO_FCLOSE FILE *file = NULL;

	done_path(w, path);
	file = fopen(path, "re");
	return file && fgets(was, sizeof(was), file) && stamp_of(w->how->output, is, sizeof(is)) && !strcmp(is, was);
}

static int mark_done(const struct worker *w)
{
	char path[PATH_MAX + 64], temporary[PATH_MAX + 96], stamp[96];
	FILE *file;
	int err = 0;

	if (!stamp_of(w->how->output, stamp, sizeof(stamp)))
		return 0; /* a pipe that is gone */
	done_path(w, path);
	snprintf(temporary, sizeof(temporary), "%s.%d", path, getpid());
	file = fopen(temporary, "we");
	if (!file || fputs(stamp, file) < 0)
		err = -errno;
	if (file && fclose(file) && !err)
		err = -errno;
	if (!err && rename(temporary, path))
		err = -errno;
	if (err && is_done(w)) /* another process has removed the temporary one, after it had made the mark */
		return 0;
	return err ? csink_fail(err, "%s: %s; the output is written; the same command makes the mark", path,
				strerror(-err))
		   : 0;
}

static bool is_same_file(const char *a, const char *b)
{
	CSINK_AUTO_FCLOSE FILE *one = fopen(a, "re");
	CSINK_AUTO_FCLOSE FILE *other = fopen(b, "re");
	int c;

	while (one && other && (c = getc(one)) == getc(other))
		if (c == EOF)
			return true;
	return false;
}

/* Is the output there, with what is to be in it? Then a process that died has written it, or another one just now. */
static bool is_written(const struct worker *w, const struct csink_profile *p)
{
	char path[PATH_MAX + 96];
	struct stat st;

	snprintf(path, sizeof(path), "%s/output-%d", w->plan.work, getpid());
	return !stat(w->how->output, &st) && S_ISREG(st.st_mode) && !csink_pprof_write_as(p, path, 0) &&
	       is_same_file(path, w->how->output);
}

/* Of a new file, no temporary one is left where this process is killed. What else is there becomes FILE.old; but the
 * same is not written again, since FILE.old would be the same, and another one lost. */
static int write_output(struct worker *w, const struct csink_profile *p)
{
	const char *output = w->how->output;
	int err = csink_pprof_write_as(p, output, CSINK_OUTFILE_ONCE);

	if (err && is_written(w, p))
		return mark_done(w);
	if (err && is_done(w)) /* another process has removed what was to be compared, after it had made the mark */
		return 0;
	if (err)
		err = csink_pprof_write(p, output);
	if (err) {
		csink_say_unwritten(w->shown, -err, NULL);
		return err;
	}
	if (!w->how->is_quiet)
		csink_say_merged(p, w->plan.nr_inputs, w->shown);
	return mark_done(w);
}

/* ---- a unit ---- */

static int add(struct worker *w, struct csink_merge *m, uint32_t level, uint32_t index)
{
	char path[2 * PATH_MAX], why[CSINK_WHY_BYTES];
	struct csink_profile *p;
	int err;

	if (level)
		csink_tree_path(&w->plan, w->plan.first[level - 1] + index, CSINK_TREE_RESULT, path);
	else
		snprintf(path, sizeof(path), "%s/%s", w->plan.directory, w->plan.inputs[index].name);
	err = csink_profile_open(path, &p, why, sizeof(why));
	/* Other processes have made the output meanwhile, and removed the results. If that output is gone, too, and
	 * made again, the results are made again. */
	if (err && (is_done(w) || (level && err == -ENOENT)))
		return -ECANCELED;
	if (err)
		return csink_fail(err, "%s; nothing is merged", why);
	err = csink_merge_add(m, p);
	csink_profile_free(p);
	return err ? csink_fail(err, "not enough memory to merge") : 0;
}

static int merge_unit(struct worker *w, uint32_t unit, struct csink_profile **out)
{
	uint32_t place, level = csink_tree_level(&w->plan, unit, &place);
	uint32_t nr = level ? w->plan.nr_of_level[level - 1] : w->plan.nr_inputs;
	struct csink_merge *m = csink_merge_create(w->how->flags);
	int err = m ? 0 : csink_fail(-ENOMEM, "not enough memory to merge");

	for (uint32_t i = place * w->plan.group; i < nr && i < (place + 1) * w->plan.group && !err; i++) {
		err = add(w, m, level, i);
		show_life(w, unit);
	}
	if (!err && csink_merge_finish(m, out))
		err = csink_fail(-ENOMEM, "not enough memory to merge");
	csink_merge_free(m);
	return err;
}

static int do_unit(struct worker *w, uint32_t unit)
{
	struct csink_profile *p = NULL;
	char path[PATH_MAX + 64];
	int err = merge_unit(w, unit, &p);

	if (!err && unit + 1 == w->plan.nr_units) {
		err = write_output(w, p);
	} else if (!err) {
		csink_tree_path(&w->plan, unit, CSINK_TREE_RESULT, path);
		err = csink_pprof_write_as(p, path, CSINK_OUTFILE_ONCE);
		/* Where there are no hard links; another process's is replaced by the same. */
		if (err && err != -EEXIST)
			err = csink_pprof_write_as(p, path, 0);
		if (err && is_done(w))
			err = -ECANCELED;
		else if (err && err != -EEXIST)
			csink_say_unwritten(path, -err, NULL);
		err = err == -EEXIST ? 0 : err;
	}
	csink_profile_free(p);
	return err == -ECANCELED ? 0 : err;
}

/* ---- all of them ---- */

/* Returns 1 if a unit was done, 0 if there is none to do, or -errno. */
static int do_one(struct worker *w)
{
	uint32_t nr = w->plan.nr_units;
	int err = csink_tree_look(&w->plan), did;

	for (uint32_t i = 0; i < nr && !err; i++) {
		uint32_t unit = (w->begin + i) % nr;

		if (w->plan.state[unit] == CSINK_UNIT_DONE || !csink_tree_is_ready(&w->plan, unit) || take(w, unit))
			continue;
		w->begin = unit;
		did = do_unit(w, unit);
		give_back(w, unit);
		return did ?: 1;
	}
	if (err && is_done(w))
		return 0;
	return err ? csink_fail(err, "%s: %s", w->plan.work, strerror(-err)) : 0;
}

static void choose_begin(struct worker *w)
{
	struct csink_rank rank;

	if (csink_rank_own(&rank))
		w->begin = (uint32_t)((uint64_t)w->plan.nr_units * (uint32_t)rank.rank / (uint32_t)rank.size);
	else
		w->begin = (uint32_t)getpid() % w->plan.nr_units;
}

static int work(struct worker *w)
{
	struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};
	int did = 0;

	choose_begin(w);
	while (did >= 0 && !is_done(w)) {
		did = do_one(w);
		if (did > 0)
			pause.tv_nsec = FIRST_PAUSE_NS;
		else if (!did && !is_done(w)) { /* other processes have claimed what is left */
			nanosleep(&pause, NULL);
			pause.tv_nsec = CSINK_MIN(2 * pause.tv_nsec, (long)LAST_PAUSE_NS);
		}
	}
	if (*w->claim)
		unlink(w->claim);
	if (did < 0)
		return did;
	csink_tree_clean(w->plan.work, true);
	csink_tree_remove_older(&w->plan);
	return 0;
}

/* Processes with other working directories have the same name for the output, and wait for a file alone. */
static int find_output(const char *output, char path[2 * PATH_MAX])
{
	char directory[PATH_MAX];
	struct stat st;

	if (!stat(output, &st) && !S_ISREG(st.st_mode))
		return csink_fail(-EINVAL, "option --output: with --tree, %s has to be a file", output);
	if (*output == '/')
		snprintf(path, 2 * PATH_MAX, "%s", output);
	else if (getcwd(directory, sizeof(directory)))
		snprintf(path, 2 * PATH_MAX, "%s/%s", directory, output);
	else
		return csink_fail(-errno, "%s: %s", output, strerror(errno));
	return 0;
}

int csink_merge_tree(const struct csink_merge_tree *asked)
{
	struct csink_merge_tree how = *asked;
	struct worker w = {.how = &how, .shown = asked->output};
	char why[CSINK_WHY_BYTES], output[2 * PATH_MAX];
	int err = find_output(asked->output, output);

	if (err)
		return err;
	how.output = output;
	err = csink_tree_plan_make(&w.plan, &how, why, sizeof(why));
	if (err) {
		csink_say("%s", why);
	} else {
		w.seen = calloc(w.plan.nr_units, sizeof(*w.seen));
		if (!w.seen)
			err = csink_fail(-ENOMEM, "not enough memory to merge");
	}
	if (!err) {
		identify(&w);
		prepare_claims(&w);
		err = work(&w);
	}
	free(w.seen);
	csink_tree_plan_free(&w.plan);
	return err;
}
