#include "preload/record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
	FIRST_BLOCKS = 2,                   /* made real at creation: the header, and what most small programs need */
	STEP_BLOCKS = 32,                   /* at most so many are made real at a time later on: first 2, then 4... */
	LEAST_BLOCKS = 8,                   /* a recording has room for, however little a program may map */
	OLD_KERNEL_BYTES = 4 * 1024 * 1024, /* allocated whole where pages cannot be made real without an fd */
	PAGE_BLOCKS = 16,                   /* blocks in the largest page there is, 64 KiB */
	NR_RETIRED = 64,
	SPARE_BLOCKS = 1024, /* left to grow into where the address space is short */
	SHARE = 16,          /* of a limited address space one of so many parts is ours at most */
};

/* Unfinished extents of ended threads: pos in the high half, end in the low one; 0: empty. */
static _Atomic uint64_t retired[NR_RETIRED];

static uint64_t file_limit(uint64_t max_bytes)
{
	struct rlimit lim;

	/* Growing past RLIMIT_FSIZE would raise SIGXFSZ in the program. */
	if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && lim.rlim_cur < max_bytes)
		max_bytes = lim.rlim_cur;
	return max_bytes & ~(uint64_t)(CSINK_REC_BLOCK - 1);
}

static bool path_of(struct csink_recording *rec, const char *run_dir, uint32_t seq)
{
	char digits[32] = CSINK_REC_SUFFIX, *end = digits + sizeof(digits) - sizeof(CSINK_REC_SUFFIX), *at;
	size_t length = strlen(run_dir);

	/* Without stdio, whose pages a program that starts has not touched yet. */
	memcpy(end, CSINK_REC_SUFFIX, sizeof(CSINK_REC_SUFFIX));
	at = csink_digits(end, seq);
	*--at = '.';
	at = csink_digits(at, (uint32_t)getpid());
	*--at = '/';
	if (length + (size_t)(digits + sizeof(digits) - at) > sizeof(rec->path))
		return false;
	memcpy(rec->path, run_dir, length);
	memcpy(rec->path + length, at, (size_t)(digits + sizeof(digits) - at));
	return true;
}

/* The first number from 1 on that is free: they are taken in order, so a chain of thousands of execs asks but a few
 * times each. */
static uint32_t first_free(struct csink_recording *rec, const char *run_dir)
{
	uint32_t taken = 1, free = 1; /* taken: all below are */

	for (; path_of(rec, run_dir, free) && access(rec->path, F_OK) == 0; free *= 2)
		taken = free + 1;
	while (taken < free) {
		uint32_t middle = taken + (free - taken) / 2;

		if (path_of(rec, run_dir, middle) && access(rec->path, F_OK) == 0)
			taken = middle + 1;
		else
			free = middle;
	}
	return free;
}

static int create_file(struct csink_recording *rec, const char *run_dir, uint32_t *seq)
{
	*seq = 0;
	for (int tries = 0; tries < 1000; tries++) {
		int fd;

		if (!path_of(rec, run_dir, *seq))
			return -ENAMETOOLONG;
		fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, rec->path,
					O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
		/* Another process of the same number, in another namespace, may be as fast. */
		*seq = *seq ? *seq + 1 : first_free(rec, run_dir);
	}
	return -EEXIST;
}

/* What a program may map is its own, but for a little. */
static uint64_t map_limit(uint64_t bytes)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_AS, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY)
		bytes = CSINK_MIN(bytes, CSINK_MAX(lim.rlim_cur / SHARE, (uint64_t)LEAST_BLOCKS * CSINK_REC_BLOCK));
	return bytes & ~(uint64_t)(CSINK_REC_BLOCK - 1);
}

