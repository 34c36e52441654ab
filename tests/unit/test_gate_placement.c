/* Moving a program's file to other pages of memory: the file stays as it is, what cannot be moved is named. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/gate/placement.h"
#include "tests/unit/tap.h"

#define MAX_PAGES 16384
#define DEADLINE_S 30 /* the kernel keeps a page that it holds at that moment, to move it for instance */

static char directory[] = "/var/tmp/countersink-placement.XXXXXX";
static struct csink_random dice;

/* A file with the bytes of this program, and one more: bytes beyond the end are no harm to it. */
static void copy_self(const char *path, char more)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	static char bytes[65536];
	ssize_t got, put = 0;

	while ((got = read(from, bytes, sizeof(bytes))) > 0 && put >= 0)
		put = write(to, bytes, (size_t)got);
	if (write(to, &more, 1) != 1 || put < 0)
		perror(path);
	close(from);
	close(to);
}

static uint64_t sum_of(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t sum = 0;
	int c;

	while (f && (c = getc(f)) != EOF)
		sum = sum * 31 + (uint64_t)c;
	if (f)
		fclose(f);
	return sum;
}

struct mapped {
	unsigned char *at;
	size_t size;
};

static struct mapped map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mapped m = {.at = MAP_FAILED};
	struct stat st;

	if (!fstat(fd, &st)) {
		m.size = (size_t)st.st_size;
		m.at = mmap(NULL, m.size, PROT_READ, MAP_SHARED, fd, 0);
	}
	close(fd);
	return m;
}

static size_t count_in_memory(const char *path)
{
	static unsigned char pages[MAX_PAGES];
	struct mapped m = map(path);
	size_t found = 0;

	if (m.at == MAP_FAILED || mincore(m.at, m.size, pages))
		return 0;
	for (size_t i = 0; i < (m.size + 4095) / 4096; i++)
		found += pages[i] & 1;
	munmap(m.at, m.size);
	return found;
}

/* Physical page numbers: for root alone, else 0. Returns how many there are. */
static size_t find_places(const char *path, uint64_t *out)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct mapped m = map(path);
	size_t nr = 0;

	for (size_t i = 0; i < m.size / 4096 && i < MAX_PAGES; i++) {
		(void)((volatile unsigned char *)m.at)[i * 4096];
		if (pread(fd, &out[i], sizeof(*out), (off_t)(((uintptr_t)m.at / 4096 + i) * sizeof(*out))) !=
		    sizeof(*out))
			out[i] = 0;
		out[i] &= (1ULL << 55) - 1;
		nr += out[i] != 0;
	}
	munmap(m.at, m.size);
	close(fd);
	return nr;
}

static void test_moved(const char *path)
{
	static uint64_t before[MAX_PAGES], after[MAX_PAGES];
	struct csink_gate_placement placement = {.two_sides = true};
	uint64_t sum = sum_of(path);
	size_t nr, moved = 0, in_memory;
	uint32_t at = 0;

	is_num(csink_gate_placement_add(&placement, 1, path), 0, "a program is remembered");
	is_num(csink_gate_placement_add(&placement, 1, path), 0, "the same program is remembered again");
	is_num(placement.nr, 1, "the same program is one file");
	nr = find_places(path, before);
	csink_gate_placement_move(&placement, 1, &dice);
	in_memory = count_in_memory(path);
	find_places(path, after);
	is_str(csink_gate_placement_kept(&placement, &at), NULL, "a program that was moved is not reported");
	ok(in_memory > 0, "a moved program is in memory when it is run");
	ok(sum_of(path) == sum, "the bytes of the moved program are the same");
	for (size_t i = 0; i < nr; i++)
		moved += before[i] != after[i];
	if (nr)
		ok(moved > nr / 2, "most of its pages lie elsewhere (%zu of %zu)", moved, nr);
	else
		skip("the program's pages are moved", "only root sees where");
	csink_gate_placement_free(&placement);
}

