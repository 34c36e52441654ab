/*
 * PMCs on hardware: a thread that measures itself reads its counters in user space; and EBUSY, when another event holds
 * them. For the emulated machine of tests/pmu/boot, whose 6 + 1 counters count instructions exactly.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/pmc.h"
#include "include/internal/event.h"
#include "tests/pmu/pmu_work.h"
#include "tests/unit/tap.h"

#define ROUNDS 10000000ULL /* 20 M instructions */
#define NR_COUNTERS 7      /* six and the counter of cycles */

static bool allow_user_access(bool on)
{
	int fd = open("/proc/sys/kernel/perf_user_access", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, on ? "1" : "0", 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

static csink_pmc_id_t allocate(const char *event, unsigned flags)
{
	csink_pmc_id_t pmc = csink_pmc_allocate(event, flags, -1);
	char reason[400];

	if (pmc <= 0)
		printf("# %s: %s\n", event, csink_pmc_reason(reason, sizeof(reason)));
	return pmc;
}

static void is_said(int got, int want, const char *name, const char *what)
{
	char reason[400];

	csink_pmc_reason(reason, sizeof(reason));
	is_num(got, want, what);
	ok(!strncmp(reason, name, strlen(name)), "%s: the reason begins with %s: %s", what, name, reason);
}

/* ---- a thread that measures itself ---- */

static void *read_elsewhere(void *arg)
{
	struct csink_pmc_value *value = arg;

	csink_pmc_read((csink_pmc_id_t)value->reserved, value);
	return NULL;
}

static void measure(const char *event, uint64_t want, enum csink_pmc_how how)
{
	csink_pmc_id_t pmc = allocate(event, CSINK_PMC_SELF);
	struct csink_pmc_value before = {0}, after = {0}, stopped = {0}, other = {.reserved = (uint32_t)pmc};
	uint64_t last = 0, spent;
	pthread_t thread;
	int backward = 0;

	is_num(csink_pmc_start(pmc), 0, "a PMC of this thread is started");
	is_num(csink_pmc_read(pmc, &before), 0, "the PMC is read");
	work_rounds(ROUNDS);
	csink_pmc_read(pmc, &after);
	spent = after.value - before.value;
	is_num(after.how, how,
	       how == CSINK_PMC_BY_RDPMC ? "the value is read in user space" : "the value is read by read(2)");
	ok(is_near(spent, want, 0.001), "%s of 20 M instructions: %llu", event, (unsigned long long)spent);
	ok(after.enabled_ns > before.enabled_ns && after.running_ns == after.enabled_ns,
	   "the PMC counted all of the time");
	for (int i = 0; i < 1000; i++) {
		csink_pmc_read(pmc, &after);
		backward += after.value < last;
		last = after.value;
	}
	is_num(backward, 0, "a thousand readings never go back");
	pthread_create(&thread, NULL, read_elsewhere, &other);
	pthread_join(thread, NULL);
	is_num(other.how, CSINK_PMC_BY_READ, "another thread reads it by read(2)");
	ok(other.value >= last && other.value < last + 1000000, "another thread reads the same count");
	csink_pmc_stop(pmc);
	csink_pmc_read(pmc, &stopped);
	is_num(stopped.how, CSINK_PMC_BY_READ, "a stopped PMC is read by read(2)");
	ok(stopped.value >= other.value && stopped.value < other.value + 1000000, "a stopped PMC keeps its count");
	ok(stopped.enabled_ns >= after.enabled_ns, "a stopped PMC's times do not go back");
	csink_pmc_release(pmc);
}

static void test_self(void)
{
	if (!allow_user_access(true)) {
		skip("reading counters in user space", "this kernel has no kernel.perf_user_access");
	} else {
		measure("instructions:u", 2 * ROUNDS, CSINK_PMC_BY_RDPMC);
		measure("cycles:u", 4 * ROUNDS, CSINK_PMC_BY_RDPMC);
	}
	allow_user_access(false);
	measure("instructions:u", 2 * ROUNDS, CSINK_PMC_BY_READ);
}

/* ---- counters that are in use ---- */

static int hog[NR_COUNTERS];

static void hold_counters(void)
{
	for (int i = 0; i < NR_COUNTERS; i++) {
		struct csink_event_error err;
		struct csink_event_spec spec;

		csink_events_parse(i ? "instructions" : "cycles", &spec, 1, &err);
		spec.attr.pinned = 1;
		hog[i] = csink_perf_open(&spec.attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	}
}

static void free_counters(void)
{
	for (int i = 0; i < NR_COUNTERS; i++)
		close(hog[i]);
}

static void test_busy(void)
{
	csink_pmc_id_t pmc = allocate("instructions:u", 0), self = allocate("instructions:u", CSINK_PMC_SELF),
		       running = allocate("instructions:u", 0);
	struct csink_pmc_value value;
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	is_num(csink_pmc_start(running), 0, "a PMC runs");
	hold_counters();
	work_rounds(1000);
	is_said(csink_pmc_read(running, &value), -EBUSY, "EBUSY: ", "read: EBUSY, it lost its counter");
	is_said(csink_pmc_attach(pmc, pid), -EBUSY, "EBUSY: ", "attach: EBUSY, another event has the counters");
	is_said(csink_pmc_attach(pmc, 0), -EBUSY, "EBUSY: ", "attach to the process itself: EBUSY");
	is_said(csink_pmc_start(self), -EBUSY, "EBUSY: ", "start of a PMC without a target: EBUSY");
	is_num(csink_pmc_state(self), CSINK_PMC_ALLOCATED, "a PMC that was not started is ALLOCATED");
	free_counters();
	is_num(csink_pmc_attach(pmc, pid), 0, "attach succeeds when the counters are free");
	is_num(csink_pmc_start(self), 0, "start succeeds when the counters are free");
	is_num(csink_pmc_attach(pmc, 0), 0, "attach to the process itself succeeds when the counters are free");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	csink_pmc_release(pmc);
	csink_pmc_release(self);
	csink_pmc_release(running);
}

int main(void)
{
	test_self();
	test_busy();
	return done();
}
