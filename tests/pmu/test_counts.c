/*
 * Counting on hardware: exact counts, groups, names, shared counters, and counters that others hold. For the emulated
 * machine of tests/pmu/boot, whose 6 + 1 counters count instructions exactly.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/countersink/reserve.h"
#include "include/internal/event.h"
#include "tests/pmu/pmu_work.h"
#include "tests/unit/tap.h"

#define ROUNDS 10000000ULL /* 20 M instructions */
#define NR_COUNTERS 7      /* six and the counter of cycles */
#define MAX_MEMBERS 12

struct counted {
	uint64_t value, enabled_ns, running_ns;
};

static struct perf_event_attr attr_of(const char *text)
{
	struct csink_event_error err;
	struct csink_event_spec spec;

	if (csink_events_parse(text, &spec, 1, &err) != 1) {
		printf("Bail out! %s: %s\n", text, err.line);
		exit(1);
	}
	spec.attr.disabled = 1;
	spec.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return spec.attr;
}

static int open_event(const char *text, int group_fd)
{
	struct perf_event_attr attr = attr_of(text);

	attr.disabled = group_fd < 0;
	return csink_perf_open(&attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
}

static struct counted count_rounds(const char *text, uint64_t rounds)
{
	struct counted counted = {0, 0, 0};
	int fd = open_event(text, -1);

	if (fd < 0) {
		fprintf(stderr, "# %s: %s\n", text, strerror(-fd));
		return counted;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	work_rounds(rounds);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &counted, sizeof(counted)) != sizeof(counted))
		memset(&counted, 0, sizeof(counted));
	close(fd);
	return counted;
}

static void check_count(const char *text, uint64_t want, double part)
{
	uint64_t got = count_rounds(text, ROUNDS).value;

	if (!ok(is_near(got, want, part), "%s of 20 M instructions: within %g %%", text, part * 100))
		fprintf(stderr, "#   got %llu, want %llu\n", (unsigned long long)got, (unsigned long long)want);
}

static void test_exact(void)
{
	printf("# instructions:u counted %llu of 20,000,000\n",
	       (unsigned long long)count_rounds("instructions:u", ROUNDS).value);
	check_count("instructions:u", 2 * ROUNDS, 1e-4);
	check_count("cycles:u", 4 * ROUNDS, 1e-4);
	check_count("r8:u", 2 * ROUNDS, 1e-4);
	check_count("armv8_pmuv3/inst_retired/u", 2 * ROUNDS, 1e-4);
	check_count("armv8_pmuv3/event=0x8/u", 2 * ROUNDS, 1e-4);
	/* The kernel's own share is that of the ticks. */
	check_count("instructions", 2 * ROUNDS, 0.05);
}

static void test_names(void)
{
	struct perf_event_attr by_pfm = attr_of("INST_RETIRED:u"), generic = attr_of("instructions:u");

	check_count("INST_RETIRED:u", 2 * ROUNDS, 1e-4);
	check_count("arm_ac57::INST_RETIRED:u", 2 * ROUNDS, 1e-4);
	check_count("arm_ac57::CPU_CYCLES:u", 4 * ROUNDS, 1e-4);
	ok(by_pfm.config == 8 && by_pfm.exclude_kernel && by_pfm.exclude_kernel == generic.exclude_kernel,
	   "libpfm4 encodes INST_RETIRED as the manual does");
}

