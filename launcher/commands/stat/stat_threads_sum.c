/* Counts of single threads, added up from the kernel's records of them: see stat_threads.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/commands/stat/stat_threads_impl.h"

static struct csink_slot *slot_of(const struct csink_stat_threads *threads, uint32_t tid)
{
	uint32_t hash = csink_hash_number(tid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(threads->tids, hash, slot, (uint32_t)threads->threads[id - 1].tid == tid);
	return slot;
}

/* NULL: without memory. */
static struct csink_stat_thread *add_thread(struct csink_stat_threads *threads, uint32_t pid, uint32_t tid)
{
	struct csink_stat_thread *thread;

	if (CSINK_GROW(threads->threads, threads->nr, threads->cap)) {
		threads->err = -ENOMEM;
		return NULL;
	}
	thread = &threads->threads[threads->nr];
	memset(thread, 0, sizeof(*thread));
	thread->pid = (int32_t)pid;
	thread->tid = (int32_t)tid;
	csink_table_set(&threads->tids, slot_of(threads, tid), csink_hash_number(tid), ++threads->nr);
	return thread;
}

static struct csink_stat_thread *find_thread(struct csink_stat_threads *threads, uint32_t pid, uint32_t tid)
{
	uint32_t id = slot_of(threads, tid)->id;

	return id ? &threads->threads[id - 1] : add_thread(threads, pid, tid);
}

static uint32_t counter_of(const struct csink_stat_threads *threads, uint64_t id)
{
	for (uint32_t i = 0; i < threads->counters->nr * threads->nr_cpus; i++)
		if (threads->ids[i] == id)
			return i / threads->nr_cpus;
	return UINT32_MAX;
}

/* What follows a record's header. */
union record {
	uint32_t ids[4]; /* of FORK and EXIT: pid, ppid, tid, ptid; of the others: pid, tid */
	struct {
		uint32_t ids[2];
		char comm[16];
	} comm;
	struct {
		uint32_t ids[2];
		uint64_t value, enabled_ns, running_ns, id;
	} read;
};

static void add_read(struct csink_stat_threads *threads, const union record *record)
{
	uint32_t at = counter_of(threads, record->read.id);
	struct csink_stat_thread *thread =
		at == UINT32_MAX ? NULL : find_thread(threads, record->ids[0], record->ids[1]);

	if (!thread)
		return;
	thread->ended = true;
	thread->nr_reads++;
	thread->values[at].raw += record->read.value;
	thread->values[at].enabled_ns += record->read.enabled_ns;
	thread->values[at].running_ns += record->read.running_ns;
}

void csink_stat_threads_feed(struct csink_stat_threads *threads, const struct perf_event_header *head)
{
	const union record *record = (const union record *)(head + 1);
	struct csink_stat_thread *thread;
	uint32_t at;

	if (csink_table_room(&threads->tids))
		threads->err = -ENOMEM;
	if (threads->err)
		return;
	switch (head->type) {
	case PERF_RECORD_FORK:
		at = slot_of(threads, record->ids[3])->id;
		thread = add_thread(threads, record->ids[0], record->ids[2]);
		if (at && thread)
			memcpy(thread->comm, threads->threads[at - 1].comm, sizeof(thread->comm));
		break;
	case PERF_RECORD_COMM:
		thread = find_thread(threads, record->ids[0], record->ids[1]);
		if (thread)
			snprintf(thread->comm, sizeof(thread->comm), "%.15s", record->comm.comm);
		break;
	case PERF_RECORD_EXIT:
		at = slot_of(threads, record->ids[2])->id;
		if (at)
			threads->threads[at - 1].ended = true;
		break;
	case PERF_RECORD_READ:
		add_read(threads, record);
		break;
	}
}

/* The times of all threads together, then of the clocks. Returns how many. */
static uint32_t sum_times(const struct csink_stat_threads *threads, struct csink_event_times *times)
{
	const struct csink_stat_counters *counters = threads->counters;

	for (uint32_t i = 0; i < counters->nr; i++) {
		times[i] = (struct csink_event_times){.spec = &counters->counters[i].spec};
		for (uint32_t k = 0; k < threads->nr; k++) {
			times[i].enabled_ns += threads->threads[k].values[i].enabled_ns;
			times[i].running_ns += threads->threads[k].values[i].running_ns;
		}
		/* Enabled on each of its CPUs while the thread was on any. */
		times[i].enabled_ns /= CSINK_MAX(counters->counters[i].nr_fds, 1u);
	}
	return counters->nr + csink_clocks_read(&counters->clocks, times + counters->nr);
}

/*
 * How long an event was enabled for a thread is not known well: where the kernel switches between two threads that have
 * the same events it swaps these, and a part of one's time goes to the other. Over all threads it adds up; so each is
 * scaled by the share that was counted of them all.
 */
static void settle(struct csink_stat_threads *threads)
{
	const struct csink_stat_counters *counters = threads->counters;
	struct csink_event_times times[CSINK_STAT_MAX_EVENTS + CSINK_MAX_CLOCKS];
	uint32_t nr = sum_times(threads, times);

	for (uint32_t i = 0; i < counters->nr; i++) {
		const struct csink_stat_counter *counter = &counters->counters[i];
		uint64_t could_ns = csink_event_could_run_ns(times, nr, i);

		for (uint32_t k = 0; k < threads->nr; k++) {
			struct csink_stat_value *value = &threads->threads[k].values[i];

			value->state = counter->err ? CSINK_STAT_NOT_SUPPORTED : CSINK_STAT_COUNTED;
			value->enabled_ns = value->running_ns ? value->running_ns : value->enabled_ns;
			if (times[i].running_ns < could_ns && value->running_ns)
				value->enabled_ns = (uint64_t)((double)value->running_ns * (double)could_ns /
							       (double)times[i].running_ns);
			if (!counter->err)
				csink_stat_value_scale(value, counter->spec.scale);
		}
	}
}

int csink_stat_threads_settle(struct csink_stat_threads *threads, struct csink_stat_threads_result *result)
{
	memset(result, 0, sizeof(*result));
	if (threads->err)
		return threads->err;
	settle(threads);
	for (uint32_t i = 0; i < threads->nr; i++) {
		struct csink_stat_thread *thread = &threads->threads[i];

		thread->has_counts = thread->nr_reads && thread->nr_reads == threads->nr_reads;
		result->has_counts |= thread->has_counts;
		result->nr_incomplete += thread->ended && !thread->has_counts;
	}
	result->threads = threads->threads;
	result->nr = threads->nr;
	result->nr_lost = threads->rings.nr_lost;
	threads->threads = NULL;
	return 0;
}
