/* Samples of whole CPUs: see cpu_samples.h. Runs in the launcher's one thread. */
#include "launcher/attach/cpu_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"

/* No multiple or part of a tick, with which processes are switched; of many CPUs, no more samples than of twenty. */
#define PERIOD_NS 4973000ULL
#define PERIOD_NS_PER_CPU 250000ULL

#define MAX_BARE (1U << 20)
#define LONGEST_END_NS (10 * CSINK_NS_PER_S) /* after it a sample is of another process that has the PID */

static struct perf_event_attr attr_like(const struct perf_event_attr *like, uint64_t period_ns)
{
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(struct perf_event_attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = period_ns,
					.sample_type = like->sample_type,
					.read_format = like->read_format,
					.sample_regs_user = like->sample_regs_user,
					.sample_stack_user = like->sample_stack_user,
					.exclude_callchain_kernel = like->exclude_callchain_kernel,
					.exclude_idle = 1,
					.sample_id_all = 1,
					.use_clockid = like->use_clockid,
					.clockid = like->clockid};
}

static int open_on(struct csink_cpu_samples *cpus, struct csink_attach_counters *c, const struct perf_event_attr *attr,
		   uint32_t cpu)
{
	int fd = csink_perf_open(attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC), err;

	if (fd < 0)
		return fd;
	cpus->fds[cpus->nr++] = fd;
	err = csink_rings_add(&c->rings, cpu, fd);
	return err || ioctl(fd, PERF_EVENT_IOC_ID, &cpus->ids[cpus->nr - 1]) >= 0 ? err : -errno;
}

void csink_cpu_samples_open(struct csink_cpu_samples *cpus, struct csink_attach_counters *c)
{
	struct perf_event_attr attr;
	uint32_t first = 0;
	int err = 0;

	while (first < c->nr_events && (c->events[first].err || !c->events[first].samples))
		first++;
	if (first == c->nr_events)
		return;
	cpus->period_ns = CSINK_MAX(PERIOD_NS, PERIOD_NS_PER_CPU * c->rings.nr);
	attr = attr_like(&c->events[first].attr, cpus->period_ns);
	cpus->fds = calloc(c->rings.nr, sizeof(*cpus->fds));
	cpus->ids = calloc(c->rings.nr, sizeof(*cpus->ids));
	if (!cpus->fds || !cpus->ids)
		err = -ENOMEM;
	for (uint32_t cpu = 0; cpu < c->rings.nr && !err; cpu++)
		if (c->rings.at[cpu].fd >= 0)
			err = open_on(cpus, c, &attr, cpu);
	if (err)
		csink_cpu_samples_free(cpus);
}

bool csink_cpu_samples_has(const struct csink_cpu_samples *cpus, uint64_t id)
{
	for (uint32_t i = 0; i < cpus->nr; i++)
		if (cpus->ids[i] == id)
			return true;
	return false;
}

void csink_cpu_samples_note_bare(struct csink_cpu_samples *cpus, int32_t pid, uint64_t time_ns)
{
	if (cpus->nr_bare < MAX_BARE && !CSINK_GROW(cpus->bare, cpus->nr_bare, cpus->cap_bare))
		cpus->bare[cpus->nr_bare++] = (struct csink_cpu_sample){pid, time_ns};
}

void csink_cpu_samples_stop(struct csink_cpu_samples *cpus)
{
	for (uint32_t i = 0; i < cpus->nr; i++) {
		if (cpus->fds[i] >= 0)
			close(cpus->fds[i]);
		cpus->fds[i] = -1;
	}
}

/* When a process of the run ended. */
struct end {
	int32_t pid;
	uint64_t end_ns;
	struct csink_outside_process *process;
};

CSINK_COMPARE_BY(compare_ends, struct end, pid, end_ns)

void csink_cpu_samples_give_ends(const struct csink_cpu_samples *cpus, struct csink_outside *out)
{
	CSINK_AUTO_FREE struct end *ends = calloc(out->nr_processes + 1UL, sizeof(*ends));
	uint32_t nr = 0;

	for (uint32_t i = 0; i < out->nr_processes && ends; i++)
		if (out->processes[i].end_ns)
			ends[nr++] = (struct end){out->processes[i].pid, out->processes[i].end_ns, &out->processes[i]};
	if (nr)
		qsort(ends, nr, sizeof(*ends), compare_ends);
	for (uint32_t i = 0; i < cpus->nr_bare && nr; i++) {
		const struct csink_cpu_sample *sample = &cpus->bare[i];
		/* Of processes with that PID, the last that had ended by then. */
		uint32_t after = CSINK_LOWER(nr, k,
					     ends[k].pid < sample->pid ||
						     (ends[k].pid == sample->pid && ends[k].end_ns <= sample->time_ns));
		const struct end *end = &ends[after - (after > 0)];

		if (end->pid == sample->pid && end->end_ns <= sample->time_ns &&
		    sample->time_ns - end->end_ns < LONGEST_END_NS)
			end->process->ending_ns += cpus->period_ns;
	}
}

void csink_cpu_samples_free(struct csink_cpu_samples *cpus)
{
	csink_cpu_samples_stop(cpus);
	free(cpus->fds);
	free(cpus->ids);
	free(cpus->bare);
	memset(cpus, 0, sizeof(*cpus));
}
