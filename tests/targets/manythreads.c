/*
 * manythreads ALIVE SEQUENCE: ALIVE threads that all live at one time, each with a little work; then SEQUENCE threads
 * one after another. Says how many there were; and, with SHOW_RSS set, on stderr the largest resident set in KiB, and
 * how many file descriptors are open while all are alive and at the end.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "work.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static uint64_t nr_here, nr_wanted;
static unsigned nr_fds_then;

/* But for the one that looks. */
static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n ? n - 1 : 0;
}

static __attribute__((noinline, noclone)) uint64_t alive_work(uint64_t x)
{
	return spin(x, ROUNDS_MS / 5);
}

static __attribute__((noinline, noclone)) uint64_t sequence_work(uint64_t x)
{
	return spin(x, ROUNDS_MS / 50);
}

static void *alive(void *arg)
{
	uint64_t x = alive_work((uint64_t)(uintptr_t)arg);

	pthread_mutex_lock(&mutex);
	if (++nr_here == nr_wanted) {
		nr_fds_then = count_fds();
		pthread_cond_broadcast(&condition);
	}
	while (nr_here < nr_wanted)
		pthread_cond_wait(&condition, &mutex);
	pthread_mutex_unlock(&mutex);
	return (void *)(uintptr_t)(x | 1);
}

static void *sequence(void *arg)
{
	return (void *)(uintptr_t)(sequence_work((uint64_t)(uintptr_t)arg) | 1);
}

int main(int argc, char **argv)
{
	uint64_t nr_sequence = arg_num(argc, argv, 2, 1000), done = 0;
	pthread_attr_t small;
	pthread_t *threads, one;
	void *result;
	int err;

	nr_wanted = arg_num(argc, argv, 1, 100);
	threads = calloc(nr_wanted + 1, sizeof(*threads));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (uint64_t i = 0; i < nr_wanted; i++)
		if ((err = pthread_create(&threads[i], &small, alive, (void *)(uintptr_t)i))) {
			printf("thread %llu: %s\n", (unsigned long long)i, strerror(err));
			return 1;
		}
	for (uint64_t i = 0; i < nr_wanted; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t i = 0; i < nr_sequence; i++) {
		if (pthread_create(&one, NULL, sequence, (void *)(uintptr_t)i) || pthread_join(one, &result))
			return 1;
		done += result != NULL;
	}
	if (getenv("SHOW_RSS")) {
		struct rusage use;

		getrusage(RUSAGE_SELF, &use);
		fprintf(stderr, "max_rss_kib %ld\nfds %u %u\n", use.ru_maxrss, nr_fds_then, count_fds());
	}
	printf("alive at once %llu, one after another %llu\n", (unsigned long long)nr_here, (unsigned long long)done);
	return 0;
}
