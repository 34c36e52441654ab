/*
 * File descriptors: their numbers, their contents and their limit, with threads that come and go, and samples, beside
 * everything that closes, reuses and duplicates them. A byte too many or too few is somebody else's.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "guest.h"

static int first_open(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void *work(void *arg)
{
	return (void *)(uintptr_t)guest_work((uintptr_t)arg);
}

static int run_threads(int nr, uint64_t ms)
{
	pthread_t *threads = calloc((size_t)nr, sizeof(*threads));
	int made = 0;

	for (int i = 0; i < nr; i++)
		made += pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)ms) == 0;
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return made;
}

/* ---- numbers ---- */

static int numbers(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	guest_print_fds("start");
	printf("first open: %d\n", first_open());
	guest_burn(20);
	printf("after samples: %d\n", first_open());
	printf("threads: %d\n", run_threads(8, 10));
	printf("after threads: %d\n", first_open());
	if (fork() == 0) {
		printf("in a child: %d\n", first_open());
		guest_burn(10);
		printf("and after samples: %d\n", first_open());
		guest_print_fds("child");
		exit(0);
	}
	wait(NULL);
	close(0);
	close(1);
	printf("to a closed stdout\n");
	printf("standard numbers again: %d %d\n", open("/dev/null", O_RDONLY), dup(2));
	dprintf(2, "after closing 0 and 1: %d\n", first_open());
	closefrom(0);
	guest_burn(10);
	run_threads(4, 5);
	if (open("/dev/null", O_RDWR) != 0 || open("/dev/null", O_RDWR) != 1 || open("/dev/null", O_RDWR) != 2 ||
	    open("/dev/null", O_RDWR) != 3)
		return 3;
	guest_burn(10);
	return first_open() == 4 ? 0 : 4;
}

/* ---- storms: one thread closes and reuses all numbers, others are made, work and end ---- */

static volatile bool stop;
static volatile int nr_made;

static void *make_threads(void *arg)
{
	(void)arg;
	while (!stop)
		nr_made += run_threads(2, 1);
	return NULL;
}

enum { NR_FILES = 24, ROUNDS = 60, LINE = 64 };

/* Writes its own line to each of many files, at numbers that were free a moment ago. */
static int check_round(const char *directory, int round)
{
	int fds[NR_FILES], wrong = 0;
	char line[LINE], back[LINE + 1], path[256];

	for (int i = 0; i < NR_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", directory, i);
		fds[i] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		memset(line, 'a' + (i + round) % 26, LINE);
		wrong += fds[i] < 0 || write(fds[i], line, LINE) != LINE;
	}
	guest_burn(1);
	for (int i = 0; i < NR_FILES; i++) {
		struct stat st;

		memset(line, 'a' + (i + round) % 26, LINE);
		wrong += fstat(fds[i], &st) || st.st_size != LINE || lseek(fds[i], 0, SEEK_CUR) != LINE;
		wrong += pread(fds[i], back, LINE, 0) != LINE || memcmp(back, line, LINE) != 0;
		wrong += (fcntl(fds[i], F_GETFL) & O_ACCMODE) != O_RDWR;
		wrong += close(fds[i]) != 0;
	}
	return wrong;
}

static int storm(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "closefrom";
	char directory[] = "storm-XXXXXX", path[256];
	pthread_t makers[2];
	int wrong = 0;

	if (!mkdtemp(directory))
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&makers[i], NULL, make_threads, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		if (!strcmp(way, "closefrom"))
			closefrom(3);
		else if (!strcmp(way, "close"))
			for (int fd = 3; fd < 200; fd++)
				close(fd);
		else
			for (int fd = 3; fd < 60; fd++)
				dup2(2, fd);
		if (!strcmp(way, "dup2"))
			closefrom(3);
		wrong += check_round(directory, round);
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(makers[i], NULL);
	for (int i = 0; i < NR_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", directory, i);
		unlink(path);
	}
	rmdir(directory);
	printf("threads were made: %d, wrong: %d\n", nr_made > 0, wrong);
	return 0;
}

/* ---- limits ---- */

static pthread_barrier_t all_there;

static void *be_there(void *arg)
{
	pthread_barrier_wait(&all_there);
	return (void *)(uintptr_t)guest_work((uintptr_t)arg);
}

/* 300 threads at once where 64 files may be open, all of them taken. */
static int few(int argc, char **argv)
{
	enum { NR = 300 };
	struct rlimit limit = {64, 64};
	static pthread_t threads[NR];
	int nr = 0, fds = 0;

	setrlimit(RLIMIT_NOFILE, &limit);
	if (argc > 1 && !strcmp(argv[1], "taken"))
		while (open("/dev/null", O_RDONLY) >= 0)
			fds++;
	pthread_barrier_init(&all_there, NULL, NR + 1);
	for (int i = 0; i < NR; i++)
		nr += pthread_create(&threads[i], NULL, be_there, (void *)1) == 0;
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	printf("%d threads, %d more files than those that were open: %s\n", nr, fds, strerror(errno));
	closefrom(3);
	printf("first open: %d\n", first_open());
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_way ways[] = {{"numbers", numbers}, {"storm", storm}, {"few", few}, {NULL, NULL}};

	return guest_main(ways, argc, argv);
}
