/*
 * Waits that no holder ends. Prints "WAITS DELAY_NS" of those that a thread logged for itself.
 *
 *     semaphore | semaphore_timed | semaphore_clock | barrier | join | futex | futexes    NR
 *     pool               threads that hold a mutex of the heap, one of three, of which another function made one
 *     many NR            waits for NR locks of the heap, one after the other
 *     free NR            semaphores that can be taken at once, and system calls that do not wait
 *     values             prints what each function returns in cases that are not plain, with errno
 *     cancel             threads that are cancelled in each of these waits, and in one for a condition
 *     deadlock | exit MS waits that have not ended when the process is killed, or exits: prints their time
 *     jump               a handler leaves a wait by a jump
 *     kept               a wait for a lock that is not released before the process exits
 *     late               a wait for a lock whose time is over before it has the lock, which was released meanwhile
 *     again              a wait for a lock of a thread that calls for it once more
 *     child              a handler forks in a wait for a lock, and both processes go on
 *     calls              prints what syscall(2) does with other numbers: six arguments, errno, vfork, clone, a handler
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(void)
{
	const struct timespec time = {0, 1000000};

	nanosleep(&time, NULL);
}

static const char *mode;
static sem_t the_semaphore;
static pthread_barrier_t the_barrier;
static _Atomic int the_word;
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t the_condition = PTHREAD_COND_INITIALIZER;

static bool is_mode(const char *name)
{
	return !strcmp(mode, name);
}

static struct timespec in_1000_s(clockid_t clock)
{
	struct timespec until;

	clock_gettime(clock, &until);
	until.tv_sec += 1000;
	return until;
}

static void *nap_once(void *arg)
{
	nap();
	return arg;
}

/* futex_waitv(2), which is newer than most headers. */
struct waited {
	uint64_t value, address;
	uint32_t flags, reserved;
};

static _Atomic int other_word;

NOINLINE void wait_once(pthread_t thread)
{
	struct timespec until = in_1000_s(is_mode("semaphore_clock") ? CLOCK_MONOTONIC : CLOCK_REALTIME);
	struct waited words[2] = {{0, (uintptr_t)&the_word, 2 | FUTEX_PRIVATE_FLAG, 0},
				  {0, (uintptr_t)&other_word, 2 | FUTEX_PRIVATE_FLAG, 0}};

	if (is_mode("semaphore"))
		sem_wait(&the_semaphore);
	else if (is_mode("semaphore_timed"))
		sem_timedwait(&the_semaphore, &until);
	else if (is_mode("semaphore_clock"))
		sem_clockwait(&the_semaphore, CLOCK_MONOTONIC, &until);
	else if (is_mode("barrier"))
		pthread_barrier_wait(&the_barrier);
	else if (is_mode("join"))
		pthread_join(thread, NULL);
	else
		while (!atomic_exchange(&the_word, 0))
			is_mode("futexes") ? syscall(449, words, 2, 0, NULL, CLOCK_MONOTONIC)
					   : syscall(SYS_futex, &the_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	__asm__ volatile("");
}

static bool is_asleep(pid_t tid)
{
	char path[64], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "re");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			*text = '\0';
		fclose(file);
	}
	return strstr(text, ") S ") != NULL;
}

static void *end_waits(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		nap();
		while (!is_asleep(getpid()))
			sched_yield();
		sem_post(&the_semaphore);
		if (is_mode("barrier"))
			pthread_barrier_wait(&the_barrier);
		the_word = 1;
		syscall(SYS_futex, &the_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		while (!strncmp(mode, "futex", 5) && the_word)
			sched_yield();
	}
	return NULL;
}

static void wait_often(long nr)
{
	pthread_t thread = 0;
	uint64_t ns = 0;

	if (!is_mode("join"))
		pthread_create(&thread, NULL, end_waits, (void *)nr);
	for (long i = 0; i < nr; i++) {
		uint64_t begin;

		if (is_mode("join"))
			pthread_create(&thread, NULL, nap_once, NULL);
		begin = now_ns();
		wait_once(thread);
		ns += now_ns() - begin;
	}
	printf("%ld %llu\n", nr, (unsigned long long)ns);
	fflush(stdout);
	_exit(0);
}

