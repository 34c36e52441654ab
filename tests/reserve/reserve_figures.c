/*
 * reserve_figures latency|ours|perfalloc RUNS   against the agent that the environment leads to. Prints one line of
 * figures.
 *
 *   latency    how long a reservation takes to be confirmed, of an agent that counts
 *   ours       how often a confirmation is false: the agent has events enabled when it is given
 *   perfalloc  the same, for perfalloc(1) and whoever then takes the first 0 of perfevent.active for a confirmation
 *
 * For the latter two the last reservation has ended 0 to 250 ms before, by a fixed sequence of numbers: that is when
 * the agent comes back, and lies. IOCTL_LOG is the file that says what it really does.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/reserve.h"
#include "preload/api/reserve/reserve_impl.h"
#include "tests/reserve/ioctl_log.h"

#define MAX_RUNS 1000
#define DEADLINE_NS (20 * CSINK_NS_PER_S)

static const struct ioctl_log *agent;
static char lock_file[PATH_MAX];

static __attribute__((noreturn)) void fail(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(1);
}

static int nr_enabled(void)
{
	return __atomic_load_n(&agent->nr_enabled, __ATOMIC_SEQ_CST);
}

static void open_log(void)
{
	const char *path = getenv(IOCTL_LOG_VARIABLE);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		fail(path ? path : IOCTL_LOG_VARIABLE, "not there");
	agent = mmap(NULL, sizeof(*agent), PROT_READ, MAP_SHARED, fd, 0);
	if (agent == MAP_FAILED)
		fail(path, strerror(errno));
	close(fd);
}

static int active(void)
{
	char words[256];
	int value = csink_pcp_active(csink_monotonic_ns() + DEADLINE_NS, -1, words, sizeof(words));

	if (value < 0)
		fail("pmprobe", words);
	return value;
}

static void wait_until_active(void)
{
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;

	while (!active()) {
		if (csink_monotonic_ns() > deadline_ns)
			fail("the agent", "does not count");
	}
}

/* Reserve and confirm; the time it took, in all and since the lock. */
static void reserve(struct csink_reserve *r, uint64_t *all_ns, uint64_t *lock_ns)
{
	struct csink_reserve_config config;
	uint64_t start_ns = csink_monotonic_ns();

	csink_reserve_config_init(&config);
	config.timeout_ns = DEADLINE_NS;
	if (csink_reserve_acquire(r, &config) || csink_reserve_confirm(r))
		fail("not confirmed", r->text);
	*all_ns = csink_monotonic_ns() - start_ns;
	*lock_ns = csink_monotonic_ns() - r->locked_ns;
}

/* 0 to 250 ms, always the same sequence. */
static void pause_some(void)
{
	static uint32_t seed = 1;

	seed = seed * 1103515245 + 12345;
	csink_reserve_sleep(csink_monotonic_ns() + (seed >> 8) % 250 * 1000000ULL, -1);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_ns(const char *what, uint64_t *ns, unsigned nr)
{
	qsort(ns, nr, sizeof(*ns), compare);
	printf("%s min %.1f median %.1f max %.1f ms", what, (double)ns[0] / 1e6, (double)ns[nr / 2] / 1e6,
	       (double)ns[nr - 1] / 1e6);
}

static void measure_latency(unsigned nr)
{
	static uint64_t all_ns[MAX_RUNS], lock_ns[MAX_RUNS];
	struct csink_reserve r;

	for (unsigned i = 0; i < nr; i++) {
		wait_until_active();
		pause_some(); /* it has just looked at the lock: any moment until it does again is as likely */
		reserve(&r, &all_ns[i], &lock_ns[i]);
		csink_reserve_release(&r);
	}
	printf("%u runs: ", nr);
	print_ns("from the lock", lock_ns, nr);
	print_ns("; in all", all_ns, nr);
	putchar('\n');
}

static void measure_ours(unsigned nr)
{
	struct csink_reserve r;
	uint64_t all_ns, lock_ns;
	unsigned nr_false = 0;

	for (unsigned i = 0; i < nr; i++) {
		pause_some();
		reserve(&r, &all_ns, &lock_ns);
		nr_false += nr_enabled() > 0;
		csink_reserve_release(&r);
	}
	printf("%u of %u confirmations false\n", nr_false, nr);
}

static int is_locked(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int fd = open(lock_file, O_RDONLY | O_CLOEXEC), is;

	is = !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
	close(fd);
	return is;
}

static pid_t start_perfalloc(void)
{
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;
	const char *program = getenv("PERFALLOC");
	pid_t pid = fork();

	if (!pid) {
		execl(program, "perfalloc", (char *)NULL);
		_exit(127);
	}
	while (!is_locked()) {
		if (csink_monotonic_ns() > deadline_ns)
			fail("perfalloc", "does not lock");
		csink_reserve_sleep(csink_monotonic_ns() + 100000, -1);
	}
	return pid;
}

static void measure_perfalloc(unsigned nr)
{
	unsigned nr_false = 0;
	int status;

	for (unsigned i = 0; i < nr; i++) {
		pid_t pid;

		pause_some();
		pid = start_perfalloc();
		while (active())
			;
		nr_false += nr_enabled() > 0;
		kill(pid, SIGTERM);
		waitpid(pid, &status, 0);
	}
	printf("%u of %u confirmations false\n", nr_false, nr);
}

int main(int argc, char **argv)
{
	unsigned nr = argc == 3 ? (unsigned)atoi(argv[2]) : 0;

	alarm(500);
	if (!nr || nr > MAX_RUNS || csink_pcp_lock_file(lock_file, sizeof(lock_file)))
		return 2;
	open_log();
	if (!strcmp(argv[1], "latency"))
		measure_latency(nr);
	else if (!strcmp(argv[1], "ours"))
		measure_ours(nr);
	else if (!strcmp(argv[1], "perfalloc"))
		measure_perfalloc(nr);
	else
		return 2;
	return 0;
}
