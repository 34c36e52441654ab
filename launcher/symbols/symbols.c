/*
 * Finds the files that describe an object (itself, and a separate debug file by build-id or debug link), makes sure
 * that they are of the build that ran, and puts the sources of names in order: symbol tables, DWARF, procedure linkage
 * tables, unwind tables.
 */
#include "launcher/symbols/symbols.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/base/roots.h"
#include "launcher/profile/demangle.h"
#include "launcher/symbols/elf_build.h"
#include "launcher/symbols/symbols_cache.h"
#include "launcher/symbols/symbols_fetch.h"
#include "launcher/symbols/symbols_impl.h"
#include "launcher/symbols/symbols_kept.h"
#include "launcher/symbols/symbols_limits.h"

#define DEBUG_DIR "/usr/lib/debug"
#define MAX_ROOTS 8
/* A debug file without a build-id is summed up as far as this: a sparse one may say that it has terabytes. */
#define MAX_CRC_BYTES (4LL << 30)
/* Of .debug_info that is not compressed: an object with less is read as soon as the cache. */
#define CACHED_BYTES (256UL << 10)

struct file {
	int fd;
	Elf *elf;     /* NULL: no file */
	bool is_bomb; /* its compressed sections are left alone (symbols_limits.h) */
};

struct files {
	struct file main, debug;
};

static void close_file(struct file *file)
{
	if (file->elf)
		elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct file){.fd = -1};
}

/* What is not to be read is closed. */
static int check_file(struct file *file)
{
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF && !csink_elf_hides_names(file->elf)) {
		file->is_bomb = csink_elf_is_bomb(file->elf);
		return 0;
	}
	close_file(file);
	return -ENOEXEC;
}

/* An ELF file whose descriptor is ours now, or closed. */
static int begin_file(int fd, struct file *file)
{
	*file = (struct file){.fd = fd, .elf = elf_begin(fd, ELF_C_READ_MMAP, NULL)};
	return check_file(file);
}

/* Open an ELF file; nothing is left open on error. */
static int open_file(const char *path, struct file *file)
{
	int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);

	*file = (struct file){.fd = -1};
	return fd < 0 ? fd : begin_file(fd, file);
}

static int open_vdso(struct file *file)
{
	/* The kernel's own page in our process: the same one as in the others, if the build-ids are equal. */
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	GElf_Ehdr header;
	size_t size;
	Elf *elf;

	*file = (struct file){.fd = -1};
	if (!image)
		return -ENOENT;
	/* Its size: the section headers are its last part. */
	elf = elf_memory(image, getpagesize());
	if (!elf || !gelf_getehdr(elf, &header)) {
		elf_end(elf);
		return -ENOEXEC;
	}
	size = header.e_shoff + (size_t)header.e_shentsize * header.e_shnum;
	elf_end(elf);
	file->elf = elf_memory(image, size);
	return file->elf ? 0 : -ENOEXEC;
}

/* ---- separate debug files ---- */

static int open_debug_by_id(const char *dir, const uint8_t *build_id, size_t len, struct file *file)
{
	char path[4096];
	int used, err;
	size_t i;

	if (len < 2)
		return -ENOENT;
	used = snprintf(path, sizeof(path) - 2 * len - 16, "%s/.build-id/%02x/", dir, build_id[0]);
	if (used < 0 || (size_t)used >= sizeof(path) - 2 * len - 16)
		return -ENAMETOOLONG;
	for (i = 1; i < len; i++)
		used += sprintf(path + used, "%02x", build_id[i]);
	strcpy(path + used, ".debug");
	err = open_file(path, file);
	if (!err && !csink_elf_is_build(file->elf, build_id, len)) {
		close_file(file);
		return -ESTALE;
	}
	return err;
}

static bool has_crc(int fd, uint32_t want)
{
	unsigned char buf[16384];
	uint32_t crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t got;

	while ((got = pread(fd, buf, sizeof(buf), at)) > 0 && at < MAX_CRC_BYTES) {
		crc = crc32(crc, buf, got);
		at += got;
	}
	return !got && crc == want;
}