static _Atomic pid_t tids[6];

struct pool {
	pthread_mutex_t lock;
	sem_t ready;
};

NOINLINE struct pool *pool_create(void)
{
	struct pool *pool = malloc(sizeof(*pool));

	pthread_mutex_init(&pool->lock, NULL);
	sem_init(&pool->ready, 0, 0);
	return pool;
}

static void *use_pool(void *arg)
{
	static _Atomic int nr;
	struct pool *pool = arg;

	tids[nr++] = (pid_t)syscall(SYS_gettid);
	sem_wait(&pool->ready);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&pool->lock);
		nap();
		pthread_mutex_unlock(&pool->lock);
	}
	return NULL;
}

NOINLINE struct pool *other_pool(void)
{
	struct pool *pool = pool_create();

	__asm__ volatile("" : "+r"(pool));
	return pool;
}

static void use_pools(void)
{
	struct pool *pools[3] = {pool_create(), pool_create(), other_pool()};
	pthread_t threads[6];

	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, use_pool, pools[i / 2]);
	for (int i = 0; i < 6; i++)
		while (!tids[i] || !is_asleep(tids[i]))
			sched_yield();
	for (int i = 0; i < 6; i++)
		sem_post(&pools[i / 2]->ready);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
}

static pthread_mutex_t *many;
static _Atomic long held, taken;

static void *hold_each(void *arg)
{
	const struct timespec soon = {0, 1000};

	for (long i = 0; i < (long)arg; i++) {
		pthread_mutex_lock(&many[i]);
		held = i + 1;
		/* As glibc marks one that is waited for. */
		for (time_t end = time(NULL) + 20; __atomic_load_n(&many[i].__data.__lock, __ATOMIC_RELAXED) != 2;) {
			if (time(NULL) > end)
				exit(3);
			sched_yield();
		}
		nanosleep(&soon, NULL);
		pthread_mutex_unlock(&many[i]);
		while (taken <= i)
			sched_yield();
	}
	return NULL;
}

static void take_each(long nr)
{
	pthread_t thread;

	many = calloc((size_t)nr, sizeof(*many));
	pthread_create(&thread, NULL, hold_each, (void *)nr);
	for (long i = 0; i < nr; i++) {
		while (held <= i)
			sched_yield();
		pthread_mutex_lock(&many[i]);
		pthread_mutex_unlock(&many[i]);
		taken = i + 1;
	}
	pthread_join(thread, NULL);
}

static void wait_never(long nr)
{
	for (long i = 0; i < nr; i++) {
		sem_post(&the_semaphore);
		sem_wait(&the_semaphore);
		syscall(SYS_futex, &the_word, FUTEX_WAIT_PRIVATE, 7, NULL, NULL, 0);
	}
}

static void print(const char *what, long result)
{
	printf("%s %ld %d\n", what, result, result ? errno : 0);
	errno = 77;
}

static _Atomic int may_end;

static void *nap_until_it_may_end(void *arg)
{
	while (!may_end)
		nap();
	return arg;
}

