/* How a recording is mapped: little at first, growing in place, beside what the program maps, and never locked. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/core/record/recording.h"
#include "tests/unit/tap.h"

enum { FIRST = 16, NR_THREADS = 8, MAX_BYTES = 64 << 20, ENTRY_BYTES = 1000 };

static char dir[] = "/tmp/countersink-record-map.XXXXXX";
static struct csink_recording rec;

static void begin(void)
{
	is_num(csink_recording_create(&rec, dir, MAX_BYTES), 0, "a recording can be made");
	is_num(rec.mapped_blocks, FIRST, "the first 64 KiB of a new recording are mapped");
}

/* A figure of /proc/self/status in KiB. */
static long status_kib(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	long kib = -1;
	char line[200];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name) + 1);
	if (file)
		fclose(file);
	return kib;
}

/* Entries until there is no room; each is filled. Returns how many there were. */
static void *fill(void *arg)
{
	struct csink_writer writer = {0, 0};
	intptr_t nr = 0;
	char *entry;

	for (; (entry = csink_recording_reserve(&rec, &writer, ENTRY_BYTES)); nr++)
		memset(entry + sizeof(struct csink_entry), (int)(intptr_t)arg,
		       ENTRY_BYTES - sizeof(struct csink_entry));
	return (void *)nr;
}

/* Before Linux 5.14 what a mapping has grown by may be missing from a full file system: a recording does not grow. */
static bool can_grow(void)
{
	enum { POPULATE_WRITE = 23, BYTES = 4096 };
	void *page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool can = !madvise(page, BYTES, POPULATE_WRITE);

	munmap(page, BYTES);
	return can;
}

static void test_fixed(void)
{
	const uint32_t blocks = (4 << 20) / CSINK_REC_BLOCK;
	intptr_t nr;

	is_num(csink_recording_create(&rec, dir, MAX_BYTES), 0, "a recording can be made");
	is_num(rec.mapped_blocks, blocks, "where none can grow, it has 4 MiB at once");
	nr = (intptr_t)fill((void *)1);
	is_num(nr, 4 * (blocks - 1), "it can be filled");
	is_num(rec.mapped_blocks, blocks, "and does not grow");
	is_num(atomic_load(&rec.full), 1, "it is full at the end");
	csink_recording_close(&rec);
}

static void test_growth(void)
{
	long before = status_kib("VmSize:");
	pthread_t threads[NR_THREADS];
	intptr_t nr = 0;
	void *got;

	begin();
	ok(status_kib("VmSize:") <= before + 64, "the process has grown by no more");
	for (intptr_t i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, fill, (void *)(i + 1));
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &got);
		nr += (intptr_t)got;
	}
	/* Four entries fit a block, behind its head; threads that are refused at the same time leave a little. */
	is_num(rec.mapped_blocks, MAX_BYTES / CSINK_REC_BLOCK, "eight threads that fill it get it mapped whole");
	ok(nr >= 4 * (MAX_BYTES / CSINK_REC_BLOCK - 64), "eight threads can use the whole recording (%ld entries)",
	   (long)nr);
	is_num(rec.header->nr_blocks, rec.next_block, "the header has the number of blocks for readers");
	csink_recording_close(&rec);
}

