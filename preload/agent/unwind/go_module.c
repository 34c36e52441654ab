/*
 * Where an object by Go has its table. The object's file has a section of it, whose header is looked up once, when the
 * object is seen first. Some linkers make it a part of another section, and a file may have no sections: then the
 * segments are looked through. From then on the table is read where it is mapped: such objects are never unloaded.
 * The thread that refreshes the modules looks; the handlers of all threads read. Async-signal-safe.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/go_frames.h"
#include "preload/core/calls_off.h"

enum { MAX_PHDRS = 64, MAX_DYNAMIC = 128, MAX_SECTIONS = 256, AT_ONCE = 8 };
#define MAX_LOOKED (64UL << 20) /* bytes of a segment in which a table is looked for */

/* Whose code and data stay until the process ends: the program, and what is marked so, as Go's linker does. */
static bool stays(const struct csink_module_info *info)
{
	const ElfW(Dyn) *at = info->module.dynamic;
	ElfW(Dyn) dyn;

	if (info->is_program)
		return true;
	for (uint32_t i = 0; at && i < MAX_DYNAMIC && csink_module_copy(&dyn, at + i, sizeof(dyn)); i++) {
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_FLAGS_1)
			return dyn.d_un.d_val & DF_1_NODELETE;
	}
	return false;
}

/* Its code is in one piece, and can be read. */
static bool has_plain_code(const struct csink_module *module)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < module->nr_phdr && i < MAX_PHDRS; i++) {
		const ElfW(Phdr) *phdr = &module->phdr[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		if (!(phdr->p_flags & PF_R))
			return false;
		nr++;
	}
	return nr == 1;
}

/* What may be read from an address on, up to the end of the segment's bytes of the file. */
static bool readable_at(const struct csink_module *module, uint64_t vaddr, struct csink_go_bytes *bytes)
{
	for (uint32_t i = 0; i < module->nr_phdr && i < MAX_PHDRS; i++) {
		const ElfW(Phdr) *phdr = &module->phdr[i];
		uint64_t before = vaddr - phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_R) || vaddr < phdr->p_vaddr ||
		    before >= phdr->p_filesz)
			continue;
		*bytes = (struct csink_go_bytes){module->bias + vaddr, (const uint8_t *)(module->bias + vaddr),
						 phdr->p_filesz - before};
		return true;
	}
	return false;
}

/* The table has what it needs, or the data beside it do: the record of the runtime. */
static bool take_table(struct csink_module *module, const struct csink_go_bytes *bytes)
{
	struct csink_go_bytes parts[] = {*bytes, {0}};
	const struct csink_go_program program = {parts, CSINK_ARRAY_SIZE(parts)};
	struct csink_go_table table;
	bool found = csink_go_open(&table, &program, bytes->vaddr);

	for (uint32_t i = 0; !found && i < module->nr_phdr && i < MAX_PHDRS; i++)
		found = module->phdr[i].p_type == PT_LOAD && module->phdr[i].p_flags & PF_W &&
			readable_at(module, module->phdr[i].p_vaddr, &parts[1]) &&
			csink_go_open(&table, &program, bytes->vaddr);
	if (!found)
		return false;
	module->go_table = bytes->vaddr;
	module->go_bytes = (uint32_t)CSINK_MIN(bytes->nr, (uint64_t)UINT32_MAX);
	module->go_text = table.text;
	return true;
}

static bool is_header(const struct csink_go_bytes *bytes)
{
	return csink_go_is_header(bytes->at, bytes->nr);
}

/* Tables begin at multiples of 16. */
static void look_through(struct csink_module *module)
{
	for (uint32_t i = 0; i < module->nr_phdr && i < MAX_PHDRS; i++) {
		const ElfW(Phdr) *phdr = &module->phdr[i];
		uint64_t size = CSINK_MIN(phdr->p_filesz, MAX_LOOKED);
		struct csink_go_bytes bytes;

		if (phdr->p_type != PT_LOAD || phdr->p_flags & PF_X)
			continue;
		for (uint64_t at = -phdr->p_vaddr & 15; at < size; at += 16)
			if (readable_at(module, phdr->p_vaddr + at, &bytes) && is_header(&bytes) &&
			    take_table(module, &bytes))
				return;
	}
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return csink_rawcall(SYS_pread64, fd, to, bytes, offset) == (long)bytes;
}

/* The section that begins with a table's header, by whatever name. */
static bool find_section(struct csink_module *module, int fd)
{
	ElfW(Shdr) sections[AT_ONCE];
	struct csink_go_bytes bytes;
	ElfW(Ehdr) ehdr;
	uint32_t nr;

	if (!read_at(fd, &ehdr, sizeof(ehdr), 0) || !ehdr.e_shnum || ehdr.e_shentsize != sizeof(sections[0]))
		return false;
	for (uint32_t i = 0; i < ehdr.e_shnum && i < MAX_SECTIONS; i += nr) {
		nr = CSINK_MIN((uint32_t)AT_ONCE, ehdr.e_shnum - i);
		if (!read_at(fd, sections, nr * sizeof(sections[0]), ehdr.e_shoff + i * sizeof(sections[0])))
			break;
		for (const ElfW(Shdr) *section = sections; section < sections + nr; section++)
			if (section->sh_type == SHT_PROGBITS && section->sh_flags & SHF_ALLOC &&
			    readable_at(module, section->sh_addr, &bytes) && is_header(&bytes) &&
			    take_table(module, &bytes))
				return true;
	}
	return false;
}

/* -1: it cannot be opened, or no descriptor may be just now. */
static int open_file(const struct csink_module_info *info)
{
	if (csink_calls_are_off(CSINK_CALLS_LIFE))
		return -1;
	return (int)csink_rawcall(SYS_openat, AT_FDCWD, info->is_program ? "/proc/self/exe" : info->path,
				  O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

void csink_go_module_find(struct csink_module_info *info, bool quiet)
{
	bool found = false, may_open;
	int fd;

	if (!stays(info) || !has_plain_code(&info->module))
		return;
	may_open = quiet || csink_code_copies_may_open();
	fd = may_open ? open_file(info) : -1;
	if (fd >= 0) {
		found = find_section(&info->module, fd);
		csink_rawcall(SYS_close, fd);
	}
	if (may_open && !quiet)
		csink_code_copies_have_closed();
	if (!found)
		look_through(&info->module);
}

bool csink_go_module_open(const struct csink_module *module, struct csink_go_table *table)
{
	struct csink_go_bytes all = {module->go_table, (const uint8_t *)module->go_table, module->go_bytes};

	return module->go_bytes && csink_go_reopen(table, &all, module->go_text);
}