static void values(void)
{
	struct timespec past = {1, 0}, wrong = {0, -1}, soon = {0, 1000};
	pthread_t thread;
	void *result;
	struct waited one = {1, (uintptr_t)&the_word, 2, 0};
	thrd_t c11;
	int value = 0;

	errno = 77;
	sem_post(&the_semaphore);
	print("free", sem_wait(&the_semaphore) || errno != 77);
	sem_post(&the_semaphore);
	print("free, wrong time", sem_timedwait(&the_semaphore, &wrong));
	print("free, wrong clock", sem_clockwait(&the_semaphore, CLOCK_BOOTTIME, &past));
	print("free, past", sem_timedwait(&the_semaphore, &past));
	print("past", sem_timedwait(&the_semaphore, &past));
	print("clock, past", sem_clockwait(&the_semaphore, CLOCK_MONOTONIC, &past));
	print("wrong time", sem_timedwait(&the_semaphore, &wrong));
	pthread_create(&thread, NULL, nap_until_it_may_end, &value);
	print("join, past", pthread_timedjoin_np(thread, &result, &past));
	print("clock join, past", pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &past));
	may_end = 1;
	print("join", pthread_join(thread, &result) || result != &value || errno != 77);
	print("join oneself", pthread_join(pthread_self(), NULL));
	thrd_create(&c11, (thrd_start_t)(void *)nap_once, NULL);
	print("C11", thrd_join(c11, &value));
	pthread_barrier_init(&the_barrier, NULL, 1);
	print("barrier", pthread_barrier_wait(&the_barrier));
	print("futex, another value", syscall(SYS_futex, &the_word, FUTEX_WAIT, 1, NULL, NULL, 0));
	print("futex, late", syscall(SYS_futex, &the_word, FUTEX_WAIT, 0, &soon, NULL, 0));
	print("futex, of no bits", syscall(SYS_futex, &the_word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0));
	print("futex, late bits", syscall(SYS_futex, &the_word, FUTEX_WAIT_BITSET, 0, &soon, NULL, 4));
	print("futex, no address", syscall(SYS_futex, NULL, FUTEX_WAIT, 0, NULL, NULL, 0));
	print("futexes, no address", syscall(449, NULL, 1, 0, NULL, CLOCK_MONOTONIC));
	print("futexes, wrong address", syscall(449, (void *)8, 1, 0, NULL, CLOCK_MONOTONIC));
	print("futexes, none", syscall(449, &one, 0, 0, NULL, CLOCK_MONOTONIC));
	print("futexes, another value", syscall(449, &one, 1, 0, NULL, CLOCK_MONOTONIC));
	one.value = 0;
	print("futexes, past", syscall(449, &one, 1, 0, &past, CLOCK_MONOTONIC));
	print("futexes, wrong flags", syscall(449, &one, 1, 7, NULL, CLOCK_MONOTONIC));
	print("futex, no operation", syscall(SYS_futex, &the_word, 99, 0, NULL, NULL, 0));
}

/* ---- cancellation ---- */

static _Atomic int nr_unwound;

static void on_unwinding(void *arg)
{
	nr_unwound++;
	if (arg)
		pthread_mutex_unlock(arg);
}

static void *sleep_on(void *arg)
{
	sem_wait(arg);
	return NULL;
}

static pthread_t sleeper;

