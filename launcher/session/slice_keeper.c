/* Slices of a run without a launcher: see slice_keeper.h. */
#include "launcher/session/slice_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/collect/run_reading.h"
#include "launcher/session/detach.h"
#include "launcher/session/outside.h"
#include "launcher/session/slice_state.h"
#include "launcher/symbols/symbols_kept.h"
#include "preload/core/record/run_dir.h"

enum {
	POLL_MS = 1,
	PATIENCE_MS = 10000, /* for a keeper that writes a slice */
	SHARE_MS = 500,      /* for a directory that another command has for itself */
	UNWATCHED_MS = 200,  /* where no process can be waited for */
};

/* ---- one at a time ---- */

/* A keeper ends by this signal where nothing is half done. */
#define LEAVE SIGUSR1

/* That is what a keeper has a record lock for, beside the lock of the file: the kernel says whose it is, as pids are
 * here, and a child does not inherit it. */
static void ask_to_leave(int lock_fd, int signo)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (!fcntl(lock_fd, F_GETLK, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 1)
		kill(lock.l_pid, signo);
}

static void may_be_asked_to_leave(int lock_fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[16];

	/* Of the process that this one was forked by, until that has ended. */
	while (fcntl(lock_fd, F_SETLKW, &lock) && errno == EINTR)
		;
	/* For people; of one width, as a full disk has no room for more. */
	snprintf(text, sizeof(text), "%-14d\n", (int)getpid());
	if (pwrite(lock_fd, text, strlen(text), 0) < 0)
		errno = 0;
}

static int take_lock(int lock_fd)
{
	for (int ms = 0; flock(lock_fd, LOCK_EX | LOCK_NB); ms += POLL_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (ms > PATIENCE_MS + 1000)
			return -EBUSY;
		/* Whenever it is killed, slices are written once. */
		ask_to_leave(lock_fd, ms > PATIENCE_MS ? SIGKILL : LEAVE);
		poll(NULL, 0, POLL_MS);
	}
	return 0;
}

/* Programs that start look for killed runs, and have each directory for themselves for a moment. */
static int share(int directory_fd)
{
	for (int ms = 0; flock(directory_fd, LOCK_SH | LOCK_NB); ms += POLL_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (ms > SHARE_MS)
			return -EBUSY;
		poll(NULL, 0, POLL_MS);
	}
	return 0;
}

