/*
 * The mapped recording, as its writers see it (include/internal/recording_format.h has the layout).
 *
 * One for each process image. Threads hand themselves extents and fill them with entries; nothing here takes a lock.
 * The file is sparse. The mapping begins small and grows in place as blocks are handed out (recording_map.c), so that
 * the program's mlockall(2) and limits meet only what is in use; before a block is handed out its pages are made real
 * (MADV_POPULATE_WRITE), so that a full file system is an error code here and never a SIGBUS in the program.
 *
 * Other processes of the same user may write to the file. So nothing that is read back from the mapping decides where
 * the library reads, writes or stops: counts and positions are kept in private memory and copied to the mapping, and
 * references are checked (csink_recording_end).
 */
#ifndef CSINK_RECORDING_H
#define CSINK_RECORDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "include/internal/recording_format.h"

struct csink_recording {
	struct csink_rec_header *header; /* NULL: there is no recording */
	uint32_t nr_events;              /* set with header->nr_events, before the first row */
	uint32_t max_blocks;             /* the file's size; constant */
	_Atomic uint32_t limit_blocks;   /* blocks that may be handed out; at most max_blocks */
	_Atomic uint32_t mapped_blocks;  /* the mapping's size; it may be larger by what another thread adds just now */
	_Atomic uint32_t ready_blocks;   /* blocks below this are mapped and have real pages */
	_Atomic uint32_t next_block;     /* the first one that is not handed out; header->nr_blocks is a copy */
	_Atomic uint32_t full;           /* 1: no further block can be had */
	_Atomic uint32_t growing;        /* callers that may have grown the mapping and not stored mapped_blocks yet */
	struct csink_recording_guard *guard; /* for csink_recording_replace(); NULL: too many recordings are mapped */
	char path[512];
};

/* Where one thread is writing: positions in units of 8 bytes. pos == end: no room. */
struct csink_writer {
	uint32_t pos, end;
};

/**
 * Create PID.SEQ.rec in @run_dir (SEQ is the first free number) and map it.
 * @max_bytes  upper bound of the file; made smaller where RLIMIT_FSIZE or the address space asks for it.
 * Returns 0 or -errno: what open, ftruncate or mmap gave, -ENOSPC when not even the first blocks can be had. No fd
 * stays open and no file is left behind on error. Context: init.
 */
int csink_recording_create(struct csink_recording *rec, const char *run_dir, uint64_t max_bytes);

/** Grow little more: the program is about to limit its address space. Context: thread; others may be writing. */
void csink_recording_restrict(struct csink_recording *rec);

/** Have room for @spare_bytes more from now on, whatever becomes of the calls that make some. Context: thread; others
 * may be writing. */
void csink_recording_prepare(struct csink_recording *rec, uint32_t spare_bytes);

/** Grow no more: @spare_bytes from what is used now are made real at once. Context: thread; others may be writing. */
void csink_recording_freeze(struct csink_recording *rec, uint32_t spare_bytes);

/** The mark of a process that has collected the recording, and removes its file: CSINK_REC_COLLECTED,
 * CSINK_REC_COLLECTED_WHOLE, or 0. Context: any. */
static inline uint32_t csink_recording_mark(const struct csink_recording *rec)
{
	uint32_t mark = __atomic_load_n(&rec->header->collected, __ATOMIC_ACQUIRE);

	return mark == CSINK_REC_COLLECTED || mark == CSINK_REC_COLLECTED_WHOLE ? mark : 0;
}

/** Unmap; the file stays. Context: init. */
void csink_recording_close(struct csink_recording *rec);

/* ---- recording_map.c ---- */

/**
 * Set the size of the file @fd, which is empty, map its beginning and fill in the mapping's members of @rec.
 * @bytes  a multiple of CSINK_REC_BLOCK.
 * Returns 0 or -errno; -ENOSPC: the file system is full. Nothing stays mapped on error. Context: init.
 */
int csink_recording_map(struct csink_recording *rec, int fd, uint64_t bytes);

/**
 * Map blocks [@from, @from + @n) and give them real pages. Several threads may do this at once.
 * Returns 0, -ENOSPC when the file system is full or the mapping cannot grow, or -EAGAIN when another thread, or the
 * one that the caller interrupts, is just growing it; errno is unchanged. Context: signal; makes system calls.
 */
