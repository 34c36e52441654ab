/*
 * Memory as programs use it, in threads and a forked child; and the mistakes that sanitizers and valgrind find. Built
 * plain, and with each sanitizer.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "guest.h"

enum { NR_THREADS = 4, NR_BLOCKS = 400, BURN_MS = 60 };

static uint64_t churn(uint64_t seed)
{
	void *blocks[64] = {NULL};
	uint64_t sum = 0;

	for (int i = 0; i < NR_BLOCKS; i++) {
		size_t at = seed % 64, bytes = 16 + seed % 3000;

		seed = spin(seed, 1);
		blocks[at] = realloc(blocks[at], bytes);
		memset(blocks[at], (int)at, bytes);
		sum += ((unsigned char *)blocks[at])[bytes - 1];
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return sum;
}

static void *thread(void *arg)
{
	uint64_t *sum = arg;
	void *aligned = NULL;

	/* Not guest_burn(): its sink is everybody's, which ThreadSanitizer would report. */
	*sum = churn(*sum) + (guest_work(BURN_MS) & 1);
	if (posix_memalign(&aligned, 4096, 10000) == 0)
		*sum += (uintptr_t)aligned & 4095;
	free(aligned);
	return NULL;
}

static int work(int argc, char **argv)
{
	pthread_t threads[NR_THREADS];
	uint64_t sums[NR_THREADS];
	Dl_info info;
	pid_t pid;

	(void)argc;
	(void)argv;
	if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info))
		printf("malloc is %s's\n",
		       strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : "the program");
	for (int i = 0; i < NR_THREADS; i++) {
		sums[i] = (uint64_t)i + 1;
		pthread_create(&threads[i], NULL, thread, &sums[i]);
	}
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], NULL);
		printf("thread %d: %llu\n", i, (unsigned long long)sums[i]);
	}
	pid = fork();
	if (pid == 0) {
		sums[0] = 77;
		thread(&sums[0]);
		_exit((int)(sums[0] & 63));
	}
	guest_print_status("child", guest_wait(pid));
	return 5;
}

/* ---- mappings, by each way to make and take them ---- */

enum { PAGE = 4096, AREA = 1 << 20 };

static void *new_area(void)
{
	return mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void say(const char *what, long result)
{
	printf("%s: %s\n", what, result == -1 ? strerror(errno) : result ? "there" : "done");
}

static volatile sig_atomic_t nr_bad;

static void map_in_handler(int signo)
{
	char *area = new_area();

	(void)signo;
	area[PAGE] = 1;
	nr_bad += mprotect(area, PAGE, PROT_NONE) || munmap(area, AREA);
}

/* Each thread's areas keep what it wrote, whatever the others unmap. */
static void *map_and_unmap(void *arg)
{
	uint64_t *sum = arg, own = *sum;
	char *areas[8] = {NULL};

	for (uint32_t i = 0; i < 2000; i++) {
		char **area = &areas[(own = spin(own, 1)) % 8];

		if (*area) {
			*sum += (unsigned char)(*area)[i % 2 ? 0 : AREA - 1] + 1U;
			if (i % 3 == 0)
				*area = mremap(*area, AREA, AREA, MREMAP_MAYMOVE);
			nr_bad += i % 2 ? munmap(*area, AREA) != 0 : syscall(SYS_munmap, *area, AREA) != 0;
			*area = NULL;
			continue;
		}
		*area = new_area();
		(*area)[0] = (*area)[AREA - 1] = (char)own;
	}
	for (int i = 0; i < 8; i++)
		if (areas[i])
			munmap(areas[i], AREA);
	return NULL;
}

static void each_call(void)
{
	char *area = new_area(), *other = new_area();

	area[0] = 1;
	say("munmap of an odd address", munmap(area + 1, PAGE));
	say("mmap of nothing", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	say("mmap of no file", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0));
	say("mprotect of what is not there", mprotect((void *)PAGE, PAGE, PROT_READ));
	say("mremap of what is not there", (long)mremap((void *)PAGE, PAGE, PAGE, 0));
	say("madvise that is none", madvise(area, PAGE, 12345));
	say("pkey_mprotect without a key", pkey_mprotect(area, PAGE, PROT_READ | PROT_WRITE, -1));
	say("a fixed one",
	    mmap(area + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area + PAGE);
	say("a place that is taken",
	    (long)mmap(area, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
	say("moved to a place", mremap(area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	say("what it had", other[0] == 1);
	say("moved to where a hint is, but not away",
	    mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, (void *)0x300000000000) ==
		    (void *)0x300000000000);
	munmap((void *)0x300000000000, PAGE);
	say("by its number",
	    syscall(SYS_mmap, area, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)area);
	say("and mremap", syscall(SYS_mremap, area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other) == (long)other);
	say("and mprotect", syscall(SYS_mprotect, other, PAGE, PROT_NONE));
	say("and munmap of an odd address", syscall(SYS_munmap, other + 1, PAGE));
	munmap(area, AREA);
	munmap(other, AREA);
}

static int maps(int argc, char **argv)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = map_in_handler, .sa_flags = SA_RESTART};
	pthread_t threads[NR_THREADS];
	uint64_t sums[NR_THREADS];

	(void)argc;
	(void)argv;
	each_call();
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < NR_THREADS; i++) {
		sums[i] = (uint64_t)i + 1;
		pthread_create(&threads[i], NULL, map_and_unmap, &sums[i]);
	}
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], NULL);
		printf("thread %d: %llu\n", i, (unsigned long long)sums[i]);
	}
	guest_burn(BURN_MS);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("calls that failed: %d\n", (int)nr_bad);
	return 0;
}