static int open_debug_at(const char *path, Elf *main, uint32_t crc, struct file *file)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(main, &id);
	int err = open_file(path, file);

	if (err)
		return err;
	/* A build-id is as good as a checksum of the whole file, and read at once. */
	if (len > 0 ? csink_elf_is_build(file->elf, id, len) : has_crc(file->fd, crc))
		return 0;
	close_file(file);
	return -ESTALE;
}

/* dir/NAME, dir/.debug/NAME and DEBUG_DIR/dir/NAME, as debuggers look for it. */
static int open_debug_by_link(const char *debug_dir, const char *path, Elf *main, struct file *file)
{
	const struct {
		const char *above, *below;
	} places[] = {{"", ""}, {"", ".debug/"}, {debug_dir, ""}};
	const char *name, *slash = strrchr(path, '/');
	char at[4096];
	GElf_Word crc;
	uint32_t i;
	int used;

	name = dwelf_elf_gnu_debuglink(main, &crc);
	if (!name || !slash || strchr(name, '/'))
		return -ENOENT;
	for (i = 0; i < CSINK_ARRAY_SIZE(places); i++) {
		used = snprintf(at, sizeof(at), "%s%.*s/%s%s", places[i].above, (int)(slash - path), path,
				places[i].below, name);
		if (used > 0 && (size_t)used < sizeof(at) && strcmp(at, path) && !open_debug_at(at, main, crc, file))
			return 0;
	}
	return -ENOENT;
}

static bool has_section(Elf *elf, uint32_t type, const char *name)
{
	GElf_Shdr shdr;

	return csink_elf_section(elf, type, name, &shdr) != NULL;
}

static bool has_dwarf(Elf *elf)
{
	return has_section(elf, 0, ".debug_info") || has_section(elf, 0, ".zdebug_info");
}

static int open_from_server(const uint8_t *id, size_t len, bool executable, struct file *file)
{
	int fd = csink_debuginfod_fetch(id, len, executable), err = fd < 0 ? fd : begin_file(fd, file);

	if (!err && !csink_elf_is_build(file->elf, id, len)) {
		close_file(file);
		err = -ESTALE;
	}
	return err;
}

static void open_debug(const struct csink_object *object, struct files *files)
{
	const char *dir = object->debug_dir ? object->debug_dir : DEBUG_DIR;
	const void *id = object->build_id;
	ssize_t len = object->build_id_len;

	if (files->main.elf && has_dwarf(files->main.elf) && has_section(files->main.elf, SHT_SYMTAB, NULL))
		return;
	if (!len && files->main.elf)
		len = dwelf_elf_gnu_build_id(files->main.elf, &id);
	if (len > 0 && !open_debug_by_id(dir, id, len, &files->debug))
		return;
	if (files->main.elf && !open_debug_by_link(dir, object->path, files->main.elf, &files->debug))
		return;
	if (len > 0 && csink_debuginfod_wanted && !object->is_vdso)
		open_from_server(id, (size_t)len, false, &files->debug);
}

/* Where the file is not, or not any more the one that ran: as processes see it that have other roots. */
static int open_elsewhere(const struct csink_object *object, struct file *file)
{
	char roots[MAX_ROOTS][CSINK_ROOT_BYTES], path[4096];
	uint32_t i, nr = object->pid && *object->path == '/' ? csink_roots_find(object->pid, roots, MAX_ROOTS) : 0;

	for (i = 0; i < nr; i++) {
		if ((size_t)snprintf(path, sizeof(path), "%s%s", roots[i],
				     object->path + csink_root_len(object->path)) >= sizeof(path) ||
		    open_file(path, file))
			continue;
		if (csink_elf_is_build(file->elf, object->build_id, object->build_id_len))
			return 0;
		close_file(file);
	}
	return csink_debuginfod_wanted ? open_from_server(object->build_id, object->build_id_len, true, file) : -ENOENT;
}

