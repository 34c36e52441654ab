/*
 * dlstorm SECONDS [THREADS]: threads open and close shared objects as fast as they can, call into them, and throw no
 * two steps the same way. What a profiler that asks the loader from its handler does not survive.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const names[] = {"libz.so.1",  "libm.so.6",   "liblzma.so.5",
				    "libdw.so.1", "libelf.so.1", "libbz2.so.1.0"};
enum { NR_NAMES = sizeof(names) / sizeof(names[0]) };

static double deadline;
static _Atomic unsigned long opened, called;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void *storm(void *arg)
{
	unsigned int i = (unsigned int)(unsigned long)arg;

	for (; now() < deadline; i++) {
		void *object = dlopen(names[i % NR_NAMES], i & 1 ? RTLD_NOW : RTLD_LAZY);
		unsigned long (*crc)(unsigned long, const unsigned char *, unsigned int);

		if (!object)
			continue;
		opened++;
		crc = (unsigned long (*)(unsigned long, const unsigned char *, unsigned int))dlsym(object, "crc32");
		if (crc) {
			static const unsigned char text[65536];

			/* Enough that it takes much more than the first touch of the object's pages, which costs up to
			 * 14 us each. */
			for (int i = 0; i < 32; i++)
				called += crc(0, text, sizeof(text)) != 0;
		}
		dlclose(object);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[2]) : 2;
	pthread_t threads[16];

	deadline = now() + (argc > 1 ? atof(argv[1]) : 1);
	if (nr < 1 || nr > 16)
		return 2;
	for (int i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, storm, (void *)(unsigned long)i))
			return 1;
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	printf("opened some: %s, called some: %s\n", opened ? "yes" : "no", called ? "yes" : "no");
	return 0;
}
