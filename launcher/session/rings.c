/*
 * Mapping rings, and reading all of them in the order of their records' times: see rings.h. Runs in the launcher's
 * first thread, but for csink_rings_take_wakeups() and csink_rings_look(), which run in the threads that read frames
 * (attach/readers.h); the kernel writes.
 */
#include "launcher/session/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"

#define RING_WAKE_BYTES (256U << 10)

int csink_rings_init(struct csink_rings *rings, uint32_t nr, uint32_t time_behind)
{
	memset(rings, 0, sizeof(*rings));
	rings->wake_fd = -1;
	rings->wake_ns = UINT64_MAX;
	rings->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	rings->time_behind = time_behind;
	rings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rings->epoll_fd < 0)
		return -errno;
	rings->at = calloc(nr, sizeof(*rings->at));
	rings->record = malloc(CSINK_RINGS_MAX_RECORD);
	if (!rings->at || !rings->record)
		return -ENOMEM;
	rings->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		rings->at[i].fd = -1;
	return 0;
}

/* ---- mapping ---- */

void csink_rings_attr(struct perf_event_attr *attr, void *arg)
{
	const struct csink_rings *rings = arg;

	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	/* Rings of samples fill within milliseconds; of those with records of processes alone, half is early enough. */
	attr->wakeup_watermark =
		CSINK_MIN(RING_WAKE_BYTES, rings->ring_bytes / (rings->ring_bytes < RING_WAKE_BYTES ? 2 : 4));
}

static int map_ring(struct csink_rings *rings, uint32_t i)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
	void *map = mmap(NULL, rings->ring_bytes + rings->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 rings->at[i].fd, 0);

	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	rings->at[i].page = map;
	return epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, rings->at[i].fd, &event) < 0 ? -errno : 0;
}

static void unmap_all(struct csink_rings *rings)
{
	for (uint32_t i = 0; i < rings->nr; i++) {
		if (rings->at[i].page)
			munmap(rings->at[i].page, rings->ring_bytes + rings->page_bytes);
		if (rings->at[i].fd >= 0)
			close(rings->at[i].fd);
		rings->at[i].page = NULL;
		rings->at[i].fd = -1;
	}
	rings->ring_bytes = 0;
}

int csink_rings_map(struct csink_rings *rings, uint32_t bytes, int (*open)(void *arg, uint32_t i), void *arg)
{
	int err = 0;

	rings->ring_bytes = bytes;
	for (uint32_t i = 0; i < rings->nr && !err; i++) {
		rings->at[i].fd = open(arg, i);
		if (rings->at[i].fd >= 0)
			err = map_ring(rings, i);
		else if (rings->at[i].fd != -ENODEV)
			err = rings->at[i].fd;
	}
	if (err)
		unmap_all(rings);
	return err;
}

int csink_rings_add(struct csink_rings *rings, uint32_t i, int fd)
{
	if (rings->at[i].fd < 0)
		return 0;
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings->at[i].fd) < 0 ? -errno : 0;
}

/* ---- reading ---- */

/* Copy bytes out of a ring, around its end where need be. */
static void copy_out(const struct csink_rings *rings, const struct csink_ring *ring, uint64_t from, void *to,
		     uint32_t bytes)
{
	const char *data = (const char *)ring->page + rings->page_bytes;
	uint32_t at = (uint32_t)from & (rings->ring_bytes - 1);
	uint32_t first = CSINK_MIN(bytes, rings->ring_bytes - at);

	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, bytes - first);
}

/* Learn the time of the record at tail. */
static void peek(struct csink_rings *rings, struct csink_ring *ring)
{
	struct perf_event_header head;

	ring->next_ns = UINT64_MAX;
	while (ring->tail < ring->head) {
		uint32_t at;

		copy_out(rings, ring, ring->tail, &head, sizeof(head));
		if (head.size < sizeof(head) || head.size > ring->head - ring->tail) {
			ring->tail = ring->head; /* not a ring as we know it */
			return;
		}
		at = head.type == PERF_RECORD_SAMPLE ? CSINK_RINGS_SAMPLE_TIME : head.size - rings->time_behind;
		if (head.size >= sizeof(head) + rings->time_behind && at + 8 <= head.size) {
			copy_out(rings, ring, ring->tail + at, &ring->next_ns, sizeof(ring->next_ns));
			return;
		}
		ring->tail += head.size;
	}
}

static void take_one(struct csink_rings *rings, struct csink_ring *ring,
		     void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns), void *arg)
{
	struct perf_event_header head;
	uint64_t lost[2]; /* id, number */

	copy_out(rings, ring, ring->tail, &head, sizeof(head));
	copy_out(rings, ring, ring->tail, rings->record, head.size);
	if (head.type == PERF_RECORD_LOST) {
		memcpy(lost, rings->record + sizeof(head), sizeof(lost));
		rings->nr_lost += lost[1];
	}
	take(arg, (const struct perf_event_header *)rings->record, ring->next_ns);
	ring->tail += head.size;
	/* Pairs with the kernel's acquire of data_tail before it writes over what was read. */
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	peek(rings, ring);
}

