/* Private memory: see private_memory.h. What the first mapping has room for is handed out from its start, to any
 * thread. No lock; async-signal-safe.
 */
#include "preload/core/private_memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/calls_off.h"

/* The rules' cache takes 512 KiB, one thread some 42, phases' names 17. What is not touched is not there. */
enum { FIRST_BYTES = 660 * 1024, ALIGNMENT = 64 };

/* What begins each mapping that is never given back. */
struct region {
	struct region *next;
	size_t bytes;
	char rest[ALIGNMENT - 2 * sizeof(void *)];
};

static struct region *_Atomic first;
static struct region *_Atomic regions;              /* all of them, newest first */
static _Atomic size_t used = sizeof(struct region); /* of the first one */
static _Atomic uint32_t is_locked;                  /* MCL_FUTURE: the kernel locks what is mapped, and fills it */

void *csink_private_map(size_t bytes)
{
	bool locked = atomic_load_explicit(&is_locked, memory_order_relaxed) && !csink_calls_are_off(CSINK_CALLS_LOCK);
	long at = csink_rawcall(SYS_mmap, NULL, bytes, locked ? PROT_NONE : PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (csink_raw_failed(at))
		return NULL;
	/* What cannot be read is not filled: unlock it first. */
	if (CSINK_UNLIKELY(locked) &&
	    (csink_rawcall(SYS_munlock, at, bytes) || csink_rawcall(SYS_mprotect, at, bytes, PROT_READ | PROT_WRITE))) {
		csink_rawcall(SYS_munmap, at, bytes);
		return NULL;
	}
	if (!csink_calls_are_off(CSINK_CALLS_MEMORY))
		csink_rawcall(SYS_madvise, at, bytes, MADV_DONTDUMP);
	return (void *)at;
}

void csink_private_unlock(bool later_ones)
{
	atomic_store_explicit(&is_locked, later_ones, memory_order_relaxed);
	/* Acquire pairs with the release in list(). */
	for (struct region *at = atomic_load_explicit(&regions, memory_order_acquire); at; at = at->next)
		csink_rawcall(SYS_munlock, at, at->bytes);
}

static void list(struct region *region, size_t bytes)
{
	region->bytes = bytes;
	region->next = atomic_load_explicit(&regions, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&regions, &region->next, region, memory_order_release,
						      memory_order_relaxed))
		;
}

static char *map_one(size_t bytes)
{
	struct region *region = csink_private_map(bytes + sizeof(*region));

	if (!region)
		return NULL;
	list(region, bytes + sizeof(*region));
	return (char *)(region + 1);
}

static char *get_first(void)
{
	struct region *at = atomic_load_explicit(&first, memory_order_acquire), *none = NULL;

	if (at)
		return (char *)at;
	at = csink_private_map(FIRST_BYTES);
	/* Lost the race: unmap our copy. Nothing is read there before it is written: the order does not matter. */
	if (at && !atomic_compare_exchange_strong(&first, &none, at)) {
		csink_rawcall(SYS_munmap, at, FIRST_BYTES);
		return (char *)none;
	}
	if (at)
		list(at, FIRST_BYTES);
	return (char *)at;
}

void *csink_private_get(size_t bytes)
{
	size_t taken = atomic_load_explicit(&used, memory_order_relaxed);
	char *at = NULL;

	bytes = CSINK_ALIGN_UP(bytes, (size_t)ALIGNMENT);
	do {
		if (bytes > FIRST_BYTES - taken)
			break;
		at = get_first();
	} while (at && !atomic_compare_exchange_weak_explicit(&used, &taken, taken + bytes, memory_order_relaxed,
							      memory_order_relaxed));
	return at ? at + taken : map_one(bytes);
}
