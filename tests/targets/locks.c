/*
 * Threads that hold and wait for locks as their arguments say, and know who waited for whom: each logs when it asked
 * for a lock, had it, and gave it back, and the logs are joined at the end. Prints "WAITS DELAY_NS" of all waits that
 * took 10 us or more, then "HOLDER WAITER NS" for each pair of the functions below that waited for each other.
 *
 *     mutex | recursive | errorcheck | adaptive | robust | inherit | shared | mtx | timed    HOLDS
 *     rwlock HOLDS          writers, and readers that hold together
 *         behind HOLDS of these: what the times of holds are divided by
 *     processes HOLDS       a mutex that another process takes, too: HOLDER is "another" where both are not of one
 *                           process
 *     condition HOLDS       threads that wait for a condition with the lock
 *     free PAIRS            no thread waits: lock and unlock alone
 *     nested HOLDS          a recursive lock, which is taken and given back again and again within
 *     plain HOLDS           nothing is logged
 *     no_clock HOLDS        reading the time stamp counter is a fault
 *     no_stacks HOLDS       a filter kills for sigaltstack(2)
 *     fork NR               threads that contend for a lock, while another one forks
 *     values                prints what each function of the locks returns in cases that are not plain
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum { NR_KINDS = 3, MAX_LOG = 20000 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(long us)
{
	const struct timespec time = {0, us * 1000};

	nanosleep(&time, NULL);
}

struct held {
	uint64_t asked, had, gave;
	int kind;
};
/* Processes share it. */
static struct shared {
	_Atomic int nr_held;
	struct held held[MAX_LOG];
	pthread_mutex_t lock;
} * shared;

static pthread_mutex_t the_lock;
static pthread_rwlock_t the_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t the_mtx;
static const char *mode;
static long divisor = 1;

NOINLINE void take_lock(int is_writer)
{
	struct timespec until = {.tv_sec = time(NULL) + 1000};

	if (!strcmp(mode, "rwlock"))
		(is_writer ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(&the_rwlock);
	else if (!strcmp(mode, "mtx"))
		mtx_lock(&the_mtx);
	else if (!strcmp(mode, "timed"))
		pthread_mutex_timedlock(&the_lock, &until);
	else
		pthread_mutex_lock(!strcmp(mode, "processes") ? &shared->lock : &the_lock);
	__asm__ volatile("");
}

static inline __attribute__((always_inline)) void give_lock(void)
{
	if (!strcmp(mode, "rwlock"))
		pthread_rwlock_unlock(&the_rwlock);
	else if (!strcmp(mode, "mtx"))
		mtx_unlock(&the_mtx);
	else
		pthread_mutex_unlock(!strcmp(mode, "processes") ? &shared->lock : &the_lock);
	__asm__ volatile("");
}

static inline __attribute__((always_inline)) void hold(int kind, int is_writer, long us)
{
	struct held *one = &shared->held[shared->nr_held++];

	one->kind = kind;
	one->asked = now_ns();
	take_lock(is_writer);
	one->had = now_ns();
	nap(us / divisor);
	one->gave = now_ns();
	give_lock();
}

NOINLINE void hold_long(void)
{
	hold(0, 1, 3000);
}

NOINLINE void hold_middle(void)
{
	hold(1, 1, 1000);
}

NOINLINE void hold_short(void)
{
	hold(2, 1, 500);
}

NOINLINE void read_short(void)
{
	hold(2, 0, 500);
}

static void *work(void *arg)
{
	long kind = (long)arg & 15, nr = (long)arg >> 4;

	for (long i = 0; i < nr; i++) {
		if (kind == 0)
			hold_long();
		else if (kind == 1)
			hold_middle();
		else if (!strcmp(mode, "rwlock"))
			read_short();
		else
			hold_short();
		nap(100 / divisor);
	}
	return NULL;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? -1 : first > second;
}

/* Who held the lock in each part of a wait: each of those who held it together has the same share. */
static void add_wait(double pairs[NR_KINDS][NR_KINDS], const struct held *wait, int nr)
{
	static const struct held *holders[MAX_LOG];
	static uint64_t times[2 * MAX_LOG + 2];
	int nr_holders = 0, nr_times = 0;
	const struct held *held = shared->held;

	times[nr_times++] = wait->asked;
	times[nr_times++] = wait->had;
	for (int k = 0; k < nr; k++) {
		if (&held[k] == wait || held[k].gave <= wait->asked || held[k].had >= wait->had)
			continue;
		holders[nr_holders++] = &held[k];
		times[nr_times++] = held[k].had > wait->asked ? held[k].had : wait->asked;
		times[nr_times++] = held[k].gave < wait->had ? held[k].gave : wait->had;
	}
	qsort(times, (size_t)nr_times, sizeof(times[0]), compare_times);
	for (int i = 0; i + 1 < nr_times; i++) {
		int nr_together = 0;

		for (int k = 0; k < nr_holders; k++)
			nr_together += holders[k]->had <= times[i] && holders[k]->gave >= times[i + 1];
		for (int k = 0; k < nr_holders; k++)
			if (holders[k]->had <= times[i] && holders[k]->gave >= times[i + 1])
				pairs[holders[k]->kind][wait->kind] += (double)(times[i + 1] - times[i]) / nr_together;
	}
}

static void print_truth(void)
{
	static const char *const names[NR_KINDS] = {"hold_long", "hold_middle", "hold_short"};
	double pairs[NR_KINDS][NR_KINDS] = {{0}};
	uint64_t delay = 0, waits = 0;

	for (int i = 0; i < shared->nr_held; i++) {
		const struct held *one = &shared->held[i];

		if (one->had - one->asked < 10000)
			continue;
		waits++;
		delay += one->had - one->asked;
		add_wait(pairs, one, shared->nr_held);
	}
	printf("%llu %llu\n", (unsigned long long)waits, (unsigned long long)delay);
	for (int h = 0; h < NR_KINDS; h++)
		for (int w = 0; w < NR_KINDS; w++)
			if (pairs[h][w] > 0)
				printf("%s %s %.0f\n",
				       !strcmp(mode, "processes") && (h == 1) != (w == 1) ? "another" : names[h],
				       names[w], pairs[h][w]);
}

NOINLINE void hold_inner(void)
{
	pthread_mutex_lock(&the_lock);
	pthread_mutex_unlock(&the_lock);
	__asm__ volatile("");
}

NOINLINE void hold_outer(void)
{
	pthread_mutex_lock(&the_lock);
	for (int i = 0; i < 10; i++) {
		nap(300);
		hold_inner();
	}
	pthread_mutex_unlock(&the_lock);
	__asm__ volatile("");
}

static void *work_nested(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		hold_outer();
		nap(100);
	}
	return NULL;
}

