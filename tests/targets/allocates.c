/*
 * Allocates as its arguments say, and prints "BYTES OBJECTS": what it has asked for itself, in its own calls. What libc
 * allocates for it is the same for equal arguments but for the number of calls.
 *
 *     functions MIB SEED   four functions with 40, 30, 20 and 10 % of the bytes, blocks of 16 to 8,192 bytes
 *     calls NR             each function of the allocator, NR times
 *     threads NR CALLS     threads that free each other's blocks, and more as they end
 *     daemon CALLS         a thread that has allocated and goes on when the process ends
 *     leak KIB             a part that is never freed, one that is freed, and one that is young at the end
 *     keep KIB             the same blocks by realloc and by another thread's free
 *     fork NR              threads that allocate while NR children are forked, which allocate, too
 *     exec NR ARG...       NR calls, and then another program
 *     handlers NR FUNCTION NR calls; FUNCTION has installed a handler, or is "fault" (of SIGSEGV, for another stack),
 *                          "cancel" (at any place), "ignored" or "none"
 *     handler NR           a handler that allocates while the program does something else
 *
 *     alternate NR         NR calls, while a handler on an alternate stack within this one allocates, too; like the
 *                          next one it needs an allocator that handlers may enter
 *     jump NR              the same with a handler that leaves by a jump
 *     idle NR              NR threads that have allocated a little, and are there at the end
 *     wait                 allocates, prints, and waits to be killed
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define USE(p) __asm__ volatile("" : : "r"(p) : "memory")

static _Atomic uint64_t bytes, objects;

static void *counted(void *block, size_t size)
{
	USE(block);
	bytes += size;
	objects++;
	return block;
}

static void print(void)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%llu %llu\n", (unsigned long long)bytes, (unsigned long long)objects);

	if (write(1, line, (size_t)n) != n)
		_exit(9);
}

static uint32_t seed = 1;

static uint32_t random_number(void)
{
	seed = seed * 1103515245u + 12345u;
	return seed >> 8;
}

NOINLINE void *part_40(size_t size)
{
	return counted(malloc(size), size);
}

NOINLINE void *part_30(size_t size)
{
	return counted(calloc(1, size), size);
}

NOINLINE void *part_20(size_t size)
{
	return counted(realloc(NULL, size), size);
}

NOINLINE void *part_10(size_t size)
{
	return counted(memalign(64, size), size);
}

static void functions(uint64_t goal)
{
	static void *kept[1000];

	while (bytes < goal) {
		uint32_t of_ten = random_number() % 10, place = random_number() % 1000;
		size_t size = 16u << random_number() % 10;
		void *block = of_ten < 4   ? part_40(size)
			      : of_ten < 7 ? part_30(size)
			      : of_ten < 9 ? part_20(size)
					   : part_10(size);

		free(kept[place]);
		kept[place] = block;
	}
}

/* The compiler would leave out calls whose effect it can see. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;

static void calls(long nr)
{
	void *block;

	for (long i = 0; i < nr; i++) {
		do_free(counted(do_malloc(100), 100));
		do_free(counted(do_calloc(3, 50), 150));
		block = counted(do_malloc(10), 10);
		do_free(counted(do_realloc(block, 2000), 2000));
		do_free(counted(reallocarray(NULL, 7, 11), 77));
		do_free(counted(aligned_alloc(64, 128), 128));
		do_free(counted(memalign(32, 300), 300));
		do_free(counted(valloc(500), 500));
		do_free(counted(pvalloc(700), 700));
		if (posix_memalign(&block, 64, 900))
			_exit(8);
		do_free(counted(block, 900));
		do_free(counted(do_malloc(0), 0));
		do_free(counted(strdup("seventeen bytes."), 17));
		do_free(NULL);
		block = counted(do_malloc(40), 40);
		if (do_realloc(block, 0)) /* a free */
			_exit(7);
		/* None of these is there. */
		if (do_calloc(SIZE_MAX / 2, 3) || do_malloc(SIZE_MAX - 100) || do_malloc((size_t)1 << 60) ||
		    errno != ENOMEM)
			_exit(6);
	}
}

