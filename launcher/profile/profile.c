/* The profile in memory (profile.h). Written by collect and the pprof reader; read by report and the writers. */
#include "launcher/profile/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"

/* Strings live in chunks that never move, so that a text stays where it is while others are added. */
struct csink_text_chunk {
	struct csink_text_chunk *next;
	size_t used, size;
	char bytes[];
};

#define CHUNK_BYTES (256 * 1024 - sizeof(struct csink_text_chunk))
#define HASH_MULTIPLIER 0x9e3779b97f4a7c15ULL

static uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)(a ^ HASH_MULTIPLIER) * (b ^ 0xd6e8feb86659fd93ULL);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_bytes(const void *data, size_t len)
{
	const unsigned char *at = data;
	uint64_t hash = len, word;

	for (; len >= 8; at += 8, len -= 8) {
		memcpy(&word, at, 8);
		hash = mix(hash, word);
	}
	if (len) {
		word = 0;
		memcpy(&word, at, len);
		hash = mix(hash, word);
	}
	return (uint32_t)(hash ^ hash >> 32);
}

/* Make room for `more` elements after nr. Returns 0, or marks the profile and returns -ENOMEM. */
static int reserve(struct csink_profile *p, void **array, uint32_t nr, uint32_t *cap, uint32_t more, size_t size)
{
	uint64_t want = (uint64_t)nr + more, next = CSINK_MAX((uint64_t)*cap * 2, 64);
	void *grown;

	if (want <= *cap)
		return 0;
	next = CSINK_MIN(CSINK_MAX(next, want), UINT32_MAX);
	grown = want <= UINT32_MAX && size && next <= SIZE_MAX / size ? realloc(*array, next * size) : NULL;
	if (!grown)
		return p->error = -ENOMEM;
	*array = grown;
	*cap = next;
	return 0;
}

