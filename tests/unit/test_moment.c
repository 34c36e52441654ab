/* What the recordings of a run hold at two moments: the profile of what came between them is their difference, exactly.
 */
#include "launcher/collect/moment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "launcher/profile/profile.h"
#include "tests/unit/record.h"
#include "tests/unit/tap.h"

#define MS 1000000LL

static char directory[] = "/tmp/csink-moment.XXXXXX", path[64];

static struct record r;
static struct csink_rec_thread *thread;
static struct csink_rec_row *row;
static struct csink_rec_cell *cell;

/* 5 ms of start-up; 30 ms in a row, 2 ms in a cell; 3 ms that no sample covers. */
static void begin(void)
{
	uint64_t weight = 30 * MS;
	uint32_t small = 2 * MS;

	r = record_new(8);
	r.header->state = CSINK_REC_LIVE;
	r.header->cpu_start_ns = 5 * MS;
	r.header->cpu_end_ns = 40 * MS;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	thread = record_thread(&r, 100, "prog");
	row = record_row(&r, thread, NULL, 0x401010, 30, &weight);
	cell = record_cell(&r, thread, NULL, 0x401030, 2, &small);
	record_write(&r, directory, "100.0.rec");
}

/* 20 ms more in the row, 3 in the cell, 7 in a new row; nothing more that no sample covers. */
static void go_on(void)
{
	uint64_t weight = 7 * MS;

	row->weights[0] += 20 * MS;
	row->nr_samples += 20;
	cell->weights[0] += 3 * MS;
	cell->nr_samples += 3;
	record_row(&r, thread, NULL, 0x401040, 7, &weight);
	r.header->cpu_end_ns = 70 * MS;
	record_write(&r, directory, "100.0.rec");
}

static struct csink_moment *take(int32_t pid)
{
	struct csink_moment *moment = NULL;

	is_num(csink_moment_take(directory, pid, &moment), 0, "a moment is taken");
	return moment;
}

/* CPU time of the samples whose innermost function lies at an address of the file; 0: of all. */
static int64_t ns_at(const struct csink_profile *p, uint64_t address)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->nr_samples; i++) {
		const struct csink_profile_range *stack = &p->stacks[p->samples[i].stack];

		if (!address || (stack->nr && p->locations[p->stack_ids[stack->first]].address == address))
			sum += csink_profile_values(p, i)[1];
	}
	return sum;
}

static struct csink_profile *between(const struct csink_moment *before, const struct csink_moment *now)
{
	struct csink_profile *p = NULL;

	is_num(csink_collect_between(before, now, NULL, &p), 0, "a profile is made");
	return p;
}

static void is_between(const struct csink_moment *before, const struct csink_moment *now, const int64_t want[4],
		       const char *what)
{
	static const uint64_t addresses[] = {0x401010, 0x401030, 0x401040, 0};
	static const char *const names[] = {"a row", "a cell", "a row that was added", "the sum"};
	struct csink_profile *p = between(before, now);
	char point[128];

	for (int i = 0; i < 4; i++) {
		snprintf(point, sizeof(point), "%s: %s", what, names[i]);
		is_num(ns_at(p, addresses[i]), want[i], point);
	}
	csink_profile_free(p);
}

static void test_difference(void)
{
	struct csink_moment *first, *second, *third;

	begin();
	first = take(0);
	go_on();
	second = take(0);
	third = take(0);
	is_between(NULL, first, (const int64_t[]){30 * MS, 2 * MS, 0, 40 * MS}, "until the first moment");
	is_between(NULL, second, (const int64_t[]){50 * MS, 5 * MS, 7 * MS, 70 * MS}, "until the second");
	is_between(first, second, (const int64_t[]){20 * MS, 3 * MS, 7 * MS, 30 * MS}, "between them");
	is_between(second, third, (const int64_t[]){0, 0, 0, 0}, "while nothing happens");
	csink_moment_free(third);
	csink_moment_free(second);
	csink_moment_free(first);
}

