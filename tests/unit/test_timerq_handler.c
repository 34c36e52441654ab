/*
 * The timer queue allocates nothing, takes no lock and prints nothing while it dispatches: the functions that would are
 * replaced here, and count every call that comes from inside the handler or a run. In a polled queue a run makes no
 * system call either: a child that may make none runs one.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "countersink/timerq.h"
#include "include/internal/base.h"
#include "tests/unit/tap.h"
#include "tests/unit/timerq_wait.h"

#ifdef __SANITIZE_ADDRESS__
int main(void)
{
	printf("1..0 # SKIP the sanitizer has malloc for itself\n");
	return 0;
}
#else

/* ---- the traps -------------------------------------------------------------------------------------------------- */

/* Depth of handlers and runs in this thread; and what was called inside. */
static __thread int inside __attribute__((tls_model("initial-exec")));
static _Atomic int nr_forbidden, nr_watched;
static const char *volatile last_forbidden = "nothing";

static void trap(const char *name)
{
	if (inside) {
		nr_forbidden++;
		last_forbidden = name;
	}
}

/* Ours come before libc's; what they stand for is libc's own, under another name where it has one. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t bytes)
{
	trap("malloc");
	return __libc_malloc(bytes);
}

void *calloc(size_t nr, size_t bytes)
{
	trap("calloc");
	return __libc_calloc(nr, bytes);
}

void *realloc(void *old, size_t bytes)
{
	trap("realloc");
	return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	trap("aligned_alloc");
	return __libc_memalign(align, bytes);
}

void free(void *old)
{
	trap("free");
	__libc_free(old);
}

static int (*real_mutex_lock)(pthread_mutex_t *);
static int (*real_vfprintf)(FILE *, const char *, va_list);
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

/* Looked up beforehand: a look-up may itself allocate and lock. */
static void find_real_ones(void)
{
	*(void **)&real_mutex_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	*(void **)&real_vfprintf = dlsym(RTLD_NEXT, "vfprintf");
	*(void **)&real_sigaction = dlsym(RTLD_NEXT, "sigaction");
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	trap("pthread_mutex_lock");
	return real_mutex_lock(mutex);
}

int vfprintf(FILE *restrict file, const char *restrict format, va_list args)
{
	trap("vfprintf");
	return real_vfprintf(file, format, args);
}

/* The queue's handler is installed through this: ours goes in its place and stands around it. */
static void (*real_handler)(int, siginfo_t *, void *);

static void watched_handler(int sig, siginfo_t *info, void *context)
{
	inside++;
	nr_watched++;
	real_handler(sig, info, context);
	inside--;
}

int __sigaction(int sig, const struct sigaction *restrict action, struct sigaction *restrict old);
int __sigaction(int sig, const struct sigaction *restrict action, struct sigaction *restrict old)
{
	struct sigaction watched;
	int ret;

	if (action && (action->sa_flags & SA_SIGINFO)) {
		real_handler = action->sa_sigaction;
		watched = *action;
		watched.sa_sigaction = watched_handler;
		action = &watched;
	}
	ret = real_sigaction(sig, action, old);
	/* The queue must recognise its own. */
	if (!ret && old && (old->sa_flags & SA_SIGINFO) && old->sa_sigaction == watched_handler)
		old->sa_sigaction = real_handler;
	return ret;
}

static int run_watched(struct csink_timerq *q, uint64_t now_ns)
{
	int ret;

	inside++;
	nr_watched++;
	ret = csink_timerq_run(q, now_ns);
	inside--;
	return ret;
}

/* ---- what is watched -------------------------------------------------------------------------------------------- */

static struct csink_timerq *queue;
static _Atomic int nr_calls, nr_failed;

static void count(int id, void *data)
{
	(void)id;
	(void)data;
	nr_calls++;
}

static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;

/* Through a pointer that the compiler does not know, or it would leave both out. */
static void allocate(void)
{
	void *volatile block = malloc(100);

	free(block);
}

/* Everything that a callback may call. */
static void do_everything(int id, void *data)
{
	int other;

	count(id, data);
	other = csink_timerq_setup(queue, 1000, 0, NULL, count);
	nr_failed += other < 0 && other != -ENOSPC;
	csink_timerq_block(queue);
	nr_failed += csink_timerq_unblock(queue) != 0;
	nr_failed += csink_timerq_run(queue, monotonic_ns()) != -EBUSY;
	nr_failed += csink_timerq_isempty(queue) != 0;
	nr_failed += csink_timerq_misses(queue, id) < 0;
	csink_timerq_next(queue);
	if (other > 0 && nr_calls % 2)
		nr_failed += csink_timerq_unregister(queue, other) != 0;
	if (nr_calls % 50 == 0)
		csink_timerq_unregister(queue, id);
}

