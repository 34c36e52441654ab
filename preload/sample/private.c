/* Private memory: see private.h. What the first mapping has room for is handed out from below, by whoever comes. */
#include "preload/sample/private.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "include/internal/base.h"

/* The rules' cache takes 512 KiB, one thread some 42. What is not touched is not there. */
enum { FIRST_BYTES = 640 * 1024, ALIGNMENT = 64 };

static char *_Atomic first;
static _Atomic size_t used; /* of it */

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

static char *get_first(void)
{
	char *at = atomic_load_explicit(&first, memory_order_acquire), *none = NULL;

	if (at)
		return at;
	at = map(FIRST_BYTES);
	/* The loser's is as good for nobody. Nothing is read there before it is written: the order does not matter. */
	if (at && !atomic_compare_exchange_strong(&first, &none, at)) {
		munmap(at, FIRST_BYTES);
		at = none;
	}
	return at;
}

void *csink_private_get(size_t bytes)
{
	size_t taken = atomic_load_explicit(&used, memory_order_relaxed);
	char *at = NULL;
	int saved = errno;

	bytes = CSINK_ALIGN_UP(bytes, (size_t)ALIGNMENT);
	do {
		if (bytes > FIRST_BYTES - taken)
			break;
		at = get_first();
	} while (at && !atomic_compare_exchange_weak_explicit(&used, &taken, taken + bytes, memory_order_relaxed,
							      memory_order_relaxed));
	at = at ? at + taken : map(bytes);
	errno = saved;
	return at;
}
