/* Eight named threads, each in a function of its own, equal work each.  threads8 [MS a thread] (200). */
#include <pthread.h>
#include <stdio.h>

#include "work.h"

#define WORKERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

static uint64_t ms, results[8];

#define X(n)                                                                                                           \
	static __attribute__((noinline, noclone)) uint64_t worker_##n(uint64_t x)                                      \
	{                                                                                                              \
		return spin(x, ms * ROUNDS_MS) ^ n;                                                                    \
	}
WORKERS(X)
#undef X

static uint64_t (*const workers[8])(uint64_t) = {
#define X(n) worker_##n,
	WORKERS(X)
#undef X
};

static void *run(void *arg)
{
	size_t n = (size_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "worker-%zu", n);
	pthread_setname_np(pthread_self(), name);
	results[n] = workers[n](n);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[8];

	ms = arg_num(argc, argv, 1, 200);
	for (size_t n = 0; n < 8; n++)
		if (pthread_create(&threads[n], NULL, run, (void *)n))
			return 1;
	for (size_t n = 0; n < 8; n++)
		pthread_join(threads[n], NULL);
	for (size_t n = 0; n < 8; n++)
		printf("worker %zu: %016llx\n", n, (unsigned long long)results[n]);
	return 0;
}
