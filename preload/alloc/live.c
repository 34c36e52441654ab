/* See live.h. Any thread, in its own call of the allocator. */
#include "preload/alloc/live.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "include/internal/rawcall.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Where an address may be: some places of the first few slots, which are in use soon, then some of all others. */
enum { FIRST_SLOTS = 1 << 13, NR_SLOTS = 1 << 18, NEAR = 16, WINDOW = 2 * NEAR, PAGE = 4096, STUCK = 255 };

struct slot {
	_Atomic uintptr_t key; /* ~address: what looks for pointers to blocks is not to find them here; 0, TAKEN */
	struct csink_live_item item;
};
#define TAKEN 1

_Alignas(PAGE) uint8_t csink_live_filter[CSINK_LIVE_FILTER];

/* Parts of the table that ever had an item: at its end a process looks at no other. */
enum { SLOTS_A_PART = 128, NR_PARTS = NR_SLOTS / SLOTS_A_PART };
static _Atomic uint8_t is_used[NR_PARTS];
static struct slot *table;
static bool is_wiped; /* at fork, by the kernel */

bool csink_live_begin(void)
{
	size_t bytes = NR_SLOTS * sizeof(*table);
	long at = csink_rawcall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (csink_raw_failed(at))
		return false;
	is_wiped = !csink_rawcall(SYS_madvise, at, bytes, MADV_WIPEONFORK) &&
		   !csink_rawcall(SYS_madvise, csink_live_filter, sizeof(csink_live_filter), MADV_WIPEONFORK);
	/* Out of core dumps, and where huge pages are the rule, no more than is touched. */
	csink_rawcall(SYS_madvise, at, bytes, MADV_DONTDUMP);
	csink_rawcall(SYS_madvise, at, bytes, MADV_NOHUGEPAGE);
	table = (struct slot *)at;
	return true;
}

void csink_live_forked(void)
{
	if (!table || is_wiped)
		return;
	for (uint32_t i = 0; i < CSINK_LIVE_FILTER; i++)
		csink_live_filter[i] = 0;
	csink_rawcall(SYS_madvise, table, NR_SLOTS * sizeof(*table), MADV_DONTNEED);
}

static struct slot *slot_of(uintptr_t address, uint32_t i)
{
	uint64_t hash = (address >> 4) * 0x9e3779b97f4a7c15ULL;

	if (i < NEAR)
		return &table[((uint32_t)(hash >> 40) + i) % FIRST_SLOTS];
	return &table[FIRST_SLOTS + ((uint32_t)(hash >> 40) + i) % (NR_SLOTS - FIRST_SLOTS)];
}

/* Counts that have stopped stay: how many they stand for is unknown. */
static void count(uintptr_t address, int by)
{
	uint8_t *at = csink_live_filter_of(address), was = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (was != STUCK &&
	       !__atomic_compare_exchange_n(at, &was, (uint8_t)(was + by), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static bool fill(struct slot *slot, uintptr_t was, uintptr_t key, const struct csink_live_item *item)
{
	if (!atomic_compare_exchange_strong_explicit(&slot->key, &was, TAKEN, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	slot->item = *item;
	if (!atomic_load_explicit(&is_used[(slot - table) / SLOTS_A_PART], memory_order_relaxed))
		atomic_store_explicit(&is_used[(slot - table) / SLOTS_A_PART], 1, memory_order_relaxed);
	atomic_store_explicit(&slot->key, key, memory_order_release);
	return true;
}

bool csink_live_put(const void *address, const struct csink_live_item *item)
{
	uintptr_t key = ~(uintptr_t)address;

	if (!table)
		return false;
	/* Freed by a way that is not seen, and handed out again. */
	for (uint32_t i = 0; csink_live_may_be(address) && i < WINDOW; i++)
		if (fill(slot_of((uintptr_t)address, i), key, key, item))
			return true;
	for (uint32_t i = 0; i < WINDOW; i++) {
		if (fill(slot_of((uintptr_t)address, i), 0, key, item)) {
			count((uintptr_t)address, 1);
			return true;
		}
	}
	return false;
}

bool csink_live_take(const void *address, struct csink_live_item *item)
{
	uintptr_t key = ~(uintptr_t)address;

	for (uint32_t i = 0; table && i < WINDOW; i++) {
		struct slot *slot = slot_of((uintptr_t)address, i);
		uintptr_t was = key;

		if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key ||
		    !atomic_compare_exchange_strong_explicit(&slot->key, &was, TAKEN, memory_order_acquire,
							     memory_order_relaxed))
			continue;
		*item = slot->item;
		atomic_store_explicit(&slot->key, 0, memory_order_release);
		count((uintptr_t)address, -1);
		return true;
	}
	return false;
}

bool csink_live_next(uint32_t *at, struct csink_live_item *item)
{
	for (; table && *at < NR_SLOTS; ++*at) {
		if (!atomic_load_explicit(&is_used[*at / SLOTS_A_PART], memory_order_relaxed)) {
			*at |= SLOTS_A_PART - 1;
			continue;
		}
		if (atomic_load_explicit(&table[*at].key, memory_order_acquire) > TAKEN) {
			*item = table[(*at)++].item;
			return true;
		}
	}
	return false;
}
