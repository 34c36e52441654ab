/* Headers of an object's file: see object_file.h. Any thread. */
#include "launcher/attach/object_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"

#define MAX_SECTIONS 4096
#define MAX_NAME 64

bool csink_object_file_read(const struct csink_object_file *file, void *to, size_t bytes, uint64_t offset)
{
	if (file->fd >= 0)
		return pread(file->fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
	if (file->memory_bytes && (offset > file->memory_bytes || bytes > file->memory_bytes - offset))
		return false;
	memcpy(to, file->memory + offset, bytes);
	return true;
}

static bool begin_32(struct csink_object_file *file)
{
	Elf32_Phdr phdr[CSINK_FILE_MAX_PHDR];
	Elf32_Ehdr head;

	file->is_32 = true;
	if (!csink_object_file_read(file, &head, sizeof(head), 0) || head.e_phentsize != sizeof(phdr[0]))
		return false;
	file->nr_phdr = CSINK_MIN(head.e_phnum, (uint32_t)CSINK_FILE_MAX_PHDR);
	if (!csink_object_file_read(file, phdr, file->nr_phdr * sizeof(phdr[0]), head.e_phoff))
		return false;
	file->head = (ElfW(Ehdr)){.e_machine = head.e_machine,
				  .e_entry = head.e_entry,
				  .e_shoff = head.e_shoff,
				  .e_shnum = head.e_shnum,
				  .e_shentsize = head.e_shentsize,
				  .e_shstrndx = head.e_shstrndx};
	for (uint32_t i = 0; i < file->nr_phdr; i++)
		file->phdr[i] = (ElfW(Phdr)){.p_type = phdr[i].p_type,
					     .p_flags = phdr[i].p_flags,
					     .p_offset = phdr[i].p_offset,
					     .p_vaddr = phdr[i].p_vaddr,
					     .p_filesz = phdr[i].p_filesz,
					     .p_memsz = phdr[i].p_memsz,
					     .p_align = phdr[i].p_align};
	return true;
}

bool csink_object_file_begin(struct csink_object_file *file)
{
	ElfW(Ehdr) *head = &file->head;

	if (!csink_object_file_read(file, head->e_ident, sizeof(head->e_ident), 0) ||
	    memcmp(head->e_ident, ELFMAG, SELFMAG))
		return false;
	if (head->e_ident[EI_CLASS] == ELFCLASS32)
		return begin_32(file);
	if (!csink_object_file_read(file, head, sizeof(*head), 0) || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    head->e_phentsize != sizeof(file->phdr[0]))
		return false;
	file->nr_phdr = CSINK_MIN(head->e_phnum, (uint32_t)CSINK_FILE_MAX_PHDR);
	return csink_object_file_read(file, file->phdr, file->nr_phdr * sizeof(file->phdr[0]), head->e_phoff);
}

const ElfW(Phdr) * csink_object_file_segment(const struct csink_object_file *file, uint64_t vaddr)
{
	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *phdr = &file->phdr[i];

		if (phdr->p_type == PT_LOAD && vaddr >= phdr->p_vaddr && vaddr - phdr->p_vaddr < phdr->p_filesz &&
		    phdr->p_filesz <= UINT64_MAX - phdr->p_vaddr)
			return phdr;
	}
	return NULL;
}

static bool is_named(const struct csink_object_file *file, const ElfW(Shdr) * names, const ElfW(Shdr) * section,
		     const char *name)
{
	size_t bytes = strlen(name) + 1;
	char is[MAX_NAME];

	return bytes <= sizeof(is) && names->sh_size >= bytes && section->sh_name <= names->sh_size - bytes &&
	       csink_object_file_read(file, is, bytes, names->sh_offset + section->sh_name) && !memcmp(is, name, bytes);
}

/* What is read at the section's offset is what is loaded at its address. */
static bool is_loaded(const struct csink_object_file *file, const ElfW(Shdr) * section)
{
	const ElfW(Phdr) *segment = csink_object_file_segment(file, section->sh_addr);
	uint64_t before;

	if (!segment || section->sh_type == SHT_NOBITS || !(section->sh_flags & SHF_ALLOC) ||
	    section->sh_flags & SHF_COMPRESSED)
		return false;
	before = section->sh_addr - segment->p_vaddr;
	return section->sh_offset - segment->p_offset == before && section->sh_size <= segment->p_filesz - before;
}

static bool read_sections_32(const struct csink_object_file *file, ElfW(Shdr) * sections, uint32_t nr)
{
	CSINK_AUTO_FREE Elf32_Shdr *from = malloc(nr * sizeof(*from));

	if (!from || file->head.e_shentsize != sizeof(*from) ||
	    !csink_object_file_read(file, from, nr * sizeof(*from), file->head.e_shoff))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		sections[i] = (ElfW(Shdr)){.sh_name = from[i].sh_name,
					   .sh_type = from[i].sh_type,
					   .sh_flags = from[i].sh_flags,
					   .sh_addr = from[i].sh_addr,
					   .sh_offset = from[i].sh_offset,
					   .sh_size = from[i].sh_size};
	return true;
}

static bool read_sections(const struct csink_object_file *file, ElfW(Shdr) * sections, uint32_t nr)
{
	if (file->is_32)
		return read_sections_32(file, sections, nr);
	return file->head.e_shentsize == sizeof(*sections) &&
	       csink_object_file_read(file, sections, nr * sizeof(*sections), file->head.e_shoff);
}

bool csink_object_file_section(const struct csink_object_file *file, const char *name, ElfW(Shdr) * found)
{
	const ElfW(Ehdr) *head = &file->head;
	uint32_t nr = CSINK_MIN(head->e_shnum, (uint32_t)MAX_SECTIONS);
	CSINK_AUTO_FREE ElfW(Shdr) *sections = NULL;

	/* Of the vdso not everything that its headers list need be mapped. */
	if (file->fd < 0 || !nr || head->e_shstrndx >= nr)
		return false;
	sections = malloc(nr * sizeof(*sections));
	if (!sections || !read_sections(file, sections, nr))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		if (!is_loaded(file, &sections[i]) || !is_named(file, &sections[head->e_shstrndx], &sections[i], name))
			continue;
		*found = sections[i];
		return true;
	}
	return false;
}