/* There until a file is: whoever wants to look at it has the time. */
static int work_until(int argc, char **argv)
{
	while (argc > 1 && access(argv[1], F_OK))
		guest_burn(2);
	return work(argc, argv);
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------
 */

static void *volatile lost; /* volatile: the compiler is not to see the mistake */

static int after_free(int argc, char **argv)
{
	(void)argv;
	lost = malloc(10);
	guest_burn(BURN_MS);
	free(lost);
	return ((volatile char *)lost)[argc];
}

static __attribute__((noinline, noclone)) void lose(void)
{
	lost = malloc(1234);
	lost = NULL;
}

/* Where it was on the stack and in registers, something else is now: a searcher for leaks would find it there. */
static __attribute__((noinline, noclone)) void forget(void)
{
	volatile char room[32768];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
	puts("lost one");
}

static int leak(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	lose();
	forget();
	guest_burn(BURN_MS);
	return 0;
}

static uint64_t contended;
static int first, second;

static void *add(void *arg)
{
	contended += *(uint64_t *)arg;
	/* Says that it was here, but orders nothing. */
	__atomic_store_n(&first, 1, __ATOMIC_RELAXED);
	/* The report says whether this thread still runs: it does, however busy the machine is. */
	while (!__atomic_load_n(&second, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

static int race(int argc, char **argv)
{
	uint64_t one = 1;
	pthread_t other;

	(void)argc;
	(void)argv;
	guest_burn(BURN_MS);
	pthread_create(&other, NULL, add, &one);
	while (!__atomic_load_n(&first, __ATOMIC_RELAXED))
		sched_yield();
	/* The report mentions a sleep between the two accesses: there always is one. */
	usleep(1000);
	contended += one;
	__atomic_store_n(&second, 1, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	return 0;
}

static int undefined(int argc, char **argv)
{
	volatile int large = 0x7fffffff;

	(void)argv;
	guest_burn(BURN_MS);
	large = large + argc;
	return 0;
}

/* Of a block that was just made: what was in it before must not be used. */
static int unset(int argc, char **argv)
{
	volatile int *block = malloc(40);

	(void)argv;
	guest_burn(BURN_MS);
	if (block[argc] == 42)
		puts("by chance");
	free((int *)block);
	return 0;
}

static const struct guest_way ways[] = {
	{"work", work}, {"maps", maps}, {"work_until", work_until}, {"after_free", after_free},
	{"leak", leak}, {"race", race}, {"undefined", undefined},   {"unset", unset},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return guest_main(ways, argc, argv);
}
