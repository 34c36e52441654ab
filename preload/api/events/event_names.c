/*
 * perf's generic names: one table each for plain events and for the parts of a cache event, and raw codes. Written by
 * nobody at run time; read by the parser, by `countersink events` and by the printer.
 */
#include <string.h>

#include "preload/api/events/event_parse.h"

#define HW(name, alias, id, help)                                                                                      \
	{                                                                                                              \
		name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, help                                              \
	}
#define SW(name, alias, id, help)                                                                                      \
	{                                                                                                              \
		name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, help                                              \
	}

static const struct csink_event_generic generics[] = {
	HW("cycles", "cpu-cycles", CPU_CYCLES, "CPU cycles, at whatever frequency the CPU ran"),
	HW("instructions", NULL, INSTRUCTIONS, "instructions that completed"),
	HW("cache-references", NULL, CACHE_REFERENCES, "accesses that reached the last-level cache"),
	HW("cache-misses", NULL, CACHE_MISSES, "accesses that the last-level cache missed"),
	HW("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "branches that completed"),
	HW("branch-misses", NULL, BRANCH_MISSES, "branches that were predicted wrongly"),
	HW("bus-cycles", NULL, BUS_CYCLES, "bus cycles"),
	HW("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles with nothing to issue"),
	HW("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, "cycles waiting to complete"),
	HW("ref-cycles", NULL, REF_CPU_CYCLES, "cycles at a constant frequency"),
	SW("task-clock", NULL, TASK_CLOCK, "CPU time of the task, ns"),
	SW("cpu-clock", NULL, CPU_CLOCK, "CPU time by the CPU's own timer, ns"),
	SW("page-faults", "faults", PAGE_FAULTS, "page faults"),
	SW("minor-faults", NULL, PAGE_FAULTS_MIN, "page faults served without reading a disk"),
	SW("major-faults", NULL, PAGE_FAULTS_MAJ, "page faults that read a disk"),
	SW("context-switches", "cs", CONTEXT_SWITCHES, "times the task left a CPU"),
	SW("cpu-migrations", "migrations", CPU_MIGRATIONS, "times the task changed CPU"),
	SW("alignment-faults", NULL, ALIGNMENT_FAULTS, "unaligned accesses that the kernel mended"),
	SW("emulation-faults", NULL, EMULATION_FAULTS, "instructions that the kernel emulated"),
	SW("dummy", NULL, DUMMY, "nothing; carries records of threads and mappings"),
	SW("bpf-output", NULL, BPF_OUTPUT, "what a BPF program writes"),
	SW("cgroup-switches", NULL, CGROUP_SWITCHES, "switches to a task of another control group"),
};

const struct csink_event_generic *csink_events_generic(uint32_t *nr)
{
	*nr = CSINK_ARRAY_SIZE(generics);
	return generics;
}

void csink_event_mark_clock(struct csink_event_spec *spec)
{
	if (spec->attr.type != PERF_TYPE_SOFTWARE)
		return;
	if (spec->attr.config != PERF_COUNT_SW_TASK_CLOCK && spec->attr.config != PERF_COUNT_SW_CPU_CLOCK)
		return;
	spec->rec.flags |= CSINK_EVENT_CPU_NS;
	strcpy(spec->rec.unit, "nanoseconds");
}

int csink_event_from_generic(struct csink_text name, struct csink_event_spec *spec)
{
	const struct csink_event_generic *row;

	for (row = generics; row < generics + CSINK_ARRAY_SIZE(generics); row++)
		if (csink_text_is(name, row->name) || (row->alias && csink_text_is(name, row->alias)))
			break;
	if (row == generics + CSINK_ARRAY_SIZE(generics))
		return 0;
	spec->attr.type = row->type;
	spec->attr.config = row->config;
	strcpy(spec->rec.name, row->name);
	return 1;
}

/* ---- cache events ------------------------------------------------------------------------------------------------ */

/* The first word of each row is the canonical one. ops: which operations the kernel defines for this cache. */
#define R (1 << PERF_COUNT_HW_CACHE_OP_READ)
#define W (1 << PERF_COUNT_HW_CACHE_OP_WRITE)
#define P (1 << PERF_COUNT_HW_CACHE_OP_PREFETCH)
static const struct cache {
	const char *words[4];
	uint32_t id, ops;
} caches[] = {
	{{"L1-dcache", "L1-d", "L1d", "L1-data"}, PERF_COUNT_HW_CACHE_L1D, R | W | P},
	{{"L1-icache", "L1-i", "L1i", "L1-instruction"}, PERF_COUNT_HW_CACHE_L1I, R | P},
	{{"LLC", "L2"}, PERF_COUNT_HW_CACHE_LL, R | W | P},
	{{"dTLB", "d-tlb", "Data-TLB"}, PERF_COUNT_HW_CACHE_DTLB, R | W | P},
	{{"iTLB", "i-tlb", "Instruction-TLB"}, PERF_COUNT_HW_CACHE_ITLB, R},
	{{"branch", "bpu", "btb", "bpc"}, PERF_COUNT_HW_CACHE_BPU, R},
	{{"node"}, PERF_COUNT_HW_CACHE_NODE, R | W | P},
};
#undef R
#undef W
#undef P

/* Of each operation: the word that stands alone (loads), the word before a result (load-misses), and others. */
static const struct word {
	const char *words[4];
	uint32_t id;
} ops[] =
	{
		{{"loads", "load", "read"}, PERF_COUNT_HW_CACHE_OP_READ},
		{{"stores", "store", "write"}, PERF_COUNT_HW_CACHE_OP_WRITE},
		{{"prefetches", "prefetch", "speculative-read", "speculative-load"}, PERF_COUNT_HW_CACHE_OP_PREFETCH},
},
  results[] = {
	  {{"misses", "miss"}, PERF_COUNT_HW_CACHE_RESULT_MISS},
	  {{"refs", "reference", "ops", "access"}, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
};

/* Take one of the words from the text's beginning, if it ends there or at a '-'. */
static bool take(struct csink_text *text, const char *const words[4])
{
	for (int i = 0; i < 4 && words[i]; i++) {
		size_t length = strlen(words[i]);

		if (length > text->length || (length < text->length && text->at[length] != '-'))
			continue;
		if (!csink_text_is_nocase((struct csink_text){text->at, length}, words[i]))
			continue;
		length += length < text->length;
		text->at += length;
		text->length -= length;
		return true;
	}
	return false;
}

static const struct word *take_of(struct csink_text *text, const struct word *table, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (take(text, table[i].words))
			return &table[i];
	return NULL;
}

/* Write the canonical name; room for CSINK_NEAREST_NAME. */
static void cache_name(const struct cache *cache, const struct word *op, bool misses, char *buf)
{
	strcpy(buf, cache->words[0]);
	strcat(buf, "-");
	strcat(buf, op->words[misses ? 1 : 0]);
	if (misses)
		strcat(buf, "-misses");
}

int csink_event_from_cache(struct csink_text name, struct csink_event_spec *spec)
{
	const struct word *op, *result;
	const struct cache *cache;

	for (cache = caches; cache < caches + CSINK_ARRAY_SIZE(caches); cache++)
		if (take(&name, cache->words))
			break;
	if (cache == caches + CSINK_ARRAY_SIZE(caches))
		return 0;
	op = take_of(&name, ops, CSINK_ARRAY_SIZE(ops));
	result = take_of(&name, results, CSINK_ARRAY_SIZE(results));
	if (!op)
		op = &ops[0];
	if (!result)
		result = &results[1];
	if (name.length || name.at[-1] == '-' || !(cache->ops & (1U << op->id)))
		return 0;
	spec->attr.type = PERF_TYPE_HW_CACHE;
	spec->attr.config = cache->id | (uint64_t)op->id << 8 | (uint64_t)result->id << 16;
	cache_name(cache, op, result == &results[0], spec->rec.name);
	return 1;
}

/* ---- raw codes --------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int csink_event_from_raw(struct csink_text name, struct csink_event_spec *spec)
{
	uint64_t config = 0;

	if (name.length < 2 || name.length > 17 || name.at[0] != 'r')
		return 0;
	for (size_t i = 1; i < name.length; i++) {
		if (hex_digit(name.at[i]) < 0)
			return 0;
		config = config << 4 | (uint64_t)hex_digit(name.at[i]);
	}
	spec->attr.type = PERF_TYPE_RAW;
	spec->attr.config = config;
	csink_text_copy(name, spec->rec.name, sizeof(spec->rec.name));
	return 1;
}

uint32_t csink_event_cache_name(uint32_t index, char *name)
{
	uint32_t nr = 0;

	for (size_t c = 0; c < CSINK_ARRAY_SIZE(caches); c++)
		for (size_t o = 0; o < 2 * CSINK_ARRAY_SIZE(ops); o++) {
			if (!(caches[c].ops & (1U << ops[o / 2].id)))
				continue;
			if (nr++ == index)
				cache_name(&caches[c], &ops[o / 2], o % 2, name);
		}
	return nr;
}

void csink_event_offer_generic(struct csink_nearest *near)
{
	char name[CSINK_NEAREST_NAME];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(generics); i++) {
		csink_nearest_offer(near, generics[i].name);
		if (generics[i].alias)
			csink_nearest_offer(near, generics[i].alias);
	}
	for (uint32_t i = 0; i < csink_event_cache_name(i, name); i++)
		csink_nearest_offer(near, name);
}
