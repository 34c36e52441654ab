/*
 * The rings that the kernel writes samples and records of attached threads to: one for each CPU, read in the order of
 * time across all of them. Every event is opened on one thread and one CPU, and sends what it has to that CPU's ring.
 */
#ifndef CSINK_RINGS_H
#define CSINK_RINGS_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each event asks for, so that each record says when it was: see peek() in rings.c. */
#define CSINK_RINGS_SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

#define CSINK_RINGS_MAX_RECORD 65536

struct csink_rings {
	int epoll_fd;
	uint32_t page_bytes, ring_bytes; /* ring_bytes: of each; 0: there are none */
	uint32_t nr_cpus;                /* configured */
	uint64_t nr_lost;
	int wake_fd; /* >= 0: a timer in epoll_fd, in place of the rings' own wake-ups: see csink_rings_wake() */
	_Atomic uint64_t wake_ns; /* when it expires, or did; UINT64_MAX: there was a drain since */
	struct csink_ring {
		int fd; /* of the event that owns the ring; -1: none */
		struct perf_event_mmap_page *page;
		uint64_t head, tail;
		uint64_t next_ns; /* of the record at tail; UINT64_MAX: none */
	} * at;                   /* by CPU */
	char *record;             /* room for one, whole */
};

/** Make ready, without any ring. Returns 0 or -errno. */
int csink_rings_init(struct csink_rings *rings);

/**
 * Map the rings, as large as may be.
 * Returns 0, -ENOBUFS (no memory may be locked any more, not even a page for each CPU), or -errno; then there are none.
 */
int csink_rings_map(struct csink_rings *rings);

/** Send an event's records to its CPU's ring, where there is one. Returns 0 or -errno. */
int csink_rings_add(struct csink_rings *rings, uint32_t cpu, int fd);

/**
 * Hand on the records that are older than before_ns (CLOCK_MONOTONIC), oldest first.
 * @take  head and all, in one piece; valid during the call.
 */
void csink_rings_drain(struct csink_rings *rings, uint64_t before_ns,
		       void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns), void *arg);

/** Prepare for other threads that look into the rings. Returns 0 or -errno. */
int csink_rings_share(struct csink_rings *rings);

/**
 * For a thread that polls a CPU's ring itself, since the kernel is to wake it at each sample: from now on epoll_fd
 * becomes readable for this ring only where csink_rings_look() finds that it fills. Returns 0 or -errno.
 */
int csink_rings_take_wakeups(const struct csink_rings *rings, uint32_t cpu);

/** For any thread: epoll_fd is to become readable at that time (CLOCK_MONOTONIC), if not before. */
void csink_rings_wake(struct csink_rings *rings, uint64_t at_ns);

/**
 * For another thread than the one that drains: copy the record at a cursor, which then is at the next one. Records that
 * have been drained are passed over. Returns false where there is none yet.
 * @record  CSINK_RINGS_MAX_RECORD bytes.
 */
bool csink_rings_look(struct csink_rings *rings, uint32_t cpu, uint64_t *cursor, char *record);

void csink_rings_free(struct csink_rings *rings);

#endif
