/* Recordings of processes that go on: see recording_cut.h. */
#include "launcher/collect/recording_cut.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/search.h"

/* ---- the cut ---- */

#define PIECE_BYTES 65536 /* also the largest page there is */

static int put_piece(int fd, const char *piece, ssize_t bytes, off_t at)
{
	for (ssize_t done = 0, put; done < bytes; done += put) {
		put = pwrite(fd, piece + done, (size_t)(bytes - done), at + done);
		if (put <= 0)
			return put ? -errno : -EIO;
	}
	return 0;
}

/* The data before @end, to as far behind @to; holes stay holes. */
static int copy_data(int fd, off_t end, off_t to)
{
	char piece[PIECE_BYTES];
	off_t at = 0, hole;
	ssize_t got;
	int err = 0;

	while (at < end && !err) {
		at = lseek(fd, at, SEEK_DATA);
		hole = at < 0 ? -1 : lseek(fd, at, SEEK_HOLE);
		if (hole < 0)
			return errno == ENXIO ? 0 : -errno;
		for (hole = CSINK_MIN(hole, end); at < hole && !err; at += got) {
			got = pread(fd, piece, (size_t)CSINK_MIN(hole - at, (off_t)sizeof(piece)), at);
			if (got <= 0)
				return got ? -errno : -EIO;
			err = put_piece(fd, piece, got, to + at);
		}
	}
	return err;
}

static int note(int fd, const struct csink_rec_cut *cut)
{
	return put_piece(fd, (const char *)cut, sizeof(*cut), offsetof(struct csink_rec_header, cut));
}

int csink_recording_cut(int fd)
{
	struct csink_rec_header header;
	struct csink_rec_cut cut = {0};
	struct stat st;
	int err;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) || header.magic != CSINK_REC_MAGIC ||
	    header.version != CSINK_REC_VERSION)
		return -EBADMSG;
	if (fstat(fd, &st))
		return -errno;
	cut.at = CSINK_ALIGN_UP((uint64_t)st.st_size, (uint64_t)PIECE_BYTES);
	cut.bytes = CSINK_MIN((uint64_t)header.nr_blocks * CSINK_REC_BLOCK, (uint64_t)st.st_size);
	cut.bytes = CSINK_MIN(cut.bytes, (uint64_t)CSINK_REC_MAX_BYTES); /* no more is ever read */
	cut.time_ns = csink_monotonic_ns();
	err = copy_data(fd, (off_t)cut.bytes, (off_t)cut.at);
	/* The writer may have handed out more while its header was copied. */
	if (!err)
		err = put_piece(fd, (const char *)&header.nr_blocks, sizeof(header.nr_blocks),
				(off_t)(cut.at + offsetof(struct csink_rec_header, nr_blocks)));
	/* The last piece may have been a hole. */
	if (!err && ftruncate(fd, (off_t)(cut.at + cut.bytes)))
		err = -errno;
	err = err ? err : note(fd, &cut);
	/* What was added lies behind all that the process has mapped. */
	if (err && ftruncate(fd, st.st_size))
		return -errno;
	return err;
}

void csink_recording_uncut(int fd)
{
	note(fd, &(struct csink_rec_cut){0});
}

/* ---- what came after it ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The first event that is CPU time; -1: none. */
static int cpu_event(const struct csink_rec_header *header)
{
	for (uint32_t i = 0; i < header->nr_events; i++)
		if (header->events[i].flags & CSINK_EVENT_CPU_NS && !(header->events[i].flags & CSINK_EVENT_REFUSED))
			return (int)i;
	return -1;
}

/* How many threads had an entry since, but the latest one. */
static uint32_t former_since(const struct csink_rec_thread *thread, const struct csink_rec_thread *old)
{
	uint32_t nr = (uint32_t)minus(thread->nr_former, old->nr_former);

	return nr && old->flags & CSINK_THREAD_ENDED ? nr - 1 : nr;
}

static void subtract_clock(struct csink_rec_thread *thread, uint32_t event, uint64_t former_ns)
{
	if (thread->stolen_ns && !thread->cpu_ns)
		thread->cpu_ns = csink_recorded_thread_ns(thread, event);
	if (thread->cpu_ns)
		thread->cpu_ns = CSINK_MAX(minus(thread->cpu_ns, former_ns), 1);
}

static void subtract_threads(struct csink_recorded *rec, const struct csink_recorded *before)
{
	int event = cpu_event(&rec->header);

	/* Without memory, what a thread used after its last sample goes to no sample. */
	rec->former_ns = calloc(rec->nr_threads + 1UL, sizeof(*rec->former_ns));
	for (uint32_t i = 0, k = 0; i < rec->nr_threads && k < before->nr_threads; i++) {
		struct csink_rec_thread *thread = (struct csink_rec_thread *)rec->threads[i];
		const struct csink_rec_thread *old = before->threads[k];

		if ((char *)thread - (char *)rec->data != (const char *)old - (const char *)before->data)
			continue;
		k++;
		thread->nr_former = former_since(thread, old);
		if (event >= 0 && rec->former_ns)
			rec->former_ns[i] = csink_recorded_thread_ns(old, (uint32_t)event);
		if (event >= 0)
			subtract_clock(thread, (uint32_t)event, csink_recorded_thread_ns(old, (uint32_t)event));
		thread->nr_samples = minus(thread->nr_samples, old->nr_samples);
		for (uint32_t e = 0; e < rec->header.nr_events; e++)
			thread->totals[e] = minus(thread->totals[e], old->totals[e]);
	}
}

