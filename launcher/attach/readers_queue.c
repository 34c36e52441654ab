/* Handing over what a reader has read to main: a queue of words with one writer and one reader. See readers_impl.h. */
#include <errno.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "launcher/attach/readers_impl.h"

enum {
	BYTES_PER_WORD = 64, /* of a ring, whose samples have 16 KiB each: 256 words a sample */
	LEAST_WORDS = 4096,
	HEAD_WORDS = 3, /* of one stack in it */
};

int csink_reader_queue_init(struct csink_reader *reader)
{
	uint32_t ring_bytes = reader->all->counters->rings.ring_bytes;

	reader->queue_words = CSINK_MAX(ring_bytes / BYTES_PER_WORD, (uint32_t)LEAST_WORDS);
	reader->queue = calloc(reader->queue_words, sizeof(*reader->queue));
	return reader->queue ? 0 : -ENOMEM;
}

/* ---- the reader ---- */

static void queue_word(struct csink_reader *reader, uint64_t *at, uint64_t word)
{
	reader->queue[(*at)++ % reader->queue_words] = word;
}

void csink_reader_queue(struct csink_reader *reader, const struct csink_attach_sample *s, enum csink_read_state state)
{
	const struct csink_python_stack *stack = &reader->stack;
	uint32_t nr_frames = state == CSINK_READ_DONE ? stack->nr_frames : 0;
	uint32_t nr_groups = state == CSINK_READ_DONE ? stack->nr_groups : 0;
	uint64_t at = atomic_load_explicit(&reader->put, memory_order_relaxed);
	uint64_t need = HEAD_WORDS + nr_frames + 2ULL * nr_groups;

	/* Pairs with the release in csink_attach_readers_take(). */
	if (at + need - atomic_load_explicit(&reader->taken, memory_order_acquire) > reader->queue_words)
		return;
	queue_word(reader, &at, s->time_ns);
	queue_word(reader, &at, (uint64_t)(uint32_t)s->tid << 32 | state << 1 | (nr_frames && stack->is_full));
	queue_word(reader, &at, (uint64_t)nr_groups << 32 | nr_frames);
	for (uint32_t i = 0; i < nr_frames; i++)
		queue_word(reader, &at, CSINK_FRAME_CODE | (uint64_t)reader->ids[i] << 32 | stack->positions[i]);
	for (uint32_t i = 0; i < nr_groups; i++) {
		queue_word(reader, &at, stack->groups[i].record);
		queue_word(reader, &at, (uint64_t)stack->groups[i].first << 32 | stack->groups[i].nr);
	}
	atomic_store_explicit(&reader->put, at, memory_order_release);
}

/* ---- main ---- */

static uint64_t queued(const struct csink_reader *reader, uint64_t at)
{
	return reader->queue[at % reader->queue_words];
}

static void unpack(const struct csink_reader *reader, uint64_t at, struct csink_attach_read *read)
{
	read->state = (enum csink_read_state)(queued(reader, at + 1) >> 1 & 0xff);
	read->is_full = queued(reader, at + 1) & 1;
	read->nr_frames = (uint32_t)queued(reader, at + 2);
	read->nr_groups = (uint32_t)(queued(reader, at + 2) >> 32);
	at += HEAD_WORDS;
	for (uint32_t i = 0; i < read->nr_frames; i++)
		read->frames[i] = queued(reader, at++);
	for (uint32_t i = 0; i < read->nr_groups; i++, at += 2)
		read->groups[i] = (struct csink_python_group){
			queued(reader, at), (uint32_t)(queued(reader, at + 1) >> 32), (uint32_t)queued(reader, at + 1)};
}

/* Take the stack of a sample from one reader's queue, and drop those of earlier ones. */
static bool take_from(struct csink_reader *reader, uint64_t time_ns, int32_t tid, struct csink_attach_read *read)
{
	/* Pairs with the release in csink_reader_queue(). */
	uint64_t end = atomic_load_explicit(&reader->put, memory_order_acquire);
	uint64_t at = atomic_load_explicit(&reader->taken, memory_order_relaxed);
	bool found = false;

	while (!found && at < end && queued(reader, at) <= time_ns) {
		found = queued(reader, at) == time_ns && (int32_t)(queued(reader, at + 1) >> 32) == tid;
		if (found)
			unpack(reader, at, read);
		at += HEAD_WORDS + (uint32_t)queued(reader, at + 2) + 2 * (queued(reader, at + 2) >> 32);
	}
	atomic_store_explicit(&reader->taken, at, memory_order_release);
	return found;
}

void csink_attach_readers_take(struct csink_attach_readers *r, uint64_t time_ns, int32_t tid,
			       struct csink_attach_read *read)
{
	read->state = CSINK_READ_NOT;
	read->nr_frames = read->nr_groups = 0;
	for (uint32_t cpu = 0; cpu < r->counters->rings.nr; cpu++) {
		if (r->at[cpu] && take_from(r->at[cpu], time_ns, tid, read))
			return;
	}
}
