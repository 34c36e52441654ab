/*
 * The writer's side of a recording whose file another process overwrites: what is read back leads nowhere. And what
 * becomes of one whose file was truncated.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/agent/sampler/timeline.h"
#include "preload/core/record/recording.h"
#include "preload/core/record/stacks.h"
#include "tests/unit/tap.h"

enum { NR_THREADS = 3, NR_SAMPLES = 10000, NR_PATTERNS = 6, MAX_BYTES = 8 << 20 };

static char dir[] = "/tmp/countersink-record-damaged.XXXXXX";
static struct csink_recording rec;
static _Atomic int nr_running;

static void begin(void)
{
	is_num(csink_recording_create(&rec, dir, MAX_BYTES), 0, "a recording can be made");
	rec.header->nr_events = rec.nr_events = 2;
	csink_stacks_reset();
	csink_writer_reset();
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 20;
}

/* Stacks that share beginnings, so that nodes are looked up, compared and walked from one sample to the next. */
static void make_sample(struct csink_sample *sample, uint64_t *frames, uint64_t random)
{
	sample->leaf = 0x1000 + random % 5;
	sample->phase = random >> 3 & 7;
	sample->nr_frames = 2 + (random >> 6) % 30;
	for (uint32_t k = 0; k < sample->nr_frames; k++)
		frames[sample->nr_frames - 1 - k] = 0x400000 + (random >> CSINK_MIN(k, 20u) & 3) + 16 * k;
}

static void *store(void *arg)
{
	struct csink_stack_memo *memo = calloc(1, sizeof(*memo));
	struct csink_rec_thread *thread;
	struct csink_timeline timeline = {0};
	struct csink_writer writer = {0, 0};
	uint64_t frames[CSINK_MAX_DEPTH], weights[2] = {3, 5}, random = (uintptr_t)arg + 1;
	struct csink_sample sample = {.epoch_ns = 1, .frames = frames, .memo = memo};
	struct csink_row row = {0};

	thread = csink_recording_reserve(&rec, &writer, sizeof(*thread));
	sample.thread = thread ? csink_recording_ref(&rec, thread) : 0;
	for (uint64_t i = 0; i < NR_SAMPLES; i++) {
		make_sample(&sample, frames, next_random(&random));
		row = csink_stacks_add(&rec, &writer, &sample, weights, 1);
		if (row.ref)
			csink_timeline_add(&timeline, &rec, &writer, sample.thread, row.ref, 1, 7, i * 1000);
		if (row.ref && i % 3 == 0)
			row = csink_row_add(&rec, &writer, row, sample.thread, weights, 1);
		csink_recording_lose(&rec, CSINK_LOSS_RING, 1);
	}
	csink_writer_retire(&writer);
	free(memo);
	atomic_fetch_sub(&nr_running, 1);
	return NULL;
}

/* One word of what may be found in a file that was overwritten. */
static uint64_t word_of(int pattern, uint64_t at, uint64_t *random)
{
	switch (pattern) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return next_random(random) << 32 | next_random(random);
	case 3: /* references to what lies near, and to itself */
		return (at / 8) << 32 | at / 8;
	case 4: /* small references, as of another recording */
		return (next_random(random) % 4096) << 32 | next_random(random) % 4096;
	default: /* just beyond the end */
		return (uint64_t)(MAX_BYTES / 8 - 1) << 32 | (MAX_BYTES / 8);
	}
}

static void overwrite(int pattern)
{
	uint64_t random = (uint64_t)pattern + 7;

	while (atomic_load(&nr_running)) {
		uint64_t bytes = (uint64_t)atomic_load(&rec.ready_blocks) * CSINK_REC_BLOCK;
		volatile uint64_t *words = (volatile uint64_t *)rec.header;

		for (uint64_t at = 0; at < bytes; at += 8)
			words[at / 8] = word_of(pattern, at, &random);
	}
}

static void test_overwritten(int pattern)
{
	pthread_t threads[NR_THREADS];

	begin();
	atomic_store(&nr_running, NR_THREADS);
	for (intptr_t i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, store, (void *)(i + 1));
	overwrite(pattern);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	ok(rec.next_block <= rec.mapped_blocks, "pattern %d: all threads come to their end (%u blocks)", pattern,
	   rec.next_block);
	csink_recording_close(&rec);
}

static void test_references(void)
{
	csink_ref_t ready, end;

	begin();
	ready = rec.ready_blocks * (CSINK_REC_BLOCK / 8);
	end = csink_recording_end(&rec, 16);
	is_num(end - 1, ready - 2, "the last good reference leads to the last 16 bytes that there are");
	is_num(csink_recording_end(&rec, 8) - 1, ready - 1,
	       "the last good reference of 8 bytes leads to the last 8 bytes");
	csink_recording_close(&rec);
}

static void test_truncated(void)
{
	struct csink_writer writer = {0, 0};
	uintptr_t inside;
	char *entry;
	uint32_t nr = 0;

	begin();
	inside = (uintptr_t)rec.header + 12345;
	ok(!csink_recording_replace((uintptr_t)&rec), "an address that is not the recording's is left alone");
	ok(!csink_recording_replace((uintptr_t)rec.header - 1), "an address before the mapping is not replaced");
	ok(!csink_recording_replace((uintptr_t)rec.header + (uintptr_t)rec.mapped_blocks * CSINK_REC_BLOCK),
	   "an address behind the mapping is not replaced");
	is_num(truncate(rec.path, 0), 0, "a file that is truncated");
	ok(csink_recording_replace(inside), "a truncated file's mapping is replaced");
	is_num(rec.header->magic, 0, "the replaced mapping is zeros");
	rec.header->nr_events = 3;
	is_num(rec.header->nr_events, 3, "the replaced mapping can be written");
	while ((entry = csink_recording_reserve(&rec, &writer, 1000))) {
		memset(entry, 1, 1000);
		nr++;
	}
	ok(nr && nr <= 4 * rec.mapped_blocks, "a replaced recording does not grow (%u entries)", nr);
	is_num(rec.mapped_blocks, 16, "no page more is mapped after the replacement");
	inside = (uintptr_t)rec.header;
	csink_recording_close(&rec);
	ok(!csink_recording_replace(inside), "an unmapped address is in no recording");
}

int main(void)
{
	char command[sizeof(dir) + 16];

	if (!mkdtemp(dir))
		return 1;
	for (int pattern = 0; pattern < NR_PATTERNS; pattern++)
		test_overwritten(pattern);
	test_references();
	test_truncated();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return done() | (system(command) != 0);
}
