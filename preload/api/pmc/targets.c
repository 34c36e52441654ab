/*
 * Listing the threads of processes, and their descendants, from /proc: see targets.h. Any thread, one at a time for
 * a list; not async-signal-safe.
 */
#include "preload/api/pmc/targets.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "preload/core/status.h"
#include "preload/core/sysfs.h"
#include "preload/core/task_stat.h"

#define PF_EXITING 4    /* of the flags in /proc/PID/stat */
#define PROCESS_LOOKS 8 /* before a process has ended */

/* ---- the list ---- */

static int by_number(const void *a, const void *b)
{
	return (intptr_t)a < (intptr_t)b ? -1 : (intptr_t)a > (intptr_t)b;
}

int csink_targets_add(struct csink_targets *list, int32_t pid, int32_t tid)
{
	const void *key = (const void *)(intptr_t)tid;

	if (tfind(key, &list->tids, by_number))
		return 0;
	if (CSINK_GROW(list->at, list->nr, list->cap) || !tsearch(key, &list->tids, by_number))
		return -ENOMEM;
	list->at[list->nr++] = (struct csink_target){.pid = pid, .tid = tid};
	return 1;
}

static void keep(void *tid)
{
	(void)tid; /* a number, not memory */
}

void csink_targets_free(struct csink_targets *list)
{
	free(list->at);
	tdestroy(list->tids, keep);
	memset(list, 0, sizeof(*list));
}

/* ---- /proc ---- */

int csink_task_read(int32_t tid, struct csink_task *task)
{
	struct csink_status status;
	struct csink_task_stat stat;

	memset(task, 0, sizeof(*task));
	if (tid <= 0 || csink_status_read(tid, &status) < 0 || csink_task_stat_read(tid, &stat))
		return -ESRCH;
	task->tgid = status.tgid;
	task->ppid = status.parent;
	task->tracer = status.tracer;
	task->state = stat.state;
	task->is_ending = stat.flags & PF_EXITING || stat.state == 'Z' || stat.state == 'X';
	task->start_ticks = stat.start_ticks;
	snprintf(task->comm, sizeof(task->comm), "%.*s", (int)sizeof(task->comm) - 1, stat.comm);
	return 0;
}

/* A thread of the process that is not ending, or 0. */
static int32_t find_living(int32_t pid)
{
	struct csink_task task;
	const char *name;

	CSINK_SYSFS_EACH(name, "/proc/%d/task", pid) {
		if (!csink_task_read(atoi(name), &task) && task.tgid == pid && !task.is_ending)
			return atoi(name);
	}
	return 0;
}

int csink_process_read(int32_t pid, struct csink_task *task)
{
	bool is_found = false;

	/* By an exec another thread may take the first one's place between two looks, and in the new program, again. */
	for (int i = 0; i < PROCESS_LOOKS; i++) {
		is_found = !csink_task_read(pid, task) && task->tgid == pid;
		if (is_found && (!task->is_ending || find_living(pid))) {
			task->is_ending = false;
			return 0;
		}
	}
	return is_found ? 0 : -ESRCH;
}

int32_t csink_process_task(int32_t pid)
{
	struct csink_task task;
	int32_t other = !csink_task_read(pid, &task) && task.is_ending ? find_living(pid) : 0;

	return other ? other : pid;
}

int csink_task_syscall(int32_t tid, int *number)
{
	char text[256];

	if (csink_sysfs_read(text, sizeof(text), "/proc/%d/syscall", tid) < 0 || sscanf(text, "%d", number) != 1 ||
	    *number < 0)
		return -ESRCH;
	return 0;
}

int csink_pids_add(struct csink_pids *pids, int32_t pid)
{
	for (uint32_t i = 0; i < pids->nr; i++)
		if (pids->at[i] == pid)
			return 0;
	return CSINK_APPEND(pids->at, pids->nr, pids->cap, pid) ? 0 : -ENOMEM;
}

static int push_children(struct csink_pids *pids, int32_t pid, int32_t tid)
{
	CSINK_AUTO_FCLOSE FILE *file = NULL;
	char path[64];
	int32_t child;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	file = fopen(path, "re");
	while (file && !err && fscanf(file, "%d", &child) == 1) {
		if (child != getpid())
			err = csink_pids_add(pids, child);
	}
	return err;
}

/* Returns how many threads are new, or -ESRCH, -ENOMEM. */
static int scan_process(struct csink_targets *list, struct csink_pids *pids, int32_t pid, bool descendants)
{
	int err = 0, nr_new = 0;
	CSINK_SYSFS_DIR(dir, "/proc/%d/task", pid);
	const char *name;

	if (dir.fd < 0)
		return -ESRCH;
	while (err >= 0 && (name = csink_sysfs_dir_next(&dir))) {
		int32_t tid = atoi(name);

		err = csink_targets_add(list, pid, tid);
		nr_new += err > 0;
		if (err >= 0 && descendants)
			err = push_children(pids, pid, tid);
	}
	return err < 0 ? err : nr_new;
}

int csink_targets_scan(struct csink_targets *list, int32_t pid, bool descendants)
{
	struct csink_pids pids = {0};
	struct csink_task task;
	int err = csink_process_read(pid, &task), nr_new = 0;

	if (err || task.is_ending)
		return -ESRCH;
	err = csink_pids_add(&pids, pid);
	for (uint32_t i = 0; !err && i < pids.nr; i++) {
		int nr = scan_process(list, &pids, pids.at[i], descendants);

		/* By an exec a thread may come to have another number while the directory is read. */
		for (int look = 1; !i && !nr && !list->nr && look < PROCESS_LOOKS; look++)
			nr = scan_process(list, &pids, pid, descendants);
		if (nr == -ENOMEM || (nr < 0 && !i))
			err = nr;
		else if (nr > 0)
			nr_new += nr;
	}
	free(pids.at);
	return err ? err : nr_new;
}
