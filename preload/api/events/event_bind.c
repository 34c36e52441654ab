/*
 * Hybrid machines have several core PMUs, each for some of the CPUs; a generic event without a PMU counts on one kind
 * of CPU only, in silence. Here each such event becomes one for each core PMU. A group goes as a whole: its members can
 * only be counted together on one PMU, so the group is repeated, software events and all. What each of them counts is
 * of the time that a program spends on its kind of CPU; how long that was is found out here as well.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/api/events/event_parse.h"
#include "preload/core/sysfs.h"

#define MAX_CORES 4 /* kinds of CPU in one machine; three exist today */

struct core {
	char name[32], cpus[64];
	uint32_t type;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct core *)a)->name, ((const struct core *)b)->name);
}

/* In the order of their names, so that every process sees the same one. */
static uint32_t list_cores(const struct csink_event_roots *roots, struct core cores[MAX_CORES])
{
	const char *devices = csink_event_devices(roots), *name;
	uint32_t nr = 0;

	CSINK_SYSFS_EACH(name, "%s", devices) {
		struct core *core = &cores[nr];
		int64_t type;

		if (nr == MAX_CORES || strlen(name) >= sizeof(core->name) ||
		    csink_sysfs_read(core->cpus, sizeof(core->cpus), "%s/%s/cpus", devices, name) <= 0 ||
		    csink_sysfs_read_number(&type, "%s/%s/type", devices, name))
			continue;
		strcpy(core->name, name);
		core->type = (uint32_t)type;
		nr++;
	}
	qsort(cores, nr, sizeof(*cores), by_name);
	return nr;
}

/* True if the event means "whichever core PMU": the kernel keeps a PMU's type above the lower 32 bits of config. */
static bool is_unbound(const struct csink_event_spec *spec)
{
	if (spec->pmu[0])
		return false;
	if (spec->attr.type == PERF_TYPE_RAW)
		return true;
	return (spec->attr.type == PERF_TYPE_HARDWARE || spec->attr.type == PERF_TYPE_HW_CACHE) &&
	       !(spec->attr.config >> 32);
}

/*
 * ARM's kernels before Linux 6.6 do not take a PMU's type above config, but their PMUs name the architecture's events
 * in sysfs. These are what the kernel takes the generic ones for; of two, the first that the CPU has.
 */
#define CACHE(cache, result)                                                                                           \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)
static const struct {
	uint32_t type, config;
	const char *name;
} arm_names[] = {
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cpu_cycles"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "inst_retired"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "l1d_cache"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "l1d_cache_refill"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "br_retired"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "pc_write_retired"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "br_mis_pred"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, "bus_cycles"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "stall_frontend"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "stall_backend"},
	{PERF_TYPE_HW_CACHE, CACHE(L1D, ACCESS), "l1d_cache"},
	{PERF_TYPE_HW_CACHE, CACHE(L1D, MISS), "l1d_cache_refill"},
	{PERF_TYPE_HW_CACHE, CACHE(L1I, ACCESS), "l1i_cache"},
	{PERF_TYPE_HW_CACHE, CACHE(L1I, MISS), "l1i_cache_refill"},
	{PERF_TYPE_HW_CACHE, CACHE(DTLB, ACCESS), "l1d_tlb"},
	{PERF_TYPE_HW_CACHE, CACHE(DTLB, MISS), "l1d_tlb_refill"},
	{PERF_TYPE_HW_CACHE, CACHE(ITLB, ACCESS), "l1i_tlb"},
	{PERF_TYPE_HW_CACHE, CACHE(ITLB, MISS), "l1i_tlb_refill"},
	{PERF_TYPE_HW_CACHE, CACHE(LL, ACCESS), "ll_cache_rd"},
	{PERF_TYPE_HW_CACHE, CACHE(LL, MISS), "ll_cache_miss_rd"},
	{PERF_TYPE_HW_CACHE, CACHE(BPU, ACCESS), "br_pred"},
	{PERF_TYPE_HW_CACHE, CACHE(BPU, MISS), "br_mis_pred"},
};

