/* The writer's side of a recording: entries, chains and rows from many threads at once, and what happens when it is
 * full. */
#include "preload/core/record/recording.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/collect/recording_read.h"
#include "preload/agent/sampler/timeline.h"
#include "preload/core/record/hash_index.h"
#include "preload/core/record/stacks.h"
#include "tests/unit/tap.h"

enum { NR_THREADS = 4, NR_STACKS = 20000, NR_ROUNDS = 3 };

static char dir[] = "/tmp/countersink-record.XXXXXX";
static struct csink_recording rec;

static void begin(uint64_t max_bytes)
{
	is_num(csink_recording_create(&rec, dir, max_bytes), 0, "a recording can be made");
	rec.header->nr_events = rec.nr_events = 2;
	csink_stacks_reset();
	csink_writer_reset();
}

static csink_ref_t make_thread(struct csink_writer *writer, int32_t tid)
{
	struct csink_rec_thread *thread = csink_recording_reserve(&rec, writer, sizeof(*thread));

	thread->tid = tid;
	csink_recording_commit(thread, sizeof(*thread), CSINK_ENTRY_THREAD, 0);
	return csink_recording_ref(&rec, thread);
}

/* Stack i of a family: its frames and leaf identify it. */
static void make_sample(struct csink_sample *sample, uint64_t *frames, uint32_t i, csink_ref_t thread,
			struct csink_stack_memo *memo)
{
	*sample = (struct csink_sample){.thread = thread,
					.leaf = 0x1000 + i % 7,
					.epoch_ns = 1,
					.nr_frames = 3 + i % 5,
					.frames = frames,
					.memo = memo};
	for (uint32_t k = 0; k < sample->nr_frames; k++)
		frames[k] = 0x400000 + (uint64_t)i * 64 + k;
}

static void *store(void *arg)
{
	struct csink_writer writer = {0, 0};
	struct csink_stack_memo memo = {0};
	csink_ref_t thread = make_thread(&writer, (int32_t)(intptr_t)arg);
	uint64_t frames[8], weights[2] = {3, 5};
	intptr_t failed = 0;

	for (int round = 0; round < NR_ROUNDS; round++)
		for (uint32_t i = 0; i < NR_STACKS; i++) {
			struct csink_sample sample;

			make_sample(&sample, frames, i, thread, &memo);
			failed += !csink_stacks_add(&rec, &writer, &sample, weights, 1).ref;
		}
	csink_writer_retire(&writer);
	return (void *)failed;
}

static void test_threads(void)
{
	pthread_t threads[NR_THREADS];
	struct csink_recorded read;
	uint64_t nr = 0, w0 = 0, w1 = 0, bad = 0;
	intptr_t failed = 0;
	void *result;

	begin(CSINK_REC_MAX_BYTES);
	for (intptr_t i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, store, (void *)(i + 1));
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &result);
		failed += (intptr_t)result;
	}
	is_num(failed, 0, "four threads store 20,000 stacks each, three times over");
	is_num(csink_recorded_read(rec.path, &read, NULL, 0), 0, "the reader takes the recording while it is mapped");
	for (uint32_t i = 0; i < read.nr_rows; i++) {
		const struct csink_recorded_row *row = &read.rows[i];
		const struct csink_recorded_node *node =
			row->node == CSINK_RECORDED_NONE ? NULL : &read.nodes[row->node];
		uint32_t which = node ? (uint32_t)((node->pc - 0x400000) / 64) : UINT32_MAX;

		nr += row->nr_samples;
		w0 += read.weights[2 * i];
		w1 += read.weights[2 * i + 1];
		bad += !node || row->leaf != 0x1000 + which % 7 || node->depth != 3 + which % 5;
		for (uint32_t k = 0; node && k < node->depth; k++) {
			bad += node->pc != 0x400000 + (uint64_t)which * 64 + k;
			node = &read.nodes[node->parent];
		}
	}
	is_num((long long)nr, (long long)NR_THREADS * NR_STACKS * NR_ROUNDS, "no sample is lost");
	is_num((long long)w0, (long long)nr * 3, "no weight of the first event is lost");
	is_num((long long)w1, (long long)nr * 5, "no weight of the second event is lost");
	is_num((long long)bad, 0, "every row has the leaf and the chain that were stored together");
	is_num(read.nr_threads, NR_THREADS, "all threads are in the recording");
	is_num(read.nr_damaged, 0, "the recording is undamaged");
	/*
	 * A root, and 3 + i % 5 callers of stack i's own. A duplicate is stored only where the index grew at that
	 * moment, or its first writer was stopped between two stores; some hundred nodes then lie below duplicates.
	 */
	ok(read.nr_nodes > NR_STACKS * 5 && read.nr_nodes < NR_STACKS * 5 + NR_STACKS / 4,
	   "four threads that store equal callers at the same moment store each of them once (%u nodes of %u)",
	   read.nr_nodes, NR_STACKS * 5 + 1);
	csink_recorded_free(&read);
	csink_recording_close(&rec);
}

static bool match_ref(csink_ref_t ref, uint32_t aux, const void *key)
{
	(void)aux;
	return ref == *(const csink_ref_t *)key;
}

/* Of entry @i: in its lower half one of 64 values that are next to each other. */
static uint64_t crowded_hash(uint64_t i)
{
	uint64_t hash = i * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return (hash & 0xffffffff00000000ULL) | 0x1000 | (i & 63);
}

