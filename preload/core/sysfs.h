/*
 * Reading the small one-line files of /proc, sysfs and tracefs, and listing their directories, without malloc or stdio,
 * so that it may be done at the start of a profiled process. fds are CLOEXEC and closed before return. Context of
 * everything here: init, thread.
 */
#ifndef CSINK_SYSFS_H
#define CSINK_SYSFS_H

#include <stddef.h>
#include <stdint.h>

#include "include/internal/event.h"

#define CSINK_SYSFS_NAME 200 /* longest name looked up */

/** The directory of PMUs. */
static inline const char *csink_event_devices(const struct csink_event_roots *roots)
{
	return roots->devices ? roots->devices : "/sys/bus/event_source/devices";
}

/**
 * Read the file that fmt names, without its last newline, NUL-ended; what does not fit is left out.
 * Returns the length or -errno.
 */
__attribute__((format(printf, 3, 4))) int csink_sysfs_read(char *buf, size_t size, const char *fmt, ...);

/** Read a file that holds one decimal number. Returns 0 or -errno (-EINVAL: no number). */
__attribute__((format(printf, 2, 3))) int csink_sysfs_read_number(int64_t *value, const char *fmt, ...);

struct csink_sysfs_dir {
	int fd; /* -errno: it could not be opened, and has no names */
	uint32_t used, length;
	uint64_t buf[256]; /* struct linux_dirent64 records */
};

/** Open a directory for listing. Returns a descriptor or -errno. */
__attribute__((format(printf, 1, 2))) int csink_sysfs_dir_open(const char *fmt, ...);

/** The next name, or NULL; names that begin with '.' are left out. Valid until the next call. */
const char *csink_sysfs_dir_next(struct csink_sysfs_dir *dir);

void csink_sysfs_dir_close(const struct csink_sysfs_dir *dir);

/* Declares the directory that a format names. It is closed where the scope is left. */
#define CSINK_SYSFS_DIR(dir, ...)                                                                                      \
	__attribute__((cleanup(csink_sysfs_dir_close))) struct csink_sysfs_dir dir = {                                 \
		.fd = csink_sysfs_dir_open(__VA_ARGS__)}

/* A loop over the names in such a directory; none where it cannot be opened. break and return close it, too. */
#define CSINK_SYSFS_EACH(name, ...) for (CSINK_SYSFS_DIR(dir_, __VA_ARGS__); ((name) = csink_sysfs_dir_next(&dir_));)

#endif
