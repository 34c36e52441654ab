/* Many short threads, four alive at a time.  shortthreads [THREADS] [MICROSECONDS each] (2000, 100). */
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static uint64_t rounds;

static __attribute__((noinline, noclone)) uint64_t short_work(uint64_t x)
{
	return spin(x, rounds);
}

static void *run(void *arg)
{
	return (void *)(uintptr_t)short_work((uintptr_t)arg);
}

int main(int argc, char **argv)
{
	uint64_t nr = arg_num(argc, argv, 1, 2000), sum = 0;

	rounds = arg_num(argc, argv, 2, 100) * ROUNDS_MS / 1000;
	for (uint64_t i = 0; i < nr; i += 4) {
		pthread_t threads[4];
		void *result;

		for (uint64_t n = 0; n < 4; n++)
			if (pthread_create(&threads[n], NULL, run, (void *)(uintptr_t)(i + n)))
				return 1;
		for (uint64_t n = 0; n < 4; n++) {
			pthread_join(threads[n], &result);
			sum += (uintptr_t)result;
		}
	}
	printf("threads %llu, sum %016llx\n", (unsigned long long)nr, (unsigned long long)sum);
	return 0;
}
