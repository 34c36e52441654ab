#include "preload/record/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/recording.h"

int csink_run_dir_create_in(const char *place, size_t len, char *dir, size_t size)
{
	int n = snprintf(dir, size, "%.*s/" CSINK_RUN_DIR_PREFIX "XXXXXX", (int)len, place);

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	/* mkdtemp(3): 0700, fails rather than follow or reuse anything that is there. */
	return mkdtemp(dir) ? 0 : -errno;
}

static int try_place(const char *place, char *dir, size_t size)
{
	if (!place || place[0] != '/')
		return -ENOENT;
	return csink_run_dir_create_in(place, strlen(place), dir, size);
}

/* Root's programs may give up their rights, and must find a folder of their own beside (csink_run_dir_share). */
static bool suits(const char *place)
{
	struct stat st;

	return geteuid() != 0 || !place || stat(place, &st) < 0 || st.st_mode & S_IXOTH;
}

void csink_run_dir_places(const char *places[CSINK_RUN_DIR_PLACES])
{
	places[0] = getenv("XDG_RUNTIME_DIR");
	places[1] = "/dev/shm";
	places[2] = getenv("TMPDIR");
	places[3] = "/tmp";
}

int csink_run_dir_create(char *dir, size_t size)
{
	const char *places[CSINK_RUN_DIR_PLACES];
	int err = -ENOENT;

	csink_run_dir_places(places);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(places); i++) {
		int now = suits(places[i]) ? try_place(places[i], dir, size) : -ENOENT;

		if (now == 0)
			return 0;
		if (now != -ENOENT || err == -ENOENT)
			err = now;
	}
	return err;
}

int csink_run_dir_beside(const char *dir, uid_t uid, char *out, size_t size)
{
	int n = snprintf(out, size, "%s.%u", dir, (unsigned int)uid);

	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

bool csink_run_dir_is_recording(const char *name)
{
	size_t len = strlen(name), suffix = strlen(CSINK_REC_SUFFIX);

	return len > suffix && !strcmp(name + len - suffix, CSINK_REC_SUFFIX);
}

int csink_run_dir_is_written(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), written = 0;

	if (fd < 0)
		return -errno;
	if (!fcntl(fd, F_SETLEASE, F_RDLCK))
		fcntl(fd, F_SETLEASE, F_UNLCK);
	else
		written = errno == EAGAIN ? 1 : -errno;
	close(fd);
	return written;
}

bool csink_run_dir_is_of(const char *dir, uid_t uid)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077);
}

/* The place is everybody's: what is there under that name already, is not ours, whoever made it. */
static int make_beside(const char *beside, uid_t uid)
{
	int fd, err = 0;

	if (mkdir(beside, 0700) < 0)
		return -errno;
	fd = open(beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0700) < 0 || fchown(fd, uid, (gid_t)-1) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err)
		rmdir(beside);
	return err;
}

int csink_run_dir_share(const char *dir, uid_t uid)
{
	char beside[300], word[300];
	int fd, err;

	if (csink_run_dir_beside(dir, uid, beside, sizeof(beside)) < 0 ||
	    snprintf(word, sizeof(word), "%s/%u" CSINK_RUN_DIR_USER, dir, (unsigned int)uid) >= (int)sizeof(word))
		return -ENAMETOOLONG;
	if (csink_run_dir_is_of(beside, uid) && access(word, F_OK) == 0)
		return 0;
	err = make_beside(beside, uid);
	if (err)
		return err;
	fd = open(word, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		rmdir(beside);
		return err;
	}
	close(fd);
	return 0;
}
