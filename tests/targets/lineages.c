/*
 * What is hardest to attach to: lineages of threads, each of which works a little, starts its successor and ends; and a
 * child that forks children that work, one after the other. usage: lineages THREADS SECONDS MS [FILE]
 * Ends after SECONDS, and before that when FILE is there.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_PAGES 16

static double end;
static const char *end_file;
static int living, life_ms = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_ended = PTHREAD_COND_INITIALIZER;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int is_over(void)
{
	return now() >= end || (end_file && !access(end_file, F_OK));
}

static void spin_ms(int ms)
{
	struct timespec ts;
	long long until;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	until = ts.tv_sec * 1000000000LL + ts.tv_nsec + ms * 1000000LL;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	while (ts.tv_sec * 1000000000LL + ts.tv_nsec < until);
}

/* The work of one process: CPU time, and pages that were not touched before. */
static void work(void)
{
	volatile char *pages = mmap(NULL, NR_PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; pages != MAP_FAILED && i < NR_PAGES; i++)
		pages[i * 4096] = 1;
	spin_ms(life_ms);
	if (pages != MAP_FAILED)
		munmap((void *)pages, NR_PAGES * 4096);
}

static void *thread_of_lineage(void *arg)
{
	pthread_attr_t attr;
	pthread_t next;

	work();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!is_over() && !pthread_create(&next, &attr, thread_of_lineage, arg))
		return NULL;
	pthread_mutex_lock(&lock);
	living--;
	pthread_cond_signal(&all_ended);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void fork_on(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!is_over()) {
		pid_t pid = fork();

		if (!pid) {
			work();
			_exit(0);
		}
		work();
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 32;
	pthread_t thread;
	pid_t child;

	end = now() + (argc > 2 ? atof(argv[2]) : 5);
	life_ms = argc > 3 ? atoi(argv[3]) : 1;
	end_file = argc > 4 ? argv[4] : NULL;
	child = fork();
	if (!child)
		fork_on();
	for (living = 0; living < nr; living++) {
		if (pthread_create(&thread, NULL, thread_of_lineage, NULL))
			return 1;
		pthread_detach(thread);
	}
	printf("ready\n");
	fflush(stdout);
	pthread_mutex_lock(&lock);
	while (living)
		pthread_cond_wait(&all_ended, &lock);
	pthread_mutex_unlock(&lock);
	waitpid(child, NULL, 0);
	return 0;
}
