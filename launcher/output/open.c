/* See open.h. */
#include "launcher/output/open.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "include/internal/recording.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/collect.h"

bool csink_is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool has_recordings(const char *path)
{
	const size_t suffix = strlen(CSINK_REC_SUFFIX);
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		found = len > suffix && !strcmp(entry->d_name + len - suffix, CSINK_REC_SUFFIX);
	}
	if (dir)
		closedir(dir);
	return found;
}

static int open_folder(const char *path, struct csink_profile **out, char *why, size_t why_len)
{
	int err = csink_collect(path, NULL, out);

	if (err == -ENOENT && has_recordings(path))
		snprintf(why, why_len,
			 "%s: the recordings in this folder are damaged, or of another version of countersink", path);
	else if (err == -ENOENT)
		snprintf(why, why_len, "%s: no recording (PID.N" CSINK_REC_SUFFIX ") in this folder", path);
	else if (err)
		snprintf(why, why_len, "%s: %s", path, strerror(-err));
	return err;
}

int csink_profile_open(const char *path, struct csink_profile **out, char *why, size_t why_len)
{
	char reason[256];
	int err;

	if (csink_is_folder(path))
		return open_folder(path, out, why, why_len);
	err = csink_pprof_read(strcmp(path, "-") ? path : "/dev/stdin", out, reason, sizeof(reason));
	if (err)
		snprintf(why, why_len, "%s: %s%s", path, reason,
			 err == -ENOENT ? " (a profile is what `countersink COMMAND` leaves)" : "");
	return err;
}
