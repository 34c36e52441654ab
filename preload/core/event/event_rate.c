/*
 * How often an event may be sampled. Of cycles and instructions it is known how fast they come, and what the kernel
 * counts itself it counts one by one; the rates of other hardware events are unknown, for a raw code may be cycles
 * under another name, or happen twice in a run. At a period that leaves the program no time, it can be too late to
 * learn that: some machines take overflows one after another and nothing else. So an event that is to be sampled often
 * counts for some microseconds first. One that is rare then and comes often later is left to
 * preload/agent/sampler/stuck.h. Any thread; not async-signal-safe.
 */
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "include/internal/rawcall.h"
#include "preload/core/event/event_spec.h"

/* Of instructions or cycles: at some GHz as many samples a second as of a clock. */
#define SHORTEST_FAST 50000

/* What comes as fast as cycles at 1 GHz gets that, too. */
#define SAMPLES_PER_S 20000

/* From one period to the next longer one, as csink_engine_slow_down has it. */
#define STEP 4

/* Some microseconds: enough that one in a thousand cycles is seen. */
#define SPIN_ROUNDS 4000

/* Does it count about as fast as the CPU runs? */
static bool is_fast(const struct csink_event_spec *spec)
{
	if (spec->attr.type != PERF_TYPE_HARDWARE)
		return false;
	switch ((uint32_t)spec->attr.config) {
	case PERF_COUNT_HW_CPU_CYCLES:
	case PERF_COUNT_HW_INSTRUCTIONS:
	case PERF_COUNT_HW_BRANCH_INSTRUCTIONS:
	case PERF_COUNT_HW_REF_CPU_CYCLES:
		return true;
	}
	return false;
}

bool csink_event_is_hardware(const struct csink_event_spec *spec)
{
	return !csink_event_is_kernel_counted(spec) && strcmp(spec->pmu, "uprobe") && strcmp(spec->pmu, "kprobe");
}

/* Something of all that programs do: loads and stores, unpredictable branches, arithmetic of both kinds. */
static void spin(void)
{
	volatile uint64_t words[256] = {0};
	volatile double real = 1;
	uint64_t x = 1;

	for (int i = 0; i < SPIN_ROUNDS; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		if (x >> 63)
			words[x >> 32 & 255] += x;
		else
			real = real * 0.5 + 1;
	}
}

/* How often the event happens in a second of that; 0: hardly ever, or unknown. Pinned, it counts now or not at
 * all. */
static uint64_t measure(const struct csink_event_spec *spec)
{
	struct csink_event_count count = {0, 0, 0};
	struct perf_event_attr attr = spec->attr;
	int fd;

	attr.precise_ip = 0;
	attr.exclusive = 0;
	attr.exclude_kernel = attr.exclude_hv = 1; /* so that every user may try */
	fd = spec->attr.exclude_user ? -1 : csink_event_open_count(&attr, -1);
	if (fd < 0)
		return 0;
	csink_rawcall(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
	spin();
	csink_rawcall(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
	if (csink_rawcall(SYS_read, fd, &count, sizeof(count)) != sizeof(count))
		count.running_ns = 0;
	csink_rawcall(SYS_close, fd);
	if (!count.running_ns)
		return 0;
	return (uint64_t)((double)count.value * CSINK_NS_PER_S / (double)count.running_ns);
}

uint64_t csink_event_shortest_period(const struct csink_event_spec *spec, uint64_t asked, bool *measured)
{
	uint64_t shortest;

	*measured = false;
	if (is_fast(spec))
		return SHORTEST_FAST;
	if (asked >= SHORTEST_FAST || !csink_event_is_hardware(spec) || spec->cpu_wide)
		return 0;
	*measured = true;
	shortest = CSINK_MIN(measure(spec) / SAMPLES_PER_S, (uint64_t)SHORTEST_FAST);
	/* No two measurements agree; in large steps, the processes of a run mostly do. */
	while (asked < shortest)
		asked *= STEP;
	return asked;
}
