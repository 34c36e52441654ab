/*
 * hold_rings [-k KIB] COMMAND...: use up the memory that this user may lock for rings of events, as many processes of
 * one user's do, keep it, and run a command that has none of its own (RLIMIT_MEMLOCK 0). KIB are left over. Its status
 * is the command's. The account is the user's, not the process's: take a user that has no other process.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA_PAGES_MOST 128

static size_t page;

static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A ring of so many pages; the mapping keeps the event. Returns it, or NULL with errno. */
static void *map_ring(size_t pages)
{
	int fd = open_event();
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return map == MAP_FAILED ? NULL : map;
}

/* Rings, the large ones first, until not a page more may be locked. Returns the KiB that they take. */
static size_t fill(void)
{
	size_t pages = 0;

	for (size_t data = DATA_PAGES_MOST; data; data /= 2)
		while (map_ring(1 + data))
			pages += 1 + data;
	while (map_ring(1))
		pages++;
	return pages * page / 1024;
}

int main(int argc, char **argv)
{
	struct rlimit none = {0, 0};
	size_t spare_kib = 0, held;
	void *spare[64] = {NULL};
	int at = 1, status;
	pid_t pid;

	if (argc > 3 && !strcmp(argv[1], "-k")) {
		spare_kib = (size_t)atoi(argv[2]);
		at = 3;
	}
	page = (size_t)sysconf(_SC_PAGESIZE);
	if (at >= argc || spare_kib * 1024 / page > sizeof(spare) / sizeof(spare[0])) {
		fprintf(stderr, "usage: hold_rings [-k KIB] COMMAND...\n");
		return 2;
	}
	setrlimit(RLIMIT_MEMLOCK, &none);
	for (size_t i = 0; i < spare_kib * 1024 / page; i++)
		spare[i] = map_ring(1);
	held = fill();
	if (errno != EPERM || !held) {
		fprintf(stderr, "hold_rings: locked memory is not limited here: %s\n", strerror(errno));
		return 125;
	}
	for (size_t i = 0; i < spare_kib * 1024 / page; i++)
		if (spare[i])
			munmap(spare[i], page);
	pid = fork();
	if (!pid) {
		execvp(argv[at], argv + at);
		perror(argv[at]);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
