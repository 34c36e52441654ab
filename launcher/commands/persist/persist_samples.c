/*
 * Samples of rings. The kernel continues to write, so a ring is copied first and parsed then: a backward ring from the
 * latest record to the oldest one that was not overwritten when the copy was complete; a forward ring from its tail,
 * which no reader moves, to its head.
 */
#include "launcher/commands/persist/persist_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/commands/registry.h"

#define MARGIN 4096 /* a record that the kernel may just be writing, in bytes, or less in a small ring */
#define COPIES 8    /* of a ring that is written faster than it is copied */

struct sample {
	uint64_t time_ns, ip, period, order;
	uint32_t pid, tid, cpu;
};

struct samples {
	const struct csink_persist_event *event;
	struct sample *at;
	uint32_t nr, room;
	uint64_t nr_lost, nr_throttled; /* as records of the ring say */
	uint64_t read_bytes, overwritten_bytes;
	uint32_t nr_rings;
};

/* A ring, or what was copied of it: len bytes from begin on. */
struct ring {
	const struct perf_event_mmap_page *page;
	const char *data;
	char *copy;
	uint64_t size, begin, len;
};

/* ---- records ---- */

/* The parts of a sample that are read come before those of variable size. */
static void parse_sample(const struct samples *samples, const uint64_t *words, size_t nr, struct sample *out)
{
	static const uint64_t parts[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
					 PERF_SAMPLE_TIME,       PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
					 PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD};
	uint64_t found[CSINK_ARRAY_SIZE(parts)] = {0};
	size_t at = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts) && at < nr; i++)
		if (samples->event->attr.sample_type & parts[i])
			found[i] = words[at++];
	*out = (struct sample){.ip = found[1], .time_ns = found[3], .period = found[8], .order = samples->nr};
	if (!(samples->event->attr.sample_type & PERF_SAMPLE_PERIOD))
		out->period = samples->event->attr.sample_period;
	out->pid = (uint32_t)found[2];
	out->tid = (uint32_t)(found[2] >> 32);
	out->cpu = (uint32_t)found[7];
}

static int add_sample(struct samples *samples, const uint64_t *words, size_t nr)
{
	if (CSINK_GROW(samples->at, samples->nr, samples->room))
		return -ENOMEM;
	parse_sample(samples, words, nr, &samples->at[samples->nr]);
	samples->nr++;
	return 0;
}

static int take_record(struct samples *samples, const struct perf_event_header *head)
{
	const uint64_t *words = (const uint64_t *)(head + 1);
	size_t nr = (head->size - sizeof(*head)) / sizeof(*words);

	switch (head->type) {
	case PERF_RECORD_SAMPLE:
		return add_sample(samples, words, nr);
	case PERF_RECORD_LOST:
		samples->nr_lost += nr > 1 ? words[1] : 0;
		return 0;
	case PERF_RECORD_LOST_SAMPLES:
		samples->nr_lost += nr ? words[0] : 0;
		return 0;
	case PERF_RECORD_THROTTLE:
		samples->nr_throttled++;
		return 0;
	default:
		return 0;
	}
}

static int parse_ring(struct samples *samples, const struct ring *ring)
{
	static uint64_t words[UINT16_MAX / sizeof(uint64_t) + 1]; /* the longest record */
	char *record = (char *)words;
	uint64_t at = 0;
	int err = 0;

	while (!err && at + sizeof(struct perf_event_header) <= ring->len) {
		const struct perf_event_header *head = (const void *)words;
		uint64_t from = (ring->begin + at) % ring->size, first;

		memcpy(record, ring->copy + from, sizeof(*head)); /* in one piece: all is a multiple of 8 bytes */
		if (head->size < sizeof(*head) || head->size % 8 || at + head->size > ring->len)
			break;
		first = CSINK_MIN((uint64_t)head->size, ring->size - from);
		memcpy(record + sizeof(*head), ring->copy + from + sizeof(*head), first - sizeof(*head));
		memcpy(record + first, ring->copy, head->size - first);
		at += head->size;
		err = take_record(samples, head);
	}
	samples->read_bytes += at;
	return err;
}

/* ---- rings ---- */