static void test_group(void)
{
	struct perf_event_attr attr = attr_of("cycles:u");
	struct {
		uint64_t nr, enabled_ns, running_ns;
		struct {
			uint64_t value, id;
		} of[2];
	} got;
	uint64_t ids[2];
	int fds[2];

	attr.read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	fds[0] = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	attr = attr_of("instructions:u");
	attr.disabled = 0;
	attr.read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	fds[1] = csink_perf_open(&attr, 0, -1, fds[0], PERF_FLAG_FD_CLOEXEC);
	ioctl(fds[0], PERF_EVENT_IOC_ID, &ids[0]);
	ioctl(fds[1], PERF_EVENT_IOC_ID, &ids[1]);
	ioctl(fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	work_rounds(ROUNDS);
	ioctl(fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	is_num(read(fds[0], &got, sizeof(got)), sizeof(got), "a group is read at once");
	ok(got.nr == 2 && got.of[0].id == ids[0] && got.of[1].id == ids[1], "the group's values have their ids");
	ok(got.enabled_ns == got.running_ns, "the group counted all the time");
	ok(is_near(got.of[0].value, 2 * got.of[1].value, 1e-4), "the group has two cycles for each instruction");
	close(fds[0]);
	close(fds[1]);
}

/* Twelve events on seven counters take turns; scaled by their times they are right. */
static void test_shared(void)
{
	struct counted counted[MAX_MEMBERS];
	int fds[MAX_MEMBERS], shared = 0, right = 0;
	double worst = 0;

	for (int i = 0; i < MAX_MEMBERS; i++)
		fds[i] = open_event("instructions:u", -1);
	for (int i = 0; i < MAX_MEMBERS; i++)
		ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
	work_rounds(20 * ROUNDS);
	for (int i = 0; i < MAX_MEMBERS; i++)
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
	for (int i = 0; i < MAX_MEMBERS; i++) {
		double scaled, off;

		if (read(fds[i], &counted[i], sizeof(counted[i])) != sizeof(counted[i]) || !counted[i].running_ns)
			continue;
		scaled = (double)counted[i].value * (double)counted[i].enabled_ns / (double)counted[i].running_ns;
		off = scaled / (40.0 * (double)ROUNDS) - 1;
		off = off < 0 ? -off : off;
		worst = off > worst ? off : worst;
		shared += counted[i].running_ns < counted[i].enabled_ns;
		right += off < 0.02;
		close(fds[i]);
	}
	printf("# twelve events on six counters: the worst is off by %.3f %%\n", worst * 100);
	is_num(shared, MAX_MEMBERS, "twelve events on six counters take turns");
	is_num(right, MAX_MEMBERS, "scaled by their times, all are within 2 %");
}

static uint32_t fill(struct perf_event_attr *attrs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		attrs[i] = attr_of(i ? "instructions:u" : "cycles:u");
	return nr;
}

/* Pinned groups: all or nothing; a group that is not counted is reported. */
static void test_fit(void)
{
	struct perf_event_attr attrs[MAX_MEMBERS];
	struct csink_reserve_probe probe;
	char line[200];

	is_num(csink_reserve_probe(attrs, fill(attrs, NR_COUNTERS), &probe), 0, "seven events fit on seven counters");
	is_num(csink_reserve_probe(attrs, fill(attrs, NR_COUNTERS + 1), &probe), -EBUSY,
	       "an eighth event does not fit");
	is_num(probe.nr_fit, NR_COUNTERS, "the number of events that fit is reported");
	csink_reserve_probe_print(&probe, line, sizeof(line));
	ok(strstr(line, "7 of 8") != NULL, "the text has the number that fits: %s", line);
}

/* Events that are left to us to group: as many together as the counters take. */
static void test_plan(void)
{
	static const char list[] = "cycles:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u";
	struct csink_event_spec specs[9];
	struct csink_event_error err;
	int nr = csink_events_parse(list, specs, 9, &err);
	uint32_t first = 0;

	is_num(csink_events_plan(specs, (uint32_t)nr, &err), 0, "nine events are planned");
	for (int i = 0; i < nr; i++)
		first += specs[i].group == 0;
	is_num(first, NR_COUNTERS, "the first group has as many events as there are counters");
	is_num(specs[8].group, 1, "the other events are in a second group");
	nr = csink_events_parse("{r8:u,r8:u,r8:u,r8:u,r8:u,r8:u,r8:u}", specs, 9, &err);
	is_num(csink_events_plan(specs, (uint32_t)nr, &err), -E2BIG,
	       "seven that cannot use the counter of cycles do not fit");
	ok(strstr(err.line, "what fits is {r8:u,r8:u,r8:u,r8:u,r8:u,r8:u}") != NULL,
	   "the error names the six that fit: %s", err.line);
}

/* Somebody else's pinned events on the whole CPU leave nothing to a task. */
static void test_held(void)
{
	struct perf_event_attr hog[NR_COUNTERS], attr = attr_of("instructions:u"), pinned = attr;
	struct csink_reserve_probe probe;
	struct counted counted;
	int fds[NR_COUNTERS], held;

	for (int i = 0; i < NR_COUNTERS; i++) {
		hog[i] = attr_of(i ? "instructions" : "cycles");
		hog[i].pinned = 1;
		hog[i].disabled = 0;
		fds[i] = csink_perf_open(&hog[i], -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	}
	counted = count_rounds("instructions:u", ROUNDS);
	ok(counted.enabled_ns && !counted.running_ns && !counted.value, "an event without a counter never runs");
	pinned.pinned = 1;
	held = csink_perf_open(&pinned, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	ok(held >= 0, "a pinned event without a counter opens");
	ioctl(held, PERF_EVENT_IOC_ENABLE, 0);
	work_rounds(1000);
	is_num(read(held, &counted, sizeof(counted)), 0, "a pinned event without a counter reads as end of file");
	close(held);
	is_num(csink_reserve_probe(&attr, 1, &probe), -EBUSY, "the probe finds held counters: EBUSY");
	is_num(probe.fit, CSINK_RESERVE_HELD, "the verdict on held counters is HELD");
	{
		struct csink_event_spec best;
		char reason[200];

		csink_events_auto(&best, reason, sizeof(reason));
		is_str(best.rec.name, "task-clock", "auto takes the clock then");
		printf("# auto: %s\n", reason);
	}
	for (int i = 0; i < NR_COUNTERS; i++)
		close(fds[i]);
	is_num(csink_reserve_probe(&attr, 1, &probe), 0, "the probe finds free counters afterwards");
}

int main(void)
{
	test_exact();
	test_names();
	test_group();
	test_shared();
	test_fit();
	test_plan();
	test_held();
	return done();
}
