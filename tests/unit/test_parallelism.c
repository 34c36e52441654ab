/* Parallelism and the critical path of made-up timelines, the results of which follow from how they were made. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "launcher/profile/parallelism.h"
#include "tests/unit/tap.h"

#define PERIOD_NS 1000000LL
#define MS(n) ((int64_t)((n)*1e6))
#define MAX 1100000

/* What a sample is in: its `sample`. */
enum { SERIAL, WORK, LONG, SMALL, LINK, PRODUCE, CONSUME, LOCKED, FREE, NR_PARTS };

static struct csink_instant all[MAX];
static struct csink_instants made;
static int64_t cpu_of[64]; /* by thread: CPU time since its last sample */

static void begin(uint32_t nr_cpus)
{
	made = (struct csink_instants){.all = all, .nr_cpus = nr_cpus, .period_ns = PERIOD_NS};
	memset(cpu_of, 0, sizeof(cpu_of));
}

static void add(int64_t time_ns, uint32_t thread, uint32_t part)
{
	if (thread >= made.nr_threads)
		made.nr_threads = thread + 1;
	all[made.nr++] =
		(struct csink_instant){.time_ns = time_ns, .cpu_ns = PERIOD_NS, .thread = thread, .sample = part};
}

/* A thread runs: a sample at each period of its CPU time. */
static void run(uint32_t thread, uint32_t part, int64_t from, int64_t to)
{
	while (cpu_of[thread] + to - from >= PERIOD_NS) {
		from += PERIOD_NS - cpu_of[thread];
		cpu_of[thread] = 0;
		add(from, thread, part);
	}
	cpu_of[thread] += to - from;
}

static double wall(uint32_t part)
{
	double sum = 0;

	for (uint32_t i = 0; i < made.nr; i++)
		sum += all[i].sample == part ? (double)all[i].cpu_ns / all[i].parallelism : 0;
	return 100 * sum / made.weights_ns;
}

static double critical(uint32_t part)
{
	double sum = 0;

	for (uint32_t i = 0; i < made.nr; i++)
		sum += all[i].sample == part && all[i].is_critical ? (double)all[i].cpu_ns : 0;
	return 100 * sum / made.critical_ns;
}

static void is_share(double got, double want, double bound, const char *what)
{
	ok(fabs(got - want) <= bound, "%s (%.1f %%, made with %.1f)", what, got, want);
}

static void is_sound(double bound, const char *what)
{
	ok(fabs(made.weights_ns - made.ran_ns) <= bound * made.ran_ns,
	   "%s: weights add up to the time that ran (%.3f, %.3f s)", what, made.weights_ns / 1e9, made.ran_ns / 1e9);
}

/* 50 ms of one thread, then 150 ms of two others, ten times. CPU time: 1 of 7; time: 1 of 4. */
static void test_pool(void)
{
	begin(2);
	for (int i = 0; i < 10; i++) {
		int64_t at = i * MS(200);

		run(0, SERIAL, at, at + MS(50));
		run(1, WORK, at + MS(50), at + MS(199.6));
		run(2, WORK, at + MS(50), at + MS(200));
	}
	is_num(csink_instants_compute(&made), 0, "a pool is computed");
	is_share(wall(SERIAL), 25, 1, "pool: wall of the serial part");
	is_share(critical(SERIAL), 25, 1, "pool: critical of the serial part");
	is_share(critical(WORK), 75, 1, "pool: critical of the work");
	is_sound(0.03, "pool");
	ok(made.nr_steps >= 19, "pool: the path goes to the serial part and back (%u steps)", made.nr_steps);
}

/* Two jobs at once: a long one beside four small ones; then a link. */
static void test_make(void)
{
	begin(2);
	run(0, LONG, 0, MS(500));
	for (uint32_t i = 0; i < 4; i++)
		run(1 + i, SMALL, MS(50. * i), MS(50. * i + 50));
	run(5, LINK, MS(501), MS(701));
	csink_instants_compute(&made);
	is_share(wall(LONG), 100 * 400 / 700., 1, "make: wall of the long job");
	is_share(wall(SMALL), 100 * 100 / 700., 1, "make: wall of small ones");
	is_share(critical(LONG), 100 * 500 / 700., 1, "make: critical of the long job");
	is_share(critical(SMALL), 0, 0.3, "make: small ones are not critical");
	is_share(critical(LINK), 100 * 200 / 700., 1, "make: critical of the link");
	is_sound(0.03, "make");
	/* The same while another program takes each second piece of 4 ms of a CPU from the long job. */
	begin(2);
	for (int i = 0; i < 125; i++)
		run(0, LONG, MS(8. * i), MS(8. * i + 4));
	for (uint32_t i = 0; i < 4; i++)
		run(1 + i, SMALL, MS(50. * i), MS(50. * i + 50));
	run(5, LINK, MS(1001), MS(1201));
	csink_instants_compute(&made);
	is_share(critical(SMALL), 0, 0.3, "make beside another program: small ones are not critical");
}

/* Items of 1 ms made and of 2.4 ms used, a pipe between them: the one that uses them waits for the first one alone. */
static void test_pipe(void)
{
	int64_t made_at = 0, used_at = 0;

	begin(2);
	for (int i = 0; i < 400; i++) {
		int64_t start = made_at > used_at - MS(2.4) ? made_at : used_at - MS(2.4); /* room for one */

		run(0, PRODUCE, start, start + MS(1));
		made_at = start + MS(1);
		if (used_at < made_at)
			used_at = made_at;
		run(1, CONSUME, used_at, used_at + MS(2.4));
		used_at += MS(2.4);
	}
	csink_instants_compute(&made);
	is_share(critical(CONSUME), 100, 1.5, "pipe: the one that uses items is critical");
	ok(wall(CONSUME) > 75 && wall(CONSUME) < 90, "pipe: wall of the one that uses items is between (%.1f %%)",
	   wall(CONSUME));
}