static void *_Atomic exchanged[64];
static pthread_barrier_t barrier;
static pthread_key_t key;

static void *allocate(void *arg)
{
	long nr = (long)arg;

	pthread_setspecific(key, counted(do_malloc(1000), 1000)); /* freed by the key's destructor */
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < nr; i++)
		do_free(atomic_exchange(&exchanged[i % 64], counted(do_malloc(256), 256)));
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void threads(int nr, long each)
{
	pthread_t ids[nr];

	pthread_key_create(&key, free);
	pthread_barrier_init(&barrier, NULL, (unsigned)nr);
	for (int i = 0; i < nr; i++)
		pthread_create(&ids[i], NULL, allocate, (void *)each);
	for (int i = 0; i < nr; i++)
		pthread_join(ids[i], NULL);
}

static __attribute__((noreturn)) void *allocate_and_stay(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		do_free(counted(do_malloc(96), 96));
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

static void leave_thread(long nr)
{
	pthread_t id;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&id, NULL, allocate_and_stay, (void *)nr);
	pthread_barrier_wait(&barrier);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

NOINLINE void lose_blocks(long kib)
{
	for (long i = 0; i < kib / 4; i++)
		USE(counted(do_malloc(4096), 4096));
}

NOINLINE void lose_young(long kib)
{
	for (long i = 0; i < kib / 4; i++)
		USE(counted(do_malloc(4096), 4096));
}

NOINLINE void give_back(long kib)
{
	for (long i = 0; i < kib / 4; i++)
		do_free(counted(do_malloc(4096), 4096));
}

static void leak(long kib)
{
	uint64_t begin = now_ns(), end;

	lose_blocks(kib);
	give_back(4 * kib);
	end = begin + 20 * (now_ns() - begin) + 200000000;
	while (now_ns() < end)
		give_back(4);
	lose_young(kib);
}

static void *free_all(void *blocks)
{
	for (void **block = blocks; *block; block++)
		do_free(*block);
	return NULL;
}

NOINLINE void *grow_kept(void *block, size_t size)
{
	return counted(do_realloc(block, size), size);
}

static void keep(long kib)
{
	long nr = kib / 4;
	void **blocks = calloc((size_t)nr + 1, sizeof(*blocks));
	pthread_t id;

	counted(blocks, ((size_t)nr + 1) * sizeof(*blocks));
	for (long i = 0; i < nr; i++)
		blocks[i] = counted(do_malloc(4096), 4096);
	pthread_create(&id, NULL, free_all, blocks);
	pthread_join(id, NULL);
	for (long i = 0; i < nr; i++)
		blocks[i] = counted(do_malloc(64), 64);
	for (long i = 0; i < nr; i++)
		USE(grow_kept(blocks[i], 4096));
}

static _Atomic int is_over;

static void *allocate_on(void *arg)
{
	(void)arg;
	while (!is_over)
		do_free(do_malloc(random_number() % 5000));
	return NULL;
}

static int fork_children(int nr)
{
	pthread_t ids[3];
	int failed = 0, status;

	for (int i = 0; i < 3; i++)
		pthread_create(&ids[i], NULL, allocate_on, NULL);
	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(30);
			for (int k = 0; k < 1000; k++)
				do_free(do_malloc(10000));
			exit(5);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
			failed++;
	}
	is_over = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
	return failed;
}

static volatile sig_atomic_t nr_handled;

static void on_signal(int signo)
{
	(void)signo;
	do_free(counted(do_malloc(5000), 5000));
	nr_handled++;
}

static void handle(int nr)
{
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < nr; i++)
		raise(SIGUSR1);
}

