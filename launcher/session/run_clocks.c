/* The time that tasks ran, by kind of CPU: see run_clocks.h. */
#include "launcher/session/run_clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"

/*
 * So many events of one PMU hardly ever have to wait: every core PMU has six counters or more. Where others hold these,
 * among them a run, which counts its events from outside and inside, the events' own times have to do.
 */
#define HARDLY_WAIT 4

static void add_clock(struct csink_clocks *clocks, const char *cpus)
{
	struct csink_event_error err;
	struct csink_event_spec *spec = &clocks->specs[clocks->nr];

	if (clocks->nr == CSINK_MAX_CLOCKS || csink_events_parse("dummy", spec, 1, &err) != 1)
		return;
	csink_event_set_user_only(spec); /* so that every user may; it is on all the same */
	strcpy(spec->cpus, cpus);
	clocks->nr++;
}

/* Is there a CPU for which none of the events is? */
static bool is_one_missing(const struct csink_event_spec *specs, uint32_t nr)
{
	uint32_t nr_cpus = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);

	for (uint32_t cpu = 0; cpu < nr_cpus; cpu++) {
		uint32_t i = 0;

		while (i < nr && !(specs[i].cpus[0] && csink_event_is_on(&specs[i], cpu)))
			i++;
		if (i == nr)
			return true;
	}
	return false;
}

void csink_clocks_init(struct csink_clocks *clocks, const struct csink_event_spec *specs, uint32_t nr)
{
	uint32_t nr_kinds = 0, most = 0;
	const char *kinds[CSINK_MAX_CLOCKS - 1];

	memset(clocks, 0, sizeof(*clocks));
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t first = nr, nr_like = 0;

		for (uint32_t k = 0; k < nr; k++) {
			if (!csink_event_takes_counter(&specs[k]) || strcmp(specs[k].cpus, specs[i].cpus))
				continue;
			first = CSINK_MIN(first, k);
			nr_like++;
		}
		most = CSINK_MAX(most, nr_like);
		if (first == i && specs[i].cpus[0] && nr_kinds < CSINK_ARRAY_SIZE(kinds))
			kinds[nr_kinds++] = specs[i].cpus;
	}
	if (nr_kinds || most > HARDLY_WAIT)
		add_clock(clocks, "");
	if (most <= HARDLY_WAIT && !(nr_kinds && is_one_missing(specs, nr)))
		return;
	for (uint32_t i = 0; i < nr_kinds; i++)
		add_clock(clocks, kinds[i]);
}

static void open_one(struct csink_clocks *clocks, uint32_t clock, int cpu, const struct csink_clocks_how *how)
{
	struct perf_event_attr attr = clocks->specs[clock].attr;
	int fd;

	if (CSINK_GROW(clocks->fds, clocks->nr_fds, clocks->cap_fds)) {
		clocks->broken |= 1U << clock;
		return;
	}
	attr.size = sizeof(attr);
	attr.inherit = how->inherit;
	attr.disabled = attr.enable_on_exec = how->at_exec;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = csink_perf_open(&attr, how->tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		clocks->fds[clocks->nr_fds++] = (struct csink_clocks_fd){fd, clock};
	else if (fd != -ENODEV && fd != -ESRCH) /* that CPU is offline, that task has ended */
		clocks->broken |= 1U << clock;
}

void csink_clocks_open(struct csink_clocks *clocks, const struct csink_clocks_how *how)
{
	int nr_cpus = (int)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);

	for (uint32_t i = 0; i < clocks->nr; i++) {
		if (!clocks->specs[i].cpus[0])
			open_one(clocks, i, -1, how);
		for (int cpu = 0; clocks->specs[i].cpus[0] && cpu < nr_cpus; cpu++)
			if (csink_event_is_on(&clocks->specs[i], (uint32_t)cpu))
				open_one(clocks, i, cpu, how);
	}
}

void csink_clocks_stop(const struct csink_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr_fds; i++)
		ioctl(clocks->fds[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint32_t csink_clocks_read(const struct csink_clocks *clocks, struct csink_event_times *times)
{
	uint64_t got[3]; /* value, time enabled, time running */

	for (uint32_t i = 0; i < clocks->nr; i++)
		times[i] = (struct csink_event_times){.spec = &clocks->specs[i], .is_clock = true};
	for (uint32_t k = 0; k < clocks->nr_fds; k++)
		if (!(clocks->broken >> clocks->fds[k].clock & 1) &&
		    read(clocks->fds[k].fd, got, sizeof(got)) == sizeof(got))
			times[clocks->fds[k].clock].running_ns += got[2];
	for (uint32_t i = 0; i < clocks->nr; i++)
		times[i].enabled_ns = times[i].running_ns;
	return clocks->nr;
}

void csink_clocks_close(struct csink_clocks *clocks)
{
	for (uint32_t i = 0; i < clocks->nr_fds; i++)
		close(clocks->fds[i].fd);
	free(clocks->fds);
	clocks->fds = NULL;
	clocks->nr_fds = clocks->cap_fds = clocks->broken = 0;
}
