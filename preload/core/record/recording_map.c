/*
 * How a recording is mapped: a small piece first, which grows in place.
 *
 * A mapping as large as the recording may become would be locked and filled by the program's mlockall(2), and would
 * count against its RLIMIT_MEMLOCK and RLIMIT_AS. mremap(2) without MREMAP_MAYMOVE grows a mapping where it lies, takes
 * no file descriptor and may be called in a handler. For that the addresses behind it have to stay free: the mapping is
 * put far below the others, where the kernel does not put the program's own until it has filled all that lies between.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/calls_off.h"
#include "preload/core/record/recording.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
	FIRST_BLOCKS = 2,  /* made real at creation: the header, and what most small programs need */
	STEP_BLOCKS = 32,  /* at most so many are made real at a time later on: first 2, then 4... */
	PAGE_BLOCKS = 16,  /* blocks in the largest page there is, 64 KiB; mapped at first */
	DOUBLE_UPTO = 512, /* the mapping doubles up to 2 MiB, and then grows by so much at a time */
	NR_GUESSES = 8,    /* see grow() */
	NR_PLACES = 4,
	OLD_KERNEL = 1024, /* blocks allocated at once where pages cannot be made real without an fd: 4 MiB */
};

/*
 * Below other mappings by 1/512 of the address, 256 GiB on x86_64: as much as possible without leaving the addresses
 * that ThreadSanitizer and MemorySanitizer allow a program's mappings (the former: from 0x7e8000000000). On machines
 * with 39-bit addresses by 8 GiB. A forked child's recording is made while its parent's is still mapped: the places
 * are taken in turn.
 */
#define DISTANCE(base) CSINK_MAX((base) / 512, 1ULL << 33)
#define PLACE_BYTES (2 * CSINK_REC_MAX_BYTES)

/* What is mapped now, for a handler that has an address only. A forked child has its parent's beside its own. */
struct csink_recording_guard {
	_Atomic uintptr_t start; /* 0: free */
	_Atomic uint32_t blocks; /* as mapped_blocks */
	_Atomic uint32_t is_replaced;
};
static struct csink_recording_guard guards[4];

static uint32_t places_used;

static uint64_t place_at(uint64_t base, uint32_t i)
{
	uint64_t shift = i % NR_PLACES * PLACE_BYTES, distance = DISTANCE(base);

	/* valgrind puts libraries at the lower end; then there is room above. */
	return (base > 4 * distance ? base - distance - shift : base + 2 * distance + shift) & ~0xffffULL;
}

/*
 * Map the first blocks in one of the places; where none is free, all blocks, since such a mapping could hardly grow.
 * @mapped  how many were mapped.
 * Returns the address or -errno (csink_raw_failed).
 */
static long map_file(int fd, uint32_t first, uint32_t blocks, uint32_t *mapped)
{
	static const char anchor; /* in this library, and so near the other mappings */
	size_t bytes = (size_t)first * CSINK_REC_BLOCK;

	*mapped = first;
	for (uint32_t i = 0; i < NR_PLACES; i++) {
		long place = (long)place_at((uintptr_t)&anchor, places_used++);
		/* An address that is taken already is no error: the kernel chooses another. */
		long map = csink_rawcall(SYS_mmap, place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
					 0);

		if (map == place || csink_raw_failed(map))
			return map;
		csink_rawcall(SYS_munmap, map, bytes);
	}
	*mapped = blocks;
	return csink_rawcall(SYS_mmap, NULL, (size_t)blocks * CSINK_REC_BLOCK, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_NORESERVE, fd, 0);
}

static void take_guard(struct csink_recording *rec)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(guards) && !rec->guard; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&guards[i].start, &none, (uintptr_t)rec->header))
			continue;
		atomic_store(&guards[i].is_replaced, 0);
		atomic_store(&guards[i].blocks, atomic_load(&rec->mapped_blocks));
		rec->guard = &guards[i];
	}
}

static void release_guard(struct csink_recording *rec)
{
	if (!rec->guard)
		return;
	atomic_store(&rec->guard->blocks, 0);
	atomic_store(&rec->guard->start, 0);
	rec->guard = NULL;
}

bool csink_recording_replace(uintptr_t address)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(guards); i++) {
		uintptr_t start = atomic_load(&guards[i].start);
		size_t bytes = (size_t)atomic_load(&guards[i].blocks) * CSINK_REC_BLOCK;

		if (!start || address - start >= bytes || csink_calls_are_off(CSINK_CALLS_MEMORY))
			continue;
		/* First, so that nothing is added to the file's mapping behind the new one. */
		atomic_store(&guards[i].is_replaced, 1);
		if (csink_raw_failed(csink_rawcall(SYS_mmap, start, bytes, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)))
			return false;
		csink_rawcall(SYS_madvise, start, bytes, MADV_DONTDUMP);
		return true;
	}
	return false;
}

/* The sizes that a mapping takes, one after the other. */
static uint32_t next_size(const struct csink_recording *rec, uint32_t blocks)
{
	return CSINK_MIN(rec->max_blocks, blocks < DOUBLE_UPTO ? 2 * blocks : blocks + DOUBLE_UPTO);
}

static bool resize(struct csink_recording *rec, uint32_t from, uint32_t to)
{
	return !csink_raw_failed(csink_rawcall(SYS_mremap, rec->header, (size_t)from * CSINK_REC_BLOCK,
					       (size_t)to * CSINK_REC_BLOCK, 0));
}

/* Never backwards: another thread may have got further meanwhile. */
static void raise_to(_Atomic uint32_t *blocks, uint32_t to)
{
	uint32_t now = atomic_load_explicit(blocks, memory_order_relaxed);

	while (now < to &&
	       !atomic_compare_exchange_weak_explicit(blocks, &now, to, memory_order_relaxed, memory_order_relaxed))
		;
}

