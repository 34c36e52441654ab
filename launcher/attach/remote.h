/*
 * The memory of another process, copied by process_vm_readv(2): the process does not notice. What is copied may change
 * meanwhile; whether that matters is the caller's. Any thread; a struct belongs to one.
 */
#ifndef CSINK_REMOTE_H
#define CSINK_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CSINK_REMOTE_PAGE 4096 /* what is copied at once; pages are not smaller anywhere */
#define CSINK_REMOTE_PAGES 64

/* A view of a process: pages that were copied once are not copied again. */
struct csink_remote {
	int32_t pid;
	uint32_t nr_copied; /* pages */
	/* A copy of some of it that the caller has: the stack that came with a sample. */
	const char *stack;
	uint64_t stack_at, stack_bytes;
	uint64_t pages[CSINK_REMOTE_PAGES]; /* numbers, each at its remainder; 0: none */
	char copies[CSINK_REMOTE_PAGES][CSINK_REMOTE_PAGE];
};

/** Copy. Returns 0, or -errno: -EFAULT (not all of it is mapped), -EPERM, -ESRCH. */
int csink_remote_copy(int32_t pid, void *to, uint64_t from, size_t bytes);

struct csink_remote_piece {
	uint64_t from;
	void *to;
	size_t bytes;
};

/** Copy pieces that may lie anywhere. Returns how many of them, from the first one on, were copied whole. */
uint32_t csink_remote_copy_each(int32_t pid, const struct csink_remote_piece *pieces, uint32_t nr);

/** Begin a view: nothing has been copied. */
void csink_remote_begin(struct csink_remote *remote, int32_t pid);

/** The word at an address. False: it cannot be read, or too many pages have been copied already. */
bool csink_remote_load(struct csink_remote *remote, uint64_t at, uint64_t *value);

#endif