static int open_image(const struct csink_object *object, struct file *file)
{
	*file = (struct file){.fd = -1, .elf = elf_memory((char *)object->image, object->nr_image)};
	return check_file(file);
}

static int open_files(const struct csink_object *object, struct files *files)
{
	int err;

	if (object->image)
		return open_image(object, &files->main);
	err = object->is_vdso ? open_vdso(&files->main) : open_file(object->path, &files->main);

	if (!err && object->build_id_len &&
	    !csink_elf_is_build(files->main.elf, object->build_id, object->build_id_len)) {
		close_file(&files->main);
		err = -ESTALE;
	}
	if (err && object->build_id_len && !object->is_vdso && !open_elsewhere(object, &files->main))
		err = 0;
	open_debug(object, files);
	return files->debug.elf ? 0 : err;
}

/* ---- */

/* The file that dwz moved common parts to, as .gnu_debugaltlink names it. libdw opens it by itself. */
static bool names_trap(Dwarf *dwarf, const char *path)
{
	const char *name;
	const void *id;

	return dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) > 0 && csink_is_trap_beside(path, name);
}

#define MAX_WHOLE_LINES (4UL << 20) /* bytes of line tables of an object that is kept whole */
#define MAX_WHOLE_BOUNDS 1000000
#define MAX_UNIT_BOUNDS 100000 /* of the units of another one that hold wants, at a time */

/* What is kept of a batch besides it. */
struct keeping {
	struct csink_bounds bounds;
	struct csink_answers answers[2]; /* units; single addresses */
	bool is_whole;                   /* all of the object's code has answers */
	bool is_refused;                 /* the next time the answers may be others */
};

/* Without its other file, names are missing that may be there the next time. */
static bool lacks_alternative(Dwarf *dwarf)
{
	GElf_Shdr shdr;

	return csink_elf_section(dwarf_getelf(dwarf), 0, ".gnu_debugaltlink", &shdr) && !dwarf_getalt(dwarf);
}

/* Bytes of a section, unpacked; 0 if there is none. */
static uint64_t section_bytes(Elf *elf, const char *name)
{
	GElf_Shdr shdr;
	GElf_Chdr chdr;
	Elf_Scn *scn = csink_elf_section(elf, 0, name, &shdr);

	if (!scn)
		return 0;
	return shdr.sh_flags & SHF_COMPRESSED && gelf_getchdr(scn, &chdr) ? chdr.ch_size : shdr.sh_size;
}

/* Of a small object, everything is kept the first time: the next runs have samples in other units of it, and then it
 * is the opening that takes long. What cannot be kept is found again. */
static void keep(struct keeping *keeping, const struct csink_elfs *elfs, Dwarf *dwarf, struct csink_spending *spending)
{
	struct csink_bounds *bounds = &keeping->bounds;
	int err = 0;

	if (keeping->is_whole) {
		bounds->max = MAX_WHOLE_BOUNDS;
		err = csink_bounds_add_all(bounds, dwarf, elfs->path, spending);
	}
	err = err ? err : csink_bounds_add_symbols(bounds, elfs);
	err = err ? err : csink_answers_find(&keeping->answers[0], bounds, elfs, dwarf, spending);
	if (err < 0)
		keeping->answers[0].nr = 0;
	keeping->is_whole &= !err && !bounds->is_partial;
	/* Addresses that were left out because of a limit are not known. */
	keeping->is_refused |= err > 0 || spending->is_over || csink_demangle_refused();
}

/* The same where there is no debug information: names then come from symbols and unwind tables alone. */
static void keep_tables(struct keeping *keeping, const struct csink_elfs *elfs)
{
	struct csink_bounds *bounds = &keeping->bounds;
	struct csink_spending spending;
	int err;

	csink_spending_begin(&spending, 0);
	bounds->max = MAX_UNIT_BOUNDS;
	csink_demangle_begin();
	err = csink_bounds_add_sections(bounds, elfs->main);
	err = err ? err : csink_bounds_add_symbols(bounds, elfs);
	err = err ? err : csink_answers_find(&keeping->answers[0], bounds, elfs, NULL, &spending);
	if (err < 0)
		keeping->answers[0].nr = 0;
	keeping->is_refused |= err > 0 || csink_demangle_refused();
	csink_demangle_begin();
}