/* How many of as many moves put the first page of a file where it had not been. */
static uint32_t count_new_places(struct csink_gate_placement *placement, const char *path, uint32_t moves)
{
	static uint64_t now[MAX_PAGES];
	uint64_t before[32];
	uint32_t found = 0;

	for (uint32_t i = 0; i < moves; i++) {
		bool is_new = true;

		csink_gate_placement_move(placement, 1, &dice);
		if (!find_places(path, now))
			return 0;
		before[i] = now[0];
		for (uint32_t k = 0; k < i; k++)
			is_new &= before[k] != now[0];
		found += is_new;
	}
	return found;
}

static uint64_t read_resident_pages(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident;
}

/* Of a child of this process, as it is right after fork. */
static uint64_t count_inherited_pages(void)
{
	uint64_t pages = 0;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return UINT64_MAX;
	pid = fork();
	if (!pid) {
		pages = read_resident_pages();
		_exit(write(ends[1], &pages, sizeof(pages)) != sizeof(pages));
	}
	if (read(ends[0], &pages, sizeof(pages)) != sizeof(pages))
		pages = UINT64_MAX;
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	return pages;
}

static void test_moved_often(const char *path)
{
	struct csink_gate_placement placement = {.two_sides = true};
	uint64_t before = count_inherited_pages(), own = read_resident_pages();
	uint32_t found;

	csink_gate_placement_add(&placement, 1, path);
	found = count_new_places(&placement, path, 32);
	if (geteuid())
		skip("moves put a program into ever other pages", "only root sees where");
	else
		ok(found > 16, "of 32 moves, most put a program where it had not been (%u)", found);
	ok(read_resident_pages() > own + 2048, "pages are taken for the moves");
	ok(count_inherited_pages() < before + 1024, "a child has none of the pages that are taken for the moves");
	csink_gate_placement_free(&placement);
	ok(read_resident_pages() < own + 1024, "the pages that are taken for the moves are given back");
}

static void test_held(const char *path)
{
	struct csink_gate_placement placement = {.two_sides = true};
	struct mapped m = map(path);
	uint64_t deadline_ns;
	const char *kept;
	uint32_t at = 0;

	for (size_t i = 0; i < m.size; i += 4096)
		(void)((volatile unsigned char *)m.at)[i];
	csink_gate_placement_add_program(&placement, 0, path);
	csink_gate_placement_move(&placement, 0, &dice);
	is_str(csink_gate_placement_kept(&placement, &at), path,
	       "a program that another process has mapped is not moved, and is named");
	is_str(csink_gate_placement_kept(&placement, &at), NULL, "a mapped program is named once");
	placement.two_sides = false;
	at = 0;
	is_str(csink_gate_placement_kept(&placement, &at), NULL, "a program of one side alone is not reported");
	munmap(m.at, m.size);
	placement.two_sides = true;
	/* Moved again if the kernel held a page meanwhile. */
	deadline_ns = csink_monotonic_ns() + DEADLINE_S * CSINK_NS_PER_S;
	do {
		csink_gate_placement_move(&placement, 0, &dice);
		at = 0;
		kept = csink_gate_placement_kept(&placement, &at);
	} while (kept && csink_monotonic_ns() < deadline_ns);
	is_str(kept, NULL, "a program that is no longer mapped is moved");
	csink_gate_placement_free(&placement);
}

/* Until the kernel lets go of it. */
static bool put_out_of_memory(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_S * CSINK_NS_PER_S;
	bool is_out;

	do {
		fdatasync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		is_out = !count_in_memory(path);
	} while (!is_out && csink_monotonic_ns() < deadline_ns);
	close(fd);
	return is_out;
}

/* Its pages are put out of memory by hand: if any is there again, it was touched. */
static bool is_touched(struct csink_gate_placement *placement, const char *path, int side)
{
	if (!put_out_of_memory(path))
		ok(0, "the kernel lets go of a file's pages within %d s", DEADLINE_S);
	csink_gate_placement_move(placement, side, &dice);
	return count_in_memory(path) > 0;
}

