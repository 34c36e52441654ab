/*
 * soak SECONDS [LEAK BYTES]: threads, forks, execs, spawns and objects that come and go as fast as they can, by one
 * process that looks at itself every twentieth of the time: memory, file descriptors, threads, mappings, what lies in
 * the run directory, and in its own recording.
 * Prints a line for each look, and the counts of what was done at the end.
 *
 * LEAK is thread, fork or object: that many BYTES are lost with each, by malloc (thread, fork, object) or as a profiler
 * would lose them that has no malloc, by mmap (thread-map, fork-map, object-map): whoever looks for leaks must find it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "guest.h"
#include "internal/recording_format.h"

enum { NR_THREADS = 8, NR_LOOKS = 20 };

extern char **environ;
static unsigned long nr_threads, nr_forks, nr_execs, nr_spawns, nr_objects, nr_wrong;

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static const char *leak_where = "";
static size_t leak_bytes;

/* Called where a thread, a fork or an object was: loses memory if that is asked for. */
static void leak(const char *where)
{
	static char *page;
	static size_t used = 4096;

	if (strncmp(leak_where, where, strlen(where)))
		return;
	if (!strstr(leak_where, "-map")) {
		memset(malloc(leak_bytes), 1, leak_bytes);
		return;
	}
	if (used + leak_bytes > 4096) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		used = 0;
	}
	memset(page + used, 1, leak_bytes);
	used += leak_bytes;
}

static void *thread(void *arg)
{
	void *volatile block = malloc(1000);

	*(uint64_t *)arg = guest_work(1);
	free(block);
	return NULL;
}

static void threads(void)
{
	pthread_t ids[NR_THREADS];
	uint64_t sums[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		nr_wrong += pthread_create(&ids[i], NULL, thread, &sums[i]) != 0;
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(ids[i], NULL);
		leak("thread");
	}
	nr_threads += NR_THREADS;
}

static void forks(void)
{
	char *const argv[] = {"true", NULL};
	pid_t pids[3];

	pids[0] = fork();
	if (pids[0] == 0) {
		guest_burn(1);
		_exit(9);
	}
	pids[1] = fork();
	if (pids[1] == 0) {
		execve("/bin/true", argv, environ);
		_exit(1);
	}
	nr_wrong += posix_spawn(&pids[2], "/bin/true", NULL, NULL, argv, environ) != 0;
	nr_wrong += guest_wait(pids[0]) != W_EXITCODE(9, 0);
	nr_wrong += guest_wait(pids[1]) != 0;
	nr_wrong += guest_wait(pids[2]) != 0;
	leak("fork");
	nr_forks++;
	nr_execs++;
	nr_spawns++;
}

static void objects(void)
{
	static const char *const names[] = {"libz.so.1", "liblzma.so.5", "libdw.so.1", "libelf.so.1"};

	for (int i = 0; i < 4; i++) {
		void *object = dlopen(names[i], RTLD_NOW);

		if (object)
			dlclose(object);
		leak("object");
		nr_objects += object != NULL;
	}
}

static unsigned long entries(const char *directory, unsigned long *kb)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned long nr = 0;
	struct stat st;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		nr += *entry->d_name != '.';
		if (kb && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			*kb += (unsigned long)st.st_blocks / 2;
	}
	closedir(dir);
	return nr;
}

static unsigned long lines(const char *path, const char *key)
{
	FILE *file = fopen(path, "r");
	char line[512];
	unsigned long nr = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (key && !strncmp(line, key, strlen(key)))
			nr = strtoul(line + strlen(key), NULL, 10);
		nr += !key;
	}
	if (file)
		fclose(file);
	return nr;
}

struct recorded {
	unsigned long bytes, threads, rows, nodes;
};

/* What this process's own recording has: rows and nodes are what the library's index is about. */
static struct recorded recorded(const char *directory)
{
	struct recorded sum = {0};
	char path[4096];
	struct stat st;
	char *map;
	int fd;

	snprintf(path, sizeof(path), "%s/%d.0" CSINK_REC_SUFFIX, directory, (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sum;
	fstat(fd, &st);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return sum;
	const struct csink_rec_header *header = (const void *)map;
	const char *end = map + (size_t)header->nr_blocks * CSINK_REC_BLOCK;
	const char *at = map + CSINK_REC_HEADER_BYTES;

	sum.bytes = (unsigned long)header->nr_blocks * CSINK_REC_BLOCK;
	while (at < end) {
		const struct csink_rec_extent *extent = (const void *)at;
		const char *next = at + (size_t)(extent->nr_blocks ? extent->nr_blocks : 1) * CSINK_REC_BLOCK;
		const struct csink_entry *entry;

		for (at += sizeof(*extent); extent->kind && at < next; at += entry->bytes) {
			entry = (const void *)at;
			if (!entry->type || !entry->bytes)
				break;
			sum.threads += entry->type == CSINK_ENTRY_THREAD;
			sum.rows += entry->type == CSINK_ENTRY_ROW;
			if (entry->type == CSINK_ENTRY_CELLS)
				sum.rows += ((const struct csink_rec_cells *)entry)->nr;
			if (entry->type == CSINK_ENTRY_NODES)
				sum.nodes += ((const struct csink_rec_nodes *)entry)->nr;
		}
		at = next;
	}
	munmap(map, (size_t)st.st_size);
	return sum;
}

static void look(double since)
{
	const char *directory = getenv("COUNTERSINK_RUN_DIR");
	unsigned long kb = 0, files = directory ? entries(directory, &kb) : 0;
	struct recorded rec = directory ? recorded(directory) : (struct recorded){0};
	struct mallinfo2 heap = mallinfo2();

	printf("at %.0f s: rss_kb %lu data_kb %lu heap_bytes %zu fds %lu threads %lu maps %lu files %lu files_kb %lu "
	       "processes %lu objects %lu started %lu rec_bytes %lu rec_threads %lu rows %lu nodes %lu\n",
	       now() - since, lines("/proc/self/status", "VmRSS:"), lines("/proc/self/status", "VmData:"),
	       heap.uordblks, entries("/proc/self/fd", NULL), lines("/proc/self/status", "Threads:"),
	       lines("/proc/self/maps", NULL), files, kb, 3 * nr_forks, nr_objects, nr_threads, rec.bytes, rec.threads,
	       rec.rows, rec.nodes);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double start = now(), seconds = argc > 1 ? atof(argv[1]) : 10;

	leak_where = argc > 3 ? argv[2] : "";
	leak_bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	for (int i = 1; i <= NR_LOOKS; i++) {
		while (now() < start + seconds * i / NR_LOOKS) {
			threads();
			forks();
			objects();
		}
		look(start);
	}
	printf("threads %lu forks %lu execs %lu spawns %lu objects %lu wrong %lu\n", nr_threads, nr_forks, nr_execs,
	       nr_spawns, nr_objects, nr_wrong);
	return nr_wrong != 0;
}
