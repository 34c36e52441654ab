/* See libc_version.h. Source: the symbol versioning sections of the Linux Standard Base; elf(5). Any thread, in a vfork
 * child too; not in handlers. */
#include "preload/core/libc_version.h"

#include <elf.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/program_file.h"

enum {
	MAX_PHDRS = 32,
	MAX_DYNAMIC = 128,
	MAX_VERSIONS = 512, /* of one object; glibc has about 45 */
	NR_REMEMBERED = 8,
	PATH_BYTES = 512,
};

static const char *library;
static dev_t own_dev;
static ino_t own_ino; /* of the loader that suits; 0: none is known */

/* A loader and what was found: a hash of the file's identity, its lowest bit the answer. 0: none. */
static _Atomic uint64_t remembered[NR_REMEMBERED];

/* The ELF hash of the newest glibc version that our library needs; 0: not read yet. */
static _Atomic uint32_t needed;

void csink_libc_version_init(const char *file, const char *loader)
{
	struct stat st;

	library = file;
	if (library && loader && !csink_raw_stat(loader, &st)) {
		own_dev = st.st_dev;
		own_ino = st.st_ino;
	}
}

/* ---- an object's tables --------------------------------------------------------------------------------------------
 */

struct object {
	int fd;
	uint32_t nr_phdrs;
	Elf64_Phdr phdrs[MAX_PHDRS];
	uint64_t needs, strings, defines; /* offsets in the file of DT_VERNEED, DT_STRTAB, DT_VERDEF; 0: none */
};

static bool read_at(const struct object *object, uint64_t offset, void *to, size_t bytes)
{
	return csink_rawcall(SYS_pread64, object->fd, to, bytes, offset) == (long)bytes;
}

static uint64_t offset_of(const struct object *object, uint64_t address)
{
	for (uint32_t i = 0; i < object->nr_phdrs; i++) {
		const Elf64_Phdr *at = &object->phdrs[i];

		if (at->p_type == PT_LOAD && address - at->p_vaddr < at->p_filesz)
			return address - at->p_vaddr + at->p_offset;
	}
	return 0;
}

static bool read_dynamic(struct object *object, uint64_t offset, uint64_t bytes)
{
	for (uint32_t i = 0; i < MAX_DYNAMIC && (i + 1) * sizeof(Elf64_Dyn) <= bytes; i++) {
		Elf64_Dyn dyn;

		if (!read_at(object, offset + i * sizeof(dyn), &dyn, sizeof(dyn)))
			return false;
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_VERNEED)
			object->needs = offset_of(object, dyn.d_un.d_ptr);
		else if (dyn.d_tag == DT_STRTAB)
			object->strings = offset_of(object, dyn.d_un.d_ptr);
		else if (dyn.d_tag == DT_VERDEF)
			object->defines = offset_of(object, dyn.d_un.d_ptr);
	}
	return true;
}

