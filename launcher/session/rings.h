/*
 * Rings that the kernel writes samples and records of other processes to, read in the order of time across all of them:
 * one for each CPU, or for what else their user counts. Each has an event of our own, which owns it; other events send
 * what they have there.
 */
#ifndef CSINK_RINGS_H
#define CSINK_RINGS_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_RINGS_MAX_RECORD 65536

struct csink_rings {
	int epoll_fd;
	uint32_t page_bytes, ring_bytes; /* ring_bytes: of each; 0: there are none */
	uint32_t nr;
	uint32_t time_behind; /* bytes from a record's time to its end; of samples: see CSINK_RINGS_SAMPLE_TIME */
	uint64_t nr_lost;
	int wake_fd; /* >= 0: a timer in epoll_fd, in place of the rings' own wake-ups: see csink_rings_wake() */
	_Atomic uint64_t wake_ns; /* when it expires, or did; UINT64_MAX: there was a drain since */
	struct csink_ring {
		int fd; /* of the event that owns the ring; -1: none */
		struct perf_event_mmap_page *page;
		uint64_t head, tail;
		uint64_t next_ns; /* of the record at tail; UINT64_MAX: none */
	} * at;                   /* in attach by CPU */
	char *record;             /* room for one, whole */
};

/* Where a sample has its time: behind the header, PERF_SAMPLE_IDENTIFIER, _IP and _TID. */
#define CSINK_RINGS_SAMPLE_TIME (sizeof(struct perf_event_header) + 24)

/** Make ready for nr rings, without any. Returns 0 or -errno; csink_rings_free() in any case. */
int csink_rings_init(struct csink_rings *rings, uint32_t nr, uint32_t time_behind);

/** What an event asks for that owns one of these rings: see csink_outside_how. */
void csink_rings_attr(struct perf_event_attr *attr, void *rings);

/**
 * Map all rings, of so many bytes each, and watch them.
 * @open  opens the event that owns ring i: an fd, -ENODEV (the CPU is offline: it has no ring), or -errno.
 * Returns 0, -ENOBUFS (no more memory may be locked), or -errno; then there are none.
 */
int csink_rings_map(struct csink_rings *rings, uint32_t bytes, int (*open)(void *arg, uint32_t i), void *arg);

/** Send an event's records to ring i, if there is one. Returns 0 or -errno. */
int csink_rings_add(struct csink_rings *rings, uint32_t i, int fd);

/**
 * Hand on the records that are older than before_ns (CLOCK_MONOTONIC), oldest first; nr_lost has been updated at those
 * that report a loss.
 * @take  head and all, in one piece; valid during the call.
 */
void csink_rings_drain(struct csink_rings *rings, uint64_t before_ns,
		       void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns), void *arg);

/** The same, no more than so many bytes and a record. Returns whether there are more that are older. */
bool csink_rings_drain_some(struct csink_rings *rings, uint64_t before_ns, uint64_t bytes,
			    void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns),
			    void *arg);

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
