/*
 * Extents and entries of a recording: see recording.h. csink_recording_create() runs at a process's start; reserving
 * and committing entries runs in handlers of any thread, without locks.
 */
#include "preload/core/record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"

enum {
	LEAST_BLOCKS = 8, /* a recording has room for, however little a program may map */
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
		if (fd != -EEXIST)
			return fd;
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

/*
 * Publish for readers how many blocks are allocated. Another thread may have allocated more meanwhile and published
 * that already: then publish again, so that the last store is of the largest number. Sequentially consistent, as is the
 * change of next_block in new_extent(): the load must not come before the store.
 */
static void publish_blocks(struct csink_recording *rec)
{
	uint32_t next;

	do {
		next = atomic_load(&rec->next_block);
		__atomic_store_n(&rec->header->nr_blocks, next, __ATOMIC_SEQ_CST);
	} while (next != atomic_load(&rec->next_block));
}

int csink_recording_create(struct csink_recording *rec, const char *run_dir, uint64_t max_bytes)
{
	uint64_t bytes;
	uint32_t seq;
	int fd, err;

	memset(rec, 0, sizeof(*rec));
	fd = create_file(rec, run_dir, &seq);
	if (fd < 0)
		return fd;
	bytes = map_limit(file_limit(max_bytes));
	err = bytes < (uint64_t)LEAST_BLOCKS * CSINK_REC_BLOCK ? -EFBIG : csink_recording_map(rec, fd, bytes);
	if (err)
		unlink(rec->path);
	csink_rawcall(SYS_close, fd);
	if (err)
		return err;
	rec->header->version = CSINK_REC_VERSION;
	rec->header->header_bytes = CSINK_REC_HEADER_BYTES;
	rec->header->seq = seq;
	atomic_init(&rec->next_block, CSINK_REC_HEADER_BYTES / CSINK_REC_BLOCK);
	publish_blocks(rec);
	/* The magic is last: a file without it is one whose process died in these few lines. */
	atomic_store_explicit((_Atomic uint64_t *)&rec->header->magic, CSINK_REC_MAGIC, memory_order_release);
	return 0;
}

void csink_recording_restrict(struct csink_recording *rec)
{
	uint32_t keep = atomic_load(&rec->next_block) + SPARE_BLOCKS, had = atomic_load(&rec->limit_blocks);

	while (keep < had && !atomic_compare_exchange_weak(&rec->limit_blocks, &had, keep))
		;
}

void csink_recording_prepare(struct csink_recording *rec, uint32_t spare_bytes)
{
	uint32_t used = atomic_load(&rec->next_block), limit = atomic_load(&rec->limit_blocks);

	if (used < limit)
		csink_recording_make_ready(rec, used, CSINK_MIN(spare_bytes / CSINK_REC_BLOCK, limit - used));
}

void csink_recording_freeze(struct csink_recording *rec, uint32_t spare_bytes)
{
	csink_recording_prepare(rec, spare_bytes);
	/* A thread that is just making more ready still may: the filter is not in place yet. */
	atomic_store(&rec->limit_blocks, atomic_load(&rec->ready_blocks));
}

static bool new_extent(struct csink_recording *rec, struct csink_writer *writer, uint32_t bytes)
{
	uint32_t n = (bytes + (uint32_t)sizeof(struct csink_rec_extent) + CSINK_REC_BLOCK - 1) / CSINK_REC_BLOCK;
	uint32_t first = atomic_load_explicit(&rec->next_block, memory_order_relaxed), limit;
	struct csink_rec_extent *extent;
	int err;

	if (atomic_load_explicit(&rec->full, memory_order_relaxed))
		return false;
	do {
		limit = atomic_load_explicit(&rec->limit_blocks, memory_order_relaxed);
		err = first > limit || n > limit - first ? -ENOSPC : csink_recording_make_ready(rec, first, n);
		if (err == -ENOSPC)
			atomic_store_explicit(&rec->full, 1, memory_order_relaxed);
		if (err)
			return false;
	} while (!atomic_compare_exchange_weak(&rec->next_block, &first, first + n));
	publish_blocks(rec);
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

void *csink_recording_reserve_child(struct csink_recording *rec, uint32_t bytes)
{
	uint32_t room = CSINK_REC_HEADER_BYTES - (uint32_t)sizeof(*rec->header), at;

	bytes = CSINK_ALIGN_UP(bytes, 8u);
	at = __atomic_fetch_add(&rec->header->children_bytes, bytes, __ATOMIC_RELAXED);
	return at <= room && bytes <= room - at ? (char *)(rec->header + 1) + at : NULL;
}

static void put_note(struct csink_recording *rec, struct csink_writer *writer, int kind, const char *text)
{
	uint32_t bytes = (uint32_t)(sizeof(struct csink_rec_note) + strlen(text) + 1);
	struct csink_rec_note *note = rec->header ? csink_recording_reserve(rec, writer, bytes) : NULL;

	if (!note)
		return;
	memcpy(note->text, text, strlen(text) + 1);
	csink_recording_commit(note, bytes, CSINK_ENTRY_NOTE, (uint16_t)kind);
}

void csink_recording_note_text(struct csink_recording *rec, struct csink_writer *writer, const char *text)
{
	put_note(rec, writer, 0, text);
}

void csink_recording_output(struct csink_recording *rec, struct csink_writer *writer, const char *path)
{
	put_note(rec, writer, CSINK_NOTE_OUTPUT, path);
}

void csink_recording_note(struct csink_recording *rec, struct csink_writer *writer, int warning, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_note(rec, writer, warning, text);
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

void csink_writer_reset(void)
{
	for (int i = 0; i < NR_RETIRED; i++)
		atomic_store_explicit(&retired[i], 0, memory_order_relaxed);
}
