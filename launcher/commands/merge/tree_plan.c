/* See tree_plan.h. */
#include "launcher/commands/merge/tree_plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/commands/merge/merge_tree.h"

#define ENDING ".pb.gz"

/* ---- the profiles ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct csink_tree_input *)a)->name, ((const struct csink_tree_input *)b)->name);
}

static bool is_profile_name(const char *name)
{
	size_t len = strlen(name), ending = strlen(ENDING);

	return *name != '.' && len > ending && !strcmp(name + len - ending, ENDING);
}

/* The name that the output has, or is to have, in the directory; "": it is elsewhere. */
static void output_in(int dir_fd, const char *output, char name[NAME_MAX + 1])
{
	const char *slash = strrchr(output, '/');
	struct stat directory, of_output;
	char parent[PATH_MAX];

	*name = '\0';
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - output + 1) : 1, slash ? output : ".");
	if (!fstat(dir_fd, &directory) && !stat(parent, &of_output) && directory.st_dev == of_output.st_dev &&
	    directory.st_ino == of_output.st_ino)
		snprintf(name, NAME_MAX + 1, "%s", slash ? slash + 1 : output);
}

/* @output  what is there before; st_ino 0: nothing. A link to it may have another name. */
static int add_input(struct csink_tree_plan *plan, int dir_fd, const char *name, const struct stat *output)
{
	struct csink_tree_input *input;
	struct stat st;

	if (fstatat(dir_fd, name, &st, 0) || !S_ISREG(st.st_mode) ||
	    (st.st_ino == output->st_ino && st.st_dev == output->st_dev))
		return 0;
	if (CSINK_GROW(plan->inputs, plan->nr_inputs, plan->cap_inputs))
		return -ENOMEM;
	input = &plan->inputs[plan->nr_inputs];
	*input = (struct csink_tree_input){strdup(name), st.st_size,
					   (int64_t)st.st_mtim.tv_sec * (int64_t)CSINK_NS_PER_S + st.st_mtim.tv_nsec};
	if (!input->name)
		return -ENOMEM;
	plan->nr_inputs++;
	return 0;
}

static int list(struct csink_tree_plan *plan, const char *output, char *why, size_t why_size)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(plan->directory);
	char left_out[NAME_MAX + 1];
	struct stat of_output = {0};
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return csink_why(-errno, why, why_size, "%s: %s", plan->directory, strerror(errno));
	output_in(dirfd(dir), output, left_out);
	if (stat(output, &of_output))
		of_output.st_ino = 0;
	while (!err && (errno = 0, entry = readdir(dir)))
		if (is_profile_name(entry->d_name) && strcmp(entry->d_name, left_out))
			err = add_input(plan, dirfd(dir), entry->d_name, &of_output);
	err = err ?: -errno;
	if (err)
		return csink_why(err, why, why_size, "%s: %s", plan->directory, strerror(-err));
	if (!plan->nr_inputs)
		return csink_why(-ENOENT, why, why_size, "%s: no profile (NAME" ENDING ") in this directory",
				 plan->directory);
	qsort(plan->inputs, plan->nr_inputs, sizeof(*plan->inputs), compare_names);
	return 0;
}

/* ---- the tree ---- */

static int shape(struct csink_tree_plan *plan)
{
	uint32_t nr = plan->nr_inputs;

	do {
		nr = (nr - 1) / plan->group + 1;
		plan->first[plan->nr_levels] = plan->nr_units;
		plan->nr_of_level[plan->nr_levels++] = nr;
		plan->nr_units += nr;
	} while (nr > 1);
	plan->state = calloc(plan->nr_units, sizeof(*plan->state));
	return plan->state ? 0 : -ENOMEM;
}

/* FNV-1a: the same on each machine and in each process. */
static void hash_bytes(uint64_t *hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3ULL;
}

static uint64_t hash_of(const struct csink_tree_plan *plan, const struct csink_merge_tree *how)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	hash_bytes(&hash, CSINK_VERSION, sizeof(CSINK_VERSION));
	hash_bytes(&hash, how->output, strlen(how->output) + 1);
	hash_bytes(&hash, &how->flags, sizeof(how->flags));
	hash_bytes(&hash, &how->group, sizeof(how->group));
	for (uint32_t i = 0; i < plan->nr_inputs; i++) {
		const struct csink_tree_input *input = &plan->inputs[i];

		hash_bytes(&hash, input->name, strlen(input->name) + 1);
		hash_bytes(&hash, &input->bytes, sizeof(input->bytes));
		hash_bytes(&hash, &input->mtime_ns, sizeof(input->mtime_ns));
	}
	return hash;
}