static void test_shared(const char *path, const char *other)
{
	struct csink_gate_placement placement = {.two_sides = true};

	csink_gate_placement_add(&placement, 0, path);
	csink_gate_placement_add(&placement, 1, path);
	csink_gate_placement_add(&placement, 1, other);
	ok(!is_touched(&placement, path, 0) && !is_touched(&placement, path, 1),
	   "a file that both sides use is left alone");
	ok(is_touched(&placement, other, 1), "a file that one side uses is read");
	ok(!is_touched(&placement, other, 0), "a file that one side uses is not read for the other");
	placement.two_sides = false;
	ok(is_touched(&placement, path, 0), "compared with itself, all is read");
	csink_gate_placement_free(&placement);
}

/* Libraries of both sides, held by us: named if they are the same library in two files. */
static void test_counterparts(const char *path, const char *other)
{
	struct csink_gate_placement placement = {.two_sides = true};
	char moved[2][sizeof(directory) + 32], *slash;
	struct mapped held;
	uint32_t at = 0;

	for (int i = 0; i < 2; i++) {
		snprintf(moved[i], sizeof(moved[i]), "%s/side%d", directory, i);
		mkdir(moved[i], 0700);
		slash = moved[i] + strlen(moved[i]);
		strcpy(slash, i ? "/libwork.so.2" : "/libwork.so.1");
		rename(i ? other : path, moved[i]);
	}
	held = map(moved[1]);
	for (size_t i = 0; i < held.size; i += 4096)
		(void)((volatile unsigned char *)held.at)[i];
	csink_gate_placement_add(&placement, 1, moved[1]);
	csink_gate_placement_move(&placement, 1, &dice);
	is_str(csink_gate_placement_kept(&placement, &at), NULL, "a library that one side alone has has no equal");
	csink_gate_placement_add(&placement, 0, moved[0]);
	at = 0;
	is_str(csink_gate_placement_kept(&placement, &at), moved[1], "two versions of a library are compared: named");
	munmap(held.at, held.size);
	csink_gate_placement_free(&placement);
	for (int i = 0; i < 2; i++) {
		unlink(moved[i]);
		*strrchr(moved[i], '/') = '\0';
		rmdir(moved[i]);
	}
}

static void test_others(const char *path)
{
	struct csink_gate_placement placement = {.two_sides = true};
	FILE *f = fopen(path, "we");
	uint32_t at = 0;

	fputs("#!/bin/sh\n", f);
	fclose(f);
	is_num(csink_gate_placement_add(&placement, 0, "/no/such/file"), 0, "a file that does not exist is ignored");
	is_num(csink_gate_placement_add(&placement, 0, "[vdso]"), 0, "no name of a file: ignored");
	is_num(csink_gate_placement_add(&placement, 0, directory), 0, "a directory is ignored");
	is_num(placement.nr, 0, "scripts, devices and directories are no files to move");
	csink_gate_placement_add_program(&placement, 0, path);
	csink_gate_placement_move(&placement, 0, &dice);
	is_str(csink_gate_placement_kept(&placement, &at), NULL, "a script is no code that could be moved");
	unlink(path);
	csink_gate_placement_move(&placement, 0, &dice);
	at = 0;
	is_str(csink_gate_placement_kept(&placement, &at), path, "a missing program is named");
	csink_gate_placement_free(&placement);
}

int main(void)
{
	char paths[3][sizeof(directory) + 16];
	struct statfs fs;

	if (!mkdtemp(directory))
		return 1;
	for (int i = 0; i < 3; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/program%d", directory, i);
	csink_random_init(&dice, 7);
	copy_self(paths[0], 'a');
	copy_self(paths[1], 'b');
	if (!statfs(directory, &fs) && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC) {
		test_moved(paths[0]);
		test_moved_often(paths[0]);
		test_held(paths[0]);
		test_shared(paths[0], paths[1]);
		test_counterparts(paths[0], paths[1]);
	} else {
		skip("files are moved", "/var/tmp is in memory: files there have no other place");
	}
	test_others(paths[2]);
	for (int i = 0; i < 3; i++)
		unlink(paths[i]);
	rmdir(directory);
	return done();
}
