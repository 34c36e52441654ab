/* A process goes on after its run's profile was made: both profiles together have what it did, once. */
#include "launcher/collect/recording_cut.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "launcher/collect/run_directory.h"
#include "tests/unit/record.h"
#include "tests/unit/tap.h"

#define MS 1000000ULL

static char directory[] = "/tmp/csink-cut.XXXXXX", path[64];

static struct record r;
static struct csink_rec_thread *thread;
static struct csink_rec_row *row, *ended;
static struct csink_rec_cell *cell;
static struct csink_rec_timeline *timeline;

/* 5 ms of start-up; 30 ms in a row, 2 ms in a cell, 1 ms in one that does not change. */
static void make_record(void)
{
	uint64_t weight = 30 * MS, last = 1 * MS;
	uint32_t small = 2 * MS;

	r = record_new(8);
	r.header->state = CSINK_REC_LIVE;
	r.header->cpu_start_ns = 5 * MS;
	r.header->cpu_end_ns = 40 * MS;
	r.header->losses[CSINK_LOSS_DEPTH] = 3;
	r.header->unstored[0] = 4 * MS;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	thread = record_thread(&r, 100, "prog");
	thread->totals[0] = 33 * MS;
	thread->nr_samples = 32;
	row = record_row(&r, thread, NULL, 0x401010, 30, &weight);
	ended = record_row(&r, thread, NULL, 0x401020, 1, &last);
	cell = record_cell(&r, thread, NULL, 0x401030, 2, &small);
	timeline = record_entry(&r, CSINK_ENTRY_TIMELINE, 0, sizeof(*timeline) + 4 * sizeof(timeline->moments[0]));
	timeline->base_ns = 1000000;
	timeline->nr = 2;
	for (int i = 0; i < 3; i++)
		timeline->moments[i] = (struct csink_rec_moment){record_ref(&r, row), 1000U << i, 1 * MS};
	record_spawn(&r, CSINK_SPAWN_STATIC, "/bin/static");
	snprintf(path, sizeof(path), "%s/100.0.rec", directory);
	record_write(&r, directory, "100.0.rec");
}

/* What the process adds: 20 ms in the row, 3 in the cell, 7 in a new row, 9 that were not stored. */
static void go_on(void)
{
	uint64_t weight = 7 * MS;

	row->weights[0] += 20 * MS;
	row->nr_samples += 20;
	cell->weights[0] += 3 * MS;
	cell->nr_samples += 3;
	record_row(&r, thread, NULL, 0x401040, 7, &weight);
	record_spawn(&r, CSINK_SPAWN_STATIC, "/bin/static");
	timeline->nr = 3;
	thread->totals[0] += 30 * MS;
	thread->cpu_ns = 60 * MS;
	thread->nr_samples += 30;
	r.header->losses[CSINK_LOSS_DEPTH] += 2;
	r.header->unstored[0] += 9 * MS;
	r.header->cpu_end_ns = 90 * MS;
	r.header->end_monotonic_ns = 1ULL << 62;
}

static struct csink_recorded read_it(void)
{
	struct csink_recorded rec = {0};
	char why[200] = "";

	ok(!csink_recorded_read(path, &rec, why, sizeof(why)), "the recording is read (%s)", why);
	is_num(rec.nr_damaged + rec.is_cut, 0, "the recording has no damaged record and is not cut short");
	return rec;
}

static uint64_t sum(const struct csink_recorded *rec)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < rec->nr_rows; i++)
		all += rec->weights[i];
	return all;
}

static void mark(void)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	csink_run_directory_mark(fd, directory);
	close(fd);
}

/* As the writer has the file mapped: what the collecting process put into the header is in there, too. */
static void write_over(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct csink_rec_header header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		abort();
	r.header->collected = header.collected;
	r.header->cut = header.cut;
	if (pwrite(fd, r.bytes, r.size, 0) != (ssize_t)r.size)
		abort();
	close(fd);
}

/* As finish.c of the library: both parts, one behind the other. */
static void copy_at_end(bool has_cut)
{
	struct csink_rec_cut cut = r.header->cut;
	char *before = malloc(cut.bytes);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if ((has_cut && pread(fd, before, cut.bytes, (off_t)cut.at) != (ssize_t)cut.bytes) || ftruncate(fd, 0) ||
	    pwrite(fd, r.bytes, r.size, 0) != (ssize_t)r.size)
		abort();
	if (has_cut && pwrite(fd, before, cut.bytes, (off_t)r.size) != (ssize_t)cut.bytes)
		abort();
	cut.at = r.size;
	cut.bytes = has_cut ? cut.bytes : 0;
	cut.is_continued = 1;
	if (pwrite(fd, &cut, sizeof(cut), offsetof(struct csink_rec_header, cut)) != (ssize_t)sizeof(cut))
		abort();
	close(fd);
	free(before);
}

