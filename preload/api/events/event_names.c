/*
 * Names of cache events, from a table of their parts, and raw codes; and what is offered where a name is not known.
 * Context of everything here: init, thread.
 */
#include <string.h>

#include "preload/api/events/event_parse.h"

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

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_nocase(struct csink_text text, const char *word)
{
	for (size_t i = 0; i < text.length; i++)
		if (!word[i] || lower(text.at[i]) != lower(word[i]))
			return false;
	return !word[text.length];
}

/* Take one of the words from the text's beginning, if it ends there or at a '-'. */
static bool take(struct csink_text *text, const char *const words[4])
{
	for (int i = 0; i < 4 && words[i]; i++) {
		size_t length = strlen(words[i]);

		if (length > text->length || (length < text->length && text->at[length] != '-'))
			continue;
		if (!is_nocase((struct csink_text){text->at, length}, words[i]))
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

int csink_event_from_raw(struct csink_text name, struct csink_event_spec *spec)
{
	char number[20] = "0x";

	if (name.length < 2 || name.length > 17 || name.at[0] != 'r')
		return 0;
	csink_text_copy(csink_text(name.at + 1, name.at + name.length), number + 2, sizeof(number) - 2);
	if (!csink_text_number((struct csink_text){number, name.length + 1}, (uint64_t *)&spec->attr.config))
		return 0;
	spec->attr.type = PERF_TYPE_RAW;
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
	const struct csink_event_generic *row;
	char name[CSINK_NEAREST_NAME];
	uint32_t nr;

	for (row = csink_events_generic(&nr); nr; row++, nr--) {
		csink_nearest_offer(near, row->name);
		if (*row->alias)
			csink_nearest_offer(near, row->alias);
	}
	for (uint32_t i = 0; i < csink_event_cache_name(i, name); i++)
		csink_nearest_offer(near, name);
}