/* A process that starts between the moments is whole in the difference. */
static void test_new_process(void)
{
	struct csink_moment *first = take(0), *second, *one;
	uint64_t weight = 11 * MS;
	struct record other = record_new(4);

	other.header->pid = 101;
	other.header->ppid = 100;
	other.header->start_monotonic_ns = 5000;
	other.header->cpu_start_ns = 1 * MS;
	other.header->cpu_end_ns = 12 * MS;
	record_module(&other, "/bin/prog", 0x400000, 0x401000, 0x402000);
	record_row(&other, record_thread(&other, 101, "prog"), NULL, 0x401020, 11, &weight);
	record_write(&other, directory, "101.0.rec");
	second = take(0);
	is_num(csink_moment_nr(second), 2, "both processes are there");
	is_between(first, second, (const int64_t[]){0, 0, 0, 12 * MS}, "a process that started");
	one = take(101);
	is_num(csink_moment_nr(one), 1, "of one process: its recording alone");
	is_between(NULL, one, (const int64_t[]){0, 0, 0, 12 * MS}, "of one process");
	csink_moment_free(one);
	csink_moment_free(second);
	csink_moment_free(first);
	free(other.bytes);
}

/* The writer has handed out more room than the copy has, or the file is no recording. */
static void test_unfinished(void)
{
	struct csink_moment *moment;
	struct csink_profile *p;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint32_t nr_blocks = r.header->nr_blocks + 4;

	if (pwrite(fd, &nr_blocks, sizeof(nr_blocks), offsetof(struct csink_rec_header, nr_blocks)) !=
	    sizeof(nr_blocks))
		abort();
	moment = take(100);
	if (ftruncate(fd, 0))
		abort();
	p = between(NULL, moment);
	is_num(ns_at(p, 0x401010), 50 * MS, "what was copied stays, whatever becomes of the file");
	csink_profile_free(p);
	csink_moment_free(moment);
	moment = take(0);
	is_num(csink_moment_nr_unread(moment), 1, "a file that is no recording is counted");
	csink_moment_free(moment);
	close(fd);
}

/* A process is the same one once its engine is chosen, and none before it has described itself. */
static void test_start(void)
{
	struct csink_moment *first, *second;

	free(r.bytes);
	begin();
	r.header->engine = CSINK_ENGINE_NONE;
	record_write(&r, directory, "100.0.rec");
	first = take(100);
	r.header->engine = CSINK_ENGINE_TIMER;
	go_on();
	second = take(100);
	is_between(first, second, (const int64_t[]){20 * MS, 3 * MS, 7 * MS, 30 * MS},
		   "an engine that is chosen meanwhile");
	csink_moment_free(first);
	csink_moment_free(second);
	r.header->state = 0;
	record_write(&r, directory, "100.0.rec");
	is_num(csink_moment_take(directory, 0, &first), 0, "another process is there");
	is_num(csink_moment_nr(first), 1, "one that has not described itself is not");
	is_num(csink_moment_nr_unread(first), 0, "nor is it said to be unreadable");
	csink_moment_free(first);
}

static struct csink_moment *load(int fd, int64_t from)
{
	struct csink_moment *moment = NULL;

	is_num(csink_moment_load(fd, from, &moment), 0, "a moment that was stored is loaded");
	return moment;
}

/* Whatever the file has, nothing is read beyond it; @bytes of it. Returns how often it was taken for a moment. */
static unsigned int load_damaged(int fd, off_t bytes)
{
	struct csink_moment *moment;
	unsigned int nr = 0;
	unsigned char byte;

	for (off_t at = 0; at < bytes; at += at < 256 ? 1 : 97) {
		if (pread(fd, &byte, 1, at) != 1)
			abort();
		byte ^= 0xff;
		if (pwrite(fd, &byte, 1, at) != 1)
			abort();
		if (!csink_moment_load(fd, 0, &moment)) {
			csink_moment_free(moment);
			nr++;
		}
		byte ^= 0xff;
		if (pwrite(fd, &byte, 1, at) != 1)
			abort();
	}
	return nr;
}

static void test_store(void)
{
	struct csink_moment *first, *second, *loaded;
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	unsigned int nr_short = 0;
	off_t bytes;

	free(r.bytes);
	begin();
	first = take(0);
	is_num(csink_moment_store(first, fd, 100), 0, "a moment is stored");
	go_on();
	second = take(0);
	loaded = load(fd, 100);
	is_between(loaded, second, (const int64_t[]){20 * MS, 3 * MS, 7 * MS, 30 * MS},
		   "since a moment that was stored");
	is_num((int64_t)csink_moment_ns(loaded), (int64_t)csink_moment_ns(first), "it has its time");
	csink_moment_free(loaded);
	is_num(csink_moment_store(second, fd, 0), 0, "another one is stored in its place");
	loaded = load(fd, 0);
	is_between(NULL, loaded, (const int64_t[]){50 * MS, 5 * MS, 7 * MS, 82 * MS},
		   "until one that was stored, with another process");
	csink_moment_free(loaded);
	bytes = lseek(fd, 0, SEEK_END);
	ok(load_damaged(fd, bytes) > 0, "a damaged one is refused, or has other counts");
	for (off_t end = bytes - 1; end >= 0; end -= end < 256 ? 1 : 31) {
		if (ftruncate(fd, end))
			abort();
		nr_short += csink_moment_load(fd, 0, &loaded) != -EBADMSG;
	}
	is_num(nr_short, 0, "one that was cut is refused");
	csink_moment_free(first);
	csink_moment_free(second);
	close(fd);
}

