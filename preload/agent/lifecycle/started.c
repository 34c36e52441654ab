/* A program that is about to be started: see started.h. On the thread that starts it, in a vfork child too; not in our
 * handlers. */
#include "preload/agent/lifecycle/started.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

static void keep_path(struct csink_started *started, const char *path)
{
	size_t n = strlen(path), skip = n < sizeof(started->path) ? 0 : n - sizeof(started->path) + 1;

	memcpy(started->path, path + skip, n - skip + 1);
}

static void conclude(struct csink_started *started, int fd, const char *path)
{
	struct stat st;

	if (fd == -EACCES && *path) { /* if it cannot be executed either, this is withdrawn */
		started->reason = CSINK_SPAWN_UNREADABLE;
		keep_path(started, path);
	}
	if (fd < 0)
		return;
	started->reason = csink_program_reason(started->kind);
	/* With two kinds of rights at once, any program is one that the loader makes safe. */
	if (csink_program_supports_preload(started->reason) && !csink_raw_fstat(fd, &st) &&
	    (csink_program_raises_rights(fd, &st, false) || getuid() != geteuid() || getgid() != getegid()))
		started->reason = CSINK_SPAWN_SETUID;
	if (!started->reason && !csink_env_library_is_near())
		started->reason = CSINK_SPAWN_NO_REACH;
	if (started->reason && *path)
		keep_path(started, path);
	else if (started->reason)
		csink_program_fd_path(fd, started->path, sizeof(started->path));
	csink_rawcall(SYS_close, fd);
}

static void begin(struct csink_started *started)
{
	started->kind = CSINK_PROGRAM_OWN;
	started->reason = 0;
	started->path[0] = '\0';
	started->entry = NULL;
}

static bool may_look(void)
{
	return csink_env_is_known() && !csink_calls_are_off(CSINK_CALLS_LIFE);
}

void csink_started_look(struct csink_started *started, int dirfd, const char *path)
{
	begin(started);
	/* The kernel looks at the path first: a bad pointer is its EFAULT, and not our crash. */
	if (path && may_look())
		conclude(started, csink_program_open(dirfd, path, &started->kind), path);
}

void csink_started_look_fd(struct csink_started *started, int fd)
{
	char link[32];

	begin(started);
	csink_program_fd_link(link, fd);
	if (fd >= 0 && may_look())
		conclude(started, csink_program_open(AT_FDCWD, link, &started->kind), "");
}

void csink_started_search(struct csink_started *started, const char *name)
{
	begin(started);
	if (name && may_look())
		conclude(started, csink_program_search(getenv("PATH"), name, &started->kind), name);
}

void csink_started_record(struct csink_started *started, pid_t pid)
{
	uint32_t bytes = (uint32_t)(sizeof(*started->entry) + strlen(started->path) + 1);
	struct csink_thread *thread = csink_self;
	struct csink_rec_spawn *spawn;

	if (!started->reason || !thread || !csink_own_recording.header)
		return;
	spawn = csink_recording_reserve(&csink_own_recording, &thread->writer, bytes);
	if (!spawn)
		return;
	spawn->pid = pid;
	memcpy(spawn->path, started->path, strlen(started->path) + 1);
	csink_recording_commit(spawn, bytes, CSINK_ENTRY_SPAWN, (uint16_t)started->reason);
	started->entry = spawn;
}

void csink_started_record_child(struct csink_recording *parents, enum csink_spawn_reason reason)
{
	struct csink_rec_spawn *spawn;
	char name[16] = "";
	uint32_t bytes;

	csink_rawcall(SYS_prctl, PR_GET_NAME, name);
	bytes = (uint32_t)(sizeof(*spawn) + strlen(name) + 1);
	spawn = parents->header ? csink_recording_reserve_child(parents, bytes) : NULL;
	if (!spawn)
		return;
	spawn->pid = csink_process.pid;
	memcpy(spawn->path, name, strlen(name) + 1);
	csink_recording_commit(spawn, bytes, CSINK_ENTRY_SPAWN, (uint16_t)reason);
}

void csink_started_withdraw(struct csink_started *started)
{
	if (started->entry)
		__atomic_store_n(&started->entry->head.aux, 0, __ATOMIC_RELAXED);
}