/* The code by which an ARM PMU itself knows a generic event. */
static bool find_code(const struct csink_event_roots *roots, const struct core *core,
		      const struct csink_event_spec *spec, uint64_t *code)
{
	char text[64];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(arm_names); i++) {
		if (arm_names[i].type != spec->attr.type || arm_names[i].config != spec->attr.config ||
		    csink_sysfs_read(text, sizeof(text), "%s/%s/events/%s", csink_event_devices(roots), core->name,
				     arm_names[i].name) <= 0 ||
		    strncmp(text, "event=", 6))
			continue;
		*code = strtoull(text + 6, NULL, 0);
		return true;
	}
	return false;
}

static void bind_one(const struct csink_event_roots *roots, struct csink_event_spec *spec, const struct core *core)
{
	uint64_t code = spec->attr.config;
	char name[sizeof(spec->rec.name)], *colon;

	if (!is_unbound(spec)) {
		/* A software event counts while its group does. */
		if (spec->attr.type == PERF_TYPE_SOFTWARE)
			strcpy(spec->cpus, core->cpus);
		return;
	}
	strcpy(name, spec->rec.name);
	colon = strchr(name, ':');
	if (colon)
		*colon++ = '\0';
	/* A long name is cut: it is for users; the attr is complete. */
	if (snprintf(spec->rec.name, sizeof(spec->rec.name), "%s/%s/%s%s", core->name, name, colon ? ":" : "",
		     colon ? colon : "") >= (int)sizeof(spec->rec.name))
		spec->rec.name[sizeof(spec->rec.name) - 2] = '~';
	strcpy(spec->pmu, core->name);
	strcpy(spec->cpus, core->cpus);
	if (spec->attr.type == PERF_TYPE_RAW || find_code(roots, core, spec, &code)) {
		spec->attr.type = core->type;
		spec->attr.config = code;
	} else {
		spec->attr.config |= (uint64_t)core->type << 32;
	}
	spec->rec.type = spec->attr.type;
	spec->rec.config = spec->attr.config;
}

/* One group of the list: specs[first, first + nr). */
struct group {
	uint32_t first, nr;
	bool unbound;
};

static struct group group_before(const struct csink_event_spec *specs, uint32_t end)
{
	struct group group = {end, 0, false};

	while (group.first && (group.first == end || specs[group.first - 1].group == specs[end - 1].group)) {
		group.unbound |= is_unbound(&specs[--group.first]);
		group.nr++;
	}
	return group;
}

int csink_events_bind(const struct csink_event_roots *roots, struct csink_event_spec *specs, uint32_t nr, uint32_t max,
		      struct csink_event_error *err)
{
	uint32_t nr_cores, total = 0, groups = 0, at;
	struct core cores[MAX_CORES];
	struct group group;

	nr_cores = list_cores(roots, cores);
	if (nr_cores < 2)
		return (int)nr;
	for (uint32_t end = nr; end; end = group.first) {
		group = group_before(specs, end);
		total += group.nr * (group.unbound ? nr_cores : 1);
		groups += group.unbound ? nr_cores : 1;
	}
	if (total > max) {
		err->err = -E2BIG;
		err->offset = specs[0].offset;
		err->length = specs[nr - 1].offset + specs[nr - 1].length - specs[0].offset;
		snprintf(err->line, sizeof(err->line),
			 "too many events: this machine has %u kinds of CPU, which makes %u of these %u, and %u fit; "
			 "name a PMU, as in %s/cycles/",
			 nr_cores, total, nr, max, cores[0].name);
		return -E2BIG;
	}
	/* From the end, so that nothing is overwritten before it is moved: a copy never lands below its original. */
	at = total;
	for (uint32_t end = nr; end; end = group.first) {
		group = group_before(specs, end);
		for (uint32_t copy = group.unbound ? nr_cores : 1; copy; copy--) {
			at -= group.nr;
			groups--;
			memmove(&specs[at], &specs[group.first], group.nr * sizeof(*specs));
			for (uint32_t i = at; i < at + group.nr; i++) {
				specs[i].group = groups;
				if (group.unbound)
					bind_one(roots, &specs[i], &cores[copy - 1]);
			}
		}
	}
	return (int)total;
}

