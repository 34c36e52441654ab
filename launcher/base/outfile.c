/* Output files: see outfile.h. */
#include "launcher/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/move.h"

#define MAX_LINKS 40 /* as many as the kernel follows in a path */
#define MAX_TRIES 100

/* Where a path leads. */
struct place {
	int dir_fd;   /* O_PATH */
	int given_fd; /* a descriptor that the path names; -1: none */
	struct stat dir;
	struct stat st; /* of what is there */
	bool exists;
	bool is_magic; /* a link of /proc that only the kernel can follow */
	char name[NAME_MAX + 1];
};

/* ---- which users a directory trusts ---- */

/* Can users other than its owner make files in it? */
static bool is_exposed(const struct stat *dir)
{
	return dir->st_mode & S_IWOTH || (dir->st_mode & S_ISVTX && dir->st_mode & S_IWGRP);
}

static bool is_sticky(const struct stat *dir)
{
	return dir->st_mode & S_ISVTX && is_exposed(dir);
}

static bool is_trusted(uid_t owner)
{
	return owner == geteuid() || owner == 0;
}

static bool is_in_proc(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* ---- the walk ---- */

struct walk {
	int fd; /* the directory so far, O_PATH */
	char rest[PATH_MAX];
	uint32_t nr_links;
	bool is_private; /* no other user's link is followed in any directory */
};

/* Enter a directory; the kernel follows a link only if it is asked to by @flags. */
static int enter(struct walk *walk, const char *name, int flags)
{
	int fd = openat(walk->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	if (walk->fd >= 0)
		close(walk->fd);
	walk->fd = fd;
	return 0;
}

int csink_outfile_descriptor(const char *path)
{
	static const char *const dirs[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end;
	long fd;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(dirs); i++) {
		size_t len = strlen(dirs[i]);

		if (strncmp(path, dirs[i], len) || path[len] < '0' || path[len] > '9')
			continue;
		fd = strtol(path + len, &end, 10);
		return *end || fd > INT_MAX ? -1 : (int)fd;
	}
	return -1;
}

/* Put a link's text before what is left of the path. */
static int follow(struct walk *walk, const char *name, const struct stat *link)
{
	size_t rest = strlen(walk->rest);
	char text[PATH_MAX];
	struct stat dir;
	ssize_t len;

	if (fstat(walk->fd, &dir))
		return -errno;
	if ((is_exposed(&dir) || walk->is_private) && !is_trusted(link->st_uid))
		return -CSINK_OUTFILE_FOREIGN_LINK;
	if (walk->nr_links++ == MAX_LINKS)
		return -ELOOP;
	len = readlinkat(walk->fd, name, text, sizeof(text));
	if (len <= 0)
		return len ? -errno : -ENOENT;
	/* What is left begins with a slash, or is empty. */
	if ((size_t)len + rest >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	csink_move(walk->rest + len, walk->rest, rest + 1);
	memcpy(walk->rest, text, (size_t)len);
	return *text == '/' ? enter(walk, "/", 0) : 0;
}

/* Take the first component off what is left of the path. Returns its length, 0 at the end, or -ENAMETOOLONG. */
static int next_component(struct walk *walk, char *name, bool *is_last)
{
	const char *start = walk->rest + strspn(walk->rest, "/");
	size_t len = strcspn(start, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, start, len);
	name[len] = '\0';
	*is_last = !start[len];
	csink_move(walk->rest, start + len, strlen(start + len) + 1);
	return (int)len;
}

/* One component. Returns 1 if it is the target, 0 to go on, or an error. */
static int step(struct walk *walk, struct place *place, const char *name, bool is_last)
{
	bool is_dot = !strcmp(name, ".") || !strcmp(name, "..");

	if (is_dot)
		return is_last ? -EISDIR : enter(walk, name, 0);
	place->exists = !fstatat(walk->fd, name, &place->st, AT_SYMLINK_NOFOLLOW);
	if (!place->exists && (errno != ENOENT || !is_last))
		return -errno;
	if (place->exists && S_ISLNK(place->st.st_mode)) {
		if (!is_in_proc(walk->fd)) {
			int err = follow(walk, name, &place->st);

			place->given_fd = err ? -1 : csink_outfile_descriptor(walk->rest);
			return err ? err : place->given_fd >= 0;
		}
		place->is_magic = is_last;
		return is_last ? 1 : enter(walk, name, 0);
	}
	return is_last ? 1 : enter(walk, name, O_NOFOLLOW);
}

/* Find where a path leads. On success the caller closes place->dir_fd (-1: it is a descriptor). */
static int find(struct place *place, const char *path, unsigned int how)
{
	struct walk walk = {.fd = AT_FDCWD, .is_private = how & CSINK_OUTFILE_PRIVATE};
	bool is_last;
	int err, got;

	*place = (struct place){.dir_fd = -1, .given_fd = csink_outfile_descriptor(path)};
	if (place->given_fd >= 0)
		return 0;
	if (!*path || strlen(path) >= sizeof(walk.rest))
		return *path ? -ENAMETOOLONG : -ENOENT;
	strcpy(walk.rest, path);
	err = enter(&walk, *path == '/' ? "/" : ".", 0);
	if (err)
		return err;
	do {
		got = next_component(&walk, place->name, &is_last);
		/* A path that ends in a slash names a directory. */
		err = got > 0 ? step(&walk, place, place->name, is_last) : got ? got : -EISDIR;
	} while (!err);
	if (err > 0 && place->given_fd < 0 && fstat(walk.fd, &place->dir))
		err = -errno;
	if (err < 0 || place->given_fd >= 0) {
		close(walk.fd);
		return CSINK_MIN(err, 0);
	}
	place->dir_fd = walk.fd;
	return 0;
}

/* ---- what is refused ---- */

static int judge_private(const struct place *place)
{
	if (!is_trusted(place->dir.st_uid) && !is_sticky(&place->dir))
		return -CSINK_OUTFILE_FOREIGN_DIR;
	if (!place->exists)
		return 0;
	if (!S_ISREG(place->st.st_mode))
		return -CSINK_OUTFILE_SPECIAL;
	return place->st.st_uid == geteuid() ? 0 : -CSINK_OUTFILE_FOREIGN;
}

static int judge(const struct place *place, unsigned int how)
{
	bool in_place = how & (CSINK_OUTFILE_IN_PLACE | CSINK_OUTFILE_APPEND);

	if (place->given_fd >= 0 || place->is_magic)
		return how & CSINK_OUTFILE_PRIVATE ? -CSINK_OUTFILE_SPECIAL : 0;
	if (place->exists && S_ISDIR(place->st.st_mode))
		return -EISDIR;
	if (how & CSINK_OUTFILE_PRIVATE)
		return judge_private(place);
	if (!place->exists)
		return 0;
	if (S_ISSOCK(place->st.st_mode))
		return -CSINK_OUTFILE_SOCKET;
	if (!S_ISREG(place->st.st_mode))
		return is_exposed(&place->dir) && !is_trusted(place->st.st_uid) ? -CSINK_OUTFILE_FOREIGN : 0;
	if (!is_sticky(&place->dir))
		return 0;
	/* What is written in place would be written under all its names, which another user may have given it. */
	return place->st.st_uid != geteuid() || (in_place && place->st.st_nlink > 1) ? -CSINK_OUTFILE_FOREIGN : 0;
}

int csink_outfile_check(const char *path, unsigned int how)
{
	struct place place;
	int err = find(&place, path, how) ?: judge(&place, how);

	if (place.dir_fd >= 0)
		close(place.dir_fd);
	return err;
}

const char *csink_outfile_error(int err)
{
	static char limit[120];
	struct rlimit size;

	switch (err) {
	case CSINK_OUTFILE_FOREIGN:
		return "it belongs to another user, in a directory that others can write";
	case CSINK_OUTFILE_FOREIGN_LINK:
		return "a symbolic link on the way belongs to another user, in a directory that others can write";
	case CSINK_OUTFILE_FOREIGN_DIR:
		return "the directory belongs to another user";
	case CSINK_OUTFILE_SPECIAL:
		return "it is there, and is not a regular file";
	case CSINK_OUTFILE_SOCKET:
		return "it is a socket";
	case CSINK_OUTFILE_NO_READER:
		return "it is another user's FIFO, and no process reads it";
	case EFBIG:
		if (getrlimit(RLIMIT_FSIZE, &size) || size.rlim_cur == RLIM_INFINITY)
			break;
		snprintf(limit, sizeof(limit), "files are limited to %" PRIu64 " bytes (RLIMIT_FSIZE, ulimit -f)",
			 (uint64_t)size.rlim_cur);
		return limit;
	}
	return strerror(err);
}

/* ---- opening ---- */

/* A descriptor that was given to us; one of our own, whose number the path names by chance, is not. */
static int open_given(int given)
{
	int flags = fcntl(given, F_GETFD), fd;

	if (flags < 0 || (given > STDERR_FILENO && flags & FD_CLOEXEC))
		return -EBADF;
	fd = fcntl(given, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return fd < 0 ? -errno : fd;
}

/* Open what is there, and see that it is still what was judged. */
static int open_target(const struct place *place, int flags)
{
	bool waits = place->st.st_uid == geteuid() && !S_ISREG(place->st.st_mode);
	struct stat st;
	int fd, err;

	flags |= O_WRONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK);
	flags |= !place->is_magic ? O_NOFOLLOW : flags & O_APPEND ? 0 : O_TRUNC;
	fd = openat(place->dir_fd, place->name, flags);
	if (fd < 0)
		return errno == ENXIO && S_ISFIFO(place->st.st_mode) ? -CSINK_OUTFILE_NO_READER : -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && !place->is_magic && (st.st_dev != place->st.st_dev || st.st_ino != place->st.st_ino))
		err = -CSINK_OUTFILE_FOREIGN;
	if (!err && !waits && fcntl(fd, F_SETFL, flags & O_APPEND))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int open_in_place(const struct place *place, unsigned int how)
{
	int append = how & CSINK_OUTFILE_APPEND ? O_APPEND : 0, fd;

	if (!place->exists) {
		fd = openat(place->dir_fd, place->name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | append, 0666);
		return fd < 0 ? -errno : fd;
	}
	fd = open_target(place, append);
	if (fd >= 0 && !append && S_ISREG(place->st.st_mode) && ftruncate(fd, 0)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* NAME.SUFFIX, of a name that may be as long as names can be. */
static int open_temporary(struct csink_outfile *file, mode_t mode)
{
	uint64_t random;

	for (int i = 0; i < MAX_TRIES; i++) {
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return -errno;
		snprintf(file->temporary, sizeof(file->temporary), "%.*s.%012" PRIx64, NAME_MAX - 13, file->name,
			 random >> 16);
		file->fd = openat(file->dir_fd, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
		if (file->fd >= 0 || errno != EEXIST)
			return file->fd < 0 ? -errno : 0;
	}
	return -EEXIST;
}

static int open_replacement(struct csink_outfile *file, const struct place *place, unsigned int how)
{
	/* The umask, and a directory's default ACL, make the mode of a new file; until it is complete, an older file's
	 * mode is not given to others. */
	bool has_mode = place->exists || how & CSINK_OUTFILE_PRIVATE;
	mode_t mode = how & CSINK_OUTFILE_PRIVATE ? 0600 : place->st.st_mode & 0777;
	int err = open_temporary(file, has_mode ? 0600 : 0666);

	/* Where the file system has no such modes, it stays as it was made. */
	if (!err && has_mode && fchmod(file->fd, mode))
		errno = 0;
	return err;
}

/* A file that appears whole, or, where this process is killed, leaves nothing: one without a name, where the file
 * system has such. */
static int open_once(struct csink_outfile *file, const struct place *place)
{
	if (place->exists)
		return -EEXIST;
	file->fd = openat(file->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	return file->fd >= 0 ? 0 : open_temporary(file, 0666);
}

int csink_outfile_open(struct csink_outfile *file, const char *path, unsigned int how)
{
	bool in_place = how & (CSINK_OUTFILE_IN_PLACE | CSINK_OUTFILE_APPEND);
	struct place place;
	int err = find(&place, path, how);

	*file = (struct csink_outfile){
		.fd = -1, .dir_fd = -1, .keep_old = how & CSINK_OUTFILE_KEEP_OLD, .once = how & CSINK_OUTFILE_ONCE};
	if (!err)
		err = judge(&place, how);
	if (!err && !in_place && !place.is_magic && place.given_fd < 0 &&
	    (!place.exists || S_ISREG(place.st.st_mode))) {
		file->dir_fd = place.dir_fd;
		file->is_sticky = is_sticky(&place.dir);
		strcpy(file->name, place.name);
		err = file->once ? open_once(file, &place) : open_replacement(file, &place, how);
	} else if (!err && file->once) {
		err = -EEXIST;
	} else if (!err) {
		file->fd = place.given_fd >= 0 ? open_given(place.given_fd)
			   : in_place          ? open_in_place(&place, how)
					       : open_target(&place, 0);
		err = CSINK_MIN(file->fd, 0);
	}
	if (place.dir_fd >= 0 && (err || file->dir_fd < 0))
		close(place.dir_fd);
	return err;
}

/* ---- putting it in its place ---- */

/* If the file system has hard links, the name exists at every moment. */
static int keep_old(const struct csink_outfile *file)
{
	char old[NAME_MAX + sizeof(".old")];
	struct stat st;

	snprintf(old, sizeof(old), "%s.old", file->name);
	if (fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (file->is_sticky && !fstatat(file->dir_fd, old, &st, AT_SYMLINK_NOFOLLOW) && st.st_uid != geteuid())
		return -CSINK_OUTFILE_FOREIGN;
	if (unlinkat(file->dir_fd, old, 0) && errno != ENOENT)
		return -errno;
	if (!linkat(file->dir_fd, file->name, file->dir_fd, old, 0) ||
	    !renameat(file->dir_fd, file->name, file->dir_fd, old))
		return 0;
	return -errno;
}

static int link_once(const struct csink_outfile *file)
{
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	err = fsync(file->fd) ? -errno : 0;
	if (!err && *file->temporary)
		err = linkat(file->dir_fd, file->temporary, file->dir_fd, file->name, 0) ? -errno : 0;
	else if (!err)
		err = linkat(AT_FDCWD, path, file->dir_fd, file->name, AT_SYMLINK_FOLLOW) ? -errno : 0;
	if (*file->temporary)
		unlinkat(file->dir_fd, file->temporary, 0);
	return err;
}

static int close_once(struct csink_outfile *file, int err)
{
	if (!err)
		err = link_once(file);
	else if (*file->temporary)
		unlinkat(file->dir_fd, file->temporary, 0);
	close(file->fd);
	close(file->dir_fd);
	file->fd = file->dir_fd = -1;
	return err;
}

int csink_outfile_close(struct csink_outfile *file, int err)
{
	if (file->once)
		return close_once(file, err);
	if (close(file->fd) && !err)
		err = -errno;
	file->fd = -1;
	if (file->dir_fd < 0)
		return err;
	if (!err && file->keep_old)
		err = keep_old(file);
	if (!err && renameat(file->dir_fd, file->temporary, file->dir_fd, file->name))
		err = -errno;
	if (err)
		unlinkat(file->dir_fd, file->temporary, 0);
	close(file->dir_fd);
	file->dir_fd = -1;
	return err;
}
