/*
 * Mapping a ring for each CPU, and reading all of them in the order of their records' times: see rings.h. Runs in
 * the attach command's own thread, but for csink_rings_take_wakeups() and csink_rings_look(), which run in the threads
 * that read frames (readers.h); the kernel writes.
 */
#include "launcher/attach/rings.h"

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
#include "include/internal/event.h"
#include "launcher/session/outside.h"

/*
 * A sample with a copy of the stack has 16 KiB, and a launcher that waits for a CPU reads nothing: the more room the
 * better, up to what a large machine can spare. Others than root have what may be locked (perf_event_mlock_kb).
 */
#define RING_BYTES (8U << 20)
#define RINGS_BYTES (256U << 20)
#define RING_BYTES_LEAST (32U << 10) /* however many CPUs there are */
#define RING_WAKE_BYTES (256U << 10)

int csink_rings_init(struct csink_rings *rings)
{
	memset(rings, 0, sizeof(*rings));
	rings->wake_fd = -1;
	rings->wake_ns = UINT64_MAX;
	rings->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	rings->nr_cpus = (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	rings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rings->epoll_fd < 0)
		return -errno;
	rings->at = calloc(rings->nr_cpus, sizeof(*rings->at));
	rings->record = malloc(CSINK_RINGS_MAX_RECORD);
	if (!rings->at || !rings->record)
		return -ENOMEM;
	for (uint32_t i = 0; i < rings->nr_cpus; i++)
		rings->at[i].fd = -1;
	return 0;
}

/* ---- mapping ---- */

static void add_ring(struct perf_event_attr *attr, void *arg)
{
	const struct csink_rings *rings = arg;

	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	attr->wakeup_watermark = CSINK_MIN(RING_WAKE_BYTES, rings->ring_bytes / 2);
}

/* The event of our own that a CPU's ring belongs to. It never counts, and stays where targets come and go. */
static int open_owner(struct csink_rings *rings, uint32_t cpu)
{
	const struct csink_outside_how how = {(int)cpu, -1, add_ring, rings};

	return csink_outside_open_dummy(&how);
}

static int map_ring(struct csink_rings *rings, uint32_t cpu)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = cpu};
	struct csink_ring *ring = &rings->at[cpu];
	void *map;

	ring->fd = open_owner(rings, cpu);
	if (ring->fd < 0)
		return ring->fd;
	map = mmap(NULL, rings->ring_bytes + rings->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	ring->page = map;
	return epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, ring->fd, &event) < 0 ? -errno : 0;
}

static void unmap_all(struct csink_rings *rings)
{
	for (uint32_t i = 0; rings->at && i < rings->nr_cpus; i++) {
		if (rings->at[i].page)
			munmap(rings->at[i].page, rings->ring_bytes + rings->page_bytes);
		if (rings->at[i].fd >= 0)
			close(rings->at[i].fd);
		rings->at[i].page = NULL;
		rings->at[i].fd = -1;
	}
}

/* All of one size, or none. */
static int map_all(struct csink_rings *rings, uint32_t bytes)
{
	int err = 0;

	rings->ring_bytes = bytes;
	for (uint32_t cpu = 0; cpu < rings->nr_cpus && !err; cpu++) {
		err = map_ring(rings, cpu);
		if (err == -ENODEV) /* offline */
			err = 0;
	}
	if (err)
		unmap_all(rings);
	return err;
}

int csink_rings_map(struct csink_rings *rings)
{
	uint32_t bytes = RING_BYTES;
	int err;

	while (bytes > RING_BYTES_LEAST && bytes > RINGS_BYTES / rings->nr_cpus)
		bytes /= 2;
	do
		err = map_all(rings, bytes);
	while (err == -ENOBUFS && (bytes /= 2) >= rings->page_bytes);
	if (err)
		rings->ring_bytes = 0;
	return err;
}

int csink_rings_add(struct csink_rings *rings, uint32_t cpu, int fd)
{
	if (rings->at[cpu].fd < 0)
		return 0;
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings->at[cpu].fd) < 0 ? -errno : 0;
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

/* Learn the time of the record at tail: of a sample behind id, ip and tid; else the last but one word. */
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
		at = head.type == PERF_RECORD_SAMPLE ? sizeof(head) + 24 : head.size - 16u;
		if (head.size >= sizeof(head) + 24 && at + 8 <= head.size) {
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
	} else {
		take(arg, (const struct perf_event_header *)rings->record, ring->next_ns);
	}
	ring->tail += head.size;
	/* Pairs with the kernel's acquire of data_tail before it writes over what was read. */
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	peek(rings, ring);
}

void csink_rings_drain(struct csink_rings *rings, uint64_t before_ns,
		       void (*take)(void *arg, const struct perf_event_header *record, uint64_t time_ns), void *arg)
{
	uint64_t expired;

	atomic_store(&rings->wake_ns, UINT64_MAX);
	if (rings->wake_fd >= 0 && read(rings->wake_fd, &expired, sizeof(expired)) < 0)
		expired = 0; /* other calls drain, too */
	for (uint32_t i = 0; i < rings->nr_cpus; i++) {
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

		for (uint32_t i = 1; i < rings->nr_cpus; i++) {
			if (rings->at[i].next_ns < oldest->next_ns)
				oldest = &rings->at[i];
		}
		if (oldest->next_ns >= before_ns)
			break;
		take_one(rings, oldest, take, arg);
	}
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
	struct itimerspec when = {.it_value = {(time_t)(at_ns / CSINK_NS_PER_S), (long)(at_ns % CSINK_NS_PER_S)}};

	/* Setting the timer takes back an expiry that the other thread has not seen. Of two calls at a time, the later
	 * time may count. */
	if (atomic_load(&rings->wake_ns) <= at_ns)
		return;
	atomic_store(&rings->wake_ns, at_ns);
	timerfd_settime(rings->wake_fd, TFD_TIMER_ABSTIME, &when, NULL);
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
