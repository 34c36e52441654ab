/*
 * soak SECONDS: threads, forks, execs, spawns and objects that come and go as fast as they can, by one process that
 * looks at itself every tenth of the time: memory, file descriptors, threads, mappings, and what lies in the run
 * folder.
 * Prints a line for each look, and the counts of what was done at the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <time.h>

#include "guest.h"

enum { NR_THREADS = 8, NR_LOOKS = 10 };

extern char **environ;
static unsigned long nr_threads, nr_forks, nr_execs, nr_spawns, nr_objects, nr_wrong;

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
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
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(ids[i], NULL);
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
		nr_objects += object != NULL;
	}
}

static unsigned long entries(const char *folder, unsigned long *kb)
{
	DIR *dir = opendir(folder);
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

static void look(double since)
{
	const char *folder = getenv("COUNTERSINK_RUN_DIR");
	unsigned long kb = 0, files = folder ? entries(folder, &kb) : 0;

	printf("at %.0f s: rss_kb %lu data_kb %lu fds %lu threads %lu maps %lu files %lu files_kb %lu processes %lu\n",
	       now() - since, lines("/proc/self/status", "VmRSS:"), lines("/proc/self/status", "VmData:"),
	       entries("/proc/self/fd", NULL), lines("/proc/self/status", "Threads:"), lines("/proc/self/maps", NULL),
	       files, kb, 3 * nr_forks);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double start = now(), seconds = argc > 1 ? atof(argv[1]) : 10;

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
