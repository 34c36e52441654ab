/*
 * Hybrid machines have several core PMUs, each for some of the CPUs; a generic event without a PMU counts on one kind
 * of CPU only, in silence. Here each such event becomes one for each core PMU. A group goes as a whole: its members can
 * only be counted together on one PMU, so the group is repeated, software events and all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/counters/event_parse.h"
#include "preload/counters/sysfs.h"

#define MAX_CORES 4 /* kinds of CPU in one machine; three exist today */

struct core {
	char name[32], cpus[64];
	uint32_t type;
};

/* Kinds of CPU are listed in the order of their names, so that every process sees the same one. */
static uint32_t insert_core(struct core *cores, uint32_t nr, const struct core *core)
{
	uint32_t place = nr;

	if (nr == MAX_CORES)
		return nr;
	for (; place && strcmp(cores[place - 1].name, core->name) > 0; place--)
		cores[place] = cores[place - 1];
	cores[place] = *core;
	return nr + 1;
}

static uint32_t list_cores(const struct csink_event_roots *roots, struct core cores[MAX_CORES])
{
	const char *devices = csink_event_devices(roots), *name;
	struct csink_sysfs_dir dir;
	uint32_t nr = 0;

	if (csink_sysfs_dir_open(&dir, "%s", devices))
		return 0;
	while ((name = csink_sysfs_dir_next(&dir))) {
		struct core core;
		int64_t type;

		if (strlen(name) >= sizeof(core.name) ||
		    csink_sysfs_read(core.cpus, sizeof(core.cpus), "%s/%s/cpus", devices, name) <= 0 ||
		    csink_sysfs_read_number(&type, "%s/%s/type", devices, name))
			continue;
		strcpy(core.name, name);
		core.type = (uint32_t)type;
		nr = insert_core(cores, nr, &core);
	}
	csink_sysfs_dir_close(&dir);
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

	if (!is_unbound(spec))
		return;
	strcpy(name, spec->rec.name);
	colon = strchr(name, ':');
	if (colon)
		*colon++ = '\0';
	/* A long name is cut: it is for people, and the attr says the rest. */
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
			 "name a "
			 "PMU, as in %s/cycles/",
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