/* Returns false for what is no shared object of our word size. */
static bool read_object(struct object *object, int fd)
{
	Elf64_Ehdr eh;

	memset(object, 0, sizeof(*object));
	object->fd = fd;
	if (!read_at(object, 0, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum > MAX_PHDRS ||
	    !read_at(object, eh.e_phoff, object->phdrs, eh.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	object->nr_phdrs = eh.e_phnum;
	for (uint32_t i = 0; i < object->nr_phdrs; i++)
		if (object->phdrs[i].p_type == PT_DYNAMIC)
			return read_dynamic(object, object->phdrs[i].p_offset, object->phdrs[i].p_filesz);
	return false;
}

/* ---- versions ------------------------------------------------------------------------------------------------------
 */

/* "GLIBC_2.34" as 2 * 65536 + 34; 0: another name. */
static uint32_t number_of(const char *name)
{
	unsigned long long major;
	char *end;

	if (strncmp(name, "GLIBC_", 6))
		return 0;
	major = strtoull(name + 6, &end, 10);
	return (uint32_t)(major << 16 | (*end == '.' ? strtoull(end + 1, NULL, 10) & 0xffff : 0));
}

/* The newest version that an object needs of one library. */
static void look_at_needs(const struct object *object, uint64_t offset, uint32_t nr, uint32_t *newest, uint32_t *hash)
{
	for (uint32_t i = 0; i < nr && i < MAX_VERSIONS; i++) {
		char name[24] = "";
		Elf64_Vernaux aux;

		if (!read_at(object, offset, &aux, sizeof(aux)) ||
		    !read_at(object, object->strings + aux.vna_name, name, sizeof(name) - 1))
			return;
		if (number_of(name) > *newest) {
			*newest = number_of(name);
			*hash = aux.vna_hash;
		}
		if (!aux.vna_next)
			return;
		offset += aux.vna_next;
	}
}

/* Returns 0 if it cannot be determined. */
static uint32_t read_needed(int fd)
{
	uint32_t newest = 0, hash = 0;
	struct object object;
	Elf64_Verneed need;

	if (!read_object(&object, fd) || !object.needs || !object.strings)
		return 0;
	for (uint64_t at = object.needs, i = 0; i < MAX_VERSIONS && read_at(&object, at, &need, sizeof(need)); i++) {
		look_at_needs(&object, at + need.vn_aux, need.vn_cnt, &newest, &hash);
		if (!need.vn_next)
			break;
		at += need.vn_next;
	}
	return hash;
}

static uint32_t needed_hash(void)
{
	uint32_t hash = atomic_load_explicit(&needed, memory_order_relaxed);
	int fd;

	if (hash)
		return hash;
	fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, library, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	hash = read_needed(fd);
	csink_rawcall(SYS_close, fd);
	atomic_store_explicit(&needed, hash, memory_order_relaxed);
	return hash;
}

/* 1: yes; 0: no; -1: it is not such a file. */
static int defines(int fd, uint32_t hash)
{
	struct object object;
	Elf64_Verdef def;

	if (!read_object(&object, fd))
		return -1;
	for (uint64_t at = object.defines, i = 0; at && i < MAX_VERSIONS; at += def.vd_next, i++) {
		if (!read_at(&object, at, &def, sizeof(def)))
			return -1;
		if (def.vd_hash == hash)
			return 1;
		if (!def.vd_next)
			break;
	}
	return 0;
}

/* A loader and its C library are installed in one directory, and must be of one version to work at all. */
static int open_libc_beside(int fd)
{
	static const char name[] = "libc.so.6";
	char path[PATH_BYTES], *slash;

	/* With room for the name; a path that fills the rest may be cut. */
	if (csink_program_fd_path(fd, path, sizeof(path) - sizeof(name) + 1) == sizeof(path) - sizeof(name))
		return -1;
	slash = strrchr(path, '/');
	if (!slash)
		return -1;
	memcpy(slash + 1, name, sizeof(name));
	return (int)csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

static bool judge(int fd)
{
	uint32_t hash = needed_hash();
	int libc, found;

	if (!hash)
		return true;
	libc = open_libc_beside(fd);
	found = libc < 0 ? -1 : defines(libc, hash);
	if (libc >= 0)
		csink_rawcall(SYS_close, libc);
	/* The loader itself defines fewer versions, but those from 2.34 on that matter to it. */
	return found < 0 ? defines(fd, hash) != 0 : found;
}

/* ---- what was found before -----------------------------------------------------------------------------------------
 */

static uint64_t identity_of(const struct stat *st)
{
	const uint64_t parts[] = {st->st_dev, st->st_ino, (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec};
	uint64_t hash = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash | 2; /* never 0, even without the answer */
}

/* -1: nothing is remembered. */
static int read_cache(uint64_t identity)
{
	uint64_t found = atomic_load_explicit(&remembered[identity >> 8 & (NR_REMEMBERED - 1)], memory_order_relaxed);

	return found >> 1 == identity >> 1 ? (int)(found & 1) : -1;
}

static bool is_own(const struct stat *st)
{
	return own_ino && st->st_ino == own_ino && st->st_dev == own_dev;
}

bool csink_libc_suits_fd(int fd)
{
	uint64_t identity;
	struct stat st;
	int known;

	if (!library || csink_raw_fstat(fd, &st) || is_own(&st))
		return true;
	identity = identity_of(&st);
	known = read_cache(identity);
	if (known < 0) {
		known = judge(fd);
		atomic_store_explicit(&remembered[identity >> 8 & (NR_REMEMBERED - 1)],
				      (identity & ~1ULL) | (uint64_t)known, memory_order_relaxed);
	}
	return known;
}

bool csink_libc_suits(const char *path)
{
	struct stat st;
	bool suits;
	int fd;

	if (!library || csink_raw_stat(path, &st) || is_own(&st))
		return true;
	fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return true;
	suits = csink_libc_suits_fd(fd);
	csink_rawcall(SYS_close, fd);
	return suits;
}