static void *wait_to_be_cancelled(void *arg)
{
	struct timespec until = in_1000_s(CLOCK_REALTIME);
	int before;

	pthread_cleanup_push(on_unwinding, (long)arg == 4 ? &the_lock : NULL);
	switch ((long)arg) {
	case 0:
		sem_wait(&the_semaphore);
		break;
	case 1:
		sem_timedwait(&the_semaphore, &until);
		break;
	case 2:
		pthread_join(sleeper, NULL);
		break;
	case 3:
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
		syscall(SYS_futex, &the_word, FUTEX_WAIT, 0, NULL, NULL, 0);
		break;
	case 4:
		pthread_mutex_lock(&the_lock);
		while (1)
			pthread_cond_wait(&the_condition, &the_lock);
	case 5: /* it is cancelled before it waits, for a semaphore that is free */
		while (!the_word)
			sched_yield();
		sem_post(&the_semaphore);
		sem_wait(&the_semaphore);
		break;
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static _Atomic pid_t tid;

static void *begin_to_wait(void *arg)
{
	tid = (pid_t)syscall(SYS_gettid);
	return wait_to_be_cancelled(arg);
}

static void cancel(void)
{
	static sem_t never;

	sem_init(&never, 0, 0);
	pthread_create(&sleeper, NULL, sleep_on, &never);
	for (long i = 0; i < 6; i++) {
		pthread_t thread;
		void *result;

		tid = 0;
		the_word = 0;
		pthread_create(&thread, NULL, begin_to_wait, (void *)i);
		while (i < 5 && (!tid || !is_asleep(tid)))
			sched_yield();
		pthread_cancel(thread);
		the_word = i == 5;
		pthread_join(thread, &result);
		printf("%ld cancelled %d unwound %d\n", i, result == PTHREAD_CANCELED, nr_unwound);
	}
	sem_post(&never);
	pthread_join(sleeper, NULL);
}

/* ---- waits that do not end ---- */

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int nr_locked;

NOINLINE void lock_both(pthread_mutex_t *one, pthread_mutex_t *other)
{
	pthread_mutex_lock(one);
	nr_locked++;
	while (nr_locked < 2)
		sched_yield();
	pthread_mutex_lock(other);
	__asm__ volatile("");
}

static void *wait_for_ever(void *arg)
{
	long i = (long)arg;

	tids[i] = (pid_t)syscall(SYS_gettid);
	if (is_mode("exit"))
		sem_wait(&the_semaphore);
	else
		lock_both(i ? &second : &first, i ? &first : &second);
	return NULL;
}

static void end_while_they_wait(long ms)
{
	pthread_t threads[2];
	uint64_t begin;

	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, wait_for_ever, (void *)i);
	for (int i = 0; i < 2; i++)
		while (!tids[i] || !is_asleep(tids[i]))
			sched_yield();
	begin = now_ns();
	for (long i = 0; i < ms; i++)
		nap();
	printf("2 %llu\n", (unsigned long long)(now_ns() - begin));
	fflush(stdout);
	if (is_mode("deadlock"))
		kill(getpid(), SIGTERM);
}

static sigjmp_buf place;

static void leave(int signo)
{
	(void)signo;
	siglongjmp(place, 1);
}

static void *hold_on(void *arg)
{
	pthread_mutex_lock(&first);
	nr_locked++;
	while (!is_asleep(getpid()))
		sched_yield();
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	while (nr_locked < 2)
		sched_yield();
	pthread_mutex_unlock(&first);
	return NULL;
}

static void jump(void)
{
	pthread_t self = pthread_self(), thread;

	signal(SIGUSR1, leave);
	pthread_create(&thread, NULL, hold_on, &self);
	while (!nr_locked)
		sched_yield();
	if (!sigsetjmp(place, 1)) {
		pthread_mutex_lock(&first);
		abort();
	}
	nr_locked++;
	pthread_join(thread, NULL);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
}

/* ---- waits for a lock that another thread holds ---- */

NOINLINE int take_first(long ms)
{
	struct timespec until = in_1000_s(CLOCK_REALTIME);
	int err;

	until.tv_sec -= ms ? 1000 : 0;
	until.tv_nsec += ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	err = pthread_mutex_timedlock(&first, &until);
	__asm__ volatile("");
	return err;
}

static _Atomic int is_refused, has_forked;

static void *hold_first(void *arg)
{
	const struct timespec past = {1, 0};

	pthread_mutex_lock(&first);
	nr_locked++;
	while (!is_asleep(getpid()))
		sched_yield();
	if (is_mode("child"))
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	while (is_mode("child") && !has_forked)
		sched_yield();
	for (int i = 0; i < 40; i++)
		nap();
	if (is_mode("again") && pthread_mutex_timedlock(&first, &past) != ETIMEDOUT)
		abort();
	for (int i = 0; is_mode("again") && i < 40; i++)
		nap();
	pthread_mutex_unlock(&first);
	if (is_mode("late")) {
		pthread_mutex_lock(&first);
		while (!is_refused)
			nap();
		pthread_mutex_unlock(&first);
	}
	return NULL;
}

static pid_t child;

static void fork_once(int signo)
{
	(void)signo;
	child = fork();
	if (!child) /* no thread holds the lock here: its time is over soon */
		first = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	has_forked = 1;
}

/* Prints the time of the last wait, and of all. */
static void wait_for_first(void)
{
	pthread_t self = pthread_self(), thread;
	uint64_t begin, ns = 0, last = 0;
	int status = 0, err;

	signal(SIGUSR1, fork_once);
	pthread_create(&thread, NULL, hold_first, &self);
	while (!nr_locked)
		sched_yield();
	do {
		begin = now_ns();
		err = take_first(is_mode("late") ? 200 : 0);
		last = now_ns() - begin;
		ns += last;
		if (!err && is_mode("late"))
			pthread_mutex_unlock(&first);
	} while (is_mode("late") && err != ETIMEDOUT);
	is_refused = 1;
	if (is_mode("child") && !child)
		_exit(3);
	if (is_mode("child"))
		waitpid(child, &status, 0);
	printf("%llu %llu %d\n", (unsigned long long)last, (unsigned long long)ns, WEXITSTATUS(status));
	fflush(stdout);
	if (is_mode("again"))
		pthread_mutex_unlock(&first);
	else if (!is_mode("late"))
		exit(0); /* with the lock */
	pthread_join(thread, NULL);
}

/* ---- other numbers ---- */

static int in_child(void *arg)
{
	*(long *)arg = syscall(SYS_getppid) == getppid();
	syscall(SYS_exit, 3);
	return 0;
}

static _Atomic long handled;

static void on_signal(int signo)
{
	struct timespec soon = {0, 1000};

	(void)signo;
	handled = syscall(SYS_futex, &the_word, FUTEX_WAIT, 0, &soon, NULL, 0) == -1 && errno == ETIMEDOUT;
}

static void calls(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	long same = 0, size = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("calls", MFD_CLOEXEC), status = 0;
	char *at, text[8] = "";
	pid_t pid;

	errno = 77;
	print("write", pwrite(fd, "abc", 3, size) != 3);
	print("truncate", ftruncate(fd, 2 * size));
	/* the sixth argument is the one on the stack */
	at = (char *)syscall(SYS_mmap, NULL, size, PROT_READ, MAP_SHARED, fd, size);
	print("six arguments", at == MAP_FAILED || memcmp(at, "abc", 3) != 0);
	print("another mapping",
	      (long)syscall(SYS_mmap, NULL, size, PROT_READ, MAP_SHARED, -1, size) == -1 && errno == EBADF);
	print("read", syscall(SYS_pread64, fd, text, 3L, size) != 3 || strcmp(text, "abc") != 0);
	print("no call", syscall(-1));
	pid = vfork();
	if (!pid) {
		syscall(SYS_futex, &the_word, FUTEX_WAIT, 1, NULL, NULL, 0);
		syscall(SYS_getppid);
		_exit(syscall(SYS_close, -1) == -1 && errno == EBADF ? 3 : 4);
	}
	print("vfork", waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3);
	pid = clone(in_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &same);
	print("clone", waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3 || !same);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid)
		_exit(5);
	print("clone by number", waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 5);
	signal(SIGUSR1, on_signal);
	the_word = 0;
	pthread_mutex_lock(&the_lock);
	raise(SIGUSR1);
	print("handler", !handled);
}

int main(int argc, char **argv)
{
	long nr = argc > 2 ? atol(argv[2]) : 0;

	mode = argc > 1 ? argv[1] : "";
	sem_init(&the_semaphore, 0, 0);
	pthread_barrier_init(&the_barrier, NULL, 2);
	if (is_mode("has_futexes"))
		return syscall(449, NULL, 0, 0, NULL, 0) < 0 && errno == ENOSYS;
	if (is_mode("values"))
		values();
	else if (is_mode("cancel"))
		cancel();
	else if (is_mode("calls"))
		calls();
	else if (is_mode("deadlock") || is_mode("exit"))
		end_while_they_wait(nr ? nr : 200);
	else if (is_mode("jump"))
		jump();
	else if (is_mode("kept") || is_mode("late") || is_mode("again") || is_mode("child"))
		wait_for_first();
	else if (is_mode("pool"))
		use_pools();
	else if (is_mode("many"))
		take_each(nr);
	else if (is_mode("free"))
		wait_never(nr);
	else
		wait_often(nr);
	return 0;
}