static uint64_t head_of(const struct ring *ring)
{
	/* Pairs with the kernel's barrier between a record and data_head. */
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

/*
 * Backward: positions count down from 0. While we copied, the kernel wrote from head to after, over the oldest; and
 * it may be writing one more record below that.
 */
static bool copy_backward(struct samples *samples, struct ring *ring)
{
	for (int i = 0; i < COPIES; i++) {
		uint64_t margin = CSINK_MIN(ring->size / 8, (uint64_t)MARGIN), head = head_of(ring), after,
			 written = 0 - head, kept;

		memcpy(ring->copy, ring->data, ring->size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = head_of(ring);
		kept = ring->size - CSINK_MIN(head - after + margin, ring->size);
		if (!kept)
			continue;
		ring->begin = head;
		ring->len = CSINK_MIN(written, kept);
		samples->overwritten_bytes += written - ring->len;
		return true;
	}
	return false;
}

static bool copy_forward(struct ring *ring)
{
	uint64_t head = head_of(ring), tail = ring->page->data_tail;

	/* The tail is written by the process that maps the ring for writing: it is not trusted. */
	if (head - tail > ring->size || tail % 8)
		return false;
	memcpy(ring->copy, ring->data, ring->size);
	ring->begin = tail;
	ring->len = head - tail;
	return true;
}

static int read_ring(struct samples *samples, int fd, uint32_t pages)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), bytes = (pages + (size_t)1) * page_bytes;
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	struct ring ring = {.page = map, .size = bytes - page_bytes};
	bool copied;
	int err;

	if (map == MAP_FAILED)
		return -errno;
	ring.data = (const char *)map + page_bytes;
	ring.copy = malloc(ring.size);
	if (!ring.copy) {
		munmap(map, bytes);
		return -ENOMEM;
	}
	copied = samples->event->attr.write_backward ? copy_backward(samples, &ring) : copy_forward(&ring);
	err = copied ? parse_ring(samples, &ring) : -EAGAIN;
	free(ring.copy);
	munmap(map, bytes);
	samples->nr_rings++;
	return err;
}

static int read_rings(struct samples *samples, const char *base)
{
	int err = 0;

	for (uint32_t i = 0; i < samples->event->nr_members && !err; i++) {
		struct csink_persist_member member;

		err = csink_persist_open_member(samples->event->id, i, &member, base);
		if (err)
			return err;
		if (member.pages)
			err = read_ring(samples, member.fd, member.pages);
		close(member.fd);
	}
	return err;
}

/* ---- printing ---- */

CSINK_COMPARE_BY(by_time, struct sample, time_ns, order)

static void print_text(const struct samples *samples)
{
	const uint64_t second_ns = CSINK_NS_PER_S;

	for (size_t i = 0; i < samples->nr; i++) {
		const struct sample *sample = &samples->at[i];

		csink_text_print(stdout,
				 "%7" PRIu32 "/%-7" PRIu32 " [%03" PRIu32 "] %6" PRIu64 ".%09" PRIu64 ": %10" PRIu64
				 " %s: %16" PRIx64 "\n",
				 sample->pid, sample->tid, sample->cpu, sample->time_ns / second_ns,
				 sample->time_ns % second_ns, sample->period, samples->event->name, sample->ip);
	}
}

/* An estimate of the overwritten samples: as long as those that are still in the ring. */
static uint64_t nr_overwritten(const struct samples *samples)
{
	if (!samples->read_bytes)
		return 0;
	return (uint64_t)((double)samples->overwritten_bytes * (double)samples->nr / (double)samples->read_bytes + 0.5);
}

static void print_json(const struct samples *samples, struct csink_json *json)
{
	char ip[32];

	csink_json_open(json, NULL, '{');
	csink_json_number(json, "id", (int64_t)samples->event->id);
	csink_json_text(json, "event", samples->event->name);
	csink_json_number(json, "rings", samples->nr_rings);
	csink_json_number(json, "overwritten", (int64_t)nr_overwritten(samples));
	csink_json_number(json, "lost", (int64_t)samples->nr_lost);
	csink_json_number(json, "throttled", (int64_t)samples->nr_throttled);
	csink_json_open(json, "samples", '[');
	for (size_t i = 0; i < samples->nr; i++) {
		const struct sample *sample = &samples->at[i];

		snprintf(ip, sizeof(ip), "0x%" PRIx64, sample->ip);
		csink_json_open(json, NULL, '{');
		csink_json_number(json, "time_ns", (int64_t)sample->time_ns);
		csink_json_number(json, "pid", sample->pid);
		csink_json_number(json, "tid", sample->tid);
		csink_json_number(json, "cpu", sample->cpu);
		csink_json_number(json, "period", (int64_t)sample->period);
		csink_json_text(json, "ip", ip);
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
	csink_json_close(json, '}');
}

static void warn_missing(const struct samples *samples)
{
	uint64_t nr = nr_overwritten(samples);

	if (nr)
		csink_say("event %" PRIu64 ": about %" PRIu64
			  " older samples are overwritten: a ring keeps the latest (%u pages; see --pages)",
			  samples->event->id, nr, samples->event->pages);
	if (samples->nr_lost)
		csink_say("event %" PRIu64 ": %" PRIu64 " samples are lost: the ring was full", samples->event->id,
			  samples->nr_lost);
	if (samples->nr_throttled)
		csink_say("event %" PRIu64 ": the kernel throttled it %" PRIu64
			  " times (kernel.perf_event_max_sample_rate): samples are missing",
			  samples->event->id, samples->nr_throttled);
}

int csink_persist_samples(const struct csink_persist_event *event, const char *base, struct csink_json *json)
{
	struct samples samples = {.event = event};
	int err = read_rings(&samples, base);

	if (!err && !samples.nr_rings)
		err = -ENOMSG;
	if (!err) {
		if (event->attr.sample_type & PERF_SAMPLE_TIME)
			qsort(samples.at, samples.nr, sizeof(*samples.at), by_time);
		if (json)
			print_json(&samples, json);
		else
			print_text(&samples);
		warn_missing(&samples);
	}
	free(samples.at);
	return err;
}
