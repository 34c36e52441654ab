/*
 * Variables that release what they hold where their scope is left, by any way: CSINK_AUTO_CLOSE int fd = open(...).
 * What the scope returns is computed before, and errno stays as it is. For the API and the launcher: the agent neither
 * allocates nor calls close(2). Context: thread.
 */
#ifndef CSINK_CLEANUP_H
#define CSINK_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"

static inline void csink_auto_close(const int *fd)
{
	CSINK_KEEP_ERRNO;

	if (*fd >= 0)
		close(*fd);
}

static inline void csink_auto_free(void *pointer)
{
	void *at;

	memcpy(&at, pointer, sizeof(at));
	free(at);
}

static inline void csink_auto_fclose(FILE **file)
{
	CSINK_KEEP_ERRNO;

	if (*file)
		fclose(*file);
}

static inline void csink_auto_closedir(DIR **dir)
{
	CSINK_KEEP_ERRNO;

	if (*dir)
		closedir(*dir);
}

/* A descriptor, or a number below 0; memory, a stream, a directory, or NULL. Set them in their declaration. */
#define CSINK_AUTO_CLOSE __attribute__((cleanup(csink_auto_close)))
#define CSINK_AUTO_FREE __attribute__((cleanup(csink_auto_free)))
#define CSINK_AUTO_FCLOSE __attribute__((cleanup(csink_auto_fclose)))
#define CSINK_AUTO_CLOSEDIR __attribute__((cleanup(csink_auto_closedir)))
/* Any other thing, with the function that takes a pointer to it and releases what it holds. */
#define CSINK_AUTO(release) __attribute__((cleanup(release)))

#endif