/* keeping: NULL: nothing is kept. */
static int resolve_dwarf(struct csink_batch *batch, const struct csink_elfs *elfs, const struct file *file,
			 struct keeping *keeping)
{
	struct stat st;
	Dwarf *dwarf;
	int err;

	if (!file->elf || !has_dwarf(file->elf))
		return -ENOENT;
	if (file->is_bomb) {
		batch->flags |= CSINK_LEFT_PACKED;
		return -ENOENT;
	}
	dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (!dwarf)
		return -EBADMSG;
	csink_spending_begin(&batch->spending, fstat(file->fd, &st) ? 0 : (uint64_t)st.st_size);
	if (names_trap(dwarf, elfs->path)) {
		if (keeping)
			keeping->is_refused = true;
		dwarf_end(dwarf);
		return 0;
	}
	if (keeping && lacks_alternative(dwarf)) {
		keeping->is_refused = true;
		keeping = NULL;
	}
	if (keeping) {
		keeping->is_whole = section_bytes(file->elf, ".debug_line") <= MAX_WHOLE_LINES;
		keeping->bounds.max = MAX_UNIT_BOUNDS;
	}
	err = csink_dwarf_resolve(batch, dwarf, keeping && !keeping->is_whole ? &keeping->bounds : NULL);
	if (batch->spending.is_over)
		batch->flags |= CSINK_LEFT_DWARF;
	if (csink_demangle_refused())
		batch->flags |= CSINK_LEFT_MANGLED;
	if (!err && keeping && !batch->spending.is_over) {
		/* Names that were left out are only reported for addresses that the caller wants. */
		csink_demangle_begin();
		keep(keeping, elfs, dwarf, &batch->spending);
		csink_demangle_begin();
	}
	dwarf_end(dwarf);
	return err;
}

int csink_batch_flags(const struct csink_batch *batch, uint32_t want)
{
	const struct csink_found *found = &batch->found[want];
	uint32_t nr = batch->p->locations[batch->wants[want].location].nr_lines;

	return (nr ? CSINK_FOUND_NAMES : 0) | (found->is_done ? CSINK_FOUND_FILES : 0) |
	       (found->line || found->file ? CSINK_FOUND_LINES : 0) | (nr > 1 ? CSINK_FOUND_INLINES : 0);
}

void csink_batch_fill_rest(struct csink_batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->nr; i++) {
		struct csink_found *found = &batch->found[i];
		struct csink_profile_line line = {.function = found->function, .line = found->line};
		struct csink_profile_function function;

		if (found->is_done || !found->function)
			continue;
		if (found->file) { /* a unit with lines and no functions: assembler */
			function = batch->p->functions[found->function];
			function.file = found->file;
			line.function = csink_profile_function_add(batch->p, &function);
		}
		csink_profile_location_set_lines(batch->p, batch->wants[i].location, &line, 1);
		batch->flags |= CSINK_FOUND_NAMES;
	}
}

/* by_tables: the debug information is known not to hold any of the addresses. */
static int resolve(struct csink_batch *batch, const struct csink_object *object, struct files *files, bool by_tables,
		   struct keeping *keeping)
{
	struct csink_elfs elfs = {files->main.elf, files->debug.elf, object->path};
	Elf *const both[] = {elfs.main, elfs.debug};
	int err = csink_elf_symbols(batch, both, CSINK_ARRAY_SIZE(both)), by_dwarf = 0;