/*
 * Grow the mapping by one step. The kernel grows a mapping only if the call has its exact size, so only one of several
 * threads succeeds. The others try the next sizes, as does a handler that interrupts the successful thread before it
 * has stored the new size. They cannot do so after the last step, which leaves nothing to grow: then it is not known
 * whether the mapping is large enough, as long as another one may have a size to store.
 * Returns 0, -EAGAIN (not known, ask again later) or -ENOSPC.
 */
static int grow(struct csink_recording *rec)
{
	uint32_t known = atomic_load_explicit(&rec->mapped_blocks, memory_order_relaxed), size = known;
	bool grown = false;

	if (rec->guard && atomic_load_explicit(&rec->guard->is_replaced, memory_order_relaxed))
		return -ENOSPC;
	atomic_fetch_add(&rec->growing, 1);
	for (int i = 0; i < NR_GUESSES && size < rec->max_blocks && !grown; i++) {
		uint32_t next = next_size(rec, size);

		grown = resize(rec, size, next);
		if (grown) {
			raise_to(&rec->mapped_blocks, next);
			if (rec->guard)
				raise_to(&rec->guard->blocks, next);
		}
		size = next;
	}
	/* A thread that had grown it before the last attempt here has stored the size, or is still among the growing.
	 */
	if (atomic_fetch_sub(&rec->growing, 1) > 1 && !grown)
		return -EAGAIN;
	return grown || atomic_load(&rec->mapped_blocks) > known ? 0 : -ENOSPC;
}

/* Returns 0 or -errno. */
static long populate(struct csink_recording *rec, uint32_t from, uint32_t to)
{
	return csink_rawcall(SYS_madvise, (char *)rec->header + (size_t)from * CSINK_REC_BLOCK,
			     (size_t)(to - from) * CSINK_REC_BLOCK, MADV_POPULATE_WRITE);
}

int csink_recording_make_ready(struct csink_recording *rec, uint32_t from, uint32_t n)
{
	uint32_t ready = atomic_load_explicit(&rec->ready_blocks, memory_order_relaxed), upto;
	int err = 0;

	if (from + n <= ready)
		return 0;
	upto = CSINK_MAX(from + n, ready + CSINK_MIN(ready, (uint32_t)STEP_BLOCKS));
	upto = CSINK_MIN(upto, atomic_load_explicit(&rec->limit_blocks, memory_order_relaxed));
	while (!err && upto > atomic_load_explicit(&rec->mapped_blocks, memory_order_relaxed))
		err = grow(rec);
	upto = CSINK_MIN(upto, atomic_load_explicit(&rec->mapped_blocks, memory_order_relaxed));
	if (from + n > upto)
		return err ? err : -ENOSPC;
	if (populate(rec, ready & ~(PAGE_BLOCKS - 1u), upto))
		return -ENOSPC;
	raise_to(&rec->ready_blocks, upto);
	return 0;
}

/* A kernel before 5.14: allocate a smaller file now, and never grow it. Returns 0 or -errno. */
static int allocate_all(struct csink_recording *rec, int fd)
{
	int err;

	rec->max_blocks = CSINK_MIN(rec->max_blocks, (uint32_t)OLD_KERNEL);
	err = posix_fallocate(fd, 0, (off_t)rec->max_blocks * CSINK_REC_BLOCK);
	if (err)
		return -err;
	while (rec->mapped_blocks < rec->max_blocks && !grow(rec))
		;
	rec->max_blocks = rec->mapped_blocks;
	atomic_init(&rec->ready_blocks, rec->max_blocks);
	return 0;
}

int csink_recording_map(struct csink_recording *rec, int fd, uint64_t bytes)
{
	uint32_t blocks = (uint32_t)(bytes / CSINK_REC_BLOCK), first = CSINK_MIN(blocks, (uint32_t)PAGE_BLOCKS);
	uint32_t mapped;
	long err, map;

	blocks = CSINK_MAX(first, blocks & ~(PAGE_BLOCKS - 1u)); /* mremap takes whole pages */
	err = csink_rawcall(SYS_ftruncate, fd, (uint64_t)blocks * CSINK_REC_BLOCK);
	if (err)
		return (int)err;
	map = map_file(fd, first, blocks, &mapped);
	if (csink_raw_failed(map))
		return (int)map;
	rec->header = (struct csink_rec_header *)map;
	rec->max_blocks = blocks;
	atomic_init(&rec->mapped_blocks, mapped);
	take_guard(rec);
	err = populate(rec, 0, FIRST_BLOCKS);
	if (!err)
		atomic_init(&rec->ready_blocks, FIRST_BLOCKS);
	else
		err = err == -EINVAL ? allocate_all(rec, fd) : -ENOSPC;
	if (err) {
		csink_recording_close(rec);
		return (int)err;
	}
	/* A core is of the program. What the mapping grows by is left out with it. */
	csink_rawcall(SYS_madvise, rec->header, (size_t)rec->mapped_blocks * CSINK_REC_BLOCK, MADV_DONTDUMP);
	atomic_init(&rec->limit_blocks, rec->max_blocks);
	return 0;
}

void csink_recording_close(struct csink_recording *rec)
{
	if (rec->header)
		csink_rawcall(SYS_munmap, rec->header, (size_t)atomic_load(&rec->mapped_blocks) * CSINK_REC_BLOCK);
	release_guard(rec);
	rec->header = NULL;
}

void csink_recording_unlock(struct csink_recording *rec)
{
	if (rec->header)
		csink_rawcall(SYS_munlock, rec->header, (size_t)atomic_load(&rec->mapped_blocks) * CSINK_REC_BLOCK);
}
