/* What `stat --per-thread` makes of the kernel's records; among them, of those that are missing. */
#include <stdlib.h>
#include <string.h>

#include "launcher/commands/stat/stat_threads_impl.h"
#include "tests/unit/tap.h"

#define NR_CPUS 2

static uint64_t ids[NR_CPUS] = {71, 72};

/* The records, as the kernel writes them; the time at their end is not read here. */
struct record {
	struct perf_event_header head;
	uint32_t ids[4];
	uint64_t more[4];
};

/* @parent  the thread that forks it; else the record has pid and tid alone. */
static void note(struct csink_stat_threads *threads, uint32_t type, uint32_t tid, uint32_t parent)
{
	const struct record record = {{type, 0, sizeof(record)}, {10, 10, tid, parent}, {0}};

	csink_stat_threads_feed(threads, &record.head);
}

static void name(struct csink_stat_threads *threads, uint32_t tid, const char *comm)
{
	struct record record = {{PERF_RECORD_COMM, 0, sizeof(record)}, {10, tid, 0, 0}, {0}};

	strcpy((char *)&record.ids[2], comm);
	csink_stat_threads_feed(threads, &record.head);
}

/* What a thread counted on a CPU. */
static void count(struct csink_stat_threads *threads, uint32_t tid, uint32_t cpu, uint64_t value)
{
	struct {
		struct perf_event_header head;
		uint32_t pid, tid;
		uint64_t value, enabled_ns, running_ns, id;
	} record = {{PERF_RECORD_READ, 0, sizeof(record)}, 10, tid, value, 100, 100, ids[cpu]};

	csink_stat_threads_feed(threads, &record.head);
}

static void end(struct csink_stat_threads *threads, uint32_t tid)
{
	note(threads, PERF_RECORD_EXIT, tid, 0);
}

int main(void)
{
	static struct csink_stat_counters counters = {.nr = 1};
	struct csink_stat_threads_result result;
	struct csink_stat_threads threads = {
		.nr_cpus = NR_CPUS, .counters = &counters, .ids = ids, .nr_reads = NR_CPUS};

	counters.counters[0].spec.scale = 1;
	name(&threads, 10, "main");
	note(&threads, PERF_RECORD_FORK, 11, 10);
	note(&threads, PERF_RECORD_FORK, 12, 10);
	note(&threads, PERF_RECORD_FORK, 13, 10);
	end(&threads, 11);
	count(&threads, 11, 0, 3);
	count(&threads, 11, 1, 4);
	end(&threads, 12);
	count(&threads, 12, 1, 5);
	note(&threads, PERF_RECORD_FORK, 11, 10); /* the number again: somebody else */
	end(&threads, 11);
	end(&threads, 99);

	is_num(csink_stat_threads_settle(&threads, &result), 0, "the threads' results are computed");
	is_num(result.nr, 5, "five threads have results");
	is_num(result.has_counts, 1, "the result has counts");
	ok(result.threads[1].ended && result.threads[1].has_counts, "an ended thread has all its counts");
	is_num((long long)result.threads[1].values[0].value, 7, "an ended thread's counts of both CPUs are added up");
	is_str(result.threads[1].comm, "main", "an ended thread is named by the thread that started it");
	ok(result.threads[2].ended && !result.threads[2].has_counts,
	   "a thread with an incomplete record has no counts");
	ok(!result.threads[3].ended && !result.threads[3].has_counts, "a running thread has no counts");
	ok(result.threads[4].ended && !result.threads[4].has_counts, "a later thread with the same TID has no counts");
	ok(!result.threads[0].ended, "a thread without an exit record has not ended");
	is_num(result.nr_incomplete, 2, "two threads are incomplete");
	free(result.threads);
	csink_table_free(&threads.tids);
	return done();
}