/* The entry has had so many threads before; the latest one has ended where its clock is known. */
static void share(uint32_t nr_former, const char *name, uint64_t counted_ms, uint64_t clock_ms, uint64_t stolen_ms)
{
	thread->nr_former = nr_former;
	thread->flags = (clock_ms ? CSINK_THREAD_ENDED : 0) | (nr_former ? CSINK_THREAD_RENAMED : 0);
	strcpy(thread->name, name);
	thread->totals[0] = row->weights[0] = counted_ms * MS;
	thread->cpu_ns = clock_ms * MS;
	thread->stolen_ns = stolen_ms * MS;
	r.header->cpu_end_ns = r.header->cpu_start_ns + (clock_ms ? clock_ms : counted_ms - stolen_ms) * MS;
	record_write(&r, directory, "100.0.rec");
}

static void is_shared(const struct csink_moment *before, const struct csink_moment *now, int64_t ns, const char *name,
		      uint64_t nr_threads, const char *what)
{
	struct csink_profile *p = between(before, now);
	char fact[40], point[128];
	bool has_name = false, has_threads = false;

	for (uint32_t i = 0; i < p->nr_labels; i++)
		has_name |= !strcmp(csink_profile_text(p, p->labels[i].str), name);
	snprintf(fact, sizeof(fact), "threads: %llu", (unsigned long long)nr_threads);
	for (uint32_t i = 0; i < p->nr_comments; i++)
		has_threads |= !strcmp(csink_profile_text(p, p->comments[i]), fact);
	snprintf(point, sizeof(point), "threads that share rows, %s", what);
	is_num(ns_at(p, 0x401010), ns, point);
	ok(has_name, "%s: the name is %s", what, name);
	ok(has_threads, "%s: %s", what, fact);
	csink_profile_free(p);
}

/*
 * Threads one after the other in one entry. Their event counts what a hypervisor takes, too: 10, 12, 5 and 3 ms or
 * more, where their clocks have 8, 9 and 4 ms.
 */
static void test_shared_entry(void)
{
	struct csink_moment *first, *live, *ended, *later;
	uint64_t weight = 0;

	free(r.bytes);
	r = record_new(8);
	r.header->state = CSINK_REC_LIVE;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	thread = record_thread(&r, 100, "a");
	row = record_row(&r, thread, NULL, 0x401010, 1, &weight);
	share(0, "a", 10, 8, 0);
	first = take(100);
	share(1, "b", 16, 0, 2);
	live = take(100);
	share(1, "b", 22, 17, 2);
	ended = take(100);
	share(3, "d", 30, 0, 6);
	later = take(100);
	is_shared(NULL, first, 8 * MS, "a", 1, "the first one alone");
	is_shared(first, live, 6 * MS, "b", 2, "the second one, which goes on");
	is_shared(live, ended, 3 * MS, "b", 2, "its end, with what was taken before");
	is_shared(ended, later, 7 * MS, "[several threads]", 4, "two that follow");
	is_shared(NULL, later, 24 * MS, "[several threads]", 4, "all");
	csink_moment_free(later);
	csink_moment_free(ended);
	csink_moment_free(live);
	csink_moment_free(first);
}

int main(void)
{
	struct csink_moment *moment;
	char name[80];

	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof(path), "%s/100.0.rec", directory);
	is_num(csink_moment_take(directory, 0, &moment), -ENOENT, "a directory without recordings");
	is_num(csink_moment_take("/nonexistent", 0, &moment), -ENOENT, "a directory that is not there");
	test_difference();
	test_new_process();
	test_unfinished();
	test_start();
	test_store();
	test_shared_entry();
	snprintf(name, sizeof(name), "%s/101.0.rec", directory);
	unlink(name);
	unlink(path);
	rmdir(directory);
	free(r.bytes);
	return done();
}
