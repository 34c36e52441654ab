/* A run's directory: see run_dir.h. Launcher, constructor and forked children; calls libc, in no signal handler. */
#include "preload/core/record/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/recording_format.h"
#include "include/internal/shared_options.h"
#include "preload/core/sysfs.h"

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

/* Root's programs may give up their rights, and must find a directory of their own beside (csink_run_dir_share). */
static bool suits(const char *place)
{
	struct stat st;

	return geteuid() != 0 || !place || csink_raw_stat(place, &st) < 0 || st.st_mode & S_IXOTH;
}

void csink_run_dir_places(const char *places[CSINK_RUN_DIR_PLACES])
{
	places[0] = getenv(CSINK_ENV_PREFIX "PLACE");
	places[1] = getenv("XDG_RUNTIME_DIR");
	places[2] = "/dev/shm";
	places[3] = getenv("TMPDIR");
	places[4] = "/tmp";
}

int csink_run_dir_create(unsigned int *place, char *dir, size_t size)
{
	const char *places[CSINK_RUN_DIR_PLACES];
	int err = -ENOENT;

	csink_run_dir_places(places);
	while (*place < CSINK_ARRAY_SIZE(places)) {
		const char *in = places[(*place)++];
		int now = suits(in) ? try_place(in, dir, size) : -ENOENT;

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
	int fd = (int)csink_rawcall(SYS_openat, dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	int written;

	if (fd < 0)
		return fd;
	/* A writer that opens the file while the lease is held makes the kernel send a signal: SIGIO would end the
	 * process. */
	written = (int)csink_rawcall(SYS_fcntl, fd, F_SETSIG, SIGURG);
	if (!written) {
		written = (int)csink_rawcall(SYS_fcntl, fd, F_SETLEASE, F_RDLCK);
		if (!written)
			csink_rawcall(SYS_fcntl, fd, F_SETLEASE, F_UNLCK);
		else if (written == -EAGAIN)
			written = 1;
	}
	csink_rawcall(SYS_close, fd);
	return written;
}

bool csink_run_dir_is_of(const char *dir, uid_t uid)
{
	struct stat st;

	return csink_raw_lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077);
}

/* Any user may write there: what exists under that name already is not ours. */
static int make_beside(const char *beside, uid_t uid)
{
	int fd, err;

	if (mkdir(beside, 0700) < 0)
		return -errno;
	fd = open(beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = fd < 0 ? -errno : (int)csink_rawcall(SYS_fchmod, fd, 0700);
	if (!err)
		err = (int)csink_rawcall(SYS_fchown, fd, uid, (gid_t)-1);
	if (fd >= 0)
		csink_rawcall(SYS_close, fd);
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
	csink_rawcall(SYS_close, fd);
	return 0;
}

/* ---- where it is ---------------------------------------------------------------------------------------------------
 */

enum { BOOT_ID = 36 };

/* "" if it cannot be read. */
static void read_boot_id(char id[BOOT_ID + 1])
{
	if (csink_sysfs_read(id, BOOT_ID + 1, "/proc/sys/kernel/random/boot_id") != BOOT_ID)
		*id = '\0';
}

/* 0: not known. */
static unsigned long long pid_namespace(void)
{
	struct stat st;

	return csink_raw_stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

bool csink_run_dir_describe(const char *dir, bool only_shared, char text[CSINK_RUN_DIR_PLACE])
{
	/* By name: no other machine has them, and one more call could be one that a seccomp filter kills for. */
	bool in_memory = !strncmp(dir, "/dev/shm/", 9) || !strncmp(dir, "/run/", 5);
	char boot[BOOT_ID + 1];

	if (in_memory && only_shared)
		return false;
	read_boot_id(boot);
	snprintf(text, CSINK_RUN_DIR_PLACE, "%c:%s:%llx", in_memory ? 'm' : 'd', boot, pid_namespace());
	return *boot;
}

/* Without /proc, in a bare chroot, it is taken to be. */
static bool is_this_boot(const char *place)
{
	char boot[BOOT_ID + 1];

	read_boot_id(boot);
	return !*boot || (strlen(place) > 3 + BOOT_ID && !memcmp(place + 2, boot, BOOT_ID));
}

bool csink_run_dir_is_here(const char *place)
{
	unsigned long long own = pid_namespace();

	return is_this_boot(place) && (!own || strtoull(place + 3 + BOOT_ID, NULL, 16) == own);
}

const char *csink_run_dir_refuse(const char *dir, const char *place)
{
	uid_t uid = (uid_t)getauxval(AT_EUID);
	char beside[300];
	struct stat st;
	int err = csink_raw_lstat(dir, &st);

	if (err)
		return err == -ENOENT ? "is not there" : "cannot be reached";
	if (!S_ISDIR(st.st_mode))
		return "is no directory";
	if (st.st_uid != uid)
		return !csink_run_dir_beside(dir, uid, beside, sizeof(beside)) && csink_run_dir_is_of(beside, uid)
			       ? NULL
			       : "is another user's";
	if (st.st_mode & 022)
		return "can be written to by other users";
	/* In memory it is this machine's own; else it may be shared with others, or be left from an earlier boot. */
	return place && *place == 'd' && !is_this_boot(place) ? "is of another boot or machine" : NULL;
}
