/*
 * What the tests of persistent events share: a run directory of their own, a program to be the keeper, events that
 * every user may open, and a look at the keeper itself.
 */
#ifndef CSINK_TESTS_PERSIST_TRY_H
#define CSINK_TESTS_PERSIST_TRY_H

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/countersink/persist.h"
#include "include/internal/event.h"
#include "preload/api/persist/persist_wire.h"
#include "tests/unit/tap.h"

#define FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

static char base[64], directory[128];

/* Page faults of the user's side, which need no privilege. */
static struct perf_event_attr faults(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.read_format = FORMAT,
	};
}

static int open_event(const struct perf_event_attr *attr, pid_t pid)
{
	return csink_perf_open(attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool can_open(void)
{
	struct perf_event_attr attr = faults();
	int fd = open_event(&attr, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * The countersink of this build is found by PATH: a copy, since other users may not enter the directory of the build.
 * False where there are no events to try: then all is skipped.
 */
static bool begin(void)
{
	char path[PATH_MAX], command[2 * PATH_MAX], *slash;
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 16);

	if (!can_open()) {
		skip("persistent events", "perf_event_open is refused");
		return false;
	}
	path[len > 0 ? len : 0] = '\0';
	for (int up = 0; up < 3 && (slash = strrchr(path, '/')); up++)
		*slash = '\0';
	unsetenv("COUNTERSINK_PERSIST_DIR");
	strcpy(base, "/tmp/csink-persist-XXXXXX");
	if (!mkdtemp(base)) {
		printf("Bail out! no directory\n");
		exit(1);
	}
	chmod(base, 0755);
	snprintf(command, sizeof(command), "mkdir -m 755 %s/bin && cp '%s/bin/countersink' %s/bin/", base, path, base);
	if (system(command)) {
		printf("Bail out! no program\n");
		exit(1);
	}
	strcat(strcpy(path, base), "/bin");
	setenv("PATH", path, 1);
	snprintf(directory, sizeof(directory), "%s/countersink-persist", base);
	return true;
}

static bool wait_until(bool (*is_so)(void))
{
	for (int i = 0; i < 24000; i++) {
		if (is_so())
			return true;
		poll(NULL, 0, 5);
	}
	return false;
}

/* The pid of the keeper that listens; 0: none. */
static pid_t keeper_pid(void)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	char path[PATH_MAX];
	int directory_fd = csink_persist_directory(base, false, path);
	int fd = directory_fd < 0 ? -1 : csink_persist_connect(directory_fd);

	if (fd >= 0) {
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
		close(fd);
	}
	if (directory_fd >= 0)
		close(directory_fd);
	return peer.pid;
}

__attribute__((unused)) static bool has_no_keeper(void)
{
	char path[PATH_MAX];
	int fd, held;

	snprintf(path, sizeof(path), "%s/" CSINK_PERSIST_LOCK, directory);
	fd = open(path, O_RDWR | O_CLOEXEC);
	held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB);
	if (fd >= 0)
		close(fd);
	return !held && !keeper_pid();
}

__attribute__((unused)) static struct csink_persist_event event_of(const struct perf_event_attr *attr, pid_t pid)
{
	return (struct csink_persist_event){.attr = *attr, .pid = pid, .cpu = -1, .name = "faults"};
}

__attribute__((unused)) static int count_one(const struct csink_persist_event *event, void *data)
{
	(void)event;
	if (data)
		++*(int *)data;
	return 0;
}

__attribute__((unused)) static int nr_listed(void)
{
	return csink_persist_list(count_one, NULL, base);
}

__attribute__((unused)) static int nr_files(void)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" CSINK_PERSIST_EVENTS, directory);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

/* fds of a process: those of events, and all. */
__attribute__((unused)) static void count_fds(pid_t pid, int *events, int *all)
{
	char path[64], link[384], target[64];
	struct dirent *entry;
	ssize_t len;
	DIR *dir;

	*events = *all = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
		len = readlink(link, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		++*all;
		*events += !strcmp(target, "anon_inode:[perf_event]");
	}
	if (dir)
		closedir(dir);
}

static int take_first(const struct csink_persist_event *event, void *data)
{
	*(struct csink_persist_event *)data = *event;
	return 1;
}

/* Attach all, so that the keeper ends. Returns how many could not be. */
static int attach_all(void)
{
	struct csink_persist_event event;
	int failed = 0;

	while (failed < 10 && csink_persist_list(take_first, &event, base) == 1) {
		int fd = csink_persist_open(event.id, event.cpu, NULL, base);

		failed += fd < 0 || csink_persist_attach(fd, base);
		if (fd >= 0)
			close(fd);
	}
	return failed;
}

static void finish(void)
{
	char command[128];

	attach_all();
	snprintf(command, sizeof(command), "/bin/rm -rf %s", base);
	if (system(command))
		printf("# %s stays\n", base);
}

#endif
