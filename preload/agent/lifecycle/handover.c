/* Moves a run to the user that a process becomes: see handover.h. On the thread that changes the credentials; not in
 * our handlers. */
#include "preload/agent/lifecycle/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/finish.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/record/run_dir.h"
#include "preload/core/sysfs.h"

static CSINK_COLD char left_dir[sizeof(csink_config.run_dir)]; /* "": nothing stayed behind */
static CSINK_COLD char run_dir_text[2][sizeof(CSINK_ENV_RUN_DIR) + sizeof(csink_config.run_dir)];
static unsigned int nr_texts;

bool csink_handover_is_owner(void)
{
	return csink_config.standalone && csink_config.owner == getpid() && csink_config.run_dir[0];
}

bool csink_handover_left(const char **dir)
{
	*dir = left_dir;
	return left_dir[0];
}

static const char *own_name(void)
{
	const char *slash = strrchr(csink_own_recording.path, '/');

	return slash ? slash + 1 : "";
}

/* Without the process that writes slices, which has left, this is what the next one goes on with. */
static bool is_of_slices(const char *name)
{
	return csink_config.has_slices && !strcmp(name, CSINK_RUN_DIR_SLICES);
}

static bool give(int dir_fd, const char *name, uid_t uid)
{
	int fd = (int)csink_rawcall(SYS_openat, dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool given = fd >= 0 && !csink_rawcall(SYS_fchown, fd, uid, (gid_t)-1);

	if (fd >= 0)
		csink_rawcall(SYS_close, fd);
	return given;
}

/* Returns how many entries stayed, or -errno. */
static int move_recordings(int from_fd, int to_fd, uid_t uid)
{
	struct csink_sysfs_dir dir = {
		.fd = (int)csink_rawcall(SYS_openat, from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	const char *name;
	int nr_left = 0;

	if (dir.fd < 0)
		return dir.fd;
	while ((name = csink_sysfs_dir_next(&dir))) {
		bool moves = !strcmp(name, own_name()) || is_of_slices(name) ||
			     (csink_run_dir_is_recording(name) && csink_run_dir_is_written(from_fd, name) == 0);

		if (!moves || csink_rawcall(SYS_renameat, from_fd, name, to_fd, name) || !give(to_fd, name, uid))
			nr_left++;
	}
	csink_sysfs_dir_close(&dir);
	return nr_left;
}

/* Point this process, and what it starts, to the directory. */
static void use(const char *dir)
{
	/* The environment keeps the string that it was given: the one in use is not written. */
	char *text = run_dir_text[nr_texts++ % CSINK_ARRAY_SIZE(run_dir_text)], path[sizeof(csink_own_recording.path)];

	if (snprintf(path, sizeof(path), "%s/%s", dir, own_name()) < (int)sizeof(path))
		strcpy(csink_own_recording.path, path);
	strcpy(csink_config.run_dir, dir);
	snprintf(text, sizeof(run_dir_text[0]), CSINK_ENV_RUN_DIR "=%s", dir);
	csink_env_set(text);
}

/* The directories' parents are the same, so that recordings, which are mapped, can be renamed. */
static int open_beside(char *dir, size_t size)
{
	const char *slash = strrchr(csink_config.run_dir, '/');
	int err;

	if (!slash)
		return -ENOENT;
	err = csink_run_dir_create_in(csink_config.run_dir, (size_t)(slash - csink_config.run_dir), dir, size);
	if (err)
		return err;
	err = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (err >= 0)
		return err;
	err = -errno;
	rmdir(dir);
	return err;
}

static int hand_over(uid_t uid)
{
	char dir[sizeof(csink_config.run_dir)];
	int from = open(csink_config.run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), to, nr_left;

	if (from < 0)
		return -errno;
	to = open_beside(dir, sizeof(dir));
	if (to < 0) {
		csink_rawcall(SYS_close, from);
		return to;
	}
	nr_left = move_recordings(from, to, uid);
	if (nr_left >= 0 && !csink_rawcall(SYS_fchown, to, uid, (gid_t)-1)) {
		if (nr_left || rmdir(csink_config.run_dir))
			strcpy(left_dir, csink_config.run_dir);
		use(dir);
	} else {
		nr_left = -EPERM;
		move_recordings(to, from, geteuid());
		rmdir(dir);
	}
	csink_rawcall(SYS_close, from);
	csink_rawcall(SYS_close, to);
	return CSINK_MIN(nr_left, 0);
}

int csink_handover_begin(uid_t uid)
{
	int err;

	if (csink_config.has_slices)
		csink_finish_keep(CSINK_FINISH_LEAVE);
	err = hand_over(uid);
	if (err)
		csink_handover_end();
	return err;
}

void csink_handover_end(void)
{
	if (csink_config.has_slices)
		csink_finish_keep(CSINK_FINISH_KEEP);
}

void csink_handover_undo(void)
{
	CSINK_KEEP_ERRNO;
	struct csink_sysfs_dir dir = {
		.fd = open(csink_config.run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	const char *name;

	if (dir.fd >= 0)
		csink_rawcall(SYS_fchown, dir.fd, geteuid(), (gid_t)-1);
	while ((name = csink_sysfs_dir_next(&dir)))
		if (csink_run_dir_is_recording(name) || is_of_slices(name))
			give(dir.fd, name, geteuid());
	csink_sysfs_dir_close(&dir);
}
