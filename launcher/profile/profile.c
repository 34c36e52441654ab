/* The profile in memory (profile.h). Written by collect and the pprof reader; read by report and the writers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/profile/profile_impl.h"

/* Strings live in chunks that never move, so that a text stays where it is while others are added. */
struct csink_text_chunk {
	struct csink_text_chunk *next;
	size_t used, size;
	char bytes[];
};

#define CHUNK_BYTES (256 * 1024 - sizeof(struct csink_text_chunk))

bool csink_profile_may_have(struct csink_profile *p, uint64_t bytes)
{
	if (p->max_bytes && bytes > p->max_bytes - CSINK_MIN(p->bytes, p->max_bytes)) {
		p->is_over = true;
		return false;
	}
	p->bytes += bytes;
	return true;
}

void csink_profile_limit(struct csink_profile *p, uint64_t max_bytes)
{
	p->max_bytes = max_bytes;
}

bool csink_profile_is_over(const struct csink_profile *p)
{
	return p->is_over;
}

int csink_profile_reserve(struct csink_profile *p, void **array, uint32_t nr, uint32_t *cap, uint32_t more, size_t size)
{
	uint64_t want = (uint64_t)nr + more, next = CSINK_MAX((uint64_t)*cap * 2, 64);

	if (want <= *cap)
		return 0;
	next = CSINK_MIN(CSINK_MAX(next, want), UINT32_MAX);
	if (want > UINT32_MAX || !csink_profile_may_have(p, (next - *cap) * size) || csink_grow(array, next, size))
		return p->error = -ENOMEM;
	*cap = next;
	return 0;
}

int csink_profile_table_grow(struct csink_profile *p, struct csink_table *table, uint64_t nr_slots)
{
	uint64_t more = nr_slots - (table->slots ? (uint64_t)table->mask + 1 : 0);

	if (!csink_profile_may_have(p, more * sizeof(*table->slots)) || csink_table_resize(table, nr_slots))
		return p->error = -ENOMEM;
	return 0;
}

struct csink_profile *csink_profile_create(void)
{
	struct csink_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (RESERVE(p, strings, 1) || RESERVE(p, mappings, 1) || RESERVE(p, functions, 1) || RESERVE(p, locations, 1) ||
	    RESERVE(p, stacks, 1) || RESERVE(p, label_sets, 1) || RESERVE(p, lines, 1) || RESERVE(p, stack_ids, 1) ||
	    RESERVE(p, labels, 1)) { /* the pools too, so that an empty range begins somewhere */
		csink_profile_free(p);
		return NULL;
	}
	p->strings[p->nr_strings++] = (struct csink_profile_string){.text = ""};
	p->mappings[p->nr_mappings++] = (struct csink_profile_mapping){0};
	p->functions[p->nr_functions++] = (struct csink_profile_function){0};
	p->locations[p->nr_locations++] = (struct csink_profile_location){0};
	p->stacks[p->nr_stacks++] = (struct csink_profile_range){0};
	p->label_sets[p->nr_label_sets++] = (struct csink_profile_range){0};
	return p;
}

void csink_profile_free(struct csink_profile *p)
{
	struct csink_text_chunk *chunk;

	if (!p)
		return;
	while ((chunk = p->text)) {
		p->text = chunk->next;
		free(chunk);
	}
	free(p->string_table.slots);
	free(p->function_table.slots);
	free(p->stack_table.slots);
	free(p->label_table.slots);
	free(p->sample_table.slots);
	free(p->types);
	free(p->strings);
	free(p->mappings);
	free(p->functions);
	free(p->locations);
	free(p->lines);
	free(p->stacks);
	free(p->stack_ids);
	free(p->label_sets);
	free(p->labels);
	free(p->samples);
	free(p->values);
	free(p->comments);
	free(p);
}

int csink_profile_error(const struct csink_profile *p)
{
	return p->error;
}

static char *text_room(struct csink_profile *p, size_t bytes)
{
	struct csink_text_chunk *chunk = p->text;
	size_t size = CSINK_MAX(bytes, CHUNK_BYTES);

	if (!chunk || chunk->size - chunk->used < bytes) {
		chunk = size < SIZE_MAX - sizeof(*chunk) && csink_profile_may_have(p, sizeof(*chunk) + size)
				? malloc(sizeof(*chunk) + size)
				: NULL;
		if (!chunk) {
			p->error = -ENOMEM;
			return NULL;
		}
		chunk->used = 0;
		chunk->size = size;
		chunk->next = p->text;
		p->text = chunk;
	}
	chunk->used += bytes;
	return chunk->bytes + chunk->used - bytes;
}

csink_str_t csink_profile_strn(struct csink_profile *p, const char *s, size_t len)
{
	uint32_t hash = (uint32_t)csink_hash_bytes(s, len);
	struct csink_slot *slot;
	char *text;

	if (!len || len > UINT32_MAX || table_prepare(p, &p->string_table) || RESERVE(p, strings, 1))
		return 0;
	CSINK_TABLE_PROBE(p->string_table, hash, slot,
			  p->strings[id].len == len && !memcmp(p->strings[id].text, s, len));
	if (slot->id)
		return slot->id;
	text = text_room(p, len + 1);
	if (!text)
		return 0;
	memcpy(text, s, len);
	text[len] = 0;
	p->strings[p->nr_strings] = (struct csink_profile_string){text, len};
	csink_table_set(&p->string_table, slot, hash, p->nr_strings);
	return p->nr_strings++;
}

csink_str_t csink_profile_str(struct csink_profile *p, const char *s)
{
	return s ? csink_profile_strn(p, s, strlen(s)) : 0;
}

