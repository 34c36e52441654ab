/*
 * What a thread's group of counters has counted: see group.h. The ring is read in the thread's handler. No system call.
 */
#include "preload/agent/sampler/group.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <string.h>

/* A word of the ring, which wraps. Records are multiples of eight bytes and so never split a word. */
static inline uint64_t ring_word(const char *ring, uint64_t mask, uint64_t at)
{
	return *(const volatile uint64_t *)(ring + (at & mask));
}

/* PERF_SAMPLE_TIME | PERF_SAMPLE_READ with PERF_FORMAT_GROUP: time, nr, enabled, running, values of the open events. */
static void read_sample(const struct csink_group *group, const char *ring, uint64_t at, struct csink_group_read *out)
{
	uint32_t left = group->members & ~(1u << group->leader);

	out->time_ns = ring_word(ring, group->mask, at);
	out->enabled_ns = ring_word(ring, group->mask, at + 16);
	out->running_ns = ring_word(ring, group->mask, at + 24);
	out->counts[group->leader] = group->base[group->leader] + ring_word(ring, group->mask, at + 32);
	for (at += 40; left; left &= left - 1, at += 8) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		out->counts[i] = group->base[i] + ring_word(ring, group->mask, at);
	}
}

bool csink_group_drain(struct csink_group *group, struct csink_group_read *out)
{
	uint64_t head, tail, latest = 0, mask = group->mask;
	struct perf_event_mmap_page *page;
	const char *ring;

	memset(out, 0, sizeof(*out));
	page = group->members ? group->pages[group->leader] : NULL;
	if (!page)
		return false;
	ring = (const char *)page + mask + 1;
	/* Acquire pairs with the kernel's store of data_head: the records below it are whole. */
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	tail = page->data_tail;
	while (tail < head) {
		uint64_t word = ring_word(ring, mask, tail);
		uint32_t type = (uint32_t)word, bytes = (uint32_t)(word >> 48);

		if (bytes < 8) /* never from a kernel; do not loop on it */
			break;
		if (type == PERF_RECORD_SAMPLE) {
			out->nr_overflows++;
			latest = tail + 8;
		} else if (type == PERF_RECORD_LOST) {
			out->lost += ring_word(ring, mask, tail + 16);
		} else if (type == PERF_RECORD_THROTTLE) {
			out->throttled++;
		}
		tail += bytes;
	}
	if (latest)
		read_sample(group, ring, latest, out);
	/* Release: our reads are done before the kernel may write there again. */
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return latest != 0;
}

/* A counter that users may read; its number is one less. Signed, since only the lower @width bits are the counter's. */
static int64_t read_counter(uint32_t index, uint32_t width)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1));
	return (int64_t)(((uint64_t)high << 32 | low) << (64 - width)) >> (64 - width);
#else
	(void)index;
	(void)width;
	return 0;
#endif
}

static bool is_user_readable(const volatile struct perf_event_mmap_page *page)
{
#if defined(__x86_64__)
	return page->cap_user_rdpmc && page->index && page->pmc_width;
#else
	(void)page;
	return false;
#endif
}

uint64_t csink_group_page_count(const struct csink_group *group, uint32_t event)
{
	const volatile struct perf_event_mmap_page *page = group->pages[event];
	uint32_t seq, index;
	uint64_t count;

	if (!page)
		return group->base[event];
	do {
		seq = page->lock;
		atomic_thread_fence(memory_order_acquire);
		index = page->index;
		count = (uint64_t)page->offset;
		if (is_user_readable(page)) {
			count += (uint64_t)read_counter(index, page->pmc_width);
			index = 0;
		}
		atomic_thread_fence(memory_order_acquire);
	} while (page->lock != seq);
	/* On a counter that is running, offset is what to add to what that says: no count by itself. */
	return group->base[event] + (index ? 0 : count);
}

bool csink_group_page_is_behind(const struct csink_group *group, uint32_t events)
{
	for (uint32_t i = 0; i < CSINK_MAX_EVENTS; i++)
		if (events >> i & 1 && group->pages[i] && !is_user_readable(group->pages[i]))
			return true;
	return false;
}

uint64_t csink_group_page_running_ns(const struct csink_group *group)
{
	const volatile struct perf_event_mmap_page *page = group->members ? group->pages[group->leader] : NULL;
	uint64_t running_ns;
	uint32_t seq;

	if (!page)
		return 0;
	do {
		seq = page->lock;
		atomic_thread_fence(memory_order_acquire);
		running_ns = page->time_running;
		atomic_thread_fence(memory_order_acquire);
	} while (page->lock != seq);
	return running_ns;
}
