/*
 * A library to preload in front of ours: it stands around our signal handler and watches. Inside it, every call of
 * malloc, free, stdio, the loader or a lock is counted (there must be none), and the cycles from entry to return are
 * kept. At exit it writes to the file that HANDLER_SHIM_OUT names:
 *	samples N
 *	forbidden N NAME-OF-THE-FIRST
 *	ns p10 p50 p90 p99 max
 *	first ns p10 p50 p90 p99 max		of the first sample in each thread
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SAMPLES = 1 << 20 };

static uint32_t cycles[MAX_SAMPLES], firsts[MAX_SAMPLES];
static _Atomic uint32_t nr_samples, nr_firsts, nr_forbidden;
static __thread int is_known __attribute__((tls_model("initial-exec")));
static const char *volatile first_forbidden = "-";
static __thread int inside __attribute__((tls_model("initial-exec")));
static void (*ours)(int, siginfo_t *, void *);
static uint64_t start_cycles;
static struct timespec start_time;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void forbid(const char *name)
{
	if (!inside)
		return;
	if (nr_forbidden++ == 0)
		first_forbidden = name;
}

static inline uint64_t clock_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	uint64_t ticks;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

static void around(int signo, siginfo_t *info, void *context)
{
	uint64_t from = clock_ticks();
	uint32_t at;

	inside++;
	ours(signo, info, context);
	inside--;
	at = nr_samples++;
	if (at < MAX_SAMPLES)
		cycles[at] = (uint32_t)(clock_ticks() - from);
	if (is_known)
		return;
	is_known = 1;
	at = nr_firsts++;
	if (at < MAX_SAMPLES)
		firsts[at] = (uint32_t)(clock_ticks() - from);
}

/* As the kernel has it: our library may hide its signals from every function of libc. */
struct kernel_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static void stand_before(int signo)
{
	struct kernel_action action;
	uint64_t all = ~(1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1) | 1ULL << (SIGBUS - 1));

	/* Ours blocks everything that can be blocked, but a fault in the recording. */
	if (syscall(SYS_rt_sigaction, signo, NULL, &action, 8) || !(action.flags & SA_SIGINFO) ||
	    (action.mask & all) != all)
		return;
	ours = action.handler;
	action.handler = around;
	syscall(SYS_rt_sigaction, signo, &action, NULL, 8);
}

/* ---- what must not happen inside ----------------------------------------------------------------------------------
 */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

void *malloc(size_t n)
{
	forbid("malloc");
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
	forbid("calloc");
	return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
	forbid("realloc");
	return __libc_realloc(p, n);
}

void free(void *p)
{
	forbid("free");
	__libc_free(p);
}

#define WATCH(type, name, params, args)                                                                                \
	type name params                                                                                               \
	{                                                                                                              \
		static __typeof__(&name) real;                                                                         \
		forbid(#name);                                                                                         \
		if (!real)                                                                                             \
			real = REAL(name);                                                                             \
		return real args;                                                                                      \
	}

WATCH(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WATCH(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
WATCH(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
WATCH(void *, dlopen, (const char *name, int flags), (name, flags))
WATCH(FILE *, fopen, (const char *name, const char *mode), (name, mode))
WATCH(int, vsnprintf, (char *s, size_t n, const char *f, va_list ap), (s, n, f, ap))
WATCH(int, vfprintf, (FILE * s, const char *f, va_list ap), (s, f, ap))

/* ---- the account ---------------------------------------------------------------------------------------------------
 */

static char out[4096]; /* HANDLER_SHIM_OUT: PHP frees its environment before the end */

__attribute__((constructor)) static void begin(void)
{
	if (getenv("HANDLER_SHIM_OUT"))
		snprintf(out, sizeof(out), "%s", getenv("HANDLER_SHIM_OUT"));
	clock_gettime(CLOCK_MONOTONIC, &start_time);
	start_cycles = clock_ticks();
	/* We come first in LD_PRELOAD and so are begun last: the handler is there. */
	stand_before(SIGTRAP);
	for (int signo = 34; signo <= 64; signo++)
		stand_before(signo);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print_quantiles(int fd, const char *name, uint32_t *all, uint32_t n, double ns)
{
	qsort(all, n, sizeof(*all), by_size);
	if (n)
		dprintf(fd, "%s %.0f %.0f %.0f %.0f %.0f\n", name, all[n / 10] * ns, all[n / 2] * ns,
			all[n - 1 - n / 10] * ns, all[n - 1 - n / 100] * ns, all[n - 1] * ns);
}

__attribute__((destructor)) static void end(void)
{
	struct timespec now;
	double ns;
	int fd;

	if (!*out || !nr_samples) /* the launcher has us, too */
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = ((double)(now.tv_sec - start_time.tv_sec) * 1e9 + (double)(now.tv_nsec - start_time.tv_nsec)) /
	     (double)(clock_ticks() - start_cycles);
	fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dprintf(fd, "samples %u\nforbidden %u %s\n", nr_samples, nr_forbidden, first_forbidden);
	print_quantiles(fd, "ns", cycles, nr_samples < MAX_SAMPLES ? nr_samples : MAX_SAMPLES, ns);
	print_quantiles(fd, "first ns", firsts, nr_firsts < MAX_SAMPLES ? nr_firsts : MAX_SAMPLES, ns);
	close(fd);
}