csink_str_t csink_profile_str_find(const struct csink_profile *p, const char *s)
{
	size_t len = strlen(s);
	uint32_t hash = (uint32_t)csink_hash_bytes(s, len);
	struct csink_slot *slot;

	if (!p->string_table.slots)
		return 0;
	CSINK_TABLE_PROBE(p->string_table, hash, slot,
			  p->strings[id].len == len && !memcmp(p->strings[id].text, s, len));
	return slot->id;
}

const char *csink_profile_text(const struct csink_profile *p, csink_str_t id)
{
	return id < p->nr_strings ? p->strings[id].text : "";
}

uint32_t csink_profile_mapping_add(struct csink_profile *p, const struct csink_profile_mapping *m)
{
	if (RESERVE(p, mappings, 1))
		return 0;
	p->mappings[p->nr_mappings] = *m;
	return p->nr_mappings++;
}

void csink_profile_mapping_join(struct csink_profile_mapping *known, const struct csink_profile_mapping *m)
{
	known->has_functions &= m->has_functions;
	known->has_filenames &= m->has_filenames;
	known->has_lines &= m->has_lines;
	known->has_inlines &= m->has_inlines;
}

uint32_t csink_profile_most_lines(const struct csink_profile *p)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < p->nr_locations; i++)
		most = CSINK_MAX(most, p->locations[i].nr_lines);
	return most;
}

uint32_t csink_profile_longest_stack(const struct csink_profile *p)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < p->nr_stacks; i++)
		longest = CSINK_MAX(longest, p->stacks[i].nr);
	return longest;
}

uint32_t csink_profile_function_add(struct csink_profile *p, const struct csink_profile_function *f)
{
	uint32_t hash = (uint32_t)csink_hash_bytes(f, sizeof(*f));
	struct csink_slot *slot;

	if (table_prepare(p, &p->function_table) || RESERVE(p, functions, 1))
		return 0;
	CSINK_TABLE_PROBE(p->function_table, hash, slot, !memcmp(&p->functions[id], f, sizeof(*f)));
	if (slot->id)
		return slot->id;
	p->functions[p->nr_functions] = *f;
	csink_table_set(&p->function_table, slot, hash, p->nr_functions);
	return p->nr_functions++;
}

void csink_profile_location_set_lines(struct csink_profile *p, uint32_t location,
				      const struct csink_profile_line *lines, uint32_t nr_lines)
{
	if (!nr_lines || !location || RESERVE(p, lines, nr_lines))
		return;
	memcpy(p->lines + p->nr_lines, lines, nr_lines * sizeof(*lines));
	p->locations[location].first_line = p->nr_lines;
	p->locations[location].nr_lines = nr_lines;
	p->nr_lines += nr_lines;
}

uint32_t csink_profile_location_add(struct csink_profile *p, uint32_t mapping, uint64_t address,
				    const struct csink_profile_line *lines, uint32_t nr_lines)
{
	if (RESERVE(p, locations, 1))
		return 0;
	p->locations[p->nr_locations] = (struct csink_profile_location){.address = address, .mapping = mapping};
	csink_profile_location_set_lines(p, p->nr_locations, lines, nr_lines);
	return p->nr_locations++;
}

uint32_t csink_profile_stack_add(struct csink_profile *p, const uint32_t *locations, uint32_t nr)
{
	size_t bytes = nr * sizeof(*locations);
	uint32_t hash = (uint32_t)csink_hash_bytes(locations, bytes);
	struct csink_slot *slot;

	if (!nr || table_prepare(p, &p->stack_table) || RESERVE(p, stacks, 1) || RESERVE(p, stack_ids, nr))
		return 0;
	CSINK_TABLE_PROBE(p->stack_table, hash, slot,
			  p->stacks[id].nr == nr && !memcmp(p->stack_ids + p->stacks[id].first, locations, bytes));
	if (slot->id)
		return slot->id;
	memcpy(p->stack_ids + p->nr_stack_ids, locations, bytes);
	p->stacks[p->nr_stacks] = (struct csink_profile_range){p->nr_stack_ids, nr};
	p->nr_stack_ids += nr;
	csink_table_set(&p->stack_table, slot, hash, p->nr_stacks);
	return p->nr_stacks++;
}

uint32_t csink_profile_labels_add(struct csink_profile *p, const struct csink_profile_label *labels, uint32_t nr)
{
	size_t bytes = nr * sizeof(*labels);
	uint32_t hash = (uint32_t)csink_hash_bytes(labels, bytes);
	struct csink_slot *slot;

	if (!nr || table_prepare(p, &p->label_table) || RESERVE(p, label_sets, 1) || RESERVE(p, labels, nr))
		return 0;
	CSINK_TABLE_PROBE(p->label_table, hash, slot,
			  p->label_sets[id].nr == nr && !memcmp(p->labels + p->label_sets[id].first, labels, bytes));
	if (slot->id)
		return slot->id;
	memcpy(p->labels + p->nr_labels, labels, bytes);
	p->label_sets[p->nr_label_sets] = (struct csink_profile_range){p->nr_labels, nr};
	p->nr_labels += nr;
	csink_table_set(&p->label_table, slot, hash, p->nr_label_sets);
	return p->nr_label_sets++;
}

const struct csink_profile_label *csink_profile_label_find(const struct csink_profile *p, uint32_t set, csink_str_t key)
{
	const struct csink_profile_label *label = p->labels + p->label_sets[set].first;

	for (uint32_t i = 0; key && i < p->label_sets[set].nr; i++, label++) {
		if (label->key == key)
			return label;
	}
	return NULL;
}
