/* Reading programs into other pages: see placement.h. Source: posix_fadvise(2), mincore(2), elf(5). */
#include "launcher/gate/placement.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/profile/profile.h"

#define MAX_SEGMENTS 64
#define MAX_FOLIO (2 << 20)   /* pages that the kernel holds together go together, or stay */
#define MAX_TRIES 3           /* to drop pages, which the kernel may hold for a moment, to move them itself */
#define POOL_BYTES (16 << 20) /* of pages, of which some are given to the kernel before it reads a file */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* ---- which files ---- */

int csink_gate_placement_add(struct csink_gate_placement *placement, int side, const char *path)
{
	struct csink_gate_file *file;
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	for (uint32_t i = 0; i < placement->nr; i++) {
		if (placement->files[i].dev == st.st_dev && placement->files[i].ino == st.st_ino) {
			placement->files[i].sides[side] = true;
			return 0;
		}
	}
	if (CSINK_GROW(placement->files, placement->nr, placement->cap))
		return -ENOMEM;
	file = &placement->files[placement->nr];
	*file = (struct csink_gate_file){.path = strdup(path), .dev = st.st_dev, .ino = st.st_ino};
	if (!file->path)
		return -ENOMEM;
	file->sides[side] = true;
	placement->nr++;
	return 0;
}

int csink_gate_placement_add_program(struct csink_gate_placement *placement, int side, const char *path)
{
	uint32_t nr = placement->nr;
	int err = csink_gate_placement_add(placement, side, path);

	if (!err && placement->nr > nr)
		placement->files[nr].is_program = true;
	return err;
}

int csink_gate_placement_learn(struct csink_gate_placement *placement, int side, const struct csink_profile *p)
{
	int err = 0;

	for (uint32_t i = 1; i < p->nr_mappings && !err; i++)
		err = csink_gate_placement_add(placement, side, csink_profile_text(p, p->mappings[i].file));
	return err;
}

void csink_gate_placement_free(struct csink_gate_placement *placement)
{
	for (uint32_t i = 0; i < placement->nr; i++)
		free(placement->files[i].path);
	free(placement->files);
	if (placement->pool)
		munmap(placement->pool, POOL_BYTES);
}

static bool is_movable(const struct csink_gate_placement *placement, const struct csink_gate_file *file, int side)
{
	return file->sides[side] && !(placement->two_sides && file->sides[!side]);
}

/* ---- their pages ---- */

struct range {
	off_t start, end;
};

/* What a program has in memory of its file: not its debug information. Returns false if it is no ELF file of ours. */
static bool find_range(int fd, struct range *out)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	long page = sysconf(_SC_PAGESIZE);
	struct stat st;
	Elf64_Ehdr head;
	ssize_t size;

	*out = (struct range){0, 0};
	if (fstat(fd, &st) || pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(*segments) || head.e_phnum > MAX_SEGMENTS)
		return false;
	size = (ssize_t)(head.e_phnum * sizeof(*segments));
	if (pread(fd, segments, (size_t)size, (off_t)head.e_phoff) != size)
		return false;
	for (uint32_t i = 0; i < head.e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];
		uint64_t end;

		if (s->p_type == PT_LOAD && !__builtin_add_overflow(s->p_offset, s->p_filesz, &end))
			out->end = (off_t)CSINK_MAX((uint64_t)out->end, CSINK_MIN(end, (uint64_t)st.st_size));
	}
	out->end = (out->end + page - 1) & -page;
	return out->end > 0;
}

/* Is any page of it in memory? Without permission mincore() reports all pages resident: then there is no note. */
static bool is_in_memory(int fd, const struct range *range)
{
	size_t len = (size_t)(range->end - range->start), page = (size_t)sysconf(_SC_PAGESIZE);
	CSINK_AUTO_FREE unsigned char *pages = malloc(len / page + 1);
	void *at = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, range->start);
	bool found = false;
	struct stat st;

	if (pages && at != MAP_FAILED && !fstat(fd, &st) && (st.st_uid == geteuid() || !geteuid()) &&
	    !mincore(at, len, pages)) {
		for (size_t i = 0; i < len / page && !found; i++)
			found = pages[i] & 1;
	}
	if (at != MAP_FAILED)
		munmap(at, len);
	return found;
}