	if (!err && files->main.elf)
		err = csink_elf_plt(batch, files->main.elf);
	if (!err && !by_tables) {
		by_dwarf = resolve_dwarf(batch, &elfs, &files->main, keeping);
		if (by_dwarf == -ENOENT)
			by_dwarf = resolve_dwarf(batch, &elfs, &files->debug, keeping);
		err = by_dwarf == -ENOMEM ? -ENOMEM : 0;
	}
	if (!err && files->main.elf)
		err = csink_elf_v8_builtins(batch, files->main.elf);
	if (!err && files->main.elf)
		csink_elf_init_and_fini(batch, files->main.elf);
	if (!err && files->main.elf)
		csink_elf_unwind_starts(batch, files->main.elf, object->path);
	csink_batch_fill_rest(batch);
	if (csink_demangle_refused())
		batch->flags |= CSINK_LEFT_MANGLED;
	if (!err && keeping && by_dwarf == -ENOENT && files->main.elf)
		keep_tables(keeping, &elfs);
	return err ? err : csink_profile_error(batch->p);
}

/* Append size and time of a file. */
static void describe_file(int fd, char *text, size_t size)
{
	struct stat st = {0};

	if (fd >= 0)
		fstat(fd, &st);
	csink_append(text, size, " %lld %lld.%09ld", (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		     st.st_mtim.tv_nsec);
}

/* What names come from: where one of it is another, what was kept means nothing. Ourselves: another build may name
 * otherwise. The object's own name: functions that only unwind tables know are named after it. */
static void describe_source(const struct csink_object *object, const struct files *files, char *text, size_t size)
{
	int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	snprintf(text, size, CSINK_VERSION);
	describe_file(self, text, size);
	describe_file(files->main.elf ? files->main.fd : -1, text, size);
	describe_file(files->debug.elf ? files->debug.fd : -1, text, size);
	csink_append(text, size, " %s", csink_base_name(object->path));
	if (self >= 0)
		close(self);
}

/* Whether reading its debug information takes longer than reading its cache file. */
static bool has_much_dwarf(Elf *elf)
{
	GElf_Shdr shdr;

	if (!elf)
		return false;
	if (has_section(elf, 0, ".zdebug_info"))
		return true;
	return csink_elf_section(elf, 0, ".debug_info", &shdr) &&
	       (shdr.sh_size >= CACHED_BYTES || shdr.sh_flags & SHF_COMPRESSED);
}

/* cache: what is known already, and where what is found is kept; NULL: it is not kept. */
static int resolve_wants(struct csink_profile *p, const struct csink_object *object, struct files *files,
			 struct csink_want *wants, uint32_t nr_wants, struct csink_symbols_cache *cache)
{
	struct csink_batch batch = {.p = p, .path = object->path, .wants = wants, .nr = nr_wants};
	bool by_tables = cache && csink_symbols_cache_is_whole(cache);
	struct keeping keeping = {0};
	int err;

	if (by_tables)
		cache = NULL;
	qsort(wants, nr_wants, sizeof(*wants), csink_compare_u64);
	batch.found = calloc(nr_wants, sizeof(*batch.found));
	err = batch.found ? resolve(&batch, object, files, by_tables, cache ? &keeping : NULL) : -ENOMEM;
	if (!err && cache && !keeping.is_refused && !(batch.flags & CSINK_LEFT) &&
	    !csink_answers_add_wants(&keeping.answers[1], &batch, &keeping.answers[0]))
		csink_symbols_cache_put(cache, keeping.answers, CSINK_ARRAY_SIZE(keeping.answers), keeping.is_whole);
	csink_profile_free(keeping.answers[0].p);
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(keeping.answers); i++)
		csink_answers_free(&keeping.answers[i]);
	csink_bounds_free(&keeping.bounds);
	free(batch.found);
	return err ? err : batch.flags;
}

/* What is known already need not be looked for. */
static int resolve_cached(struct csink_profile *p, const struct csink_object *object, struct files *files,
			  struct csink_want *wants, uint32_t nr_wants, struct csink_symbols_cache *cache)
{
	int found = 0, flags = 0;
	char source[512];
	uint32_t left;