static void set_timer(const struct csink_rings *rings, uint64_t at_ns)
{
	struct itimerspec when = {.it_value = {(time_t)(at_ns / CSINK_NS_PER_S), (long)(at_ns % CSINK_NS_PER_S)}};

	timerfd_settime(rings->wake_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void take_wake_up(struct csink_rings *rings)
{
	uint64_t expired, asked_ns;

	atomic_store(&rings->wake_ns, UINT64_MAX);
	if (rings->wake_fd < 0 || read(rings->wake_fd, &expired, sizeof(expired)) < 0)
		return;
	/* What was read may be the expiry of a time that another thread has set after the store. */
	asked_ns = atomic_load(&rings->wake_ns);
	if (asked_ns != UINT64_MAX)
		set_timer(rings, asked_ns);
}

bool csink_rings_drain_some(struct csink_rings *rings, uint64_t before_ns, uint64_t bytes,
			    void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns),
			    void *arg)
{
	uint64_t taken = 0;

	take_wake_up(rings);
	for (uint32_t i = 0; i < rings->nr; i++) {
		struct csink_ring *ring = &rings->at[i];

		ring->next_ns = UINT64_MAX;
		if (ring->fd < 0)
			continue;
		/* Pairs with the kernel's barrier between a record and data_head. */
		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		ring->tail = ring->page->data_tail;
		peek(rings, ring);
	}
	for (;;) {
		struct csink_ring *oldest = &rings->at[0];

		for (uint32_t i = 1; i < rings->nr; i++) {
			if (rings->at[i].next_ns < oldest->next_ns)
				oldest = &rings->at[i];
		}
		if (oldest->next_ns >= before_ns)
			return false;
		if (taken > bytes)
			return true;
		taken -= oldest->tail;
		take_one(rings, oldest, take, arg);
		taken += oldest->tail;
	}
}

void csink_rings_drain(struct csink_rings *rings, uint64_t before_ns,
		       void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns), void *arg)
{
	csink_rings_drain_some(rings, before_ns, UINT64_MAX, take, arg);
}

/* ---- looking on ---- */

int csink_rings_share(struct csink_rings *rings)
{
	struct epoll_event event = {.events = EPOLLIN};

	rings->wake_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return rings->wake_fd < 0 || epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, rings->wake_fd, &event) < 0 ? -errno : 0;
}

int csink_rings_take_wakeups(const struct csink_rings *rings, uint32_t cpu)
{
	return epoll_ctl(rings->epoll_fd, EPOLL_CTL_DEL, rings->at[cpu].fd, NULL) < 0 ? -errno : 0;
}

void csink_rings_wake(struct csink_rings *rings, uint64_t at_ns)
{
	/* Setting the timer takes back an expiry that the other thread has not seen. Of two calls at a time, the later
	 * time may count. */
	if (atomic_load(&rings->wake_ns) <= at_ns)
		return;
	atomic_store(&rings->wake_ns, at_ns);
	set_timer(rings, at_ns);
}

bool csink_rings_look(struct csink_rings *rings, uint32_t cpu, uint64_t *cursor, char *record)
{
	const struct csink_ring *ring = &rings->at[cpu];
	struct perf_event_header at;
	uint64_t from;
	/* The first pairs with the kernel's barrier between a record and data_head, the second with take_one(). */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = __atomic_load_n(&ring->page->data_tail, __ATOMIC_ACQUIRE);

	if (head - tail > CSINK_MIN(RING_WAKE_BYTES, rings->ring_bytes / 4))
		csink_rings_wake(rings, 1);
	from = *cursor = CSINK_MAX(*cursor, tail);
	if (from >= head)
		return false;
	copy_out(rings, ring, from, &at, sizeof(at));
	if (at.size < sizeof(at) || at.size > head - from) {
		*cursor = head; /* not a ring as we know it, or written over */
		return false;
	}
	copy_out(rings, ring, from, record, at.size);
	*cursor += at.size;
	/* If it was drained meanwhile, it may have been written over; the next call begins where draining is. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&ring->page->data_tail, __ATOMIC_RELAXED) <= from;
}

void csink_rings_free(struct csink_rings *rings)
{
	unmap_all(rings);
	if (rings->wake_fd >= 0)
		close(rings->wake_fd);
	if (rings->epoll_fd >= 0)
		close(rings->epoll_fd);
	free(rings->at);
	free(rings->record);
	memset(rings, 0, sizeof(*rings));
	rings->epoll_fd = rings->wake_fd = -1;
}
