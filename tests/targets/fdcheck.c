/*
 * What a program sees of its file descriptors: those open at its start, the number of its first open(), then the same
 * after closing all it can, with threads at work, and that files opened at such numbers keep every byte.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

static void print_fds(const char *when)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int open_fds[1024], nr = 0;

	if (!dir)
		return;
	while ((entry = readdir(dir)) && nr < 1024)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
			open_fds[nr++] = atoi(entry->d_name);
	closedir(dir);
	printf("%s:", when);
	for (int fd = 0; fd < 1024; fd++)
		for (int i = 0; i < nr; i++)
			if (open_fds[i] == fd)
				printf(" %d", fd);
	putchar('\n');
}

static int first_open(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void *work(void *arg)
{
	return (void *)(uintptr_t)spin((uintptr_t)arg, 5 * ROUNDS_MS);
}

static void run_threads(int nr)
{
	pthread_t threads[8];

	for (int i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			exit(1);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

/* Files at every low number, filled while samples are taken; a byte too many or too few is somebody else's. */
static void check_files(void)
{
	int fds[8], wrong = 0;

	for (int i = 0; i < 8; i++) {
		FILE *file = tmpfile();

		fds[i] = file ? dup(fileno(file)) : -1;
		if (file)
			fclose(file);
	}
	for (int round = 0; round < 20; round++) {
		volatile uint64_t x = spin(1, 2 * ROUNDS_MS);

		(void)x;
		for (int i = 0; i < 8; i++)
			wrong += write(fds[i], "0123456789", 10) != 10;
	}
	for (int i = 0; i < 8; i++) {
		struct stat st;
		char buf[256] = "";

		wrong += fstat(fds[i], &st) || st.st_size != 200 || lseek(fds[i], 0, SEEK_CUR) != 200;
		wrong += pread(fds[i], buf, 200, 0) != 200;
		for (int n = 0; n < 20; n++)
			wrong += memcmp(buf + 10 * n, "0123456789", 10) != 0;
		close(fds[i]);
	}
	printf("files that were tampered with: %d\n", wrong);
}

int main(void)
{
	struct rlimit limit = {64, 64};

	print_fds("open at start");
	printf("first open: %d\n", first_open());
	run_threads(8);
	printf("first open after threads: %d\n", first_open());
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	printf("first open after closing all: %d\n", first_open());
	check_files();
	setrlimit(RLIMIT_NOFILE, &limit);
	run_threads(8);
	check_files();
	print_fds("open at end");
	return 0;
}
