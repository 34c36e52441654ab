/* For the tests of persistent events: a process that faults on command, and events on it. */
#ifndef CSINK_TESTS_PERSIST_TARGET_H
#define CSINK_TESTS_PERSIST_TARGET_H

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tests/unit/persist_try.h"

#define RING_PAGES 8

/* ---- a process that faults on command ---- */

static struct {
	pid_t pid;
	int to, from;
} target;

__attribute__((unused)) static void fault(int nr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *pages =
		mmap(NULL, (size_t)nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)pages, (size_t)nr * page, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		pages[(size_t)i * page] = 1;
	munmap((void *)pages, (size_t)nr * page);
}

__attribute__((unused)) static void target_start(void)
{
	int to[2], from[2], nr;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		exit(1);
	target.pid = fork();
	if (!target.pid) {
		close(to[1]);
		while (read(to[0], &nr, sizeof(nr)) == sizeof(nr)) {
			fault(nr);
			if (write(from[1], &nr, sizeof(nr)) < 0)
				break;
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	target.to = to[1];
	target.from = from[0];
}

__attribute__((unused)) static void target_faults(int nr)
{
	int done = 0;

	if (write(target.to, &nr, sizeof(nr)) < 0 || read(target.from, &done, sizeof(done)) < 0 || done != nr)
		ok(0, "the target faults");
}

__attribute__((unused)) static void target_end(void)
{
	close(target.to);
	close(target.from);
	waitpid(target.pid, NULL, 0);
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

/* What a child found: its own words to the parent. */
struct word {
	int err;
	uint64_t id, value;
};

/* In a process of its own, that is gone when this returns. */
__attribute__((unused)) static struct word in_process(struct word (*act)(uint64_t id), uint64_t id)
{
	struct word word = {.err = -ECHILD};
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return word;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		word = act(id);
		_exit(write(ends[1], &word, sizeof(word)) != sizeof(word));
	}
	close(ends[1]);
	if (read(ends[0], &word, sizeof(word)) != sizeof(word))
		word.err = -ECHILD;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return word;
}

__attribute__((unused)) static struct csink_persist_value value_of(int fd)
{
	struct csink_persist_value value = {0};

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		memset(&value, 0, sizeof(value));
	return value;
}

/* Counts some faults of the target with an event of it, makes that persistent and goes. */
__attribute__((unused)) static struct word leave(const struct perf_event_attr *attr, int fd, uint32_t mode,
						 uint32_t pages)
{
	struct csink_persist_event event = event_of(attr, target.pid);
	struct word word = {0};

	event.mode = mode;
	event.pages = pages;
	target_faults(100);
	word.value = value_of(fd).value;
	word.err = fd < 0 ? fd : csink_persist_detach(fd, &event, base);
	word.id = event.id;
	return word;
}

__attribute__((unused)) static struct word make(uint64_t mode)
{
	struct perf_event_attr attr = faults();

	return leave(&attr, open_event(&attr, target.pid), (uint32_t)mode, 0);
}

/* ---- a ring of samples of it ---- */

__attribute__((unused)) static size_t ring_bytes(uint32_t pages)
{
	return (pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
}

__attribute__((unused)) static struct perf_event_attr sampled_faults(void)
{
	struct perf_event_attr attr = faults();

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.write_backward = 1;
	return attr;
}

/* The same, with a ring that was mapped before, or is not yet (0 pages). */
__attribute__((unused)) static struct word make_ring(uint64_t map_pages)
{
	struct perf_event_attr attr = sampled_faults();
	int fd = open_event(&attr, target.pid);

	if (map_pages && mmap(NULL, ring_bytes((uint32_t)map_pages), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		return (struct word){.err = -errno};
	return leave(&attr, fd, 0, RING_PAGES);
}

#endif
