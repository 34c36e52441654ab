/* Rewriting the global offset table of one library; see got_patch.h. In the constructor, or on one thread at a time;
 * not in handlers. */
#include "preload/agent/unwind/got_patch.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/elf_symbol.h"

#if defined(__x86_64__)
enum { RELOC_JUMP_SLOT = R_X86_64_JUMP_SLOT, RELOC_GLOB_DAT = R_X86_64_GLOB_DAT, RELOC_WORD = R_X86_64_64 };
#elif defined(__aarch64__)
enum { RELOC_JUMP_SLOT = R_AARCH64_JUMP_SLOT, RELOC_GLOB_DAT = R_AARCH64_GLOB_DAT, RELOC_WORD = R_AARCH64_ABS64 };
#endif

struct image {
	uintptr_t base;
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Rela *relocs[2]; /* the data's, the calls' */
	size_t nr_relocs[2];
	uintptr_t relro, relro_end; /* whole pages; equal: none */
};

static void read_dynamic(struct image *image, const Elf64_Dyn *dyn)
{
	for (; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			image->symbols = (const Elf64_Sym *)csink_dynamic_address(image->base, dyn);
			break;
		case DT_STRTAB:
			image->strings = (const char *)csink_dynamic_address(image->base, dyn);
			break;
		case DT_RELA:
			image->relocs[0] = (const Elf64_Rela *)csink_dynamic_address(image->base, dyn);
			break;
		case DT_RELASZ:
			image->nr_relocs[0] = dyn->d_un.d_val / sizeof(Elf64_Rela);
			break;
		case DT_JMPREL:
			image->relocs[1] = (const Elf64_Rela *)csink_dynamic_address(image->base, dyn);
			break;
		case DT_PLTRELSZ:
			image->nr_relocs[1] = dyn->d_un.d_val / sizeof(Elf64_Rela);
			break;
		}
	}
}

static void read_phdrs(struct image *image, const Elf64_Phdr *phdr, size_t nr)
{
	uintptr_t page = getauxval(AT_PAGESZ);

	for (size_t i = 0; i < nr; i++) {
		if (phdr[i].p_type != PT_GNU_RELRO)
			continue;
		image->relro = (image->base + phdr[i].p_vaddr) & ~(page - 1);
		image->relro_end = (image->base + phdr[i].p_vaddr + phdr[i].p_memsz) & ~(page - 1);
	}
}

static int read_image(struct image *image, const struct link_map *map)
{
	const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)map->l_addr;

	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) || ehdr->e_ident[EI_CLASS] != ELFCLASS64)
		return -EINVAL;
	memset(image, 0, sizeof(*image));
	image->base = map->l_addr;
	read_dynamic(image, map->l_ld);
	read_phdrs(image, (const Elf64_Phdr *)(image->base + ehdr->e_phoff), ehdr->e_phnum);
	return image->symbols && image->strings ? 0 : -EINVAL;
}

static int read_shown(struct image *image, const struct dl_phdr_info *info)
{
	memset(image, 0, sizeof(*image));
	image->base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_dynamic(image, (const Elf64_Dyn *)(image->base + info->dlpi_phdr[i].p_vaddr));
	read_phdrs(image, info->dlpi_phdr, info->dlpi_phnum);
	return image->symbols && image->strings ? 0 : -EINVAL;
}

static int protect_relro(const struct image *image, int prot)
{
	if (image->relro >= image->relro_end)
		return 0;
	return (int)csink_rawcall(SYS_mprotect, image->relro, image->relro_end - image->relro, prot);
}

int csink_got_route_all(const struct link_map *map, void *(*route)(const char *symbol, void *now))
{
	struct image image;
	int nr = 0, err = read_image(&image, map);

	for (int table = 0; table < 2 && !err; table++)
		for (size_t i = 0; i < image.nr_relocs[table] && !err; i++) {
			const Elf64_Rela *rela = &image.relocs[table][i];
			const Elf64_Sym *symbol = &image.symbols[ELF64_R_SYM(rela->r_info)];
			unsigned int type = ELF64_R_TYPE(rela->r_info);
			void **word = (void **)(image.base + rela->r_offset), *target;

			if ((type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT) || symbol->st_shndx != SHN_UNDEF ||
			    ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
				continue;
			target = route(image.strings + symbol->st_name, *word);
			if (!target)
				continue;
			if (!nr++)
				err = protect_relro(&image, PROT_READ | PROT_WRITE);
			if (!err)
				*word = target;
		}
	if (nr && !err)
		err = protect_relro(&image, PROT_READ);
	return err ? err : nr;
}

/* ---- exchanging ----------------------------------------------------------------------------------------------------
 */

/* The changes of an exchange, and the range of the addresses that they are from: few words lie in it. */
struct exchange {
	const struct csink_got_change *changes;
	size_t nr;
	uintptr_t low, span;
};

static struct exchange make_exchange(const struct csink_got_change *changes, size_t nr)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (size_t i = 0; i < nr; i++) {
		low = CSINK_MIN(low, (uintptr_t)changes[i].from);
		high = CSINK_MAX(high, (uintptr_t)changes[i].from);
	}
	return (struct exchange){changes, nr, low, high - low};
}

/* Where the next import that is to be changed has its word, from relocation *at of the table on; NULL: no more. */
static void **next_word(const struct image *image, int table, size_t *at, const struct exchange *exchange, void **to)
{
	while (*at < image->nr_relocs[table]) {
		const Elf64_Rela *rela = &image->relocs[table][(*at)++];
		unsigned int type = ELF64_R_TYPE(rela->r_info);
		void **word = (void **)(image->base + rela->r_offset);

		if ((type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT && type != RELOC_WORD) || rela->r_addend ||
		    (uintptr_t)*word - exchange->low > exchange->span)
			continue;
		for (size_t i = 0; i < exchange->nr; i++) {
			const Elf64_Sym *symbol = &image->symbols[ELF64_R_SYM(rela->r_info)];
			const struct csink_got_change *change = &exchange->changes[i];

			if (*word == change->from && !strcmp(image->strings + symbol->st_name, change->symbol)) {
				*to = change->to;
				return word;
			}
		}
	}
	return NULL;
}

int csink_got_exchange(const struct dl_phdr_info *info, const struct csink_got_change *changes, size_t nr_changes)
{
	struct exchange exchange = make_exchange(changes, nr_changes);
	struct image image;
	int nr = 0, err = read_shown(&image, info);
	void **word, *to;

	for (int table = 0; table < 2 && !err; table++) {
		for (size_t at = 0; !err && (word = next_word(&image, table, &at, &exchange, &to));) {
			/* Most objects have nothing to change, and stay as they are. */
			if (!nr++)
				err = protect_relro(&image, PROT_READ | PROT_WRITE);
			if (!err)
				__atomic_store_n(word, to, __ATOMIC_RELEASE);
		}
	}
	if (nr && !err)
		err = protect_relro(&image, PROT_READ);
	return err ? err : nr;
}