sighandler_t bsd_signal(int signo, sighandler_t handler);
sighandler_t ssignal(int signo, sighandler_t handler);
int __sigaction(int signo, const struct sigaction *action, struct sigaction *old);

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void install(const char *function)
{
	static const struct sigaction action = {.sa_handler = on_signal},
				      fault = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	if (!strcmp(function, "sigaction"))
		sigaction(SIGUSR1, &action, NULL);
	else if (!strcmp(function, "__sigaction"))
		__sigaction(SIGUSR1, &action, NULL);
	else if (!strcmp(function, "signal"))
		signal(SIGUSR1, on_signal);
	else if (!strcmp(function, "bsd_signal"))
		bsd_signal(SIGUSR1, on_signal);
	else if (!strcmp(function, "ssignal"))
		ssignal(SIGUSR1, on_signal);
	else if (!strcmp(function, "sysv_signal"))
		sysv_signal(SIGUSR1, on_signal);
	else if (!strcmp(function, "sigset"))
		sigset(SIGUSR1, on_signal);
	else if (!strcmp(function, "fault"))
		sigaction(SIGSEGV, &fault, NULL);
	else if (!strcmp(function, "cancel"))
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	else if (!strcmp(function, "ignored"))
		signal(SIGUSR1, SIG_IGN);
}

static sigjmp_buf before;
static _Atomic int may_jump;

static void on_alarm(int signo)
{
	(void)signo;
	USE(do_malloc(50));
	nr_handled++;
	if (may_jump) {
		may_jump = 0;
		siglongjmp(before, 1);
	}
}

static void interrupt_calls(long nr, int flags)
{
	char stack_of_handler[65536];
	const stack_t alternate = {.ss_sp = stack_of_handler, .ss_size = sizeof(stack_of_handler)};
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | flags};
	const struct itimerval often = {{0, 300}, {0, 300}}, none = {{0, 0}, {0, 0}};
	volatile long i = 0;

	for (int k = 0; k < 100; k++) /* the thread has samples before it has such a stack */
		do_free(do_malloc(100));
	sigaltstack(&alternate, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; i < nr; i++) {
		if (!flags && !sigsetjmp(before, 1))
			may_jump = 1;
		do_free(do_malloc(100));
		may_jump = 0;
	}
	setitimer(ITIMER_REAL, &none, NULL);
}

static __attribute__((noreturn)) void *allocate_little(void *arg)
{
	for (int i = 0; i < 100; i++)
		USE(counted(do_malloc(1000), 1000));
	pthread_barrier_wait(arg);
	for (;;)
		pause();
}

static void leave_idle(long nr)
{
	pthread_t id;

	pthread_barrier_init(&barrier, NULL, (unsigned)nr + 1);
	for (long i = 0; i < nr; i++)
		pthread_create(&id, NULL, allocate_little, &barrier);
	pthread_barrier_wait(&barrier);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0, m = argc > 3 ? atol(argv[3]) : 0;
	int failed = 0;

	if (!strcmp(mode, "functions")) {
		seed = (uint32_t)m;
		functions((uint64_t)n << 20);
	} else if (!strcmp(mode, "calls")) {
		calls(n);
	} else if (!strcmp(mode, "threads")) {
		threads((int)n, m);
	} else if (!strcmp(mode, "daemon")) {
		leave_thread(n);
	} else if (!strcmp(mode, "leak")) {
		leak(n);
	} else if (!strcmp(mode, "keep")) {
		keep(n);
	} else if (!strcmp(mode, "fork")) {
		failed = fork_children((int)n);
	} else if (!strcmp(mode, "handlers")) {
		install(argv[3]);
		calls(n);
	} else if (!strcmp(mode, "handler")) {
		handle((int)n);
	} else if (!strcmp(mode, "alternate")) {
		interrupt_calls(n, SA_ONSTACK);
	} else if (!strcmp(mode, "jump")) {
		interrupt_calls(n, 0);
	} else if (!strcmp(mode, "idle")) {
		leave_idle(n);
	} else if (!strcmp(mode, "exec") && argc > 3) {
		calls(n);
		print();
		execv(argv[3], argv + 3);
		return 3;
	} else if (!strcmp(mode, "wait")) {
		calls(1000);
		print();
		for (;;)
			pause();
	} else {
		return 2;
	}
	print();
	return failed ? 4 : 0;
}