static void test_later(void)
{
	struct csink_recorded rec = read_it();

	is_num(sum(&rec), 30 * MS, "at the end: the rows have what was added after the cut");
	is_num(rec.rows[0].nr_samples, 20, "a row has the samples that were added");
	is_num(rec.weights[1], 0, "a row that nothing was added to weighs nothing");
	is_num(rec.header.unstored[0], 9 * MS, "what was not stored after the cut");
	is_num(rec.header.losses[CSINK_LOSS_DEPTH], 2, "losses after the cut");
	is_num(rec.threads[0]->totals[0], 30 * MS, "the thread has what it counted after the cut");
	is_num(rec.threads[0]->cpu_ns, 27 * MS, "the thread's CPU time is that which the first profile does not have");
	is_num(rec.timelines[0]->nr, 1, "the timeline has the moments after the cut");
	is_num(rec.timelines[0]->base_ns + rec.timelines[0]->moments[0].delta_us * 1000ULL, 8000000,
	       "a moment keeps its time");
	is_num(rec.nr_spawns, 1, "programs that were named before the cut are not named again");
	is_num(rec.header.cpu_start_ns, (5 + 33 + 4) * MS,
	       "the CPU time of the later profile begins where the first one's ends");
	ok(rec.header.start_monotonic_ns > 1000, "the later profile begins at the cut");
	csink_recorded_free(&rec);
}

/* The recording in a state, as if it had not been collected. */
static void write_anew(enum csink_rec_state state)
{
	memset(&r.header->cut, 0, sizeof(r.header->cut));
	r.header->collected = 0;
	r.header->state = state;
	record_write(&r, directory, "100.0.rec");
}

static void is_whole(const char *what)
{
	struct csink_recorded rec = read_it();

	is_num(sum(&rec), 63 * MS, what);
	csink_recorded_free(&rec);
}

static void test_goes_on(void)
{
	struct csink_recorded rec;
	struct csink_rec_cut cut;

	make_record();
	mark();
	go_on();
	write_over();
	is_num(r.header->collected, CSINK_REC_COLLECTED, "a recording of a process that goes on is marked");
	rec = read_it();
	is_num(sum(&rec), 33 * MS, "a marked recording is read as it was at the mark");
	is_num(rec.header.unstored[0], 4 * MS, "losses are those at the mark");
	is_num(rec.header.cpu_end_ns, 5 * MS, "what no sample has yet is left to the later profile");
	csink_recorded_free(&rec);
	cut = r.header->cut;
	mark();
	write_over();
	is_num(memcmp(&cut, &r.header->cut, sizeof(cut)), 0, "a second mark leaves the cut as it is");

	copy_at_end(true);
	test_later();
	mark();
	test_later();
	write_over();
	r.header->cut = cut;
	copy_at_end(false);
	is_whole("without the cut the profile has all that the process did");
}

/* Nothing will follow the last sample of such an image. */
static void test_execed(void)
{
	struct csink_recorded rec;

	write_anew(CSINK_REC_EXECED);
	mark();
	rec = read_it();
	is_num(sum(&rec), 63 * MS, "an image that an exec has ended is read as it was at the mark");
	is_num(rec.header.cpu_end_ns, 90 * MS, "with what no sample of it has");
	csink_recorded_free(&rec);
}

static void test_ended(void)
{
	write_anew(CSINK_REC_EXITED);
	mark();
	write_over();
	ok(r.header->collected == CSINK_REC_COLLECTED_WHOLE && !r.header->cut.bytes,
	   "the recording of a process that has ended is marked as a whole, without a cut");
}

/* An older version has children's entries where the cut is now. */
static void test_other_version(void)
{
	const struct csink_rec_cut cut = {.at = 1, .bytes = 2, .is_continued = 3};

	for (uint32_t state = CSINK_REC_LIVE; state <= CSINK_REC_EXITED; state++) {
		struct csink_rec_header header;
		struct stat st;
		int fd;

		r.header->cut = cut;
		r.header->version = CSINK_REC_VERSION - 1;
		r.header->collected = 0;
		r.header->state = state;
		record_write(&r, directory, "100.0.rec");
		mark();
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
			abort();
		ok(header.collected && !memcmp(&header.cut, &cut, sizeof(cut)) && !fstat(fd, &st) &&
			   st.st_size == (off_t)r.size,
		   "a recording of another version is marked, and not changed otherwise (state %u)", state);
		close(fd);
	}
	r.header->version = CSINK_REC_VERSION;
}

static void test_hostile(void)
{
	struct stat st;
	int fd;

	write_anew(CSINK_REC_EXITED);
	fd = open(path, O_RDWR | O_CLOEXEC);
	r.header->collected = CSINK_REC_COLLECTED;
	for (uint64_t i = 0; i < 3; i++) {
		r.header->cut = (struct csink_rec_cut){.at = i ? UINT64_MAX - i : 1, .bytes = i == 2 ? 8 : UINT64_MAX};
		if (pwrite(fd, r.bytes, r.size, 0) != (ssize_t)r.size)
			abort();
		is_whole("a cut outside of the file is ignored");
	}
	if (pwrite(fd, "no", 2, 0) != 2)
		abort();
	is_num(csink_recording_cut(fd), -EBADMSG, "what is no recording is not cut");
	ok(!fstat(fd, &st) && st.st_size == (off_t)r.size, "a file that is not cut keeps its size");
	close(fd);
}

int main(void)
{
	if (!mkdtemp(directory))
		abort();
	test_goes_on();
	test_execed();
	test_ended();
	test_other_version();
	test_hostile();
	unlink(path);
	rmdir(directory);
	free(r.bytes);
	return done();
}
