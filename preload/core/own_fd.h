/*
 * File descriptors whose numbers we remember while the program runs: those of PMCs, and of a reservation's lock file.
 * The program, or the child of a fork, may have closed the number meanwhile and be using it for a file of its own. So a
 * number is stored together with the identity of its file, and used only while that is the same. Context of all
 * functions here: thread.
 */
#ifndef CSINK_OWN_FD_H
#define CSINK_OWN_FD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct csink_own_fd {
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t id; /* of a perf event, the kernel's own; 0: of another file. All events have the same inode. */
};

/** Remember a descriptor that was just opened: a perf event, if @is_event. Returns 0 or -errno. */
int csink_own_fd_note(int fd, bool is_event, struct csink_own_fd *own);

/** Is the number still that of the file that was opened there? */
bool csink_own_fd_is(const struct csink_own_fd *own);

/** Close it, if it is. */
void csink_own_fd_close(const struct csink_own_fd *own);

/**
 * Have this process and another one a table of descriptors in common (CLONE_FILES), so that closing here closes there?
 * True if the kernel does not report it; false where that process has ended.
 */
bool csink_own_fd_shares_table(pid_t other);

#endif