static void advise(int fd, const struct range *range)
{
	posix_fadvise(fd, range->start, CSINK_ALIGN_UP(range->end - range->start, (off_t)MAX_FOLIO),
		      POSIX_FADV_DONTNEED);
}

/* Drop its pages from the cache. Only this process pays: they are clean, and other processes keep the pages that they
 * have mapped. */
static bool drop(int fd, const struct range *range)
{
	advise(fd, range);
	for (int tries = 0; tries < MAX_TRIES && is_in_memory(fd, range); tries++) {
		/* A file that was just built is not on disk yet, and what is dirty stays. */
		fdatasync(fd);
		advise(fd, range);
	}
	return !is_in_memory(fd, range);
}

static void read_in(int fd, const struct range *range)
{
	static char bytes[65536];
	ssize_t got = 1;

	for (off_t at = range->start; at < range->end && got > 0; at += got)
		got = pread(fd, bytes, sizeof(bytes), at);
}

static void fill(char *at, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!madvise(at, size, MADV_POPULATE_WRITE))
		return;
	for (size_t i = 0; i < size; i += page)
		((volatile char *)at)[i] = 1;
}

/* Small pages: large ones come from elsewhere. A child does not get them: they would be part of its max RSS. */
static char *make_pool(void)
{
	char *pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pool == MAP_FAILED)
		return NULL;
	madvise(pool, POOL_BYTES, MADV_NOHUGEPAGE);
	madvise(pool, POOL_BYTES, MADV_DONTFORK);
	fill(pool, POOL_BYTES);
	return pool;
}

/*
 * The kernel allocates the pages that were freed last. If these were the file's own ones, it would be read into the
 * same pages. So as many pages of the pool are freed first, from a random place in it on; then the pool takes others.
 * NULL: there is no pool.
 */
static char *free_some(struct csink_gate_placement *placement, size_t size, struct csink_random *random)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	char *at;

	if (!placement->pool)
		placement->pool = make_pool();
	if (!placement->pool)
		return NULL;
	at = placement->pool + (size_t)csink_random_below(random, (POOL_BYTES - (uint32_t)size) / page + 1) * page;
	madvise(at, size, MADV_DONTNEED);
	return at;
}

static void move_file(struct csink_gate_placement *placement, struct csink_gate_file *file, struct csink_random *random)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(file->path, 0, CSINK_REGULAR_ANY);
	struct range range;
	size_t size;
	char *freed;

	file->is_kept = fd < 0;
	if (fd < 0 || !find_range(fd, &range))
		return;
	file->is_kept = !drop(fd, &range);
	size = CSINK_MIN((size_t)(range.end - range.start), (size_t)POOL_BYTES / 2);
	freed = free_some(placement, size, random);
	read_in(fd, &range);
	if (freed)
		fill(freed, size);
}

void csink_gate_placement_move(struct csink_gate_placement *placement, int side, struct csink_random *random)
{
	for (uint32_t i = 0; i < placement->nr; i++) {
		if (is_movable(placement, &placement->files[i], side))
			move_file(placement, &placement->files[i], random);
	}
}

/* Without the version of a library. */
static size_t name_of(const char *path, const char **name)
{
	const char *end;

	*name = csink_base_name(path);
	end = strstr(*name, ".so");
	return end ? (size_t)(end - *name) : strlen(*name);
}

bool csink_gate_same_library(const char *left, const char *right)
{
	const char *names[2];
	size_t len = name_of(left, &names[0]);

	return len == name_of(right, &names[1]) && !memcmp(names[0], names[1], len);
}

/* Is there another file that does the same on the other side? Then their places make a difference. */
static bool has_counterpart(const struct csink_gate_placement *placement, const struct csink_gate_file *file)
{
	for (uint32_t i = 0; i < placement->nr; i++) {
		const struct csink_gate_file *f = &placement->files[i];

		if (f != file && f->sides[!file->sides[1]] && csink_gate_same_library(f->path, file->path))
			return true;
	}
	return file->is_program;
}

const char *csink_gate_placement_kept(const struct csink_gate_placement *placement, uint32_t *at)
{
	while (placement->two_sides && *at < placement->nr) {
		const struct csink_gate_file *file = &placement->files[(*at)++];

		if (file->is_kept && file->sides[0] != file->sides[1] && has_counterpart(placement, file))
			return file->path;
	}
	return NULL;
}
