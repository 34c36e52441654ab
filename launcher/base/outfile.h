/*
 * Output files: the one place where a file that the user named, or that we chose, is opened for writing. Nothing that
 * another user put in the way is followed, opened or waited for:
 * - the path is walked one component at a time; in a directory that others can write, a symbolic link is followed only
 *   if this user or root made it (fs.protected_symlinks, whatever the system's setting);
 * - in a sticky directory that others can write, a regular file of another user is neither replaced nor written;
 * - a FIFO, device or socket of another user is refused in a directory that others can write, and opened without
 *   blocking elsewhere.
 * A file is written to a temporary one beside its target, made with O_EXCL, and renamed over it. /dev/stdout,
 * /dev/stderr and /dev/fd/N are the descriptors that the launcher was given.
 */
#ifndef CSINK_OUTFILE_H
#define CSINK_OUTFILE_H

#include <limits.h>
#include <stdbool.h>

enum csink_outfile_how {
	CSINK_OUTFILE_KEEP_OLD = 1 << 0, /* a file that is there is kept as NAME.old */
	/*
	 * A place that we chose: mode 0600, in a directory that belongs to this user or root, or is sticky. What is
	 * there is replaced only if it is a regular file of this user.
	 */
	CSINK_OUTFILE_PRIVATE = 1 << 1,
	CSINK_OUTFILE_IN_PLACE = 1 << 2, /* no temporary file: readers see it grow. It is emptied first. */
	CSINK_OUTFILE_APPEND = 1 << 3,   /* the same, but what it holds is kept */
	CSINK_OUTFILE_ONCE = 1 << 4,     /* -EEXIST where there is a file, also one that was made since the opening */
};

/* Errors beside errno's: csink_outfile_error() has the words. */
enum csink_outfile_errno {
	CSINK_OUTFILE_ERRORS = 10000, /* all of these are above */
	CSINK_OUTFILE_FOREIGN,        /* another user's file */
	CSINK_OUTFILE_FOREIGN_LINK,   /* another user's symbolic link */
	CSINK_OUTFILE_FOREIGN_DIR,    /* CSINK_OUTFILE_PRIVATE: another user's directory */
	CSINK_OUTFILE_SPECIAL,        /* CSINK_OUTFILE_PRIVATE: a link, FIFO or device */
	CSINK_OUTFILE_SOCKET,
	CSINK_OUTFILE_NO_READER, /* another user's FIFO that no process reads */
};

struct csink_outfile {
	int fd;     /* to write to; close it with csink_outfile_close() only */
	int dir_fd; /* of the target; -1: fd is the target */
	bool keep_old, is_sticky, once;
	char name[NAME_MAX + 1], temporary[NAME_MAX + 1]; /* temporary "": the file has no name yet */
};

/**
 * Open an output file.
 * @how  bits of enum csink_outfile_how.
 * A new file has the mode that the umask leaves of 0666; one that replaces another has that one's mode.
 * Returns 0, or -errno or a negative csink_outfile_errno; then nothing is open and nothing was changed.
 * Context: thread. May block in the open of a FIFO of this user's.
 */
int csink_outfile_open(struct csink_outfile *file, const char *path, unsigned int how);

/**
 * Close it and put it in its place.
 * @err  the result of writing: 0, or a negative error; with an error the target stays unchanged.
 * Returns @err, or the first error of its own. Context: thread.
 */
int csink_outfile_close(struct csink_outfile *file, int err);

/** Whether csink_outfile_open() would refuse a path. Opens and creates nothing. Returns 0 or as csink_outfile_open().
 */
int csink_outfile_check(const char *path, unsigned int how);

/** The number of a descriptor that a path names by /dev or /proc; -1: it names none. Context: any. */
int csink_outfile_descriptor(const char *path);

/** A phrase for an error of these functions (positive; also errno's). Context: thread. */
const char *csink_outfile_error(int err);

#endif
