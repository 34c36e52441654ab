/*
 * locks_memory FLAGS [number | vfork] [file PATH]: locks its memory by mlockall(FLAGS), or by syscall(2) and the number
 * of that call, or in a vfork child, which shares the memory; then meets new stacks for a while, starts a thread and
 * forks a child that does the same. At each step it prints what the kernel has locked of it. With "file" it also writes
 * 48 MiB to PATH.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static volatile uint64_t sum;
static bool by_number, by_child;

static void print_locked(const char *when)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *line;

	if (n < 0)
		exit(1);
	close(fd);
	text[n] = 0;
	line = strstr(text, "VmLck:");
	printf("%s: %.*s\n", when, line ? (int)strcspn(line, "\n") : 0, line ? line : "");
}

static int lock_in_child(int flags)
{
	volatile int result = -1;
	pid_t pid = vfork();

	if (pid == 0) {
		result = mlockall(flags);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return result;
}

static void lock(int flags)
{
	long result;

	errno = 0;
	result = by_child ? lock_in_child(flags) : by_number ? syscall(SYS_mlockall, flags) : mlockall(flags);
	printf("mlockall: %ld, %s\n", result, strerror(errno));
}

/* Hardly a stack is seen twice: the recording and its tables grow. */
static __attribute__((noinline, noclone)) void descend(uint64_t way, int depth);

static __attribute__((noinline, noclone)) void left(uint64_t way, int depth)
{
	descend(way, depth);
	sum = spin(sum, 300);
}

static __attribute__((noinline, noclone)) void right(uint64_t way, int depth)
{
	descend(way, depth);
	sum = spin(sum, 400);
}

static __attribute__((noinline, noclone)) void descend(uint64_t way, int depth)
{
	if (depth)
		(way & 1 ? left : right)(way >> 1, depth - 1);
	sum++;
}

static void *work(void *arg)
{
	uint64_t way = (uintptr_t)arg + 1;

	for (int i = 0; i < 4000; i++) {
		way = way * 6364136223846793005ULL + 1442695040888963407ULL;
		descend(way >> 33, 20);
	}
	return NULL;
}

static void all(int flags)
{
	pthread_t thread;
	int err;

	print_locked("start");
	lock(flags);
	print_locked("locked");
	work(NULL);
	print_locked("after work");
	err = pthread_create(&thread, NULL, work, (void *)1);
	printf("thread: %s\n", strerror(err));
	if (!err)
		pthread_join(thread, NULL);
	print_locked("after a thread");
}

static int fill(const char *path)
{
	static char block[1 << 20];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	memset(block, 1, sizeof(block));
	for (int i = 0; i < 48; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block)) {
			printf("write: %s\n", strerror(errno));
			return 1;
		}
	puts("written");
	return 0;
}

int main(int argc, char **argv)
{
	int flags = argc > 1 ? atoi(argv[1]) : MCL_CURRENT, status = 0;
	static char out[65536];

	/* No memory that is taken as it goes on. */
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	by_number = argc > 2 && !strcmp(argv[2], "number");
	by_child = argc > 2 && !strcmp(argv[2], "vfork");
	all(flags);
	fflush(stdout);
	if (argc > 3 && !strcmp(argv[2], "file"))
		return fill(argv[3]);
	if (fork() == 0) {
		all(flags);
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	munlockall();
	print_locked("unlocked");
	return status != 0;
}
