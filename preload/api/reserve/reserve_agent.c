/*
 * Which process is the agent, and has it the lock file open that we locked? A file that was deleted and made again has
 * the same name and is another one: the agent keeps looking at the old.
 */
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/api/reserve/reserve_impl.h"
#include "preload/core/sysfs.h"
#include "preload/core/task_stat.h"

#define DAEMON_NAME "pmcd" /* the agent may live inside it */

/* 1, 0, or -1: not to be seen. */
static int has_open(int pid, const struct stat *file)
{
	CSINK_SYSFS_DIR(dir, "/proc/%d/fd", pid);
	const char *name;
	struct stat other;
	int has = dir.fd < 0 ? -1 : 0;

	while (!has && (name = csink_sysfs_dir_next(&dir)))
		has = !fstatat(dir.fd, name, &other, 0) && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
	return has;
}

/* Is what was found now better evidence than what was found before? */
static bool is_better(const struct csink_agent *now, const struct csink_agent *before)
{
	return !before->pid || (now->has_lock == 1 && before->has_lock != 1);
}

void csink_agent_find(const struct stat *lock, struct csink_agent *agent)
{
	CSINK_KEEP_ERRNO;
	struct csink_task_stat stat;
	char comm[32];
	const char *name;

	memset(agent, 0, sizeof(*agent));
	agent->has_lock = -1;
	CSINK_SYSFS_EACH(name, "/proc") {
		struct csink_agent now = {.pid = atoi(name), .has_lock = -1};
		bool is_agent;

		if (now.pid <= 0 || csink_sysfs_read(comm, sizeof(comm), "/proc/%d/comm", now.pid) <= 0)
			continue;
		is_agent = !strcmp(comm, CSINK_AGENT_NAME);
		if (!is_agent && strcmp(comm, DAEMON_NAME))
			continue;
		now.state = csink_task_stat_read(now.pid, &stat) ? '?' : stat.state;
		if (now.state == 'Z')
			continue;
		if (lock)
			now.has_lock = has_open(now.pid, lock);
		/* A pmcd is an agent only if it has the file. */
		if ((is_agent || now.has_lock == 1) && is_better(&now, agent))
			*agent = now;
	}
}
