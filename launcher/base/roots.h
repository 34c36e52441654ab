/*
 * Files of processes that have another root than ours: containers, chroots. A path through such a root begins with
 * "/proc/4711/root", or with "/proc/self/fd/7" where a handle of it is kept; what follows is the path as they see it.
 * A handle of a file is that file, whatever follows: one that was at that path and is gone.
 * The files belong to another process and may change between two reads: a symbolic link is resolved within its root.
 */
#ifndef CSINK_ROOTS_H
#define CSINK_ROOTS_H

#include <stddef.h>
#include <stdint.h>

#define CSINK_ROOT_BYTES 32

/** How much of a path names another root, without the slash behind it; 0: it is an ordinary path of ours. */
size_t csink_root_len(const char *path);

/**
 * Open a regular file to be read; what is none is not opened at all, since opening a FIFO or a device has effects.
 * Without /proc the path is opened after it was a regular file's a moment before. Through another root every link,
 * absolute or with "..", is followed as seen from there; where the kernel has no openat2(2), or a filter refuses it, no
 * link is followed.
 * @flags  O_NOFOLLOW and the like; O_RDONLY and O_CLOEXEC are given.
 * Returns the fd or -errno; -ENOEXEC: it is no regular file. Context: thread.
 */
int csink_root_open(const char *path, int flags);

/**
 * Find the roots of the file systems in which processes live that call themselves pid: "/proc/4711/root". Of processes
 * that run now, in containers and chroots, too.
 * @roots  room for max texts
 * Returns how many there are.
 */
uint32_t csink_roots_find(int32_t pid, char roots[][CSINK_ROOT_BYTES], uint32_t max);

#endif