/* A thread has grown the mapping to its last size, and was interrupted before it stored that. */
static void test_last_step(void)
{
	const uint32_t whole = MAX_BYTES / CSINK_REC_BLOCK;
	struct csink_writer writer = {0, 0};
	uint32_t mapped;
	intptr_t nr;

	begin();
	do {
		mapped = atomic_load(&rec.mapped_blocks);
		csink_recording_reserve(&rec, &writer, ENTRY_BYTES);
	} while (atomic_load(&rec.mapped_blocks) < whole);
	csink_recording_close(&rec);

	begin();
	writer = (struct csink_writer){0, 0};
	while (atomic_load(&rec.next_block) < mapped)
		csink_recording_reserve(&rec, &writer, ENTRY_BYTES);
	is_num(atomic_load(&rec.mapped_blocks), mapped, "the mapping is one step from its last size");
	ok(mremap(rec.header, (size_t)mapped * CSINK_REC_BLOCK, MAX_BYTES, 0) == rec.header, "the last step is made");
	atomic_fetch_add(&rec.growing, 1);
	is_num((intptr_t)fill((void *)1), 0, "there is no room as long as the size of the mapping is not known");
	is_num(atomic_load(&rec.full), 0, "a mapping of unknown size is not taken for a full recording");
	atomic_store(&rec.mapped_blocks, whole);
	atomic_fetch_sub(&rec.growing, 1);
	nr = (intptr_t)fill((void *)1);
	ok(nr >= 4 * (intptr_t)(whole - mapped), "there is room when the size is known (%ld entries)", (long)nr);
	is_num(atomic_load(&rec.full), 1, "the recording is full at the end");
	csink_recording_close(&rec);
}

/* Something of the program's lies where the mapping would grow. */
static void test_neighbour(void)
{
	char *behind, *now;
	intptr_t nr;

	begin();
	behind = (char *)rec.header + (size_t)FIRST * CSINK_REC_BLOCK;
	now = mmap(behind, CSINK_REC_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!ok(now == behind, "the addresses behind it are free"))
		return;
	memset(now, 0x5a, CSINK_REC_BLOCK);
	errno = 77;
	nr = (intptr_t)fill((void *)1);
	is_num(errno, 77, "errno stays as it was");
	is_num(nr, 4 * (FIRST - 1), "a mapping that cannot grow is a recording that is full");
	is_num(rec.mapped_blocks, FIRST, "no block more is mapped");
	is_num(now[0] + now[CSINK_REC_BLOCK - 1], 2 * 0x5a, "memory at the next address is untouched");
	munmap(now, CSINK_REC_BLOCK);
	csink_recording_close(&rec);
}

/* A forked child makes its recording while its parent's is mapped. */
static void test_second(void)
{
	struct csink_recording parents;
	intptr_t nr;

	begin();
	parents = rec;
	begin();
	ok(rec.header != parents.header, "a second recording has a place of its own");
	nr = (intptr_t)fill((void *)1);
	ok(nr >= 4 * (MAX_BYTES / CSINK_REC_BLOCK - 64), "a second recording has room to grow (%ld entries)", (long)nr);
	csink_recording_close(&rec);
	csink_recording_close(&parents);
}

static void test_restricted(void)
{
	struct csink_writer writer = {0, 0};
	intptr_t nr;

	begin();
	csink_recording_restrict(&rec);
	nr = (intptr_t)fill((void *)1);
	ok(nr >= 4 * 1000 && nr <= 4 * 1025, "a restricted recording grows by 4 MiB (%ld entries)", (long)nr);
	csink_recording_close(&rec);

	begin();
	csink_recording_freeze(&rec, 1 << 20);
	nr = rec.mapped_blocks;
	ok(nr >= 256, "a recording that will be frozen is mapped in advance");
	fill((void *)1);
	ok(rec.mapped_blocks == nr && !csink_recording_reserve(&rec, &writer, ENTRY_BYTES),
	   "a frozen recording does not grow");
	csink_recording_close(&rec);
}

static void test_locked(void)
{
	long locked;

	begin();
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		skip("a recording is not locked", "the limit of locked memory is too low here");
		csink_recording_close(&rec);
		return;
	}
	csink_recording_unlock(&rec);
	locked = status_kib("VmLck:");
	fill((void *)1);
	/* An alternate heap of libc's may come to it; the recording has 64 MiB. */
	ok(status_kib("VmLck:") <= locked + 1024, "a recording that was unlocked grows unlocked under MCL_FUTURE");
	munlockall();
	csink_recording_close(&rec);
}

int main(void)
{
	char command[sizeof(dir) + 16];

	if (!mkdtemp(dir))
		return 1;
	if (can_grow()) {
		test_growth();
		test_last_step();
		test_neighbour();
		test_second();
		test_restricted();
		test_locked();
	} else {
		test_fixed();
	}
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return done() | (system(command) != 0);
}
