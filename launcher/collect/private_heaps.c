/*
 * Memory that programs do not take from malloc: what `-e alloc` cannot see of them is noted, one line for each kind.
 * Called for each recording with allocations; the launcher's one thread.
 */
#include <fnmatch.h>
#include <gelf.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/symbols/symbols_limits.h"

enum heap { PYTHON, JAVA, V8, PHP, NR_HEAPS };

static const char *const notes[NR_HEAPS] = {
	[PYTHON] =
		"Python's objects of at most 512 bytes are in arenas of its own, whose allocations are not seen; with "
		"PYTHONMALLOC=malloc they are",
	[JAVA] = "Java's objects are in the heap of the virtual machine, whose allocations are not seen; its native "
		 "ones "
		 "are",
	[V8] = "JavaScript's objects are in V8's heap, whose allocations are not seen; buffers and native ones are",
	[PHP] = "PHP's values are in chunks of its own, whose allocations are not seen; with USE_ZEND_ALLOC=0 they are",
};

/* Patterns of objects' file names. */
static const struct {
	const char *name;
	enum heap heap;
} owners[] = {
	{"libpython[0-9]*", PYTHON}, {"python[0-9]*", PYTHON},
	{"libjvm.so", JAVA},         {"node", V8},
	{"libnode.so*", V8},         {"php", PHP},
	{"php[0-9]*", PHP},          {"libphp*", PHP},
};

static void note_modules(struct collector *c, const struct csink_recorded *rec)
{
	bool has[NR_HEAPS] = {false};

	for (uint32_t i = 0; i < rec->nr_modules; i++)
		for (size_t k = 0; k < CSINK_ARRAY_SIZE(owners); k++)
			has[owners[k].heap] |= !fnmatch(owners[k].name, csink_base_name(rec->modules[i]->path), 0);
	for (uint32_t heap = 0; heap < NR_HEAPS; heap++)
		if (has[heap])
			csink_collect_tally(c, CSINK_FACT_NOTE, "%s", notes[heap]);
}

/* Allocators that are linked into a program under names of their own, as Rust's crates do it. */
static const char *own_allocator(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	static const char *const names[] = {"_rjem_malloc", "_rjem_mallocx", "je_malloc",    "mi_malloc",
					    "rpmalloc",     "tc_malloc",     "sn_rust_alloc"};
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name = GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF
					   ? elf_strptr(elf, shdr->sh_link, sym.st_name)
					   : NULL;

		for (size_t k = 0; name && k < CSINK_ARRAY_SIZE(names); k++)
			if (!strcmp(name, names[k]))
				return names[k];
	}
	return NULL;
}

static void note_program(struct collector *c, const char *path)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	const char *is, *own = NULL, *base = csink_base_name(path);
	Elf *elf = NULL;
	Elf_Scn *scn = NULL;
	bool is_go = false;
	GElf_Shdr shdr;
	size_t names;

	elf_version(EV_CURRENT);
	if (fd >= 0)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && !csink_elf_hides_names(elf) && !elf_getshdrstrndx(elf, &names)) {
		while ((scn = elf_nextscn(elf, scn))) {
			if (!gelf_getshdr(scn, &shdr))
				continue;
			is = elf_strptr(elf, names, shdr.sh_name);
			is_go |= is && !strcmp(is, ".go.buildinfo");
			if (!own && (shdr.sh_type == SHT_SYMTAB || shdr.sh_type == SHT_DYNSYM))
				own = own_allocator(elf, scn, &shdr);
		}
	}
	if (is_go)
		csink_collect_tally(c, CSINK_FACT_NOTE,
				    "%.64s: Go's objects are in the heap of its runtime, whose allocations are not "
				    "seen; those of C "
				    "are",
				    base);
	else if (own)
		csink_collect_tally(c, CSINK_FACT_NOTE, "%.64s: what it allocates by %s is not seen", base, own);
	elf_end(elf);
}

void csink_collect_private_heaps(struct collector *c, const struct csink_recorded *rec)
{
	bool has_allocations = false;
	csink_str_t exe;

	for (uint32_t i = 0; i < rec->header.nr_events; i++)
		has_allocations |= (rec->header.events[i].flags & CSINK_EVENT_ALLOCATED) != 0;
	if (!has_allocations)
		return;
	note_modules(c, rec);
	/* The same program runs again and again in many a tree. */
	exe = csink_profile_str(c->p, rec->header.exe);
	if (!*rec->header.exe || exe == c->latest_exe)
		return;
	c->latest_exe = exe;
	note_program(c, rec->header.exe);
}
