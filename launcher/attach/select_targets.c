/*
 * From -p, -t, --cgroup and a pattern to a list of PIDs, read from /proc and the control group's files: see
 * select_targets.h. Runs in the attach command's one thread.
 */
#include "launcher/attach/select_targets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/proc.h"
#include "preload/api/pmc/targets.h"
#include "preload/core/opendir_at.h"
#include "preload/core/sysfs.h"

/* Calls each for every process, until it returns other than 0. */
static int each_process(int (*each)(int32_t pid, void *arg), void *arg)
{
	CSINK_SYSFS_DIR(proc, "/proc");
	int result = CSINK_MIN(proc.fd, 0);
	const char *name;

	while (!result && (name = csink_sysfs_dir_next(&proc))) {
		if (isdigit((unsigned char)*name))
			result = each(atoi(name), arg);
	}
	return result;
}

/* ---- by number ---- */

/* The process that has this number in a namespace of its own. */
static int is_inner(int32_t pid, void *arg)
{
	const int32_t *wanted = arg;

	return pid != *wanted && csink_proc_own_number(pid) == *wanted ? pid : 0;
}

static int fail_missing(int32_t pid, char *why, size_t why_size)
{
	int here = each_process(is_inner, &pid);

	if (here > 0)
		return csink_why(-ESRCH, why, why_size,
				 "ESRCH: there is no process %d here; in another pid namespace that is the number of "
				 "our process %d: use -p %d",
				 pid, here, here);
	return csink_why(-ESRCH, why, why_size, "ESRCH: there is no process %d (any more); look for it with ps -e",
			 pid);
}

static int choose_pid(int32_t pid, struct csink_pids *choice, char *why, size_t why_size)
{
	struct csink_task task;

	if (csink_task_read(pid, &task))
		return fail_missing(pid, why, why_size);
	if (task.tgid != pid)
		return csink_why(-ESRCH, why, why_size,
				 "ESRCH: %d is no process but a thread of %d: use -t %d, or -p %d", pid, task.tgid, pid,
				 task.tgid);
	if (csink_process_read(pid, &task) || task.is_ending)
		return csink_why(-ESRCH, why, why_size,
				 "ESRCH: process %d (%s) has ended, and its parent has not waited for it yet", pid,
				 task.comm);
	return csink_pids_add(choice, pid);
}

int csink_attach_choose_pids(const char *text, struct csink_pids *choice, char *why, size_t why_size)
{
	int err = 0;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(text, &end, 10);
		if (end == text || errno || pid <= 0 || pid > INT32_MAX || (*end && *end != ','))
			return csink_why(-EINVAL, why, why_size,
					 "EINVAL: '%s' is no process number, nor several with commas between", text);
		err = choose_pid((int32_t)pid, choice, why, why_size);
		if (err == -ENOMEM || !*end)
			break;
		text = end + 1;
	}
	return choice->nr ? 0 : err;
}

int32_t csink_attach_process_of(int32_t tid, char *why, size_t why_size)
{
	struct csink_task task;

	if (csink_task_read(tid, &task) || task.is_ending)
		return csink_why(-ESRCH, why, why_size,
				 "ESRCH: there is no thread %d (any more); look for it with ps -eL", tid);
	return task.tgid;
}

/* ---- by name ---- */

struct search {
	regex_t regex;
	struct csink_pids *choice;
};

static int take_matching(int32_t pid, void *arg)
{
	struct search *search = arg;
	char text[4096];
	const char *name;
	struct csink_task task;

	if (pid == getpid() || csink_process_read(pid, &task) || task.is_ending)
		return 0;
	if (csink_sysfs_read(text, sizeof(text), "/proc/%d/cmdline", csink_process_task(pid)) <= 0)
		return 0; /* a thread of the kernel's */
	name = csink_base_name(text);
	if (!regexec(&search->regex, task.comm, 0, NULL, 0) || !regexec(&search->regex, name, 0, NULL, 0))
		return csink_pids_add(search->choice, pid);
	return 0;
}

int csink_attach_choose_pattern(const char *pattern, struct csink_pids *choice, char *why, size_t why_size)
{
	struct search search = {.choice = choice};
	int err = regcomp(&search.regex, pattern, REG_EXTENDED | REG_NOSUB);
	char text[128];

	if (err) {
		regerror(err, &search.regex, text, sizeof(text));
		return csink_why(-EINVAL, why, why_size, "EINVAL: '%s' is no extended regular expression: %s", pattern,
				 text);
	}
	err = each_process(take_matching, &search);
	regfree(&search.regex);
	if (err)
		return err;
	if (choice->nr)
		return 0;
	return csink_why(-ESRCH, why, why_size,
			 "ESRCH: no process has a name that matches '%s'; to start a command and attach to it, put -- "
			 "before it",
			 pattern);
}

/* ---- by control group ---- */

/* Where control groups are mounted that perf knows: perf_event's hierarchy, else version 2. Returns whether there is.
 */
static bool find_mount(char *to, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;
	bool found = false;

	while (mounts && (entry = getmntent(mounts))) {
		bool is_v1 = !strcmp(entry->mnt_type, "cgroup") && hasmntopt(entry, "perf_event");

		if (!is_v1 && (found || strcmp(entry->mnt_type, "cgroup2")))
			continue;
		snprintf(to, size, "%s", entry->mnt_dir);
		found = true;
		if (is_v1)
			break;
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

int csink_attach_open_cgroup(const char *path, char *why, size_t why_size)
{
	char mount[PATH_MAX] = "", whole[2 * PATH_MAX];
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (fd < 0 && errno == ENOENT && find_mount(mount, sizeof(mount))) {
		snprintf(whole, sizeof(whole), "%s/%s", mount, path);
		fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	err = fd < 0 ? -errno : 0;
	if (fd >= 0 && faccessat(fd, "cgroup.procs", F_OK, 0)) {
		close(fd);
		err = -EINVAL;
	}
	if (err == -EINVAL)
		snprintf(why, why_size, "EINVAL: %s is a directory, but no control group", path);
	else if (err)
		snprintf(why, why_size, "%s: %s: no such control group%s%s%s", csink_errno_name(-err), path,
			 *mount ? ", nor below " : "", mount,
			 *mount ? "" : "; the perf_event hierarchy, or cgroup2, must be mounted");
	return err ? err : fd;
}

static int choose_processes(int cgroup_fd, struct csink_pids *choice)
{
	int fd = openat(cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, err = 0;
	CSINK_AUTO_FCLOSE FILE *procs = fd >= 0 ? fdopen(fd, "r") : NULL;

	while (procs && !err && fscanf(procs, "%d", &pid) == 1)
		err = pid > 0 ? csink_pids_add(choice, pid) : 0; /* 0: in a pid namespace that we do not see */
	return err;
}

int csink_attach_choose_cgroup(int cgroup_fd, struct csink_pids *choice)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(cgroup_fd, ".");
	int err = choose_processes(cgroup_fd, choice);
	struct dirent *entry;

	while (dir && !err && (entry = readdir(dir))) {
		CSINK_AUTO_CLOSE int below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0)
			err = csink_attach_choose_cgroup(below, choice);
	}
	return err;
}
