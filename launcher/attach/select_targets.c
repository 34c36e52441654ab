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
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "preload/api/pmc/targets.h"

static int add(struct csink_attach_choice *choice, int32_t pid)
{
	for (uint32_t i = 0; i < choice->nr; i++)
		if (choice->pids[i] == pid)
			return 0;
	if (CSINK_GROW(choice->pids, choice->nr, choice->cap))
		return -ENOMEM;
	choice->pids[choice->nr++] = pid;
	return 0;
}

/* Calls each for every process, until it returns other than 0. */
static int each_process(int (*each)(int32_t pid, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int result = dir ? 0 : -errno;

	while (dir && !result && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			result = each(atoi(entry->d_name), arg);
	}
	if (dir)
		closedir(dir);
	return result;
}

/* ---- by number ---- */

struct inner {
	int32_t wanted;
};

/* The process that has this number in a namespace of its own. */
static int is_inner(int32_t pid, void *arg)
{
	const struct inner *inner = arg;
	char path[64], *line = NULL, *last;
	size_t size = 0;
	int found = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && !found && getline(&line, &size, file) > 0) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		last = strrchr(line, '\t');
		found = last && last > line + 6 && atoi(last) == inner->wanted ? pid : 0;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

static void say_missing(int32_t pid, char *why, size_t why_size)
{
	struct inner inner = {pid};
	int here = each_process(is_inner, &inner);

	if (here > 0)
		snprintf(why, why_size,
			 "ESRCH: there is no process %d here; in another pid namespace that is the number of our "
			 "process "
			 "%d: use -p %d",
			 pid, here, here);
	else
		snprintf(why, why_size, "ESRCH: there is no process %d (any more); look for it with ps -e", pid);
}

static int choose_pid(int32_t pid, struct csink_attach_choice *choice, char *why, size_t why_size)
{
	struct csink_task task;

	if (csink_task_read(pid, &task)) {
		say_missing(pid, why, why_size);
		return -ESRCH;
	}
	if (task.tgid != pid) {
		snprintf(why, why_size, "ESRCH: %d is no process but a thread of %d: use -t %d, or -p %d", pid,
			 task.tgid, pid, task.tgid);
		return -ESRCH;
	}
	if (csink_process_read(pid, &task) || task.is_ending) {
		snprintf(why, why_size, "ESRCH: process %d (%s) has ended, and its parent has not waited for it yet",
			 pid, task.comm);
		return -ESRCH;
	}
	return add(choice, pid);
}

int csink_attach_choose_pids(const char *text, struct csink_attach_choice *choice, char *why, size_t why_size)
{
	int err = 0;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(text, &end, 10);
		if (end == text || errno || pid <= 0 || pid > INT32_MAX || (*end && *end != ',')) {
			snprintf(why, why_size, "EINVAL: '%s' is no process number, nor several with commas between",
				 text);
			return -EINVAL;
		}
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

	if (csink_task_read(tid, &task) || task.is_ending) {
		snprintf(why, why_size, "ESRCH: there is no thread %d (any more); look for it with ps -eL", tid);
		return -ESRCH;
	}
	return task.tgid;
}

/* ---- by name ---- */

struct search {
	regex_t regex;
	struct csink_attach_choice *choice;
};

static int take_matching(int32_t pid, void *arg)
{
	struct search *search = arg;
	char path[64], text[4096] = "";
	const char *name;
	struct csink_task task;
	ssize_t n;
	int fd;

	if (pid == getpid() || csink_process_read(pid, &task) || task.is_ending)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", csink_process_task(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	if (n <= 0) /* a thread of the kernel's */
		return 0;
	name = csink_base_name(text);
	if (!regexec(&search->regex, task.comm, 0, NULL, 0) || !regexec(&search->regex, name, 0, NULL, 0))
		return add(search->choice, pid);
	return 0;
}

int csink_attach_choose_pattern(const char *pattern, struct csink_attach_choice *choice, char *why, size_t why_size)
{
	struct search search = {.choice = choice};
	int err = regcomp(&search.regex, pattern, REG_EXTENDED | REG_NOSUB);
	char text[128];

	if (err) {
		regerror(err, &search.regex, text, sizeof(text));
		snprintf(why, why_size, "EINVAL: '%s' is no extended regular expression: %s", pattern, text);
		return -EINVAL;
	}
	err = each_process(take_matching, &search);
	regfree(&search.regex);
	if (err)
		return err;
	if (choice->nr)
		return 0;
	snprintf(
		why, why_size,
		"ESRCH: no process has a name that matches '%s'; to start a command and attach to it, put -- before it",
		pattern);
	return -ESRCH;
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

int csink_attach_choose_cgroup(int cgroup_fd, struct csink_attach_choice *choice)
{
	int fd = openat(cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, err = 0;
	FILE *procs = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct dirent *entry;
	DIR *dir;

	while (procs && !err && fscanf(procs, "%d", &pid) == 1)
		err = pid > 0 ? add(choice, pid) : 0; /* 0: in a pid namespace that we do not see */
	if (procs)
		fclose(procs);
	fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	while (dir && !err && (entry = readdir(dir))) {
		int below;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below < 0)
			continue;
		err = csink_attach_choose_cgroup(below, choice);
		close(below);
	}
	if (dir)
		closedir(dir);
	return err;
}