bool csink_slice_keeper_is_of(const char *run_dir)
{
	char path[CSINK_RUN_DIRECTORY_PATH + 32];

	return snprintf(path, sizeof(path), "%s/" CSINK_RUN_DIR_SLICES, run_dir) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

int csink_slice_keeper_take(struct csink_slice_keeper *k, const char *run_dir)
{
	struct stat st;
	int err;

	k->lock_fd = k->directory.fd = -1;
	if (snprintf(k->directory.path, sizeof(k->directory.path), "%s", run_dir) >= (int)sizeof(k->directory.path))
		return -ENAMETOOLONG;
	strcpy(k->slices.run_dir, k->directory.path);
	k->slices.fd = -1;
	k->directory.fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (k->directory.fd < 0 || fstat(k->directory.fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	/* As long as this is held, it is no leftover of a killed run. */
	err = share(k->directory.fd);
	if (err)
		return err;
	k->lock_fd = openat(k->directory.fd, CSINK_RUN_DIRECTORY_SLICES_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (k->lock_fd < 0)
		return -errno;
	/* A keeper of another version goes on to the run's end. */
	if (csink_slice_state_check(run_dir) == -EBADMSG && flock(k->lock_fd, LOCK_EX | LOCK_NB))
		return -EALREADY;
	return take_lock(k->lock_fd);
}

void csink_slice_keeper_release(struct csink_slice_keeper *k)
{
	if (k->lock_fd >= 0)
		close(k->lock_fd);
	if (k->directory.fd >= 0)
		close(k->directory.fd);
	k->lock_fd = k->directory.fd = -1;
}

/* ---- where they are ---- */

static void note_whole(struct csink_slice_keeper *k)
{
	k->slices.outside = &k->outside;
	csink_outside_note(&k->outside, "how far the slices before this one are cannot be read: this slice has the "
					"whole run, also what they have");
}

int csink_slice_keeper_load(struct csink_slice_keeper *k)
{
	int err = csink_slice_state_load(&k->slices, k->directory.path, &k->is_ended);

	if (err == -ENODATA)
		note_whole(k);
	return err == -ENODATA ? 0 : err;
}

int csink_slice_keeper_begin(struct csink_slice_keeper *k)
{
	csink_slices_start(&k->slices);
	k->slices.is_stored = true;
	return csink_slice_state_store(&k->slices);
}

bool csink_slice_keeper_goes_on(const struct csink_slice_keeper *k)
{
	int32_t pid;

	return csink_run_directory_writers(&k->directory, &pid, 1) > 0;
}

/* ---- the keeper ---- */

/* Some process of the run, whose end is waited for; -1: none can be. */
static int watch(const struct csink_slice_keeper *k)
{
	int32_t pid = 0;

	if (!csink_run_directory_writers(&k->directory, &pid, 1))
		return -1;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* A process manager that ends the run's processes ends this one by the same signal: their last work is not done yet. */
static void set_signals(sigset_t *while_waiting)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
	sigset_t leave;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(LEAVE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&leave);
	sigaddset(&leave, LEAVE);
	sigprocmask(SIG_BLOCK, &leave, while_waiting);
	sigdelset(while_waiting, LEAVE);
}

int csink_slice_keeper_end(struct csink_slice_keeper *k)
{
	if (k->is_ended)
		return 0;
	/* What a process does that begins only now is in a profile of its own. */
	csink_run_directory_mark(k->directory.fd, k->directory.path);
	return csink_slices_end(&k->slices, false);
}

void csink_slice_keeper_remove(struct csink_slice_keeper *k)
{
	csink_run_directory_remove(&k->directory);
}

int csink_slice_keeper_run(struct csink_slice_keeper *k)
{
	struct pollfd fds[] = {{.events = POLLIN}, {.events = POLLIN}};
	const struct timespec unwatched = {.tv_nsec = UNWATCHED_MS * 1000000L};
	struct rlimit files;
	sigset_t while_waiting;
	uint64_t times;
	int err;

	set_signals(&while_waiting);
	may_be_asked_to_leave(k->lock_fd);
	/* All recordings go to one file, whose holes count. */
	if (!getrlimit(RLIMIT_FSIZE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_FSIZE, &files);
	}
	k->slices.timer_fd = fds[0].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	csink_symbols_keep_begin();
	csink_slices_arm(&k->slices);
	while (csink_run_is_live(k->directory.path)) {
		CSINK_AUTO_CLOSE int watched = watch(k);

		fds[1].fd = watched;
		fds[0].revents = 0;
		ppoll(fds, CSINK_ARRAY_SIZE(fds), watched < 0 ? &unwatched : NULL, &while_waiting);
		if (fds[0].revents && read(k->slices.timer_fd, &times, sizeof(times)) == sizeof(times))
			csink_slices_cut(&k->slices);
	}
	err = csink_slice_keeper_end(k);
	if (!err)
		csink_slice_keeper_remove(k);
	return err;
}

int csink_slice_keeper_detach(struct csink_slice_keeper *k)
{
	enum { LOCK = STDERR_FILENO + 1, DIRECTORY, NR_KEPT = 2, ABOVE };
	pid_t pid = fork();
	int lock, directory;

	if (pid)
		return pid < 0 ? -errno : 0;
	/* Where neither is in the other's place. */
	lock = fcntl(k->lock_fd, F_DUPFD_CLOEXEC, LOCK + ABOVE);
	directory = fcntl(k->directory.fd, F_DUPFD_CLOEXEC, LOCK + ABOVE);
	if (dup3(lock, LOCK, O_CLOEXEC) < 0 || dup3(directory, DIRECTORY, O_CLOEXEC) < 0)
		_exit(CSINK_EXIT_FAILED);
	k->lock_fd = LOCK;
	k->directory.fd = DIRECTORY;
	csink_detach(NR_KEPT);
	return 1;
}

void csink_slice_keeper_leave(struct csink_slice_keeper *k)
{
	unlinkat(k->directory.fd, CSINK_RUN_DIRECTORY_SLICES_LOCK, 0);
	csink_slice_keeper_release(k);
}

/* ---- of killed runs ---- */

int csink_slice_keeper_salvage(const char *run_dir, char to[PATH_MAX], char *why, size_t why_size)
{
	static struct csink_slice_keeper k;
	int err;

	k = (struct csink_slice_keeper){.slices.fd = -1};
	err = csink_slice_state_load(&k.slices, run_dir, &k.is_ended);
	if (err == -ENODATA)
		note_whole(&k);
	else if (err)
		return err == -ENOENT ? err
				      : csink_why(err, why, why_size, "%s/" CSINK_RUN_DIR_SLICES ": %s", run_dir,
						  err == -EBADMSG ? "damaged, or of another version of countersink"
								  : strerror(-err));
	if (!k.is_ended) {
		err = csink_slices_end(&k.slices, true);
		if (err)
			return csink_why(err, why, why_size, "%s: no last slice", run_dir);
	}
	snprintf(to, PATH_MAX, "%s", k.slices.answer.last_path);
	return 0;
}
