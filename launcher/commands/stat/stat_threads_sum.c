/* Counts of single threads, added up from the kernel's records of them: see stat_threads.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/search.h"
#include "launcher/base/table.h"
#include "launcher/commands/stat/stat_threads_impl.h"

struct table {
	struct csink_stat_thread *threads;
	uint32_t nr, cap;
	struct csink_table tids; /* index + 1 of the latest thread of a TID */
	int err;
};

static struct csink_slot *slot_of(const struct table *table, uint32_t tid)
{
	uint32_t hash = csink_hash_number(tid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(table->tids, hash, slot, (uint32_t)table->threads[id - 1].tid == tid);
	return slot;
}

/* NULL: without memory. */
static struct csink_stat_thread *add_thread(struct table *table, const struct csink_stat_thread_note *note)
{
	struct csink_stat_thread *thread;

	if (CSINK_GROW(table->threads, table->nr, table->cap) || csink_table_room(&table->tids)) {
		table->err = -ENOMEM;
		return NULL;
	}
	thread = &table->threads[table->nr];
	memset(thread, 0, sizeof(*thread));
	thread->pid = (int32_t)note->pid;
	thread->tid = (int32_t)note->tid;
	thread->start_ns = note->time_ns;
	csink_table_set(&table->tids, slot_of(table, note->tid), csink_hash_number(note->tid), ++table->nr);
	return thread;
}

static struct csink_stat_thread *find_thread(struct table *table, const struct csink_stat_thread_note *note)
{
	uint32_t id = slot_of(table, note->tid)->id;

	return id ? &table->threads[id - 1] : add_thread(table, note);
}

static uint32_t counter_of(const struct csink_stat_threads *threads, uint64_t id)
{
	for (uint32_t i = 0; i < threads->counters->nr * threads->nr_cpus; i++)
		if (threads->ids[i] == id)
			return i / threads->nr_cpus;
	return UINT32_MAX;
}

static void apply(const struct csink_stat_threads *threads, struct table *table,
		  const struct csink_stat_thread_note *note)
{
	struct csink_stat_thread *thread;
	struct csink_stat_value *value;
	uint32_t at;

	switch (note->type) {
	case PERF_RECORD_FORK:
		at = slot_of(table, note->parent)->id;
		thread = add_thread(table, note);
		if (at && thread)
			memcpy(thread->comm, table->threads[at - 1].comm, sizeof(thread->comm));
		break;
	case PERF_RECORD_COMM:
		thread = find_thread(table, note);
		if (thread)
			memcpy(thread->comm, note->comm, sizeof(note->comm));
		break;
	case PERF_RECORD_EXIT:
		at = slot_of(table, note->tid)->id;
		if (at)
			table->threads[at - 1].ended = true;
		break;
	case PERF_RECORD_READ:
		at = counter_of(threads, note->read.id);
		if (at == UINT32_MAX)
			break;
		thread = find_thread(table, note);
		if (!thread)
			break;
		thread->ended = true;
		thread->nr_reads++;
		value = &thread->values[at];
		value->raw += note->read.value;
		value->enabled_ns += note->read.enabled_ns;
		value->running_ns += note->read.running_ns;
		break;
	}
}

/* The times of all threads together, then of the clocks. Returns how many. */
static uint32_t sum_times(const struct csink_stat_counters *counters, const struct table *table,
			  struct csink_event_times *times)
{
	for (uint32_t i = 0; i < counters->nr; i++) {
		times[i] = (struct csink_event_times){.spec = &counters->counters[i].spec};
		for (uint32_t k = 0; k < table->nr; k++) {
			times[i].enabled_ns += table->threads[k].values[i].enabled_ns;
			times[i].running_ns += table->threads[k].values[i].running_ns;
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
static void settle(const struct csink_stat_counters *counters, struct table *table)
{
	struct csink_event_times times[CSINK_STAT_MAX_EVENTS + CSINK_MAX_CLOCKS];
	uint32_t nr = sum_times(counters, table, times);

	for (uint32_t i = 0; i < counters->nr; i++) {
		const struct csink_stat_counter *counter = &counters->counters[i];
		uint64_t could_ns = csink_event_could_run_ns(times, nr, i);

		for (uint32_t k = 0; k < table->nr; k++) {
			struct csink_stat_value *value = &table->threads[k].values[i];

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

int csink_stat_threads_finish(struct csink_stat_threads *threads, struct csink_stat_threads_result *result)
{
	struct table table = {0};

	memset(result, 0, sizeof(*result));
	csink_stat_threads_drain(threads);
	qsort(threads->notes, threads->nr_notes, sizeof(*threads->notes), csink_compare_u64);
	table.err = threads->no_memory ? -ENOMEM : csink_table_room(&table.tids);
	for (uint32_t i = 0; i < threads->nr_notes && !table.err; i++)
		apply(threads, &table, &threads->notes[i]);
	if (table.err) {
		free(table.threads);
		csink_table_free(&table.tids);
		return table.err;
	}
	settle(threads->counters, &table);
	for (uint32_t i = 0; i < table.nr; i++) {
		struct csink_stat_thread *thread = &table.threads[i];

		thread->has_counts = thread->nr_reads && thread->nr_reads == threads->nr_reads;
		result->has_counts |= thread->has_counts;
		result->nr_incomplete += thread->ended && !thread->has_counts;
	}
	csink_table_free(&table.tids);
	result->threads = table.threads;
	result->nr = table.nr;
	result->nr_lost = threads->nr_lost;
	return 0;
}