/* No clock is read, and nothing logged. */
static void *work_plainly(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		pthread_mutex_lock(&the_lock);
		nap(300 / divisor);
		pthread_mutex_unlock(&the_lock);
		nap(100 / divisor);
	}
	return NULL;
}

static void run_three(void *(*start)(void *), long nr)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, start, (void *)nr);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	puts("0 0");
}

static int forbid_stacks(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sigaltstack, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void init_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (!strcmp(mode, "recursive") || !strcmp(mode, "nested"))
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	if (!strcmp(mode, "errorcheck"))
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	if (!strcmp(mode, "adaptive"))
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	if (!strcmp(mode, "robust"))
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!strcmp(mode, "inherit"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (!strcmp(mode, "shared") || !strcmp(mode, "processes"))
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&the_lock, &attr);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutex_init(&shared->lock, &attr);
	mtx_init(&the_mtx, mtx_plain);
}

/* hold_middle() is another process's, the others are threads of this one. */
static void fight_processes(long nr)
{
	pthread_t threads[2];
	pid_t pid = fork();

	if (!pid) {
		work((void *)(1 | 2 * nr << 4));
		exit(0);
	}
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, (void *)(2 * i | nr << 4));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	waitpid(pid, NULL, 0);
	print_truth();
}

static void fight(long nr)
{
	pthread_t threads[4];

	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)((i < NR_KINDS ? i : 2) | (i == 0 ? nr : 2 * nr) << 4));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	print_truth();
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void *take_turns(void *arg)
{
	long own = (long)arg & 1, nr = (long)arg >> 4;

	for (long i = 0; i < nr; i++) {
		pthread_mutex_lock(&the_lock);
		while (turn != own)
			pthread_cond_wait(&changed, &the_lock);
		nap(100);
		turn = !turn;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&the_lock);
	}
	return NULL;
}

static void conditions(long nr)
{
	pthread_t threads[2];

	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, take_turns, (void *)(i | nr << 4));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("0 0");
}

static _Atomic int is_over;

