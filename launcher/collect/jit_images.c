/*
 * Images of code made at run time: see jit_images.h. Most are what an assembler writes (ET_REL), with the run-time
 * addresses of their sections filled in: symbols count from their sections, and debug information has relocations that
 * the debugger is to apply.
 */
#include "launcher/collect/jit_images.h"

#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/core/jit_image.h"

#if defined(__x86_64__)
enum { ADDRESS_64 = R_X86_64_64, ADDRESS_32 = R_X86_64_32, SIGNED_32 = R_X86_64_32S, NOTHING = R_X86_64_NONE };
#elif defined(__aarch64__)
enum { ADDRESS_64 = R_AARCH64_ABS64, ADDRESS_32 = R_AARCH64_ABS32, SIGNED_32 = -1, NOTHING = R_AARCH64_NONE };
#endif

static void put_section(const struct csink_jit_image *image, uint8_t *to, uint32_t index, const Elf64_Shdr *section)
{
	memcpy(to + image->sections + index * sizeof(*section), section, sizeof(*section));
}

/* A symbol's address; of what is not mapped (debug information refers to its own sections) the offset. */
static uint64_t value_of(const struct csink_jit_image *image, const Elf64_Sym *symbol)
{
	Elf64_Shdr section;

	if (image->type == ET_REL && symbol->st_shndx < SHN_LORESERVE &&
	    csink_jit_image_section(image, symbol->st_shndx, &section) && !(section.sh_flags & SHF_ALLOC))
		return symbol->st_value;
	return csink_jit_image_address(image, symbol);
}

/* Apply one relocation to a section's contents. Returns false if it is of another kind, or leads nowhere. */
static bool apply(const struct csink_jit_image *image, uint8_t *to, const Elf64_Shdr *target, const Elf64_Shdr *symbols,
		  const Elf64_Rela *rela)
{
	uint32_t type = ELF64_R_TYPE(rela->r_info), width = type == (uint32_t)ADDRESS_64 ? 8 : 4;
	Elf64_Sym symbol = {0};
	uint64_t value;

	if (type == NOTHING)
		return true;
	if ((type != (uint32_t)ADDRESS_64 && type != (uint32_t)ADDRESS_32 && type != (uint32_t)SIGNED_32) ||
	    target->sh_size < width || rela->r_offset > target->sh_size - width ||
	    !csink_jit_image_symbol(image, symbols, ELF64_R_SYM(rela->r_info), &symbol))
		return false;
	value = value_of(image, &symbol) + (uint64_t)rela->r_addend;
	memcpy(to + target->sh_offset + rela->r_offset, &value, width); /* little-endian machines only */
	return true;
}

/* The relocations of one section of debug information. left: how many more there may be. */
static void relocate(const struct csink_jit_image *image, uint8_t *to, const Elf64_Shdr *relocations, uint64_t *left)
{
	Elf64_Shdr target, symbols;
	Elf64_Rela rela;
	bool ok = true;

	if (!csink_jit_image_section(image, relocations->sh_info, &target) || target.sh_type == SHT_NOBITS ||
	    target.sh_flags & SHF_ALLOC)
		return;
	ok = !(target.sh_flags & SHF_COMPRESSED) && csink_jit_image_section(image, relocations->sh_link, &symbols);
	for (uint64_t i = 0; ok && i < relocations->sh_size / sizeof(rela); i++) {
		ok = *left > 0;
		if (!ok)
			break;
		--*left;
		memcpy(&rela, to + relocations->sh_offset + i * sizeof(rela), sizeof(rela));
		ok = apply(image, to, &target, &symbols, &rela);
	}
	if (ok)
		return;
	target.sh_type = SHT_NOBITS; /* as if it were not there */
	put_section(image, to, relocations->sh_info, &target);
}

static void relocate_all(const struct csink_jit_image *image, uint8_t *to)
{
	uint64_t left = image->bytes / sizeof(Elf64_Rela); /* unless sections lie over each other */
	Elf64_Shdr section;

	for (uint32_t i = 1; i < image->nr_sections; i++) {
		if (csink_jit_image_section(image, i, &section) && section.sh_type == SHT_RELA)
			relocate(image, to, &section, &left);
	}
}

/* Addresses into symbols. A function that is in no section is put into one: names of absolute values are not code. */
static void place_symbols(const struct csink_jit_image *image, uint8_t *to)
{
	Elf64_Shdr table;
	Elf64_Sym symbol;

	if (!image->symbols || !csink_jit_image_section(image, image->symbols, &table))
		return;
	table.sh_entsize = sizeof(symbol);
	put_section(image, to, image->symbols, &table);
	for (uint64_t i = 0; csink_jit_image_symbol(image, &table, i, &symbol); i++) {
		symbol.st_value = value_of(image, &symbol);
		if (symbol.st_shndx == SHN_ABS && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
			symbol.st_shndx = (Elf64_Half)CSINK_MIN(image->symbols, SHN_LORESERVE - 1u);
		memcpy(to + table.sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol));
	}
}

int csink_jit_image_link(uint8_t *at, size_t bytes)
{
	struct csink_jit_image image;
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)at;

	if (!csink_jit_image_open(&image, at, bytes))
		return -ENOEXEC;
	if (image.type == ET_REL)
		relocate_all(&image, at);
	place_symbols(&image, at);
	ehdr->e_type = ET_EXEC;
	return 0;
}