/* Entries that want the same few slots take others; the table grows no sooner than it must. */
static void test_crowded(void)
{
	static struct csink_index_slot first[1u << CSINK_INDEX_FIRST_BITS];
	static struct csink_index crowded = {.levels = {first}};
	uint32_t level = 0, nr_lost = 0;

	while (csink_index_slots(level) / 2 < NR_STACKS)
		level++;
	for (csink_ref_t i = 1; i <= NR_STACKS; i++)
		csink_index_insert(&crowded, crowded_hash(i), i, 0, match_ref, &i);
	for (csink_ref_t i = 1; i <= NR_STACKS; i++) {
		struct csink_index_slot *slot = csink_index_find(&crowded, crowded_hash(i), match_ref, &i);

		nr_lost += !slot || slot->ref != i;
	}
	ok(nr_lost < 10, "20,000 entries that want the same 64 slots of an index are in it, all but %u", nr_lost);
	ok(crowded.newest <= level, "their table has as many levels as one of other entries (%u, at most %u)",
	   (unsigned int)crowded.newest, level);
	csink_index_reset(&crowded);
}

static void test_reuse(void)
{
	struct csink_writer first = {0, 0}, second = {0, 0};
	uint32_t pos;

	begin(CSINK_REC_MAX_BYTES);
	make_thread(&first, 1);
	pos = first.pos;
	csink_writer_retire(&first);
	csink_writer_adopt(&second);
	is_num(second.pos, pos, "a new thread goes on where an ended one stopped");
	csink_writer_adopt(&first);
	is_num(first.pos, first.end, "the ended thread's writer has no room left");
	csink_recording_close(&rec);
}

static void test_full(void)
{
	struct csink_writer writer = {0, 0};
	struct csink_stack_memo memo = {0};
	uint64_t frames[8], weights[2] = {1, 1};
	struct csink_row first = {0}, row;
	struct csink_recorded read;
	struct csink_sample sample;
	csink_ref_t thread;
	uint32_t stored = 0;

	begin(1 << 20);
	thread = make_thread(&writer, 1);
	for (uint32_t i = 0; i < NR_STACKS; i++) {
		make_sample(&sample, frames, i, thread, &memo);
		row = csink_stacks_add(&rec, &writer, &sample, weights, 1);
		if (!row.ref)
			break;
		first = first.ref ? first : row;
		stored++;
	}
	ok(stored > 1000 && stored < NR_STACKS, "a recording of 1 MiB takes %u stacks and then says that it is full",
	   stored);
	make_sample(&sample, frames, 0, thread, &memo);
	ok(csink_stacks_add(&rec, &writer, &sample, weights, 1).ref == first.ref,
	   "stacks that it knows can still be added to");
	is_num(csink_recorded_read(rec.path, &read, NULL, 0), 0, "a full recording can be read");
	is_num(read.nr_rows, stored, "a full recording has all stored rows");
	is_num(read.nr_damaged, 0, "a full recording is undamaged");
	csink_recorded_free(&read);
	csink_recording_close(&rec);
}

static void test_timeline(void)
{
	struct csink_writer writer = {0, 0};
	struct csink_stack_memo memo = {0};
	struct csink_timeline timeline = {0};
	uint64_t frames[8], weights[2] = {7, 0};
	struct csink_recorded read;
	struct csink_sample sample;
	struct csink_row row;
	uint32_t nr = 0;
	csink_ref_t thread;
	bool in_order = true;

	begin(CSINK_REC_MAX_BYTES);
	thread = make_thread(&writer, 1);
	make_sample(&sample, frames, 1, thread, &memo);
	for (uint64_t i = 0; i < 500; i++) {
		row = csink_stacks_add(&rec, &writer, &sample, weights, 1);
		csink_timeline_add(&timeline, &rec, &writer, thread, row.ref, 1, 7, 1000000 + i * 1000000);
	}
	csink_recorded_read(rec.path, &read, NULL, 0);
	for (uint32_t i = 0; i < read.nr_timelines; i++) {
		uint64_t at_us = 0;

		for (uint32_t k = 0; k < read.timelines[i]->nr; k++, nr++) {
			const struct csink_rec_moment *moment = &read.timelines[i]->moments[k];

			at_us += moment->delta_us;
			in_order &= read.timelines[i]->base_ns + at_us * 1000 == 1000000 + (uint64_t)nr * 1000000 &&
				    moment->event_weight == (1ULL << CSINK_MOMENT_WEIGHT_BITS | 7) &&
				    csink_recorded_row_at(&read, moment->row) == 0;
		}
	}
	is_num(nr, 500, "a timeline keeps every moment");
	ok(in_order, "each moment has its time, event, weight and row");
	csink_recorded_free(&read);
	csink_recording_close(&rec);
}

static void test_refusals(void)
{
	struct rlimit lim, small = {64 * 1024, RLIM_INFINITY};
	struct stat st;

	is_num(csink_recording_create(&rec, "/nowhere/at/all", 1 << 20), -ENOENT, "a missing directory is reported");
	getrlimit(RLIMIT_FSIZE, &lim);
	setrlimit(RLIMIT_FSIZE, &small);
	is_num(csink_recording_create(&rec, dir, 1 << 20), 0, "a small RLIMIT_FSIZE raises no SIGXFSZ");
	is_num(stat(rec.path, &st) ? -1 : st.st_size, 64 * 1024, "the recording stays below it");
	is_num(st.st_mode & 0777, 0600, "the recording has mode 0600");
	setrlimit(RLIMIT_FSIZE, &lim);
	csink_recording_close(&rec);
}

int main(void)
{
	char command[sizeof(dir) + 16];

	if (!mkdtemp(dir))
		return 1;
	test_threads();
	test_crowded();
	test_reuse();
	test_full();
	test_timeline();
	test_refusals();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return done() | (system(command) != 0);
}