static void make(uint32_t flags)
{
	struct csink_timerq_config config = {.capacity = 32, .flags = flags};

	csink_timerq_destroy(queue);
	queue = NULL;
	nr_calls = nr_failed = nr_forbidden = nr_watched = 0;
	if (csink_timerq_create(&queue, &config))
		exit(1);
}

static void judge(const char *how)
{
	ok(nr_calls >= 5000 && nr_watched >= 1000, "%s: %d calls in %d dispatches", how, (int)nr_calls,
	   (int)nr_watched);
	is_num(nr_failed, 0, "every request of the callbacks succeeded");
	is_num(nr_forbidden, 0, "no allocation, lock or print in a callback's handler");
	if (nr_forbidden)
		printf("#   the last was %s\n", last_forbidden);
}

/* An event is put back whenever the last has unregistered itself, so the handler comes and goes as well. */
static void keep_one(void)
{
	if (csink_timerq_isempty(queue))
		csink_timerq_setup(queue, 0, 20000, NULL, do_everything);
}

static void test_armed(void)
{
	uint64_t end = monotonic_ns() + DEADLINE_NS;

	make(CSINK_TIMERQ_ARMED);
	while ((nr_calls < 5000 || nr_watched < 1000) && monotonic_ns() < end) {
		keep_one();
		/* So that these are interrupted, too: a handler that wanted them would hang. */
		allocate();
		pthread_mutex_lock(&program_lock);
		pthread_mutex_unlock(&program_lock);
	}
	judge("armed");
}

static void test_polled(void)
{
	uint64_t end = monotonic_ns() + DEADLINE_NS;

	make(0);
	while ((nr_calls < 5000 || nr_watched < 1000) && monotonic_ns() < end) {
		keep_one();
		run_watched(queue, monotonic_ns());
	}
	judge("polled");
}

/* The first call in a forked child makes the queue anew. */
static void test_child(void)
{
	int status = -1;
	pid_t child;

	make(CSINK_TIMERQ_KEEP_IN_CHILD);
	csink_timerq_register(queue, 1, NULL, count);
	child = fork();
	if (!child) {
		run_watched(queue, monotonic_ns());
		_exit(nr_forbidden || run_watched(queue, monotonic_ns()) != 1 || nr_forbidden);
	}
	waitpid(child, &status, 0);
	is_num(status, 0, "no allocation, lock or print when a forked child takes over its queue");
}

/* The traps themselves. */
static void forbidden(int id, void *data)
{
	count(id, data);
	allocate();
	pthread_mutex_lock(&program_lock);
	pthread_mutex_unlock(&program_lock);
}

static void test_traps(void)
{
	make(0);
	csink_timerq_setup(queue, 0, 0, NULL, forbidden);
	run_watched(queue, monotonic_ns());
	is_num(nr_forbidden, 3, "a callback that allocates, frees and locks in a run is caught");
	make(CSINK_TIMERQ_ARMED);
	csink_timerq_setup(queue, 0, 0, NULL, forbidden);
	ok(wait_for(csink_timerq_isempty(queue)) && nr_forbidden == 3,
	   "a callback that allocates, frees and locks in the handler is caught");
}

/* ---- no system call --------------------------------------------------------------------------------------------- */

static uint64_t ticks;

static uint64_t tick(void)
{
	return ticks += 1000;
}

/* From here on the first system call but exit_group ends the process by SIGSYS. */
static int allow_no_syscalls(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {CSINK_ARRAY_SIZE(rules), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void test_no_syscalls(void)
{
	struct csink_timerq_config config = {.clock = tick};
	int i, ran = 0, status = -1;
	pid_t child = fork();

	if (!child) {
		csink_timerq_destroy(queue);
		if (csink_timerq_create(&queue, &config))
			_exit(1);
		for (i = 0; i < 10; i++)
			csink_timerq_register(queue, 1000 * (i + 1), NULL, count);
		if (allow_no_syscalls())
			_exit(77);
		for (i = 0; i < 10000; i++)
			ran += csink_timerq_run(queue, csink_timerq_next(queue));
		syscall(SYS_exit_group, ran >= 10000 ? 0 : 2);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip("a polled queue's runs make no system call", "seccomp is not allowed here");
	else
		is_num(status, 0, "a polled queue's 10,000 runs make no system call");
}

int main(void)
{
	find_real_ones();
	test_traps();
	test_armed();
	test_polled();
	test_child();
	test_no_syscalls();
	csink_timerq_destroy(queue);
	return done();
}

#endif