	describe_source(object, files, source, sizeof(source));
	csink_symbols_cache_open(cache, object, source);
	left = csink_symbols_cache_take(cache, p, wants, nr_wants, &flags);
	if (left)
		found = resolve_wants(p, object, files, wants, left, *cache->path || cache->in_memory ? cache : NULL);
	return found < 0 ? found : found | flags;
}

/* There is no file: what is known from the time when there was one. Returns what was found, or err. */
static int resolve_known(struct csink_profile *p, const struct csink_object *object, struct csink_want *wants,
			 uint32_t nr_wants, int err)
{
	struct csink_symbols_cache cache = {0};
	uint32_t left;
	int flags = 0;

	csink_symbols_cache_open(&cache, object, NULL);
	left = csink_symbols_cache_take(&cache, p, wants, nr_wants, &flags);
	csink_symbols_cache_close(&cache);
	return left < nr_wants - left ? flags : err;
}

/* What other sources than a table of Go have to name. */
static int resolve_rest(struct csink_profile *p, const struct csink_object *object, struct files *files,
			struct csink_want *wants, uint32_t nr_wants, struct csink_kept_object *kept)
{
	bool is_new = !kept || !kept->is_opened;
	struct csink_symbols_cache cache = {0};
	int found;

	if (!nr_wants)
		return 0;
	if (kept)
		kept->is_opened = true;
	if (is_new && !object->image && (has_much_dwarf(files->main.elf) || has_much_dwarf(files->debug.elf))) {
		found = resolve_cached(p, object, files, wants, nr_wants, kept ? &kept->ranges : &cache);
		csink_symbols_cache_close(&cache);
		return found;
	}
	return resolve_wants(p, object, files, wants, nr_wants, kept ? &kept->ranges : NULL);
}

static int resolve_opened(struct csink_profile *p, const struct csink_object *object, struct files *files,
			  struct csink_want *wants, uint32_t nr_wants, struct csink_kept_object *kept)
{
	struct stat st = {0};
	int flags = 0, found;

	if (files->main.elf && files->main.fd >= 0 && !fstat(files->main.fd, &st))
		nr_wants = csink_go_take(p, files->main.elf, (uint64_t)st.st_size, wants, nr_wants, &flags);
	found = resolve_rest(p, object, files, wants, nr_wants, kept);
	return found < 0 ? found : found | flags;
}

static int resolve_files(struct csink_profile *p, const struct csink_object *object, struct csink_want *wants,
			 uint32_t nr_wants, struct csink_kept_object *kept)
{
	struct files files = {{.fd = -1}, {.fd = -1}};
	int err = open_files(object, &files);

	if (err)
		err = resolve_known(p, object, wants, nr_wants, err);
	else
		err = resolve_opened(p, object, &files, wants, nr_wants, kept);
	close_file(&files.main);
	close_file(&files.debug);
	return err;
}

int csink_symbols_resolve(struct csink_profile *p, const struct csink_object *object, struct csink_want *wants,
			  uint32_t nr_wants)
{
	struct csink_kept_object *kept;
	int found = 0, flags = 0;
	uint32_t left = nr_wants;

	if (!nr_wants)
		return 0;
	elf_version(EV_CURRENT);
	csink_demangle_begin();
	csink_cut_guard_begin();
	kept = csink_kept_find(object);
	if (kept)
		left = csink_kept_take(kept, p, wants, nr_wants, &flags);
	if (left)
		found = resolve_files(p, object, wants, left, kept);
	if (csink_cut_guard_end() && found >= 0)
		found |= CSINK_LEFT_CUT;
	else if (kept && left && found >= 0)
		csink_kept_put(kept, p, wants, left, found);
	qsort(wants, nr_wants, sizeof(*wants), csink_compare_u64); /* those that were left came to the front */
	return found == -ENOMEM || (found < 0 && left == nr_wants) ? found : CSINK_MAX(found, 0) | flags;
}
