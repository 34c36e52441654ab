/* The hash table of ids: see table.h. */
#include "launcher/base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int csink_table_resize(struct csink_table *table, uint64_t nr_slots)
{
	struct csink_slot *slots = nr_slots <= UINT32_MAX ? calloc(nr_slots, sizeof(*slots)) : NULL;
	uint32_t at, mask = (uint32_t)(nr_slots - 1);

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; table->slots && i <= table->mask; i++) {
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

void csink_table_clear(struct csink_table *table)
{
	if (table->slots)
		memset(table->slots, 0, ((size_t)table->mask + 1) * sizeof(*table->slots));
	table->nr = 0;
}

void csink_table_free(struct csink_table *table)
{
	free(table->slots);
	*table = (struct csink_table){0};
}