/* Map the file at the largest size that the address space takes. */
static int map_file(struct csink_recording *rec, int fd, uint64_t bytes)
{
	void *map = MAP_FAILED;

	for (; bytes >= (uint64_t)LEAST_BLOCKS * CSINK_REC_BLOCK;
	     bytes = bytes / 2 & ~(uint64_t)(CSINK_REC_BLOCK - 1)) {
		if (csink_rawcall(SYS_ftruncate, fd, bytes) < 0)
			return -errno;
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (map != MAP_FAILED)
			break;
	}
	if (map == MAP_FAILED)
		return -ENOMEM;
	if (madvise(map, (size_t)FIRST_BLOCKS * CSINK_REC_BLOCK, MADV_POPULATE_WRITE) < 0) {
		int err = errno == EINVAL ? 0 : ENOSPC;

		if (err == 0) { /* a kernel before 5.14: allocate a smaller file now, never grow it */
			bytes = CSINK_MIN(bytes, (uint64_t)OLD_KERNEL_BYTES);
			err = posix_fallocate(fd, 0, (off_t)bytes);
		}
		if (err) {
			munmap(map, bytes);
			return -err;
		}
		atomic_init(&rec->ready_blocks, (uint32_t)(bytes / CSINK_REC_BLOCK));
	} else {
		atomic_init(&rec->ready_blocks, FIRST_BLOCKS);
	}
	madvise(map, bytes, MADV_DONTDUMP); /* a core is of the program */
	rec->header = map;
	atomic_init(&rec->limit_blocks, (uint32_t)(bytes / CSINK_REC_BLOCK));
	return 0;
}

int csink_recording_create(struct csink_recording *rec, const char *run_dir, uint64_t max_bytes)
{
	uint32_t seq;
	int fd, err;

	memset(rec, 0, sizeof(*rec));
	fd = create_file(rec, run_dir, &seq);
	if (fd < 0)
		return fd;
	err = map_file(rec, fd, map_limit(file_limit(max_bytes)));
	if (err)
		unlink(rec->path);
	csink_rawcall(SYS_close, fd);
	if (err)
		return err;
	rec->header->version = CSINK_REC_VERSION;
	rec->header->header_bytes = CSINK_REC_HEADER_BYTES;
	rec->header->seq = seq;
	rec->header->nr_blocks = CSINK_REC_HEADER_BYTES / CSINK_REC_BLOCK;
	/* The magic is last: a file without it is one whose process died in these few lines. */
	atomic_store_explicit((_Atomic uint64_t *)&rec->header->magic, CSINK_REC_MAGIC, memory_order_release);
	return 0;
}

void csink_recording_close(struct csink_recording *rec)
{
	if (rec->header)
		munmap(rec->header, (size_t)atomic_load(&rec->limit_blocks) * CSINK_REC_BLOCK);
	rec->header = NULL;
}

/* Whoever has found room below the old limit, and not used it yet, found it within reach of what is ready. */
void csink_recording_shrink(struct csink_recording *rec)
{
	uint32_t used =
		CSINK_MAX(atomic_load(&rec->ready_blocks), __atomic_load_n(&rec->header->nr_blocks, __ATOMIC_RELAXED));
	uint32_t keep = CSINK_ALIGN_UP(used + SPARE_BLOCKS, (uint32_t)PAGE_BLOCKS),
		 had = atomic_load(&rec->limit_blocks);

	if (keep >= had || !atomic_compare_exchange_strong(&rec->limit_blocks, &had, keep))
		return;
	munmap((char *)rec->header + (size_t)keep * CSINK_REC_BLOCK, (size_t)(had - keep) * CSINK_REC_BLOCK);
}

/* Give blocks [from, from + n) real pages. Several threads may do the same range: the kernel takes care. */
static bool make_ready(struct csink_recording *rec, uint32_t from, uint32_t n)
{
	uint32_t ready = atomic_load_explicit(&rec->ready_blocks, memory_order_relaxed);
	uint32_t limit = atomic_load_explicit(&rec->limit_blocks, memory_order_relaxed);
	uint32_t upto = CSINK_MIN(CSINK_MAX(from + n, ready + CSINK_MIN(ready, (uint32_t)STEP_BLOCKS)), limit);
	uint32_t start;
	int saved = errno;

	if (from + n <= ready)
		return true;
	start = ready & ~(PAGE_BLOCKS - 1u);
	if (madvise((char *)rec->header + (size_t)start * CSINK_REC_BLOCK, (size_t)(upto - start) * CSINK_REC_BLOCK,
		    MADV_POPULATE_WRITE) < 0) {
		errno = saved;
		return false;
	}
	/* Never backwards: another thread may have made more ready meanwhile. */
	while (ready < upto && !atomic_compare_exchange_weak_explicit(&rec->ready_blocks, &ready, upto,
								      memory_order_relaxed, memory_order_relaxed))
		;
	return true;
}

