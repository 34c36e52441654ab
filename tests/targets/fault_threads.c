/*
 * Threads that take page faults on command, for counters from outside: `fault_threads NR PAGES` has NR
 * threads besides its first one. A line on standard input, answered by the same line when it is done:
 *
 *     old    each of the NR threads touches PAGES new pages
 *     new    a new thread does, and ends
 *     nested a new thread starts another one that does; both end
 *     end    one of the NR threads ends
 *     child  a new process does
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int nr_threads, nr_pages;
static int in[64], out[64]; /* pipes to and from each thread */

static void fault(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)nr_pages * page;
	volatile char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)at, bytes, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr_pages; i++)
		at[(size_t)i * page] = 1;
	munmap((void *)at, bytes);
}

static void *serve(void *arg)
{
	const int *fds = arg;
	char what;

	while (read(fds[0], &what, 1) == 1) {
		if (what == 'o')
			fault();
		if (write(fds[1], &what, 1) != 1 || what == 'e')
			break;
	}
	return NULL;
}

static void *once(void *arg)
{
	pthread_t thread;

	if (!arg)
		fault();
	else if (!pthread_create(&thread, NULL, once, NULL))
		pthread_join(thread, NULL);
	return NULL;
}

static void tell(int i, char what)
{
	if (write(in[i], &what, 1) != 1 || read(out[i], &what, 1) != 1)
		exit(1);
}

static void run(void *arg)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, once, arg))
		pthread_join(thread, NULL);
}

static void act(const char *line)
{
	static char something;
	pid_t pid;

	if (!strcmp(line, "old"))
		for (int i = 0; i < nr_threads; i++)
			tell(i, 'o');
	else if (!strcmp(line, "new"))
		run(NULL);
	else if (!strcmp(line, "nested"))
		run(&something);
	else if (!strcmp(line, "end") && nr_threads)
		tell(--nr_threads, 'e');
	else if (!strcmp(line, "child")) {
		pid = fork();
		if (!pid) {
			fault();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static int ends[64][2];
	char line[64];

	nr_threads = argc > 1 ? atoi(argv[1]) : 5;
	nr_pages = argc > 2 ? atoi(argv[2]) : 1000;
	for (int i = 0; i < nr_threads; i++) {
		pthread_t thread;
		int to[2], from[2];

		if (pipe(to) || pipe(from))
			return 1;
		ends[i][0] = to[0];
		ends[i][1] = from[1];
		in[i] = to[1];
		out[i] = from[0];
		pthread_create(&thread, NULL, serve, ends[i]);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		act(line);
		puts(line);
		fflush(stdout);
	}
	return 0;
}