/* In both, rows and cells are in the order of the file, and none is ever moved or removed. */
static void subtract_rows(struct csink_recorded *rec, const struct csink_recorded *before)
{
	uint32_t nr_events = rec->header.nr_events;

	for (uint32_t i = 0; i < rec->nr_rows; i++) {
		uint32_t old = csink_recorded_row_at(before, rec->rows[i].ref);

		if (old == CSINK_RECORDED_NONE)
			continue;
		rec->rows[i].nr_samples = minus(rec->rows[i].nr_samples, before->rows[old].nr_samples);
		for (uint32_t e = 0; e < nr_events; e++) {
			uint64_t *weight = &rec->weights[(size_t)i * nr_events + e];

			*weight = minus(*weight, before->weights[(size_t)old * nr_events + e]);
		}
	}
}

/* Entries stay where they are: the same place is the same waiter, holder and lock. */
static void subtract_waits(struct csink_recorded *rec, const struct csink_recorded *before)
{
	for (uint32_t i = 0, k = 0; i < rec->nr_waits && k < before->nr_waits; i++) {
		struct csink_rec_wait *wait = rec->waits[i];
		const struct csink_rec_wait *old = before->waits[k];

		if ((char *)wait - (char *)rec->data != (const char *)old - (const char *)before->data)
			continue;
		k++;
		rec->nr_former_dated += old->contentions >= CSINK_WAIT_DATED;
		/* What goes on now. */
		if (wait->holder == CSINK_WAIT_NOT_ENDED)
			continue;
		/* The end of a wait that was just being written then: its time came after. */
		if (wait->contentions & CSINK_WAIT_DATED && !old->delay_ns)
			continue;
		wait->delay_ns = minus(wait->delay_ns, old->delay_ns);
		wait->contentions = minus(wait->contentions, old->contentions);
	}
}

static void subtract_moments(struct csink_recorded *rec, const struct csink_recorded *before)
{
	for (uint32_t i = 0, k = 0; i < rec->nr_timelines && k < before->nr_timelines; i++) {
		struct csink_rec_timeline *chunk = (struct csink_rec_timeline *)rec->timelines[i];
		const struct csink_rec_timeline *old = before->timelines[k];
		uint32_t gone = CSINK_MIN(chunk->nr, old->nr);

		if ((char *)chunk - (char *)rec->data != (const char *)old - (const char *)before->data)
			continue;
		k++;
		if (chunk->base_ns != old->base_ns)
			continue;
		for (uint32_t m = 0; m < gone; m++)
			chunk->base_ns += chunk->moments[m].delta_us * 1000ULL;
		chunk->nr -= gone;
		memmove(chunk->moments, chunk->moments + gone, chunk->nr * sizeof(*chunk->moments));
	}
}

/* Programs that could not be injected are named once. */
static void subtract_spawns(struct csink_recorded *rec, const struct csink_recorded *before)
{
	uint32_t kept = 0;

	for (uint32_t i = 0, k = 0; i < rec->nr_spawns; i++) {
		const char *at = (const char *)rec->spawns[i];

		if (k < before->nr_spawns &&
		    at - (const char *)rec->data == (const char *)before->spawns[k] - (const char *)before->data)
			k++;
		else
			rec->spawns[kept++] = rec->spawns[i];
	}
	rec->nr_spawns = kept;
}

/* CPU time that a recording's rows have, as a profile of it does. */
static uint64_t covered_ns(const struct csink_recorded *rec)
{
	int event = cpu_event(&rec->header);
	uint64_t sum = event < 0 ? 0 : rec->header.unstored[event];

	for (uint32_t i = 0; i < rec->nr_rows && event >= 0; i++) {
		uint64_t weight = rec->weights[(size_t)i * rec->header.nr_events + (uint32_t)event];
		const struct csink_rec_thread *thread =
			rec->rows[i].thread == CSINK_RECORDED_NONE ? NULL : rec->threads[rec->rows[i].thread];
		uint64_t total = thread ? thread->totals[event] : 0;

		if (total)
			weight = (uint64_t)((unsigned __int128)weight *
					    csink_recorded_thread_ns(thread, (uint32_t)event) / total);
		sum += weight;
	}
	return sum;
}

static void subtract_header(struct csink_rec_header *header, const struct csink_recorded *before, uint64_t time_ns)
{
	const struct csink_rec_header *old = &before->header;
	uint64_t start_ns = CSINK_MIN(CSINK_MAX(time_ns, old->end_monotonic_ns), header->end_monotonic_ns);

	start_ns = CSINK_MAX(start_ns, header->start_monotonic_ns);
	header->start_realtime_ns += start_ns - header->start_monotonic_ns;
	header->start_monotonic_ns = start_ns;
	header->cpu_start_ns = old->cpu_start_ns + covered_ns(before);
	for (uint32_t i = 0; i < CSINK_NR_LOSSES; i++)
		header->losses[i] = minus(header->losses[i], old->losses[i]);
	for (uint32_t i = 0; i < header->nr_events; i++)
		header->unstored[i] = minus(header->unstored[i], old->unstored[i]);
	for (uint32_t i = 0; i < header->nr_events; i++)
		header->counted[i] = minus(header->counted[i], old->counted[i]);
	for (uint32_t i = 0; i < CSINK_NR_ALLOC_LOSSES; i++)
		header->alloc_losses[i] = minus(header->alloc_losses[i], old->alloc_losses[i]);
}

void csink_recorded_subtract(struct csink_recorded *rec, const struct csink_recorded *before, uint64_t time_ns)
{
	if (before->header.nr_events != rec->header.nr_events || before->header.pid != rec->header.pid)
		return;
	subtract_threads(rec, before);
	subtract_rows(rec, before);
	subtract_waits(rec, before);
	subtract_moments(rec, before);
	subtract_spawns(rec, before);
	subtract_header(&rec->header, before, time_ns);
}