void csink_recording_prepare(struct csink_recording *rec, uint32_t spare_bytes)
{
	uint32_t used = __atomic_load_n(&rec->header->nr_blocks, __ATOMIC_RELAXED);

	make_ready(rec, used, CSINK_MIN(spare_bytes / CSINK_REC_BLOCK, atomic_load(&rec->limit_blocks) - used));
}

void csink_recording_freeze(struct csink_recording *rec, uint32_t spare_bytes)
{
	csink_recording_prepare(rec, spare_bytes);
	/* Who is about to make more ready still may: the filter is not in place yet. */
	atomic_store(&rec->limit_blocks, atomic_load(&rec->ready_blocks));
}

static bool new_extent(struct csink_recording *rec, struct csink_writer *writer, uint32_t bytes)
{
	uint32_t n = (bytes + (uint32_t)sizeof(struct csink_rec_extent) + CSINK_REC_BLOCK - 1) / CSINK_REC_BLOCK;
	_Atomic uint32_t *nr_blocks = (_Atomic uint32_t *)&rec->header->nr_blocks;
	uint32_t first = atomic_load_explicit(nr_blocks, memory_order_relaxed);
	struct csink_rec_extent *extent;

	if (atomic_load_explicit(&rec->full, memory_order_relaxed))
		return false;
	do {
		if (n > atomic_load_explicit(&rec->limit_blocks, memory_order_relaxed) - first ||
		    !make_ready(rec, first, n)) {
			atomic_store_explicit(&rec->full, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(nr_blocks, &first, first + n, memory_order_relaxed,
							memory_order_relaxed));
	extent = (struct csink_rec_extent *)((char *)rec->header + (size_t)first * CSINK_REC_BLOCK);
	extent->nr_blocks = n;
	/* Pairs with the reader's load of kind. */
	atomic_store_explicit((_Atomic uint32_t *)&extent->kind, CSINK_EXTENT_DATA, memory_order_release);
	writer->pos = first * (CSINK_REC_BLOCK / 8) + sizeof(*extent) / 8;
	writer->end = (first + n) * (CSINK_REC_BLOCK / 8);
	return true;
}

void *csink_recording_reserve(struct csink_recording *rec, struct csink_writer *writer, uint32_t bytes)
{
	uint32_t words = (bytes + 7) / 8;
	void *entry;

	if (CSINK_UNLIKELY(writer->end - writer->pos < words) && !new_extent(rec, writer, words * 8))
		return NULL;
	entry = csink_recording_at(rec, writer->pos);
	writer->pos += words;
	return entry;
}

void csink_recording_note(struct csink_recording *rec, struct csink_writer *writer, int warning, const char *fmt, ...)
{
	struct csink_rec_note *note;
	char text[400];
	uint32_t bytes;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	bytes = (uint32_t)(sizeof(*note) + strlen(text) + 1);
	note = rec->header ? csink_recording_reserve(rec, writer, bytes) : NULL;
	if (!note)
		return;
	memcpy(note->text, text, strlen(text) + 1);
	csink_recording_commit(note, bytes, CSINK_ENTRY_NOTE, (uint16_t)warning);
}

void csink_writer_retire(struct csink_writer *writer)
{
	uint64_t packed = (uint64_t)writer->pos << 32 | writer->end;

	/* Less room than a small row needs is not worth a place. */
	for (int i = 0; i < NR_RETIRED && writer->end - writer->pos >= 8; i++) {
		uint64_t none = 0;

		/* Release: the next owner sees every entry that we wrote before its position. */
		if (atomic_compare_exchange_strong_explicit(&retired[i], &none, packed, memory_order_release,
							    memory_order_relaxed))
			break;
	}
	writer->pos = writer->end = 0;
}

void csink_writer_adopt(struct csink_writer *writer)
{
	if (writer->pos != writer->end)
		return;
	for (int i = 0; i < NR_RETIRED; i++) {
		uint64_t packed = atomic_load_explicit(&retired[i], memory_order_relaxed);

		if (packed && atomic_compare_exchange_strong_explicit(&retired[i], &packed, 0, memory_order_acquire,
								      memory_order_relaxed)) {
			writer->pos = (uint32_t)(packed >> 32);
			writer->end = (uint32_t)packed;
			return;
		}
	}
}

void csink_writer_forget(void)
{
	for (int i = 0; i < NR_RETIRED; i++)
		atomic_store_explicit(&retired[i], 0, memory_order_relaxed);
}