bool csink_event_is_on(const struct csink_event_spec *spec, uint32_t cpu)
{
	const char *at = spec->cpus;

	while (*at) { /* "0-3,8" */
		char *end;
		unsigned long low = strtoul(at, &end, 10), high = low;

		if (end == at)
			return true; /* no list */
		if (*end == '-')
			high = strtoul(end + 1, &end, 10);
		if (cpu >= low && cpu <= high)
			return true;
		at = end + (*end == ',');
	}
	return !spec->cpus[0];
}

/* ---- how long they could run ---- */

bool csink_event_takes_counter(const struct csink_event_spec *spec)
{
	return spec->attr.type != PERF_TYPE_SOFTWARE && spec->attr.type != PERF_TYPE_TRACEPOINT && !spec->cpu_wide;
}

/* They are not read at the very same moment: so small a part is no turn that was waited for. */
#define SAME 256

static bool is_of(const struct csink_event_times *times, const char *cpus)
{
	return !strcmp(times->spec->cpus, cpus);
}

/* How long the events of one kind of CPU ran. */
struct kind {
	const struct csink_event_times *clock; /* NULL: none */
	uint64_t longest_ns;
	/* One event's own time would not do: where the stays there are short, it is chance how much of them it got. */
	double mean_ns;
};

static struct kind kind_of(const struct csink_event_times *times, uint32_t nr, const char *cpus)
{
	struct kind kind = {0};
	uint32_t nr_events = 0;

	for (uint32_t k = 0; k < nr; k++) {
		if (!is_of(&times[k], cpus))
			continue;
		if (times[k].is_clock) {
			/* A clock that never ran, or that failed, has no more information than the events' own times.
			 */
			kind.clock = times[k].running_ns ? &times[k] : NULL;
			continue;
		}
		kind.longest_ns = CSINK_MAX(kind.longest_ns, times[k].running_ns);
		kind.mean_ns += (double)times[k].running_ns;
		nr_events++;
	}
	kind.mean_ns /= CSINK_MAX(nr_events, 1u);
	return kind;
}

/* The means of all kinds together; 0 if there is but one. */
static double mean_of_all(const struct csink_event_times *times, uint32_t nr)
{
	uint32_t nr_kinds = 0;
	double all_ns = 0;

	for (uint32_t k = 0; k < nr; k++) {
		const char *cpus = times[k].spec->cpus;
		uint32_t first = 0;

		while (first < k && (times[first].is_clock || !is_of(&times[first], cpus)))
			first++;
		if (!cpus[0] || times[k].is_clock || first < k)
			continue;
		all_ns += kind_of(times, nr, cpus).mean_ns;
		nr_kinds++;
	}
	return nr_kinds > 1 ? all_ns : 0;
}

/* How long it was there, of all the time that the tasks ran; 0: unknown. */
static uint64_t time_there_ns(const struct csink_event_times *times, uint32_t nr, const struct csink_event_times *own,
			      const struct kind *kind)
{
	/*
	 * Some kernels forget, as a task ends, how long an event has been waiting since it last ran: Linux 6.1.176
	 * does, 6.1.192 does not. A clock never waits.
	 */
	const struct csink_event_times *clock = kind_of(times, nr, "").clock;
	double total_ns = (double)(clock ? clock->running_ns : own->enabled_ns), all_ns;

	if (kind->clock)
		return kind->clock->running_ns;
	if (!own->spec->cpus[0])
		return own->enabled_ns;
	all_ns = mean_of_all(times, nr);
	return all_ns > 0 && all_ns < total_ns ? (uint64_t)(total_ns * kind->mean_ns / all_ns) : 0;
}

uint64_t csink_event_could_run_ns(const struct csink_event_times *times, uint32_t nr, uint32_t i)
{
	const struct csink_event_times *own = &times[i];
	struct kind kind = kind_of(times, nr, own->spec->cpus);
	uint64_t there_ns = time_there_ns(times, nr, own, &kind);

	/* Another event, read later, may have run longer: a clock, read beside this one, knows better. */
	if (own->spec->cpus[0] && !kind.clock)
		there_ns = CSINK_MAX(there_ns, kind.longest_ns);
	if (there_ns > own->running_ns + own->running_ns / SAME)
		return there_ns;
	return own->spec->cpus[0] ? own->running_ns : CSINK_MAX(own->enabled_ns, own->running_ns);
}
