/*
 * Counts threads that are not sampled: see untracked_threads.h. Runs in the constructor and on the thread that ends the
 * process, without malloc.
 */
#include "preload/agent/lifecycle/untracked_threads.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/find_object.h"

/* What the set-up and the end of the process, and of each thread, may use without being any thread's that we know. */
#define OWN_NS 5000000ULL
#define OWN_THREAD_NS 300000ULL

struct found {
	uint32_t nr;
	char names[200]; /* of some */
	size_t used;
};

/* The kernel's getdents64(2) record. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static bool is_known(int32_t tid)
{
	for (struct csink_thread *at = csink_threads_first(); at; at = at->next)
		if (at->tid == tid && at->entry &&
		    atomic_load_explicit(&at->state, memory_order_acquire) == CSINK_THREAD_LIVE)
			return true;
	return false;
}

static void take(struct found *found, const char *tid)
{
	char path[64], name[17] = "";
	long n;
	int fd;

	if (tid[0] < '0' || tid[0] > '9' || is_known((pid_t)strtoull(tid, NULL, 10)))
		return;
	found->nr++;
	snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", tid);
	fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	n = fd < 0 ? -1 : csink_rawcall(SYS_read, fd, name, sizeof(name) - 1);
	if (fd >= 0)
		csink_rawcall(SYS_close, fd);
	name[n > 0 ? strcspn(name, "\n") : 0] = 0;
	if (found->used < sizeof(found->names) - 24 && !strstr(found->names, name))
		found->used += (size_t)snprintf(found->names + found->used, sizeof(found->names) - found->used, "%s%s",
						found->used ? ", " : "", name);
}

/* No opendir(3): the process may be ending in a signal handler that interrupted malloc. */
static void look(struct found *found)
{
	int fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	_Alignas(struct entry) char buffer[2048];
	long n;

	memset(found, 0, sizeof(*found));
	if (fd < 0)
		return;
	while ((n = csink_rawcall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < n; at += ((struct entry *)(buffer + at))->bytes)
			take(found, ((struct entry *)(buffer + at))->name);
	csink_rawcall(SYS_close, fd);
}

static const char *plural(uint32_t nr)
{
	return nr == 1 ? "" : "s";
}

void csink_untracked_threads_at_start(void)
{
	struct csink_writer writer = {0, 0};
	struct found found;

	if (csink_is_single_threaded())
		return;
	look(&found);
	if (!found.nr)
		return;
	csink_recording_lose(&csink_own_recording, CSINK_LOSS_THREADS, found.nr);
	csink_recording_note(&csink_own_recording, &writer, 1, "%u thread%s older than the library (%s): not sampled",
			     found.nr, found.nr == 1 ? " is" : "s are", found.names);
}

void csink_untracked_threads_at_end(uint64_t cpu_ns)
{
	uint32_t nr_threads;
	uint64_t known_ns = csink_threads_cpu_ns(&nr_threads), rest = cpu_ns - known_ns;
	struct csink_writer writer = {0, 0};
	struct found found;

	if (cpu_ns < known_ns || rest < OWN_NS + nr_threads * OWN_THREAD_NS)
		return;
	look(&found);
	if (found.nr) {
		csink_recording_lose(&csink_own_recording, CSINK_LOSS_THREADS, found.nr);
		csink_recording_note(&csink_own_recording, &writer, 1,
				     "%u thread%s (%s) that pthread_create did not make, or that are older than the "
				     "library, were not sampled: %.3f s of CPU time",
				     found.nr, plural(found.nr), found.names, (double)rest / CSINK_NS_PER_S);
	} else if (rest > cpu_ns / 10) {
		csink_recording_note(&csink_own_recording, &writer, 1,
				     "%.3f s of CPU time were spent by threads that pthread_create did not make: they "
				     "were not sampled",
				     (double)rest / CSINK_NS_PER_S);
	}
}
