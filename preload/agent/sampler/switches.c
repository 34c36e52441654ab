/* Time off the CPU: see switches.h. Each thread for itself, at its start, in its handler and at its end. */
#include "preload/agent/sampler/switches.h"

#include <linux/perf_event.h>
#include <string.h>

#include "include/internal/event.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"

void csink_switches_event(struct csink_event_spec *out)
{
	memset(out, 0, sizeof(*out));
	strcpy(out->rec.name, "off-cpu");
	strcpy(out->rec.unit, "nanoseconds");
	out->rec.type = PERF_TYPE_SOFTWARE;
	out->rec.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	out->rec.flags = CSINK_EVENT_OFF_CPU;
	out->attr.type = PERF_TYPE_SOFTWARE;
	out->attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	out->attr.size = sizeof(out->attr);
	out->attr.sample_period = 1;
}

int csink_switches_open(struct csink_thread *thread)
{
	struct csink_group_open open = {.events = &csink_plan.events[csink_plan.off_cpu_event],
					.members = 1,
					.leader = 0,
					.how = CSINK_GROUP_SIGTRAP,
					.tid = thread->tid};
	uint32_t failed;

	csink_thread_opener_stack(thread, &open);
	thread->off_row = (struct csink_row){0};
	thread->off_wall_ns = csink_now_ns();
	thread->off_cpu_ns = csink_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	return csink_group_open(&thread->switches, &open, &failed);
}

static uint64_t off_cpu(const struct csink_thread *thread, uint64_t wall_ns, uint64_t cpu_ns)
{
	uint64_t passed = wall_ns - thread->off_wall_ns, ran = cpu_ns - thread->off_cpu_ns;

	return passed > ran ? passed - ran : 0;
}

uint64_t csink_switches_take(struct csink_thread *thread)
{
	uint64_t wall_ns, cpu_ns, off_ns;

	if (!csink_group_is_open(&thread->switches))
		return 0;
	wall_ns = csink_now_ns();
	cpu_ns = csink_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	off_ns = off_cpu(thread, wall_ns, cpu_ns);
	thread->off_wall_ns = wall_ns;
	thread->off_cpu_ns = cpu_ns;
	return off_ns;
}

uint64_t csink_switches_open_ns(const struct csink_thread *thread, uint64_t cpu_ns)
{
	return csink_group_is_open(&thread->switches) ? off_cpu(thread, csink_now_ns(), cpu_ns) : 0;
}
