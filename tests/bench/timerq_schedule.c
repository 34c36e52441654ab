/*
 * How far from its schedule each queue fires: histograms of (time of call - time due), at 1 and 10 ms, idle and with a
 * busy process on every CPU. A call stands for the latest schedule point that has passed and was not called yet; if
 * there is none it is early, and stands for the next.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/timerq_peer.h"

enum { MAX_CALLS = 20000, RUN_S = 4, MAX_CPUS = 256 };

static uint64_t called_at[MAX_CALLS];
static volatile int nr_calls;

static void note(int id, void *data)
{
	(void)id;
	(void)data;
	if (nr_calls < MAX_CALLS)
		called_at[nr_calls++] = peer_now();
}

static const int64_t bounds_us[] = {25, 50, 100, 200, 500, 1000, 2000, 5000, 10000, INT64_MAX};
#define NR_BOUNDS (int)(sizeof(bounds_us) / sizeof(bounds_us[0]))

struct result {
	int nr_calls, nr_early, nr_skipped;
	int histogram[16];
	int64_t p50_us, p99_us, max_us;
};

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void judge(int64_t delta_ns, uint64_t t0, struct result *r)
{
	static int64_t error_us[MAX_CALLS];
	int64_t point, last = 0;
	int i, b;

	memset(r, 0, sizeof(*r));
	r->nr_calls = nr_calls;
	for (i = 0; i < nr_calls; i++) {
		point = (int64_t)(called_at[i] - t0) / delta_ns;
		if (point <= last) {
			point = last + 1;
			r->nr_early++;
		}
		r->nr_skipped += (int)(point - last - 1);
		last = point;
		error_us[i] = llabs((int64_t)(called_at[i] - t0) - point * delta_ns) / 1000;
		for (b = 0; error_us[i] >= bounds_us[b]; b++)
			;
		r->histogram[b]++;
	}
	qsort(error_us, (size_t)nr_calls, sizeof(error_us[0]), compare);
	r->p50_us = error_us[nr_calls / 2];
	r->p99_us = error_us[nr_calls * 99 / 100];
	r->max_us = nr_calls ? error_us[nr_calls - 1] : 0;
}

/* No queue at all: as much of the interface as is needed here. */
static timer_t bare_timer;

static void on_bare_timer(int sig)
{
	note(sig, NULL);
}

static const char *bare_open(void)
{
	signal(SIGUSR1, on_bare_timer);
	return NULL;
}

static int bare_add(int64_t delta_ns, void *data, peer_func func)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec spec = {{0, delta_ns}, {0, delta_ns}};

	(void)data;
	(void)func;
	return timer_create(CLOCK_MONOTONIC, &event, &bare_timer) || timer_settime(bare_timer, 0, &spec, NULL);
}

static int bare_unregister(int id)
{
	(void)id;
	return timer_delete(bare_timer);
}

static void bare_block(void)
{
	signal(SIGUSR1, SIG_IGN);
}

static const struct peer peer_bare = {
	.name = "bare timer",
	.open = bare_open,
	.add = bare_add,
	.unregister = bare_unregister,
	.block = bare_block,
};

/* Returns the schedule's origin, to within 20 us: the queue read the clock somewhere between our two readings. */
static uint64_t start(const struct peer *peer, int64_t delta_ns)
{
	uint64_t before;
	int id;

	for (;;) {
		nr_calls = 0;
		before = peer_now();
		id = peer->add(delta_ns, NULL, note);
		if (peer_now() - before < 20000)
			return before;
		peer->unregister(id);
	}
}

/* In a child, as __pmAF is one for a process. */
static void measure(const struct peer *peer, int64_t delta_ns, struct result *r)
{
	uint64_t t0;
	int fds[2];
	pid_t child;

	memset(r, 0, sizeof(*r));
	if (pipe(fds))
		exit(1);
	child = fork();
	if (!child) {
		if (peer->open())
			_exit(1);
		t0 = start(peer, delta_ns);
		while (peer_now() < t0 + RUN_S * (uint64_t)S)
			pause();
		peer->block();
		judge(delta_ns, t0, r);
		_exit(write(fds[1], r, sizeof(*r)) != (ssize_t)sizeof(*r));
	}
	close(fds[1]);
	if (read(fds[0], r, sizeof(*r)) != (ssize_t)sizeof(*r))
		r->nr_calls = -1;
	close(fds[0]);
	waitpid(child, NULL, 0);
}

static void print_row(const char *load, int64_t delta_ns, const struct peer *peer, const struct result *r)
{
	int b;

	printf("%-5s %5lld ms  %-12s", load, (long long)(delta_ns / MS), peer->name);
	if (r->nr_calls < 0) {
		printf(" died\n");
		return;
	}
	printf("%6d%6d%7d |", r->nr_calls, r->nr_early, r->nr_skipped);
	for (b = 0; b < NR_BOUNDS; b++)
		printf("%6d", r->histogram[b]);
	printf(" |%7lld%8lld%8lld\n", (long long)r->p50_us, (long long)r->p99_us, (long long)r->max_us);
}

static void print_head(void)
{
	int b;

	printf("%-28s%6s%6s%7s |", "load   period  queue", "calls", "early", "missed");
	for (b = 0; b + 1 < NR_BOUNDS; b++)
		printf(" <%4lld", (long long)bounds_us[b]);
	printf("  more |%7s%8s%8s   (us from the schedule)\n", "p50", "p99", "max");
}

int schedule_main(int has_pcp)
{
	static const struct peer *const peers[] = {&peer_pcp, &peer_ours, &peer_bare};
	static const int64_t periods[] = {MS, 10 * MS};
	long i, nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t busy[MAX_CPUS];
	struct result r;
	int load, k;
	size_t p;

	if (nr_cpus > MAX_CPUS)
		nr_cpus = MAX_CPUS;
	print_head();
	for (load = 0; load < 2; load++) {
		fflush(stdout);
		for (i = 0; load && i < nr_cpus; i++) {
			busy[i] = fork();
			while (!busy[i])
				;
		}
		for (p = 0; p < 2; p++) {
			for (k = has_pcp ? 0 : 1; k < 3; k++) {
				measure(peers[k], periods[p], &r);
				print_row(load ? "busy" : "idle", periods[p], peers[k], &r);
			}
			fflush(stdout);
		}
	}
	for (i = 0; i < nr_cpus; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
	return 0;
}