#define RESERVE(p, what, more)                                                                                         \
	reserve(p, (void **)&(p)->what, (p)->nr_##what, &(p)->cap_##what, more, sizeof(*(p)->what))

/* To nr_slots, a power of two that is more than there are. */
static int table_grow(struct csink_profile *p, struct csink_table *table, uint64_t nr_slots)
{
	struct csink_slot *slots = nr_slots <= UINT32_MAX ? calloc(nr_slots, sizeof(*slots)) : NULL;
	uint32_t i, at, mask = nr_slots - 1;

	if (!slots)
		return p->error = -ENOMEM;
	for (i = 0; table->slots && i <= table->mask; i++) {
		if (!table->slots[i].id)
			continue;
		for (at = table->slots[i].hash & mask; slots[at].id; at = (at + 1) & mask)
			;
		slots[at] = table->slots[i];
	}
	free(table->slots);
	table->slots = slots;
	table->mask = mask;
	return 0;
}

/* Room for one more id. Called before a look-up, so that its slot can be used. */
static int table_prepare(struct csink_profile *p, struct csink_table *table)
{
	if (table->slots && table->nr < table->mask / 2)
		return 0;
	return table_grow(p, table, table->slots ? ((uint64_t)table->mask + 1) * 2 : 256);
}

static void table_set(struct csink_table *table, struct csink_slot *slot, uint32_t hash, uint32_t id)
{
	*slot = (struct csink_slot){hash, id};
	table->nr++;
}

/* Walk the slots of a hash until `same` (an expression of `id`) holds or an empty one is met; slot is where it stopped.
 */
#define TABLE_PROBE(table, key, slot, same)                                                                            \
	do {                                                                                                           \
		uint32_t at_ = (key) & (table).mask, id;                                                               \
		for (;; at_ = (at_ + 1) & (table).mask) {                                                              \
			(slot) = &(table).slots[at_];                                                                  \
			id = (slot)->id;                                                                               \
			if (!id || ((slot)->hash == (key) && (same)))                                                  \
				break;                                                                                 \
		}                                                                                                      \
	} while (0)

static void table_expect(struct csink_profile *p, struct csink_table *table, uint32_t more)
{
	uint64_t nr_slots = 256;

	while (nr_slots / 2 <= (uint64_t)table->nr + more + 1)
		nr_slots *= 2;
	if (nr_slots <= UINT32_MAX && (!table->slots || nr_slots > (uint64_t)table->mask + 1))
		table_grow(p, table, nr_slots);
}

void csink_profile_expect(struct csink_profile *p, uint32_t nr_samples)
{
	table_expect(p, &p->stack_table, nr_samples);
	table_expect(p, &p->sample_table, nr_samples);
}

struct csink_profile *csink_profile_create(void)
{
	struct csink_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (RESERVE(p, strings, 1) || RESERVE(p, mappings, 1) || RESERVE(p, functions, 1) || RESERVE(p, locations, 1) ||
	    RESERVE(p, stacks, 1) || RESERVE(p, label_sets, 1) || RESERVE(p, lines, 1) || RESERVE(p, stack_ids, 1) ||
	    RESERVE(p, labels, 1)) { /* the pools too, so that an empty range begins somewhere */
		csink_profile_destroy(p);
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

void csink_profile_destroy(struct csink_profile *p)
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
		chunk = size < SIZE_MAX - sizeof(*chunk) ? malloc(sizeof(*chunk) + size) : NULL;
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
	uint32_t hash = hash_bytes(s, len);
	struct csink_slot *slot;
	char *text;

	if (!len || len > UINT32_MAX || table_prepare(p, &p->string_table) || RESERVE(p, strings, 1))
		return 0;
	TABLE_PROBE(p->string_table, hash, slot, p->strings[id].len == len && !memcmp(p->strings[id].text, s, len));
	if (slot->id)
		return slot->id;
	text = text_room(p, len + 1);
	if (!text)
		return 0;
	memcpy(text, s, len);
	text[len] = 0;
	p->strings[p->nr_strings] = (struct csink_profile_string){text, len};
	table_set(&p->string_table, slot, hash, p->nr_strings);
	return p->nr_strings++;
}

csink_str_t csink_profile_str(struct csink_profile *p, const char *s)
{
	return s ? csink_profile_strn(p, s, strlen(s)) : 0;
}

const char *csink_profile_text(const struct csink_profile *p, csink_str_t id)
{
	return id < p->nr_strings ? p->strings[id].text : "";
}

int csink_profile_type_add(struct csink_profile *p, const char *name, const char *unit)
{
	if (p->nr_samples)
		return -EINVAL;
	if (RESERVE(p, types, 1))
		return -ENOMEM;
	p->types[p->nr_types].name = csink_profile_str(p, name);
	p->types[p->nr_types].unit = csink_profile_str(p, unit);
	return p->error ? p->error : (int)p->nr_types++;
}

int csink_profile_type_append(struct csink_profile *p, const char *name, const char *unit)
{
	uint32_t nr = p->nr_types, nr_samples = p->nr_samples, i;
	int64_t *values = NULL;
	int type;

	if (p->cap_samples) {
		values = calloc(p->cap_samples, (nr + 1ULL) * sizeof(*values));
		if (!values)
			return p->error = -ENOMEM;
	}
	p->nr_samples = 0; /* as before the first */
	type = csink_profile_type_add(p, name, unit);
	p->nr_samples = nr_samples;
	if (type < 0 || !values) {
		free(values);
		return type;
	}
	for (i = 0; i < nr_samples; i++)
		memcpy(values + i * (nr + 1ULL), p->values + (size_t)i * nr, nr * sizeof(*values));
	free(p->values);
	p->values = values;
	return type;
}

int csink_profile_type_find(const struct csink_profile *p, const char *name)
{
	uint32_t i;

	for (i = 0; i < p->nr_types; i++) {
		if (!strcmp(csink_profile_text(p, p->types[i].name), name))
			return i;
	}
	return -ENOENT;
}

uint32_t csink_profile_mapping_add(struct csink_profile *p, const struct csink_profile_mapping *m)
{
	if (RESERVE(p, mappings, 1))
		return 0;
	p->mappings[p->nr_mappings] = *m;
	return p->nr_mappings++;
}

uint32_t csink_profile_function_add(struct csink_profile *p, const struct csink_profile_function *f)
{
	uint32_t hash = hash_bytes(f, sizeof(*f));
	struct csink_slot *slot;

	if (table_prepare(p, &p->function_table) || RESERVE(p, functions, 1))
		return 0;
	TABLE_PROBE(p->function_table, hash, slot, !memcmp(&p->functions[id], f, sizeof(*f)));
	if (slot->id)
		return slot->id;
	p->functions[p->nr_functions] = *f;
	table_set(&p->function_table, slot, hash, p->nr_functions);
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
	uint32_t hash = hash_bytes(locations, bytes);
	struct csink_slot *slot;

	if (!nr || table_prepare(p, &p->stack_table) || RESERVE(p, stacks, 1) || RESERVE(p, stack_ids, nr))
		return 0;
	TABLE_PROBE(p->stack_table, hash, slot,
		    p->stacks[id].nr == nr && !memcmp(p->stack_ids + p->stacks[id].first, locations, bytes));
	if (slot->id)
		return slot->id;
	memcpy(p->stack_ids + p->nr_stack_ids, locations, bytes);
	p->stacks[p->nr_stacks] = (struct csink_profile_range){p->nr_stack_ids, nr};
	p->nr_stack_ids += nr;
	table_set(&p->stack_table, slot, hash, p->nr_stacks);
	return p->nr_stacks++;
}

uint32_t csink_profile_labels_add(struct csink_profile *p, const struct csink_profile_label *labels, uint32_t nr)
{
	size_t bytes = nr * sizeof(*labels);
	uint32_t hash = hash_bytes(labels, bytes);
	struct csink_slot *slot;

	if (!nr || table_prepare(p, &p->label_table) || RESERVE(p, label_sets, 1) || RESERVE(p, labels, nr))
		return 0;
	TABLE_PROBE(p->label_table, hash, slot,
		    p->label_sets[id].nr == nr && !memcmp(p->labels + p->label_sets[id].first, labels, bytes));
	if (slot->id)
		return slot->id;
	memcpy(p->labels + p->nr_labels, labels, bytes);
	p->label_sets[p->nr_label_sets] = (struct csink_profile_range){p->nr_labels, nr};
	p->nr_labels += nr;
	table_set(&p->label_table, slot, hash, p->nr_label_sets);
	return p->nr_label_sets++;
}

/* Values grow with the samples: both have room for cap_samples. */
static int reserve_samples(struct csink_profile *p)
{
	uint32_t cap = p->cap_samples;
	int64_t *values;

	if (RESERVE(p, samples, 1))
		return -ENOMEM;
	if (cap == p->cap_samples)
		return 0;
	values = reallocarray(p->values, (size_t)p->cap_samples * CSINK_MAX(p->nr_types, 1), sizeof(*values));
	if (!values) {
		p->cap_samples = cap;
		return p->error = -ENOMEM;
	}
	p->values = values;
	return 0;
}

static uint32_t sample_hash(uint32_t stack, uint32_t labels)
{
	uint64_t mixed = mix(stack, labels);

	return mixed ^ mixed >> 32;
}

void csink_profile_sample_add(struct csink_profile *p, uint32_t stack, uint32_t labels, const int64_t *values)
{
	uint32_t hash = sample_hash(stack, labels), i, sample;
	struct csink_slot *slot;

	if (p->error || table_prepare(p, &p->sample_table) || reserve_samples(p))
		return;
	TABLE_PROBE(p->sample_table, hash, slot,
		    p->samples[id - 1].stack == stack && p->samples[id - 1].labels == labels);
	if (slot->id) {
		sample = slot->id - 1;
		for (i = 0; i < p->nr_types; i++) /* may wrap with a hostile file's values; never undefined */
			p->values[(size_t)sample * p->nr_types + i] =
				csink_add(p->values[(size_t)sample * p->nr_types + i], values[i]);
		return;
	}
	p->samples[p->nr_samples] = (struct csink_profile_sample){stack, labels};
	if (p->nr_types)
		memcpy(p->values + (size_t)p->nr_samples * p->nr_types, values, p->nr_types * sizeof(*values));
	p->nr_samples++;
	table_set(&p->sample_table, slot, hash, p->nr_samples);
}

void csink_profile_keep(struct csink_profile *p, const bool *keep)
{
	struct csink_table table = p->sample_table;
	uint32_t i, hash, kept = 0;
	struct csink_slot *slot;

	if (table.slots)
		memset(table.slots, 0, ((size_t)table.mask + 1) * sizeof(*table.slots));
	for (i = 0; i < p->nr_samples; i++) {
		if (!keep[i])
			continue;
		p->samples[kept] = p->samples[i];
		memmove(p->values + (size_t)kept * p->nr_types, p->values + (size_t)i * p->nr_types,
			p->nr_types * sizeof(*p->values));
		hash = sample_hash(p->samples[kept].stack, p->samples[kept].labels);
		TABLE_PROBE(table, hash, slot, false);
		*slot = (struct csink_slot){hash, ++kept};
	}
	p->nr_samples = p->sample_table.nr = kept;
}

void csink_profile_fact_add(struct csink_profile *p, const char *key, const char *fmt, ...)
{
	char line[2048];
	int used = snprintf(line, sizeof(line), "%s: ", key);
	va_list ap;
	char *c;

	va_start(ap, fmt);
	vsnprintf(line + used, sizeof(line) - used, fmt, ap);
	va_end(ap);
	for (c = line; *c; c++) { /* a comment is one line, and harmless on a terminal */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	csink_profile_comment_add(p, csink_profile_str(p, line));
}

void csink_profile_comment_add(struct csink_profile *p, csink_str_t text)
{
	if (!RESERVE(p, comments, 1))
		p->comments[p->nr_comments++] = text;
}

const char *csink_profile_fact(const struct csink_profile *p, const char *key, uint32_t nr)
{
	size_t len = strlen(key);
	const char *text;
	uint32_t i;

	for (i = 0; i < p->nr_comments; i++) {
		text = csink_profile_text(p, p->comments[i]);
		if (!strncmp(text, key, len) && text[len] == ':' && text[len + 1] == ' ' && !nr--)
			return text + len + 2;
	}
	return NULL;
}
