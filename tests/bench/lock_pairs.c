/*
 * What lock and unlock cost, ns a pair of CPU time, of a lock that no other thread has, in a program that has had more
 * than one: "KIND NS" lines, each the least of five rounds.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PAIRS = 3000000, ROUNDS = 5 };

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *nothing(void *arg)
{
	return arg;
}

static void use_mutex(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
}

static void read_lock(void *lock)
{
	pthread_rwlock_rdlock(lock);
	pthread_rwlock_unlock(lock);
}

static void write_lock(void *lock)
{
	pthread_rwlock_wrlock(lock);
	pthread_rwlock_unlock(lock);
}

static void use_semaphore(void *semaphore)
{
	sem_post(semaphore);
	sem_wait(semaphore);
}

static void print_cost(const char *kind, void (*use)(void *), void *lock)
{
	double least = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = cpu_ns(), ns;

		for (int i = 0; i < PAIRS; i++)
			use(lock);
		ns = (cpu_ns() - begin) / PAIRS;
		least = ns < least ? ns : least;
	}
	printf("%s %.2f\n", kind, least);
}

int main(void)
{
	static const struct {
		const char *kind;
		int type;
	} kinds[] = {{"normal", PTHREAD_MUTEX_NORMAL},
		     {"recursive", PTHREAD_MUTEX_RECURSIVE},
		     {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
		     {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP}};
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_t thread;
	sem_t semaphore;

	pthread_create(&thread, NULL, nothing, NULL);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		pthread_mutexattr_t attr;
		pthread_mutex_t mutex;

		pthread_mutexattr_init(&attr);
		pthread_mutexattr_settype(&attr, kinds[i].type);
		pthread_mutex_init(&mutex, &attr);
		print_cost(kinds[i].kind, use_mutex, &mutex);
	}
	print_cost("read", read_lock, &rwlock);
	print_cost("write", write_lock, &rwlock);
	sem_init(&semaphore, 0, 0);
	print_cost("semaphore", use_semaphore, &semaphore);
	return 0;
}
