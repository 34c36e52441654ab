/* Where the profile goes: see output_place.h. */
#include "launcher/session/output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/own_home.h"
#include "launcher/output/pprof.h"

static int say_errno(const char *path, int err, char *why, size_t why_size)
{
	if (err == ENOENT)
		snprintf(why, why_size, "no such directory: %s", path);
	else
		snprintf(why, why_size, "%s: %s", path, err == EACCES ? "not writable for this user" : strerror(err));
	return -err;
}

static int check_directory(const char *directory, char *why, size_t why_size)
{
	struct statvfs fs;
	struct stat st;

	if (!stat(directory, &st) && !S_ISDIR(st.st_mode))
		return say_errno(directory, ENOTDIR, why, why_size);
	if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS))
		return say_errno(directory, errno, why, why_size);
	if (!statvfs(directory, &fs) && fs.f_blocks && !fs.f_bavail)
		return say_errno(directory, ENOSPC, why, why_size);
	return 0;
}

int csink_output_check(const char *path, char *why, size_t why_size)
{
	char directory[PATH_MAX], target[PATH_MAX];
	const char *name = csink_output_name(path);
	struct stat st;
	int err = csink_outfile_check(path, 0);

	if (err < -CSINK_OUTFILE_ERRORS)
		return csink_why(err, why, why_size, "%s", csink_outfile_error(-err));
	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return csink_why(-EISDIR, why, why_size, "%s is a directory: name a file in it", path);
		if (!S_ISREG(st.st_mode)) { /* a device, a pipe: written to as it is */
			if (!faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
				return 0;
			return say_errno(path, errno, why, why_size);
		}
	}
	if (!*name)
		return csink_why(-EISDIR, why, why_size, "%s names a directory: name a file in it", path);
	/* Through a link, the directory is the one that it leads to. */
	if (!lstat(path, &st) && S_ISLNK(st.st_mode)) {
		if (!realpath(path, target))
			return 0; /* nothing is there yet: the end of the run will show */
		path = target;
		name = csink_output_name(path);
	}
	/* Without the slash, but for the root. */
	snprintf(directory, sizeof(directory), "%.*s", (int)(name - path > 1 ? name - path - 1 : name - path), path);
	return check_directory(*directory ? directory : ".", why, why_size);
}

int csink_output_fallback(const char *path, uint32_t index, char *out, size_t size)
{
	const char *tmp = getenv("TMPDIR"), *home = csink_own_home(), *name = csink_output_name(path);
	const char *places[3];
	uint64_t random = 0;
	uint32_t nr = 0;

	if (tmp && *tmp == '/')
		places[nr++] = tmp;
	places[nr++] = "/tmp";
	if (home)
		places[nr++] = home;
	if (index > nr)
		return -ENOENT;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		name = "countersink.pb.gz";
	if (index < nr) {
		snprintf(out, size, "%s/%s", places[index], name);
		return 0;
	}
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -ENOENT;
	snprintf(out, size, "/tmp/%.200s.%08" PRIx32, name, (uint32_t)random);
	return 0;
}

int csink_output_elsewhere(char *path, const struct csink_profile *profile, int err, const char *what)
{
	char other[PATH_MAX], words[PATH_MAX + 64];

	for (uint32_t i = 0; !csink_output_fallback(path, i, other, sizeof(other)); i++) {
		if (csink_pprof_write_as(profile, other, CSINK_OUTFILE_PRIVATE))
			continue;
		snprintf(words, sizeof(words), "%s is in %s", what, other);
		csink_say_unwritten(path, -err, words);
		strcpy(path, other);
		return 0;
	}
	snprintf(words, sizeof(words), "nor could %s be saved elsewhere", what);
	csink_say_unwritten(path, -err, words);
	return err;
}
