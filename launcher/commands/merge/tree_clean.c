/* See tree_clean.h. */
#include "launcher/commands/merge/tree_clean.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/commands/merge/tree_plan.h"
#include "preload/core/opendir_at.h"

#define OLD_S 3600              /* the age at which no process still looks for the mark of a merge */
#define ABANDONED_S (24 * 3600) /* and of a merge without mark: since its last change, which work on it makes often */

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/* Is a file of that name one of a merge: a result, a claim, the mark, or what a process that was killed has left? */
static bool is_own_name(const char *name)
{
	uint32_t level, place;
	char dot;

	return has_prefix(name, CSINK_TREE_DONE) || has_prefix(name, "process-") || has_prefix(name, "output-") ||
	       (sscanf(name, "%u-%u%c", &level, &place, &dot) == 3 && dot == '.');
}

void csink_tree_clean(const char *work, bool has_mark)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(AT_FDCWD, work);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_own_name(entry->d_name) && !(has_mark && !strcmp(entry->d_name, CSINK_TREE_DONE)))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir && !has_mark)
		rmdir(work);
}

/* Does no process work on a merge, or look for its mark, any more? */
static bool is_left(const char *work)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(AT_FDCWD, work);
	struct dirent *entry;
	bool has_mark = false;
	struct stat st;
	time_t latest;

	if (!dir || fstat(dirfd(dir), &st))
		return false;
	latest = st.st_mtime;
	while ((entry = readdir(dir))) {
		has_mark |= !strcmp(entry->d_name, CSINK_TREE_DONE);
		if (is_own_name(entry->d_name) && !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			latest = CSINK_MAX(latest, st.st_mtime);
	}
	return time(NULL) - latest > (has_mark ? OLD_S : ABANDONED_S);
}

void csink_tree_remove_older(const struct csink_tree_plan *plan)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(plan->directory);
	char path[PATH_MAX + NAME_MAX + 2];
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", plan->directory, entry->d_name);
		if (has_prefix(entry->d_name, CSINK_TREE_PREFIX) && strcmp(path, plan->work) && is_left(path))
			csink_tree_clean(path, false);
	}
}
