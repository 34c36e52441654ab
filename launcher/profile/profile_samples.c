/* Columns of a profile, samples and their values (profile.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/profile/profile_impl.h"

/* ---- columns ---- */

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

int64_t csink_profile_sum(const struct csink_profile *p, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->nr_samples; i++)
		sum = csink_add(sum, csink_profile_values(p, i)[type]);
	return sum;
}

/* ---- samples ---- */

static void table_expect(struct csink_profile *p, struct csink_table *table, uint32_t more)
{
	uint64_t nr_slots = 256;

	while (nr_slots / 2 <= (uint64_t)table->nr + more + 1)
		nr_slots *= 2;
	if (nr_slots <= UINT32_MAX && (!table->slots || nr_slots > (uint64_t)table->mask + 1))
		csink_profile_table_grow(p, table, nr_slots);
}

void csink_profile_expect(struct csink_profile *p, uint32_t nr_samples)
{
	table_expect(p, &p->stack_table, nr_samples);
	table_expect(p, &p->sample_table, nr_samples);
}

/* Values grow with the samples: both have room for cap_samples. */
static int reserve_samples(struct csink_profile *p)
{
	uint32_t cap = p->cap_samples, nr_types = CSINK_MAX(p->nr_types, 1);

	if (RESERVE(p, samples, 1))
		return -ENOMEM;
	if (cap == p->cap_samples)
		return 0;
	if (csink_profile_may_have(p, (uint64_t)(p->cap_samples - cap) * p->nr_types * sizeof(*p->values)) &&
	    !csink_grow((void **)&p->values, p->cap_samples, nr_types * sizeof(*p->values)))
		return 0;
	p->cap_samples = cap;
	return p->error = -ENOMEM;
}

static uint32_t sample_hash(uint32_t stack, uint32_t labels)
{
	return (uint32_t)csink_hash_pair(stack, labels);
}

void csink_profile_sample_add(struct csink_profile *p, uint32_t stack, uint32_t labels, const int64_t *values)
{
	uint32_t hash = sample_hash(stack, labels), i, sample;
	struct csink_slot *slot;

	if (p->error || table_prepare(p, &p->sample_table) || reserve_samples(p))
		return;
	CSINK_TABLE_PROBE(p->sample_table, hash, slot,
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
	csink_table_set(&p->sample_table, slot, hash, p->nr_samples);
}

void csink_profile_keep(struct csink_profile *p, const bool *keep)
{
	uint32_t i, hash, kept = 0;
	struct csink_slot *slot;

	csink_table_clear(&p->sample_table);
	for (i = 0; i < p->nr_samples; i++) {
		if (!keep[i])
			continue;
		p->samples[kept] = p->samples[i];
		memmove(p->values + (size_t)kept * p->nr_types, p->values + (size_t)i * p->nr_types,
			p->nr_types * sizeof(*p->values));
		hash = sample_hash(p->samples[kept].stack, p->samples[kept].labels);
		CSINK_TABLE_PROBE(p->sample_table, hash, slot, false);
		csink_table_set(&p->sample_table, slot, hash, ++kept);
	}
	p->nr_samples = kept;
}
