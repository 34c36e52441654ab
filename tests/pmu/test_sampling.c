/*
 * Sampling on hardware, by the library's own groups: every overflow of the cycle counter is delivered, with the counts
 * of the whole group, and the differences between them add up to what was counted. For the machine of tests/pmu/boot.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "preload/agent/sampler/group.h"
#include "tests/pmu/pmu_work.h"
#include "tests/unit/tap.h"

#define PERIOD 1000000ULL   /* cycles */
#define ROUNDS 50000000ULL  /* 200 M cycles: 200 samples */
#define SIGNAL SIGRTMAX - 2 /* of the engine that uses F_SETSIG */

static struct {
	struct csink_group group;
	struct csink_event_spec events[CSINK_MAX_EVENTS];
	uint64_t nr_signals, nr_overflows, lost, throttled;
	uint64_t last[CSINK_MAX_EVENTS], shared;
} run;

static void on_overflow(int signo, siginfo_t *info, void *context)
{
	struct csink_group_read read;

	(void)signo;
	(void)info;
	(void)context;
	run.nr_signals++;
	if (csink_group_drain(&run.group, &read)) {
		memcpy(run.last, read.counts, sizeof(run.last));
		run.shared += read.running_ns < read.enabled_ns;
	}
	run.nr_overflows += read.nr_overflows;
	run.lost += read.lost;
	run.throttled += read.throttled;
}

/* Returns 0 or -errno. */
static int sample(const char *list, enum csink_group_signal how, uint64_t period, uint64_t freq)
{
	struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO | SA_RESTART};
	int signo = how == CSINK_GROUP_SIGTRAP ? SIGTRAP : SIGNAL, nr, err;
	struct csink_event_error error;
	uint32_t failed;

	memset(&run, 0, sizeof(run));
	sigaction(signo, &action, NULL);
	nr = csink_events_parse(list, run.events, CSINK_MAX_EVENTS, &error);
	if (nr < 0) {
		printf("Bail out! %s\n", error.line);
		exit(1);
	}
	run.events[0].attr.sample_period = period;
	if (freq) {
		run.events[0].attr.freq = 1;
		run.events[0].attr.sample_freq = freq;
	}
	err = csink_group_open(&run.group,
			       &(struct csink_group_open){.events = run.events,
							  .members = (uint8_t)((1u << nr) - 1),
							  .how = how,
							  .signo = signo,
							  .tid = gettid()},
			       &failed);
	if (err)
		return err;
	work_rounds(ROUNDS);
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
	return 0;
}

static void test_engine(enum csink_group_signal how, const char *name)
{
	if (!is_num(sample("cycles:u,instructions:u", how, PERIOD, 0), 0, name))
		return;
	printf("# %s: %llu signals, %llu overflows, %llu cycles, %llu instructions\n", name,
	       (unsigned long long)run.nr_signals, (unsigned long long)run.nr_overflows,
	       (unsigned long long)run.last[0], (unsigned long long)run.last[1]);
	ok(run.nr_overflows >= 199 && run.nr_overflows <= 201, "%s: 200 overflows of 200 M cycles", name);
	ok(run.nr_signals >= 199 && run.nr_signals <= 201, "%s: a signal for each", name);
	is_num((long long)(run.lost + run.throttled), 0, "no record is lost");
	ok(is_near(run.last[0], 4 * ROUNDS, 0.01), "the last record has the cycles");
	ok(is_near(run.last[1], 2 * ROUNDS, 0.01), "the last record has the instructions");
	/* The handler's own instructions are in it. */
	ok(csink_group_page_count(&run.group, 1) > run.last[1] &&
		   is_near(csink_group_page_count(&run.group, 1), 2 * ROUNDS, 1e-3),
	   "after a pause the page has the count up to now");
	is_num((long long)run.shared, 0, "the group counted all the time");
	csink_group_close(&run.group);
}

/* The kernel steers the period: where it ends is near what was asked, on the way there it may be off. */
static void test_frequency(void)
{
	is_num(sample("cycles:u,instructions:u", CSINK_GROUP_SIGTRAP, 0, 1000), 0, "a frequency instead of a period");
	printf("# 1000 Hz over 0.2 s: %llu overflows, %llu cycles\n", (unsigned long long)run.nr_overflows,
	       (unsigned long long)run.last[0]);
	ok(run.nr_overflows > 50 && run.nr_overflows < 800, "the event is sampled at about its frequency");
	ok(is_near(run.last[0], 4 * ROUNDS, 0.05), "whatever the periods were, the counts are whole");
	csink_group_close(&run.group);
}

/* More than the counters can take: this thread's group gets its turns, and knows its times. */
static void test_turns(void)
{
	struct csink_event_spec spec;
	struct csink_event_error err;
	int fds[12];

	csink_events_parse("instructions:u", &spec, 1, &err);
	for (int i = 0; i < 12; i++)
		fds[i] = csink_perf_open(&spec.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	is_num(sample("cycles:u,instructions:u", CSINK_GROUP_SIGTRAP, PERIOD, 0), 0, "beside twelve others it opens");
	printf("# beside twelve others: %llu overflows, %llu of the records with shared counters\n",
	       (unsigned long long)run.nr_overflows, (unsigned long long)run.shared);
	ok(run.nr_overflows > 20 && run.nr_overflows < 190, "a multiplexed event is sampled");
	ok(run.shared > 0, "a multiplexed event's records show less running time");
	csink_group_close(&run.group);
	for (int i = 0; i < 12; i++)
		close(fds[i]);
}

static uint64_t shortest(const char *event, uint64_t asked, bool *measured)
{
	struct csink_event_spec spec;
	struct csink_event_error err;

	if (csink_events_parse(event, &spec, 1, &err) != 1)
		return UINT64_MAX;
	return csink_event_shortest_period(&spec, asked, measured);
}

/* An event that is not known by its name is counted: 1 GHz, at 20,000 samples a second, from what was asked in steps
 * of four. */
static void test_shortest(void)
{
	bool measured;

	is_num((long long)shortest("r11:u", 1, &measured), 65536,
	       "a raw code that comes as fast as cycles is found out");
	ok(measured, "the raw code was counted");
	is_num((long long)shortest("r8:u", 5000, &measured), 5000 << 4,
	       "a raw code half as frequent gets half the period");
	is_num((long long)shortest("r40:u", 1, &measured), 1, "a raw code that never happens may have period 1");
	is_num((long long)shortest("r11:u", 50000, &measured), 0, "a long period is not checked");
	ok(!measured, "an event with a long period is not counted");
	is_num((long long)shortest("cycles", 1, &measured), 50000, "the shortest period of cycles is known");
	is_num((long long)shortest("page-faults", 1, &measured), 0, "a software event may have period 1");
}

int main(void)
{
	test_shortest();
	test_engine(CSINK_GROUP_SIGTRAP, "sigtrap");
	test_engine(CSINK_GROUP_SETSIG, "signal");
	test_frequency();
	test_turns();
	return done();
}