/* A directory that another user has made where everyone can, or a link to another place, may have any results. */
static int make_work(const struct csink_tree_plan *plan, char *why, size_t why_size)
{
	struct stat st, around;
	int err = mkdir(plan->work, 0777) && errno != EEXIST ? -errno : 0;

	if (!err && (lstat(plan->work, &st) || stat(plan->directory, &around)))
		err = -errno;
	if (!err && !S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	if (!err && around.st_mode & (S_IWOTH | S_ISVTX) && st.st_uid != geteuid() && st.st_uid)
		err = -CSINK_OUTFILE_FOREIGN;
	return err ? csink_why(err, why, why_size, "%s: %s", plan->work, csink_outfile_error(-err)) : 0;
}

int csink_tree_plan_make(struct csink_tree_plan *plan, const struct csink_merge_tree *how, char *why, size_t why_size)
{
	int err;

	*plan = (struct csink_tree_plan){.group = how->group};
	if (snprintf(plan->directory, sizeof(plan->directory), "%s", how->directory) >= PATH_MAX - 64)
		return csink_why(-ENAMETOOLONG, why, why_size, "%s: %s", how->directory, strerror(ENAMETOOLONG));
	err = list(plan, how->output, why, why_size);
	if (err)
		return err;
	if (shape(plan))
		return csink_why(-ENOMEM, why, why_size, "not enough memory to merge");
	snprintf(plan->work, sizeof(plan->work), "%.*s/" CSINK_TREE_PREFIX "%016" PRIx64, PATH_MAX - 64,
		 plan->directory, hash_of(plan, how));
	return make_work(plan, why, why_size);
}

void csink_tree_plan_free(struct csink_tree_plan *plan)
{
	for (uint32_t i = 0; i < plan->nr_inputs; i++)
		free(plan->inputs[i].name);
	free(plan->inputs);
	free(plan->state);
}

/* ---- units ---- */

uint32_t csink_tree_level(const struct csink_tree_plan *plan, uint32_t unit, uint32_t *place)
{
	uint32_t level = 0;

	while (level + 1 < plan->nr_levels && unit >= plan->first[level + 1])
		level++;
	*place = unit - plan->first[level];
	return level;
}

void csink_tree_path(const struct csink_tree_plan *plan, uint32_t unit, const char *ending, char path[PATH_MAX + 64])
{
	uint32_t place, level = csink_tree_level(plan, unit, &place);

	snprintf(path, PATH_MAX + 64, "%s/%u-%u.%s", plan->work, level, place, ending);
}

static void take_name(struct csink_tree_plan *plan, const char *name)
{
	uint32_t level, place;
	char ending[8];

	if (sscanf(name, "%u-%u.%7s", &level, &place, ending) != 3 || level >= plan->nr_levels ||
	    place >= plan->nr_of_level[level])
		return;
	if (!strcmp(ending, CSINK_TREE_RESULT))
		plan->state[plan->first[level] + place] = CSINK_UNIT_DONE;
	else if (!strcmp(ending, CSINK_TREE_CLAIM) && plan->state[plan->first[level] + place] != CSINK_UNIT_DONE)
		plan->state[plan->first[level] + place] = CSINK_UNIT_CLAIMED;
}

int csink_tree_look(struct csink_tree_plan *plan)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(plan->work);
	struct dirent *entry;

	if (!dir)
		return -errno;
	memset(plan->state, CSINK_UNIT_FREE, plan->nr_units);
	while ((errno = 0, entry = readdir(dir)))
		take_name(plan, entry->d_name);
	return -errno;
}

bool csink_tree_is_ready(const struct csink_tree_plan *plan, uint32_t unit)
{
	uint32_t place, level = csink_tree_level(plan, unit, &place), end;

	if (!level)
		return true;
	end = CSINK_MIN((place + 1) * plan->group, plan->nr_of_level[level - 1]);
	for (uint32_t i = place * plan->group; i < end; i++)
		if (plan->state[plan->first[level - 1] + i] != CSINK_UNIT_DONE)
			return false;
	return true;
}
