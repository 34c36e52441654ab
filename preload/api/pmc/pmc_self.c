/*
 * Reading an event of the calling thread without a system call: the kernel keeps, in a page of the event, which counter
 * has it and what it counted before, and lets user space read that counter (RDPMC; on arm64 PMU user access). The page
 * is a sequence lock whose writer is the kernel on this CPU: so only the order of instructions matters, and no barrier
 * between CPUs is needed. See struct perf_event_mmap_page in linux/perf_event.h.
 */
#include <stdatomic.h>

#include "preload/api/pmc/pmc_impl.h"

#define TRIES 1000 /* one fails only if the task was switched out between a few instructions */

static uint64_t scaled_ns(const struct perf_event_mmap_page *page, uint64_t ticks)
{
	uint64_t whole, rest;

	if (page->cap_user_time_short)
		ticks = page->time_cycles + ((ticks - page->time_cycles) & page->time_mask);
	whole = ticks >> page->time_shift;
	rest = ticks & ((1ULL << page->time_shift) - 1);
	return page->time_offset + whole * page->time_mult + ((rest * page->time_mult) >> page->time_shift);
}

bool csink_pmc_self_read(const struct perf_event_mmap_page *page, const struct csink_pmc_self_counters *counters,
			 struct csink_pmc_value *sum)
{
	const volatile uint32_t *lock = (const volatile uint32_t *)&page->lock;

	for (int i = 0; i < TRIES; i++) {
		uint32_t seq = *lock, index, width;
		uint64_t count, delta_ns, enabled_ns, running_ns;
		int64_t counter;

		atomic_signal_fence(memory_order_seq_cst);
		index = page->index;
		width = page->pmc_width;
		/* The event is not on a counter now, or times would be as old as its last switch. */
		if (!page->cap_user_rdpmc || !page->cap_user_time || !index || !width || width > 64)
			return false;
		/* The counter has width bits, and what the kernel subtracted may have made it negative. */
		counter = (int64_t)(counters->read(index - 1) << (64 - width)) >> (64 - width);
		count = (uint64_t)page->offset + (uint64_t)counter;
		delta_ns = scaled_ns(page, counters->ticks());
		enabled_ns = page->time_enabled + delta_ns;
		running_ns = page->time_running + delta_ns;
		atomic_signal_fence(memory_order_seq_cst);
		if (*lock != seq || seq & 1)
			continue;
		sum->value += count;
		sum->enabled_ns += enabled_ns;
		sum->running_ns += running_ns;
		return true;
	}
	return false;
}

/* ---- this machine's instructions ---- */

#if defined(__x86_64__)
static uint64_t read_counter(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return low | (uint64_t)high << 32;
}

static uint64_t read_ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return low | (uint64_t)high << 32;
}
#elif defined(__aarch64__)
#define CYCLES 31 /* the counter of cycles; those before it are numbered */
#define READ(reg)                                                                                                      \
	({                                                                                                             \
		uint64_t got;                                                                                          \
		__asm__ volatile("isb\n\tmrs %0, " #reg : "=r"(got));                                                  \
		got;                                                                                                   \
	})
#define CASE(n)                                                                                                        \
	case n:                                                                                                        \
		return READ(pmevcntr##n##_el0)
#define CASES(a, b, c, d, e, f)                                                                                        \
	CASE(a);                                                                                                       \
	CASE(b);                                                                                                       \
	CASE(c);                                                                                                       \
	CASE(d);                                                                                                       \
	CASE(e);                                                                                                       \
	CASE(f)

static uint64_t read_counter(uint32_t index)
{
	switch (index) {
		CASES(0, 1, 2, 3, 4, 5);
		CASES(6, 7, 8, 9, 10, 11);
		CASES(12, 13, 14, 15, 16, 17);
		CASES(18, 19, 20, 21, 22, 23);
		CASES(24, 25, 26, 27, 28, 29);
		CASE(30);
	case CYCLES:
		return READ(pmccntr_el0);
	default:
		return 0;
	}
}

static uint64_t read_ticks(void)
{
	return READ(cntvct_el0);
}
#endif

const struct csink_pmc_self_counters csink_pmc_self_counters = {read_counter, read_ticks};
