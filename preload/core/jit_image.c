/* See jit_image.h. Source: GDB's manual, chapter "JIT Compilation Interface"; the System V ABI. Any thread;
 * async-signal-safe. */
#include "preload/core/jit_image.h"

#include <string.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#endif

#define MAX_CODE_BYTES (1ULL << 30)

static bool is_within(const struct csink_jit_image *image, uint64_t offset, uint64_t bytes)
{
	return offset <= image->bytes && bytes <= image->bytes - offset;
}

static bool is_code(uint64_t start, uint64_t bytes)
{
	return start >= 4096 && bytes && bytes <= MAX_CODE_BYTES && start < 1ULL << 47;
}

static bool has_code(const Elf64_Shdr *section)
{
	return (section->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR) &&
	       is_code(section->sh_addr, section->sh_size);
}

bool csink_jit_image_section(const struct csink_jit_image *image, uint32_t index, Elf64_Shdr *section)
{
	if (index >= image->nr_sections)
		return false;
	memcpy(section, image->at + image->sections + index * sizeof(*section), sizeof(*section));
	return section->sh_type == SHT_NOBITS || is_within(image, section->sh_offset, section->sh_size);
}

bool csink_jit_image_symbol(const struct csink_jit_image *image, const Elf64_Shdr *table, uint64_t index,
			    Elf64_Sym *symbol)
{
	if (table->sh_type == SHT_NOBITS || index >= table->sh_size / sizeof(*symbol))
		return false;
	memcpy(symbol, image->at + table->sh_offset + index * sizeof(*symbol), sizeof(*symbol));
	return true;
}

uint64_t csink_jit_image_address(const struct csink_jit_image *image, const Elf64_Sym *symbol)
{
	Elf64_Shdr section;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_COMMON)
		return 0;
	if (image->type != ET_REL || symbol->st_shndx >= SHN_LORESERVE)
		return symbol->st_value;
	return csink_jit_image_section(image, symbol->st_shndx, &section) ? section.sh_addr + symbol->st_value : 0;
}

static void look_at_sections(struct csink_jit_image *image)
{
	Elf64_Shdr section;
	bool is_whole = false;

	for (uint32_t i = 1; i < image->nr_sections; i++) {
		if (!csink_jit_image_section(image, i, &section))
			continue;
		image->has_code_sections |= has_code(&section);
		if (section.sh_type != SHT_SYMTAB && (section.sh_type != SHT_DYNSYM || is_whole))
			continue;
		image->symbols = i;
		is_whole = section.sh_type == SHT_SYMTAB;
	}
}

bool csink_jit_image_open(struct csink_jit_image *image, const void *at, uint64_t bytes)
{
	Elf64_Shdr first;
	Elf64_Ehdr ehdr;
	uint64_t nr;

	*image = (struct csink_jit_image){.at = at, .bytes = bytes};
	if (bytes < sizeof(ehdr))
		return false;
	memcpy(&ehdr, at, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_machine != MACHINE ||
	    (ehdr.e_type != ET_REL && ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) ||
	    ehdr.e_shentsize != sizeof(first) || !is_within(image, ehdr.e_shoff, sizeof(first)))
		return false;
	/* More than 65,279: the first section has their number. */
	memcpy(&first, image->at + ehdr.e_shoff, sizeof(first));
	nr = ehdr.e_shnum ? ehdr.e_shnum : first.sh_size;
	if (nr > (bytes - ehdr.e_shoff) / sizeof(first))
		return false;
	image->type = ehdr.e_type;
	image->sections = ehdr.e_shoff;
	image->nr_sections = (uint32_t)nr;
	look_at_sections(image);
	return true;
}

static bool next_section(const struct csink_jit_image *image, uint64_t *at, struct csink_jit_range *range)
{
	Elf64_Shdr section;

	while (*at < image->nr_sections) {
		if (csink_jit_image_section(image, (uint32_t)(*at)++, &section) && has_code(&section)) {
			*range = (struct csink_jit_range){section.sh_addr, section.sh_addr + section.sh_size};
			return true;
		}
	}
	return false;
}

static bool next_function(const struct csink_jit_image *image, uint64_t *at, struct csink_jit_range *range)
{
	Elf64_Shdr table;
	Elf64_Sym symbol;

	if (!image->symbols || !csink_jit_image_section(image, image->symbols, &table))
		return false;
	while (csink_jit_image_symbol(image, &table, (*at)++, &symbol)) {
		uint64_t start = csink_jit_image_address(image, &symbol);

		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !is_code(start, symbol.st_size))
			continue;
		*range = (struct csink_jit_range){start, start + symbol.st_size};
		return true;
	}
	return false;
}

bool csink_jit_image_next(const struct csink_jit_image *image, uint64_t *at, struct csink_jit_range *range)
{
	return image->has_code_sections ? next_section(image, at, range) : next_function(image, at, range);
}