int csink_recording_make_ready(struct csink_recording *rec, uint32_t from, uint32_t n);

/**
 * The file was truncated under a mapping, and an access to @address faulted: put zeroed private memory in the place of
 * the whole mapping. What was recorded is lost, and so is what is recorded from now on; the recording does not grow any
 * more. Returns false, and does nothing, when @address is in no recording or the memory cannot be had. Context: signal;
 * makes system calls.
 */
bool csink_recording_replace(uintptr_t address);

/** The program has locked its memory (mlockall(2)): unlock the recording. Context: thread; others may be writing. */
void csink_recording_unlock(struct csink_recording *rec);

/**
 * Reserve an entry and zero-fill nothing: fresh blocks are zero. The caller fills it and then commits it.
 * @bytes  size with its head; rounded up to a multiple of 8 by the callee.
 * Returns NULL when the recording is full, or another thread is just making room (the caller counts the loss). Context:
 * signal; @writer is the caller's own.
 */
void *csink_recording_reserve(struct csink_recording *rec, struct csink_writer *writer, uint32_t bytes);

/**
 * The same for a forked child that shares the recording with its parent, which hands out all blocks: in the header's
 * rest. Returns NULL if there is no room; readers see that from the bytes asked for. Context: any.
 */
void *csink_recording_reserve_child(struct csink_recording *rec, uint32_t bytes);

/** Make a reserved entry visible to readers. @bytes as reserved. Context: signal. */
static inline void csink_recording_commit(void *entry, uint32_t bytes, uint16_t type, uint16_t aux)
{
	struct csink_entry head = {.bytes = (bytes + 7) & ~7u, .type = type, .aux = aux};
	uint64_t word;

	memcpy(&word, &head, sizeof(word));
	/* Pairs with the reader's acquire load: everything in the entry is there when its head is. */
	atomic_store_explicit((_Atomic uint64_t *)entry, word, memory_order_release);
}

static inline csink_ref_t csink_recording_ref(const struct csink_recording *rec, const void *entry)
{
	return (csink_ref_t)(((uintptr_t)entry - (uintptr_t)rec->header) / 8);
}

/** Where @ref points; it comes from private memory, or is below csink_recording_end(). */
static inline void *csink_recording_at(const struct csink_recording *rec, csink_ref_t ref)
{
	return (char *)rec->header + (uint64_t)ref * 8;
}

/** A reference that was read back from the mapping may be anything: only below this one, and if it is not 0, it leads
 * to
 * @bytes of the mapping. Context: signal. */
static inline csink_ref_t csink_recording_end(const struct csink_recording *rec, uint32_t bytes)
{
	uint32_t ready = atomic_load_explicit(&rec->ready_blocks, memory_order_relaxed);

	return ready * (CSINK_REC_BLOCK / 8) - bytes / 8 + 1;
}

/** Count losses of one kind. Context: signal. */
static inline void csink_recording_lose(struct csink_recording *rec, enum csink_loss what, uint64_t n)
{
	atomic_fetch_add_explicit((_Atomic uint64_t *)&rec->header->losses[what], n, memory_order_relaxed);
}

/**
 * Leave a line for the user. Context: init (formats); the text is cut at 400 bytes.
 * @warning  0 information, 1 warning.
 */
void csink_recording_note(struct csink_recording *rec, struct csink_writer *writer, int warning, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** Leave a line for the user as it is; information. Context: signal. */
void csink_recording_note_text(struct csink_recording *rec, struct csink_writer *writer, const char *text);

/** Leave the path of the profile. Context: init. */
void csink_recording_output(struct csink_recording *rec, struct csink_writer *writer, const char *path);

/** Hand a writer's unfinished extent to the thread that starts next. Context: thread. */
void csink_writer_retire(struct csink_writer *writer);

/** Take over an unfinished extent, if there is one. Context: thread. */
void csink_writer_adopt(struct csink_writer *writer);

/** Drop retired extents: they belong to another recording. Context: init, after fork. */
void csink_writer_reset(void);

#endif
