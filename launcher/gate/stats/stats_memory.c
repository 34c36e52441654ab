/* Remembers that there was no memory for a computation: see stats.h. */
#include "launcher/gate/stats/stats.h"

static _Thread_local bool lacked;

void *csink_stats_memory(void *block)
{
	lacked |= !block;
	return block;
}

bool csink_stats_lacked_memory(void)
{
	bool was = lacked;

	lacked = false;
	return was;
}