/* Two threads: 2 ms with a lock, 1 ms without, so that a lock is always held. CPU time: 2 of 3. */
static void test_lock(void)
{
	begin(2);
	for (int i = 0; i < 300; i++) {
		uint32_t thread = i % 2;

		run(thread, LOCKED, MS(2. * i), MS(2. * i + 2));
		run(thread, FREE, MS(2. * i + 2), MS(2. * i + 3));
	}
	csink_instants_compute(&made);
	ok(wall(LOCKED) > 66.7 && wall(LOCKED) < 83, "lock: wall of the lock's holder is above its CPU time (%.1f %%)",
	   wall(LOCKED));
	is_sound(0.1, "lock");
}

/* The same, with the times at which each thread releases the lock that the other one waits for. */
static void test_releases(void)
{
	static struct csink_release releases[300];

	begin(2);
	for (int i = 0; i < 300; i++) {
		uint32_t thread = i % 2;

		run(thread, LOCKED, MS(2. * i), MS(2. * i + 2));
		run(thread, FREE, MS(2. * i + 2), MS(2. * i + 3));
		releases[299 - i] = (struct csink_release){MS(2. * i + 2), 1 - thread, thread};
	}
	made.releases = releases;
	made.nr_releases = 300;
	is_num(csink_instants_compute(&made), 0, "a lock with its releases is computed");
	is_share(critical(LOCKED), 100, 1, "releases: the lock is always held");
	ok(made.critical_ns > 0.97 * MS(600) && made.critical_ns < 1.03 * MS(600),
	   "releases: the path is as long as the run (%.1f ms)", made.critical_ns / 1e6);
	ok(made.nr_steps > 290 && made.nr_doubtful == 0, "releases: a step at each (%u)", made.nr_steps);
	/* At the time of a sample, of a thread to itself, in a circle, without a sample before: the walk ends. */
	begin(2);
	add(MS(1), 0, LOCKED), add(MS(1), 1, FREE);
	releases[0] = (struct csink_release){MS(1), 0, 1};
	releases[1] = (struct csink_release){MS(1), 1, 0};
	releases[2] = (struct csink_release){MS(0.5), 0, 0};
	releases[3] = (struct csink_release){MS(0.5), 1, 0};
	releases[4] = (struct csink_release){INT64_MIN, 0, 1};
	releases[5] = (struct csink_release){INT64_MAX, 0, 1};
	made.releases = releases;
	made.nr_releases = 6;
	is_num(csink_instants_compute(&made), 0, "releases that make no sense");
	ok(made.critical_ns <= 2 * PERIOD_NS, "releases that make no sense: no sample counts twice");
}

static void test_borders(void)
{
	begin(2);
	is_num(csink_instants_compute(&made), 0, "no samples");
	ok(made.weights_ns == 0 && made.ran_ns == 0 && made.nr_steps == 0, "no samples: nothing");
	is_num(csink_instants_median_gap(&made), 0, "no samples: no gap");
	begin(2);
	add(5, 0, WORK);
	csink_instants_compute(&made);
	ok(made.weights_ns == PERIOD_NS && all[0].parallelism == 1 && all[0].is_critical, "one sample");
	is_num(csink_instants_median_gap(&made), 0, "one sample: no gap");
	begin(4);
	add(0, 0, WORK), add(MS(3), 0, WORK), add(MS(1), 1, FREE), add(MS(2), 1, FREE);
	csink_instants_compute(&made);
	ok(all[0].parallelism == 1 && all[1].parallelism == 1, "a thread is not there between samples 3 periods apart");
	is_num(csink_instants_median_gap(&made), MS(3), "the median of gaps");
	begin(3);
	for (uint32_t i = 0; i < 8; i++)
		run(i, WORK, 0, MS(20));
	csink_instants_compute(&made);
	ok(all[0].parallelism == 3, "parallelism is 3 at most on 3 CPUs");
	begin(4);
	run(0, WORK, 0, MS(40)), run(1, FREE, MS(500), MS(540));
	csink_instants_compute(&made);
	ok(fabs(wall(WORK) - 50) < 1e-9 && fabs(critical(WORK) - 50) < 1e-9, "two threads one after the other");
	begin(4);
	add(INT64_MAX, 0, WORK), add(INT64_MIN, 0, WORK), add(0, 0, WORK), add(0, 0, WORK), add(-1, 1, FREE);
	all[1].cpu_ns = INT64_MAX;
	ok(!csink_instants_compute(&made) && isfinite(made.weights_ns) && isfinite(made.ran_ns) && made.ran_ns > 0,
	   "times and weights of a damaged profile");
	is_num(csink_instants_median_gap(&made), INT64_MAX, "their median is the most that a number can have");
	/* The second process's clock was set back by an hour. */
	begin(2);
	run(0, WORK, MS(3600e3), MS(3600e3 + 100)), run(1, FREE, 0, MS(100));
	csink_instants_compute(&made);
	is_share(critical(FREE), 50, 0.1, "after a clock was set back all time is still counted once");
}

static void test_many(void)
{
	struct timespec start, end;

	begin(8);
	for (uint32_t i = 0; i < 50; i++)
		run(i, WORK, 0, MS(20000));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	is_num(csink_instants_compute(&made), 0, "a million samples");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	printf("# %u samples: %.2f s\n", made.nr,
	       (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
	ok(fabs(made.weights_ns - 50 * 20e9 / 8) < 1e9, "a million samples: 50 threads on 8 CPUs");
}

int main(void)
{
	test_pool();
	test_make();
	test_pipe();
	test_lock();
	test_releases();
	test_borders();
	test_many();
	return done();
}
