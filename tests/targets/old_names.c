/*
 * A library to preload that stands around pthread_create(3), and says at the end how many threads it has made. It is
 * linked with --hash-style=sysv: there is no DT_GNU_HASH in it, as in objects of old linkers.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int nr_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	nr_threads++;
	return real(thread, attr, start, arg);
}

__attribute__((destructor)) static void tell(void)
{
	fprintf(stderr, "%d threads\n", nr_threads);
}
