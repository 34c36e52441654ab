/*
 * The sampled allocations that are not freed yet: a filter that answers most frees with one load, and a table by
 * address. No lock: a slot has one owner between the two stores that take and give it. A forked child finds both empty.
 */
#ifndef CSINK_ALLOC_LIVE_H
#define CSINK_ALLOC_LIVE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How many addresses of the table have these bits. Neighbours of the program share a line of the cache, which a hash
 * would part. Counts stop at the largest number.
 */
#define CSINK_LIVE_FILTER 0x10000u
extern uint8_t csink_live_filter[CSINK_LIVE_FILTER] __attribute__((visibility("hidden")));

static inline uint8_t *csink_live_filter_of(uintptr_t address)
{
	return &csink_live_filter[address >> 4 & (CSINK_LIVE_FILTER - 1)];
}

/** May the address be in the table? Context: any. */
static inline bool csink_live_may_be(const void *address)
{
	return *csink_live_filter_of((uintptr_t)address) != 0;
}

/* What the table keeps of an allocation. */
struct csink_live_item {
	uint64_t bytes;   /* that were asked for */
	uint32_t row;     /* the agent's */
	uint32_t made_ms; /* CLOCK_MONOTONIC */
};

/** Make the table. False: there is no memory, and nothing will be in it. Context: init. */
bool csink_live_begin(void);

/** Empty filter and table, where the kernel has not done that at fork. Context: init, in a forked child. */
void csink_live_forked(void);

/** Put an address in, in place of what it has stood for. False: its part of the table is full. Context: any. */
bool csink_live_put(const void *address, const struct csink_live_item *item);

/** Take an address out. False: it is not in. Context: any. */
bool csink_live_take(const void *address, struct csink_live_item *item);

/** The first item at a place not below *at, which is set behind it; false: there is none. Context: any. */
bool csink_live_next(uint32_t *at, struct csink_live_item *item);

#endif
