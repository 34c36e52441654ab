/* See send_spool.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/message.h"
#include "launcher/base/own_home.h"
#include "launcher/base/regular.h"
#include "launcher/base/text.h"
#include "launcher/base/write_all.h"
#include "preload/core/opendir_at.h"

#define PROFILE ".pb.gz"
#define UNSENT ".todo"
#define WHY ".why"
#define NEW ".new" /* the copy that is being made: one at a time */
#define REFUSED "refused"
#define ADDING ".adding"
#define SENDING ".sending."
#define POLL_NS 20000000ULL /* of a lock that another process has */

struct file_name {
	char text[sizeof(REFUSED "/") + CSINK_SPOOL_NAME + 16];
};

static struct file_name file_of(const char *place, const char *name, const char *ending)
{
	struct file_name file;

	snprintf(file.text, sizeof(file.text), "%s%.*s%s", place, CSINK_SPOOL_NAME, name, ending);
	return file;
}

/* ---- the directory ---- */

/* Each directory of the path that is missing, for this user alone. */
static int make_directories(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		if (mkdir(part, 0700) && errno != EEXIST && access(part, F_OK))
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

static int judge(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH) ? -EACCES : 0;
}

static int open_directory(struct csink_spool *spool)
{
	int err = 0;

	spool->fd = open(spool->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (spool->fd < 0 && errno == ENOENT) {
		err = make_directories(spool->path);
		spool->fd = err ? -1 : open(spool->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (err)
		return err;
	return spool->fd < 0 ? -errno : judge(spool->fd);
}

int csink_spool_open(struct csink_spool *spool, const char *path, uint64_t max_bytes, char *why, size_t why_bytes)
{
	char state[PATH_MAX - sizeof("/countersink/spool")];
	struct stat st;
	int err;

	*spool = (struct csink_spool){.fd = -1, .sending_fd = -1, .max_bytes = max_bytes};
	if (strcmp(path, "auto")) {
		if (snprintf(spool->path, sizeof(spool->path), "%s", path) >=
		    PATH_MAX - 2 * (int)sizeof(struct file_name))
			return csink_why(-ENAMETOOLONG, why, why_bytes, "%.200s...: %s", path, strerror(ENAMETOOLONG));
	} else if (csink_own_state(state, sizeof(state) - sizeof(struct file_name))) {
		snprintf(spool->path, sizeof(spool->path), "%s/countersink/spool", state);
	} else {
		return csink_why(-ENOENT, why, why_bytes, "there is no home directory for a spool (--spool)");
	}
	err = open_directory(spool);
	if (err == -EACCES && spool->fd >= 0)
		return csink_why(err, why, why_bytes, "%s: the spool belongs to another user, or others may write it",
				 spool->path);
	if (!err && mkdirat(spool->fd, REFUSED, 0700) && errno != EEXIST)
		err = -errno;
	if (!err && (fstatat(spool->fd, REFUSED, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode)))
		err = -ENOTDIR;
	return err ? csink_why(err, why, why_bytes, "%s: %s", spool->path, strerror(-err)) : 0;
}

void csink_spool_close(struct csink_spool *spool)
{
	if (spool->sending_fd >= 0)
		close(spool->sending_fd);
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool->dropped);
}

/* Returns a descriptor that has the lock, -ETIMEDOUT or -errno. */
static int lock(const struct csink_spool *spool, const char *name, uint64_t deadline_ns)
{
	int fd = openat(spool->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600), err;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		err = errno != EWOULDBLOCK && errno != EINTR ? -errno
		      : csink_monotonic_ns() >= deadline_ns  ? -ETIMEDOUT
							     : 0;
		if (err) {
			close(fd);
			return err;
		}
		csink_send_sleep_ns(POLL_NS);
	}
	return fd;
}

/* ---- names ---- */

/* A file's NAME, where it ends so: 20 digits, a point, 16 hexadecimal digits. */
static bool take_name(const char *file, const char *ending, char name[CSINK_SPOOL_NAME])
{
	size_t len = strlen(file);

	if (len != 37 + strlen(ending) || strcmp(file + 37, ending) || strspn(file, "0123456789") != 20 ||
	    file[20] != '.' || strspn(file + 21, "0123456789abcdef") != 16)
		return false;
	memcpy(name, file, 37);
	name[37] = 0;
	return true;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The NAMEs of the files of a directory (relative to the spool) that end so. */
static int list(const struct csink_spool *spool, const char *directory, const char *ending,
		struct csink_spool_names *names)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(spool->fd, directory);
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (!err && (errno = 0, entry = readdir(dir))) {
		err = CSINK_GROW(names->at, names->nr, names->cap);
		if (!err && take_name(entry->d_name, ending, names->at[names->nr]))
			names->nr++;
	}
	if (!err && errno)
		err = -errno;
	if (names->nr)
		qsort(names->at, names->nr, sizeof(*names->at), compare);
	return err;
}

int csink_spool_list(const struct csink_spool *spool, struct csink_spool_names *names)
{
	*names = (struct csink_spool_names){.nr = 0};
	return list(spool, ".", PROFILE, names);
}

bool csink_spool_file(const struct csink_spool *spool, const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s" PROFILE, spool->path, name) < PATH_MAX;
}

static bool is_there(const struct csink_spool *spool, const struct file_name *file)
{
	return !faccessat(spool->fd, file->text, F_OK, AT_SYMLINK_NOFOLLOW);
}

bool csink_spool_has(const struct csink_spool *spool, const char *name)
{
	struct file_name file = file_of("", name, PROFILE);

	return is_there(spool, &file);
}

bool csink_spool_has_refused(const struct csink_spool *spool, const char *name)
{
	struct file_name file = file_of(REFUSED "/", name, PROFILE);

	return is_there(spool, &file);
}

bool csink_spool_has_dropped(const struct csink_spool *spool, const char *name)
{
	uint32_t i = 0;

	while (i < spool->nr_dropped && strcmp(spool->dropped[i], name))
		i++;
	return i < spool->nr_dropped;
}

/* ---- removing ---- */

static int drop_file(const struct csink_spool *spool, const char *place, const char *name, const char *ending)
{
	struct file_name file = file_of(place, name, ending);

	return unlinkat(spool->fd, file.text, 0) && errno != ENOENT ? -errno : 0;
}

/* The profile first: without it, what is left is none, and is removed by the next process that adds one. */
int csink_spool_remove(const struct csink_spool *spool, const char *name)
{
	int err = drop_file(spool, "", name, PROFILE);

	if (!err)
		drop_file(spool, "", name, UNSENT);
	return err;
}

/* Escaped as in a message: people read it, and the words are the server's. */
static void write_words(const struct csink_spool *spool, const char *name, const char *words)
{
	struct file_name file = file_of(REFUSED "/", name, WHY);
	int fd = openat(spool->fd, file.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	CSINK_AUTO_FCLOSE FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (out)
		csink_text_print(out, "%s\n", words);
	else if (fd >= 0)
		close(fd);
}

/* Without room for the words, which have been reported, the profile is moved all the same: else it would be sent again.
 */
int csink_spool_refuse(const struct csink_spool *spool, const char *name, const char *words)
{
	struct file_name from = file_of("", name, PROFILE), to = file_of(REFUSED "/", name, PROFILE);

	write_words(spool, name, words);
	if (renameat(spool->fd, from.text, spool->fd, to.text))
		return -errno;
	drop_file(spool, "", name, UNSENT);
	return 0;
}

static uint64_t bytes_of(const struct csink_spool *spool, const char *place, const char *name)
{
	static const char *const endings[] = {PROFILE, UNSENT, WHY};
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(endings); i++) {
		struct file_name file = file_of(place, name, endings[i]);

		if (!fstatat(spool->fd, file.text, &st, AT_SYMLINK_NOFOLLOW))
			bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

static uint64_t bytes_of_all(const struct csink_spool *spool, const char *place, const struct csink_spool_names *names)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < names->nr; i++)
		bytes += bytes_of(spool, place, names->at[i]);
	return bytes;
}

static void note_dropped(struct csink_spool *spool, const char *name)
{
	if (!CSINK_GROW(spool->dropped, spool->nr_dropped, spool->cap_dropped))
		strcpy(spool->dropped[spool->nr_dropped++], name);
}

/* First what was refused, which no process sends, then the rest: the oldest of each. @more  bytes that are to fit, too.
 */
static int make_room(struct csink_spool *spool, uint64_t more)
{
	struct csink_spool_names kept = {.nr = 0}, refused = {.nr = 0};
	int err = list(spool, ".", PROFILE, &kept) ?: list(spool, REFUSED, PROFILE, &refused);
	uint64_t bytes = err ? 0 : more + bytes_of_all(spool, "", &kept) + bytes_of_all(spool, REFUSED "/", &refused);

	for (uint32_t i = 0; !err && i < refused.nr && bytes > spool->max_bytes; i++) {
		bytes -= CSINK_MIN(bytes, bytes_of(spool, REFUSED "/", refused.at[i]));
		drop_file(spool, REFUSED "/", refused.at[i], PROFILE);
		drop_file(spool, REFUSED "/", refused.at[i], WHY);
		note_dropped(spool, refused.at[i]);
	}
	for (uint32_t i = 0; !err && i < kept.nr && bytes > spool->max_bytes; i++) {
		uint64_t own = bytes_of(spool, "", kept.at[i]);

		if (csink_spool_remove(spool, kept.at[i]))
			continue;
		bytes -= CSINK_MIN(bytes, own);
		note_dropped(spool, kept.at[i]);
	}
	free(kept.at);
	free(refused.at);
	return err;
}

/* What a process left that was killed while it added or removed one. */
static void tidy(const struct csink_spool *spool)
{
	struct csink_spool_names todos = {.nr = 0};

	unlinkat(spool->fd, NEW, 0);
	if (!list(spool, ".", UNSENT, &todos)) {
		for (uint32_t i = 0; i < todos.nr; i++) {
			if (!csink_spool_has(spool, todos.at[i]))
				drop_file(spool, "", todos.at[i], UNSENT);
		}
	}
	free(todos.at);
}

/* ---- adding ---- */

/* What is in the spool outlasts a power failure: a name without its bytes would be a profile that is lost. */
static int sync_file(int fd)
{
	if (!fsync(fd) || errno == EINVAL || errno == ENOSYS) /* some file systems have nothing to write */
		return 0;
	return -errno;
}

static uint64_t hash_of_todo(const struct csink_send_todo *todo)
{
	uint64_t hash = CSINK_HASH_FNV_BEGIN;

	for (uint32_t i = 0; i < CSINK_NR_SEND_TODO_TEXTS; i++)
		hash = csink_hash_fnv(hash, todo->texts[i], strlen(todo->texts[i]) + 1);
	return hash;
}

/* Into NEW; its bytes go into the hash. */
static int copy(const struct csink_spool *spool, const char *file, uint64_t *hash, uint64_t *bytes)
{
	CSINK_AUTO_CLOSE int from = csink_regular_open(file, 0, spool->max_bytes);
	CSINK_AUTO_CLOSE int to = from < 0 ? -1 : openat(spool->fd, NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char part[65536];
	ssize_t nr;
	int err = 0;

	if (from < 0 || to < 0)
		return from == -EFBIG ? -E2BIG : from < 0 ? from : -errno;
	while (!err && (nr = read(from, part, sizeof(part)))) {
		if (nr < 0 && errno == EINTR)
			continue;
		err = nr < 0 ? -errno : csink_write_all(to, part, (size_t)nr);
		if (!err) {
			*hash = csink_hash_fnv(*hash, part, (size_t)nr);
			*bytes += (uint64_t)nr;
		}
	}
	err = err ?: *bytes > spool->max_bytes ? -E2BIG : 0;
	return err ?: sync_file(to);
}

/* Whether one of that hash is there: then its NAME. */
static bool find_same(const struct csink_spool *spool, uint64_t hash, char name[CSINK_SPOOL_NAME])
{
	struct csink_spool_names names;
	bool is_found = false;
	char digits[17];

	snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
	if (!csink_spool_list(spool, &names)) {
		for (uint32_t i = 0; i < names.nr && !is_found; i++) {
			is_found = !strcmp(names.at[i] + 21, digits);
			if (is_found)
				strcpy(name, names.at[i]);
		}
	}
	free(names.at);
	return is_found;
}

static int write_todo(const struct csink_spool *spool, const char *name, const struct csink_send_todo *todo)
{
	struct file_name file = file_of("", name, UNSENT);
	CSINK_AUTO_CLOSE int fd = openat(spool->fd, file.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : csink_send_todo_write(fd, todo) ?: sync_file(fd);
}

/* The time in a new name: that of the newest one and more, also where the clock was set back since. */
static int64_t time_of_new(const struct csink_spool *spool, int64_t now_ns)
{
	struct csink_spool_names names;
	char newest[21] = "0";
	uint64_t ns;

	if (!csink_spool_list(spool, &names) && names.nr)
		snprintf(newest, sizeof(newest), "%s", names.at[names.nr - 1]);
	free(names.at);
	ns = strtoull(newest, NULL, 10);
	return ns < INT64_MAX ? CSINK_MAX(now_ns, (int64_t)ns + 1) : now_ns;
}

/* With the lock. The renaming is what makes the profile one of the spool's; a power failure may undo the newest one's.
 */
static int add(struct csink_spool *spool, const char *file, const struct csink_send_todo *todo,
	       char name[CSINK_SPOOL_NAME])
{
	uint64_t hash = hash_of_todo(todo), bytes = 0;
	struct file_name to;
	int err = copy(spool, file, &hash, &bytes);

	if (err || find_same(spool, hash, name))
		return err;
	snprintf(name, CSINK_SPOOL_NAME, "%020" PRId64 ".%016" PRIx64,
		 time_of_new(spool, CSINK_MAX(todo->first_ns, (int64_t)0)), hash);
	to = file_of("", name, PROFILE);
	err = write_todo(spool, name, todo) ?: make_room(spool, bytes + bytes_of(spool, "", name));
	if (!err && renameat(spool->fd, NEW, spool->fd, to.text))
		err = -errno;
	if (err)
		drop_file(spool, "", name, UNSENT);
	else
		sync_file(spool->fd);
	return err;
}

int csink_spool_add(struct csink_spool *spool, const char *file, const struct csink_send_todo *todo,
		    uint64_t deadline_ns, char name[CSINK_SPOOL_NAME])
{
	CSINK_AUTO_CLOSE int fd = lock(spool, ADDING, deadline_ns);
	int err;

	if (fd < 0)
		return fd;
	tidy(spool);
	err = add(spool, file, todo, name);
	unlinkat(spool->fd, NEW, 0);
	return err;
}

/* ---- sending ---- */

int csink_spool_begin(struct csink_spool *spool, const struct csink_send_settings *s, uint64_t deadline_ns)
{
	uint64_t hash = csink_hash_fnv(CSINK_HASH_FNV_BEGIN, s->identity, strlen(s->identity) + 1);
	char name[sizeof(SENDING) + 16];
	int fd;

	hash = csink_hash_fnv(hash, s->tenant, strlen(s->tenant));
	snprintf(name, sizeof(name), SENDING "%016" PRIx64, hash);
	spool->sending_fd = lock(spool, name, deadline_ns);
	if (spool->sending_fd < 0)
		return spool->sending_fd;
	fd = lock(spool, ADDING, 0);
	if (fd >= 0) {
		tidy(spool);
		close(fd);
	}
	return 0;
}

int csink_spool_open_todo(const struct csink_spool *spool, const char *name)
{
	struct file_name file = file_of("", name, UNSENT);
	int fd = openat(spool->fd, file.text, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}
