/* One pass over /proc: see counter_scan.h. */
#include "launcher/session/counter_scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "preload/api/reserve/reserve_impl.h"
#include "preload/core/sysfs.h"
#include "preload/core/task_stat.h"

#define EVENT_FILE "anon_inode:[perf_event]"
#define GUEST_FILE "anon_inode:kvm-vm"
#define DAEMON_NAME "pmcd"
#define PF_KTHREAD 0x00200000u

/* Locks of an open file, from its fdinfo: "lock:\t1: OFDLCK ADVISORY  READ -1 08:01:42 0 0". */
static void read_locks(struct csink_scan_process *process, const char *fd)
{
	char text[4096], kind[16], type[16];
	unsigned long long start;
	const char *line;

	csink_sysfs_read(text, sizeof(text), "/proc/%d/fdinfo/%.20s", process->pid, fd);
	for (line = strstr(text, "lock:"); line; line = strstr(line + 1, "lock:")) {
		if (sscanf(line, "lock: %*s %15s %*s %15s %*s %*s %llu", kind, type, &start) != 3)
			continue;
		/* A flock(2) is none that the agent sees; nor is one of later bytes. */
		if (!strcmp(kind, "FLOCK") || start)
			continue;
		process->reads |= !strcmp(type, "READ");
		process->writes |= !strcmp(type, "WRITE");
	}
}

/* Returns 0, or -errno if its files cannot be seen. */
static int look_at_fds(struct csink_scan_process *process, const struct stat *file)
{
	CSINK_SYSFS_DIR(dir, "/proc/%d/fd", process->pid);
	char target[64];
	const char *name;
	struct stat st;

	while ((name = csink_sysfs_dir_next(&dir))) {
		ssize_t length = readlinkat(dir.fd, name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		process->nr_events += !strcmp(target, EVENT_FILE);
		process->runs_guests |= !strcmp(target, GUEST_FILE);
		/* Only what has a path can be the file; a stat of the others may be slow. */
		if (!file || target[0] != '/' || fstatat(dir.fd, name, &st, 0) || st.st_dev != file->st_dev ||
		    st.st_ino != file->st_ino)
			continue;
		process->has_file = true;
		read_locks(process, name);
	}
	return CSINK_MIN(dir.fd, 0);
}

static uint32_t count_mappings(int pid)
{
	CSINK_AUTO_FCLOSE FILE *maps = NULL;
	CSINK_AUTO_FREE char *line = NULL;
	char path[64];
	size_t size = 0;
	uint32_t nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && getline(&line, &size, maps) >= 0)
		nr += strstr(line, EVENT_FILE) != NULL;
	return nr;
}

/* Threads of the kernel have no files, and may not be looked into by most: they are not counted. */
static bool is_kernel_thread(int pid)
{
	struct csink_task_stat stat;

	return !csink_task_stat_read(pid, &stat) && stat.flags & PF_KTHREAD;
}

static int add(struct csink_scan *scan, const struct csink_scan_process *process)
{
	if (CSINK_GROW_UNCAPPED(scan->processes, scan->nr))
		return -ENOMEM;
	scan->processes[scan->nr++] = *process;
	return 0;
}

static int look_at(struct csink_scan *scan, int pid, const struct stat *file)
{
	struct csink_scan_process process = {.pid = pid};
	uint32_t mappings;
	int err;

	if (is_kernel_thread(pid))
		return 0;
	if (csink_sysfs_read(process.comm, sizeof(process.comm), "/proc/%d/comm", pid) < 0)
		return 0; /* it has ended */
	process.is_agent = !strcmp(process.comm, CSINK_AGENT_NAME);
	err = look_at_fds(&process, file);
	if (err == -ENOENT || err == -ESRCH)
		return 0;
	scan->nr_looked_at++;
	if (err) {
		scan->nr_unseen++;
	} else {
		/* An event that is mapped is an open file as well, mostly. */
		mappings = count_mappings(pid);
		if (mappings > process.nr_events)
			process.nr_events = mappings;
		process.is_agent |= process.has_file && !strcmp(process.comm, DAEMON_NAME);
	}
	if (process.nr_events || process.has_file || process.is_agent || process.runs_guests)
		return add(scan, &process);
	return 0;
}

/* What matters most comes first, since lists are cut: the lock's, then agents, then those with most events. */
static int compare(const void *a, const void *b)
{
	const struct csink_scan_process *x = a, *y = b;

	return y->has_file - x->has_file
		       ?: y->is_agent - x->is_agent
		       ?: CSINK_COMPARE(y->nr_events, x->nr_events) ?: CSINK_COMPARE(x->pid, y->pid);
}

int csink_scan_run(struct csink_scan *scan, const struct stat *file)
{
	CSINK_SYSFS_DIR(dir, "/proc");
	const char *name;
	int err = CSINK_MIN(dir.fd, 0);

	memset(scan, 0, sizeof(*scan));
	while (!err && (name = csink_sysfs_dir_next(&dir))) {
		int pid = atoi(name);

		if (pid > 0 && pid != getpid())
			err = look_at(scan, pid, file);
	}
	if (scan->nr)
		qsort(scan->processes, scan->nr, sizeof(*scan->processes), compare);
	return err;
}

void csink_scan_free(struct csink_scan *scan)
{
	free(scan->processes);
	memset(scan, 0, sizeof(*scan));
}