static void *fight_on(void *arg)
{
	(void)arg;
	while (!is_over) {
		pthread_mutex_lock(&the_lock);
		pthread_mutex_unlock(&the_lock);
	}
	return NULL;
}

static void *contend(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(arg);
		pthread_mutex_unlock(arg);
	}
	return NULL;
}

static int forks(int nr)
{
	pthread_t threads[3];
	int failed = 0, status;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, fight_on, NULL);
	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (!pid) {
			pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
			pthread_t one;

			alarm(30);
			pthread_create(&one, NULL, contend, &own);
			contend(&own);
			pthread_join(one, NULL);
			exit(5);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
			failed++;
	}
	is_over = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return failed;
}

static void *die_with_lock(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

static void *try_it(void *arg)
{
	struct timespec past = {1, 0};

	printf("trylock %d\n", pthread_mutex_trylock(arg));
	printf("timedlock %d\n", pthread_mutex_timedlock(arg, &past));
	printf("clocklock %d\n", pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &past));
	printf("unlock %d\n", pthread_mutex_unlock(arg));
	return NULL;
}

static void values(void)
{
	static const char *const modes[] = {"mutex", "recursive", "errorcheck", "robust", "inherit"};
	struct timespec past = {1, 0}, wrong = {0, -1};
	pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
	pthread_t thread;
	mtx_t mtx;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		mode = modes[i];
		init_lock();
		errno = 77;
		printf("%s: lock %d", mode, pthread_mutex_lock(&the_lock));
		printf(" errno %d", errno);
		if (i == 1 || i == 2)
			printf(" again %d", pthread_mutex_lock(&the_lock));
		if (i == 2)
			printf(" late %d", pthread_mutex_timedlock(&the_lock, &past));
		puts("");
		if (i == 2 || i == 4) {
			pthread_create(&thread, NULL, try_it, &the_lock);
			pthread_join(thread, NULL);
		}
		printf("unlock %d %d", pthread_mutex_unlock(&the_lock), i ? pthread_mutex_unlock(&the_lock) : 0);
		puts("");
	}
	mode = "robust";
	init_lock();
	pthread_create(&thread, NULL, die_with_lock, &the_lock);
	pthread_join(thread, NULL);
	printf("owner dead %d", pthread_mutex_lock(&the_lock));
	printf(" %d", pthread_mutex_unlock(&the_lock));
	printf(" %d\n", pthread_mutex_lock(&the_lock));
	printf("rd %d", pthread_rwlock_rdlock(&rw));
	printf(" rd %d", pthread_rwlock_rdlock(&rw));
	printf(" late %d", pthread_rwlock_timedwrlock(&rw, &past));
	printf(" wrong %d", pthread_rwlock_timedwrlock(&rw, &wrong));
	printf(" un %d %d", pthread_rwlock_unlock(&rw), pthread_rwlock_unlock(&rw));
	printf(" wr %d", pthread_rwlock_wrlock(&rw));
	printf(" own %d\n", pthread_rwlock_rdlock(&rw));
	mtx_init(&mtx, mtx_timed);
	printf("mtx %d", mtx_lock(&mtx));
	printf(" late %d", mtx_timedlock(&mtx, &past));
	printf(" un %d\n", mtx_unlock(&mtx));
}

int main(int argc, char **argv)
{
	long nr = argc > 2 ? atol(argv[2]) : 0;

	mode = argc > 1 ? argv[1] : "";
	divisor = argc > 3 ? atol(argv[3]) : 1;
	init_lock();
	if (!strcmp(mode, "values"))
		values();
	else if (!strcmp(mode, "fork"))
		return forks((int)nr) ? 4 : 0;
	else if (!strcmp(mode, "processes"))
		fight_processes(nr);
	else if (!strcmp(mode, "condition"))
		conditions(nr);
	else if (!strcmp(mode, "nested"))
		run_three(work_nested, nr);
	else if (!strcmp(mode, "plain"))
		run_three(work_plainly, nr);
	else if (!strcmp(mode, "no_clock")) {
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
		run_three(work_plainly, nr);
	} else if (!strcmp(mode, "no_stacks")) {
		if (forbid_stacks())
			return 6;
		run_three(work_plainly, nr);
	} else if (!strcmp(mode, "free"))
		for (long i = 0; i < nr; i++) {
			pthread_mutex_lock(&the_lock);
			pthread_mutex_unlock(&the_lock);
		}
	else
		fight(nr);
	return 0;
}
