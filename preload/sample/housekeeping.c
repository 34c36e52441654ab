#include "preload/sample/housekeeping.h"

#include "countersink/timerq.h"
#include "include/internal/base.h"
#include "preload/sample/calls_off.h"
#include "preload/sample/modules.h"
#include "preload/sample/process.h"
#include "preload/sample/thread.h"
#include "preload/timer/queue.h"

enum {
	NR_EVENTS = 8,
	DRAIN_NS = 100 * 1000 * 1000,   /* what a killed process is behind by, at most */
	MODULES_NS = 100 * 1000 * 1000, /* how long an object may be unknown by name */
	INTERVAL_NS = 1000 * 1000 * 1000,
	MAX_INTERVALS = 2048, /* then every other one is left out, and so on: an hour and a second both fit */
};

static _Alignas(64) char memory[CSINK_TIMERQ_BYTES(NR_EVENTS)];
static struct csink_timerq *queue;
static uint32_t nr_intervals, interval_stride = 1, interval_tick;

/* Callbacks run in the handler of whichever thread polls: it is the one that writes. */

static void drain(int id, void *data)
{
	struct csink_rec_header *header = csink_process.rec.header;
	uint64_t cpu_ns = csink_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

	(void)id;
	(void)data;
	__atomic_store_n(&header->end_monotonic_ns, csink_now_ns(), __ATOMIC_RELAXED);
	if (cpu_ns)
		__atomic_store_n(&header->cpu_end_ns, cpu_ns, __ATOMIC_RELAXED);
}

static void refresh_modules(int id, void *data)
{
	(void)id;
	(void)data;
	csink_modules_refresh(&csink_process.rec, &csink_self->writer, csink_now_ns());
}

static void write_interval(struct csink_thread *thread)
{
	struct csink_rec_interval *interval =
		csink_recording_reserve(&csink_process.rec, &thread->writer, sizeof(*interval));

	if (!interval)
		return;
	interval->time_ns = csink_now_ns();
	csink_threads_sum(interval->totals);
	csink_recording_commit(interval, sizeof(*interval), CSINK_ENTRY_INTERVAL, 0);
}

static void count_interval(int id, void *data)
{
	(void)id;
	(void)data;
	if (++interval_tick % interval_stride)
		return;
	write_interval(csink_self);
	if (++nr_intervals == MAX_INTERVALS) {
		nr_intervals /= 2;
		interval_stride *= 2;
	}
}

void csink_housekeeping_init(void)
{
	struct csink_timerq_config config = {.capacity = NR_EVENTS};

	queue = NULL;
	nr_intervals = interval_tick = 0;
	interval_stride = 1;
	if (csink_timerq_init_unwatched(memory, sizeof(memory), &config, &queue) < 0)
		return;
	csink_timerq_register(queue, DRAIN_NS, NULL, drain);
	csink_timerq_register(queue, MODULES_NS, NULL, refresh_modules);
	csink_timerq_register(queue, INTERVAL_NS, NULL, count_interval);
}

void csink_housekeeping_poll(struct csink_thread *thread, uint64_t now_ns)
{
	(void)thread;
	/* The queue reads clocks of its own. */
	if (CSINK_UNLIKELY(queue && now_ns >= csink_timerq_next(queue)) && !csink_calls_are_off(CSINK_CALLS_TIME))
		csink_timerq_run(queue, now_ns);
}

void csink_housekeeping_last(struct csink_thread *thread)
{
	csink_modules_refresh_last(&csink_process.rec, &thread->writer, csink_now_ns());
	if (nr_intervals)
		write_interval(thread);
	drain(0, NULL);
}
