/* How it stands with the counters: see reserve_status.h. */
#include "launcher/commands/reserve/reserve_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/core/sysfs.h"

#define UNUSED_BYTE (INT64_C(1) << 40) /* of the lock file: the agent looks at byte 0 only */

/*
 * The name that the kernel's lists of locks have for an open file, "08:01:42": stat(2) may give another device
 * (overlays, btrfs). So lock a byte that means nothing and see how that is listed.
 */
static bool name_in_lists(int fd, char *name, size_t size)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = UNUSED_BYTE, .l_len = 1};
	char text[2048], found[64];
	const char *line;

	if (fcntl(fd, F_OFD_SETLK, &lock))
		return false;
	csink_sysfs_read(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
	lock.l_type = F_UNLCK;
	fcntl(fd, F_OFD_SETLK, &lock);
	line = strstr(text, "lock:");
	if (!line || sscanf(line, "lock: %*s %*s %*s %*s %*s %63s", found) != 1)
		return false;
	snprintf(name, size, "%s", found);
	return true;
}

/* Those that are blocked: "1: -> POSIX  ADVISORY  WRITE 4711 08:01:42 0 0". */
static void read_waiters(struct csink_reserve_status *status, const char *name)
{
	char *line = NULL, file[64];
	size_t size = 0;
	FILE *locks = fopen("/proc/locks", "re");
	int pid;

	if (!locks)
		return;
	while (getline(&line, &size, locks) >= 0) {
		const char *arrow = strstr(line, "-> ");

		if (!arrow || sscanf(arrow, "-> %*s %*s %*s %d %63s", &pid, file) != 2 || strcmp(file, name))
			continue;
		if (status->nr_waiters < CSINK_MAX_WAITERS)
			status->waiters[status->nr_waiters] = pid > 0 ? pid : 0;
		status->nr_waiters++;
	}
	free(line);
	fclose(locks);
}

static void read_lock_file(struct csink_reserve_status *status, struct stat *file)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int fd = open(status->lock_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char name[64];

	if (fd < 0 || fstat(fd, file)) {
		status->lock_err = -errno;
		if (fd >= 0)
			close(fd);
		return;
	}
	status->is_locked = !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
	status->is_write_locked = status->is_locked && lock.l_type == F_WRLCK;
	if (name_in_lists(fd, name, sizeof(name)))
		read_waiters(status, name);
	close(fd);
}

void csink_reserve_status_read(struct csink_reserve_status *status, const char *lock_file, uint64_t timeout_ns)
{
	struct stat file;

	memset(status, 0, sizeof(*status));
	if (lock_file)
		snprintf(status->lock_file, sizeof(status->lock_file), "%s", lock_file);
	else
		csink_pcp_lock_file(status->lock_file, sizeof(status->lock_file));
	read_lock_file(status, &file);
	csink_agent_find(status->lock_err ? NULL : &file, &status->agent);
	if (!csink_pcp_is_reachable()) {
		status->active = -ENOTCONN;
		snprintf(status->active_words, sizeof(status->active_words), "no process listens where pmcd should");
	} else {
		status->active = csink_pcp_active(csink_monotonic_ns() + timeout_ns, -1, status->active_words,
						  sizeof(status->active_words));
	}
	if (csink_sysfs_read_number(&status->watchdog, "/proc/sys/kernel/nmi_watchdog"))
		status->watchdog = -1;
	status->scan_err = csink_scan_run(&status->scan, status->lock_err ? NULL : &file);
}
