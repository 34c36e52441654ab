/*
 * Names from what every linked file has: symbol tables and procedure linkage tables. Files are untrusted: libelf checks
 * sections against the file, we check what is in them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/function_name.h"
#include "launcher/symbols/symbols_impl.h"
#include "launcher/symbols/symbols_limits.h"

/* ---- symbol tables ---- */

/* Addresses that symbols of one file are offered, all together. In usual files a dozen share one. */
#define MAX_OFFERS (50UL << 20)
/* Browsers have a million, in three sections. In a file made for it, sections may lie over one another. */
#define MAX_RELOCATIONS (1UL << 22)
#define MAX_RELOCATION_SECTIONS 16

/* The symbol that an address gets: the sized one around it that begins last; of several there, the best name. */
struct choice {
	GElf_Sym sym;
	const char *name;
	/* The last start of any function symbol at or before the address: sized or, if there is no size, a candidate.
	 */
	uint64_t last_start;
	uint64_t last_end;     /* of the section of a symbol without size */
	const char *last_name; /* of a symbol without size */
	bool last_is_sized;
};

Elf_Scn *csink_elf_section(Elf *elf, uint32_t type, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	const char *is;
	size_t strndx;

	if (elf_getshdrstrndx(elf, &strndx))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, shdr) || (type && shdr->sh_type != type) || shdr->sh_type == SHT_NOBITS)
			continue;
		is = name ? elf_strptr(elf, strndx, shdr->sh_name) : NULL;
		if (!name || (is && !strcmp(is, name)))
			return scn;
	}
	return NULL;
}

static uint32_t leading_underscores(const char *name)
{
	uint32_t nr = 0;

	while (nr < 64 && name[nr] == '_')
		nr++;
	return nr;
}

/* Whether to prefer `name` (of sym) over what was chosen for the same start. People know the public, plain name. */
static bool is_better(const GElf_Sym *sym, const char *name, const GElf_Sym *old, const char *old_name)
{
	bool local = GELF_ST_BIND(sym->st_info) == STB_LOCAL, old_local = GELF_ST_BIND(old->st_info) == STB_LOCAL;
	bool func = GELF_ST_TYPE(sym->st_info) != STT_NOTYPE, old_func = GELF_ST_TYPE(old->st_info) != STT_NOTYPE;
	uint32_t under = leading_underscores(name), old_under = leading_underscores(old_name);
	size_t len = strnlen(name, CSINK_MAX_SYMBOL_NAME), old_len = strnlen(old_name, CSINK_MAX_SYMBOL_NAME);

	if (func != old_func)
		return func;
	if (local != old_local)
		return old_local;
	if (under != old_under)
		return under < old_under;
	if (len != old_len)
		return len < old_len;
	return strncmp(name, old_name, CSINK_MAX_SYMBOL_NAME) < 0;
}

static bool is_code(const GElf_Sym *sym)
{
	uint32_t type = GELF_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS && sym->st_shndx != SHN_COMMON &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

/* Assembler's marks are no functions: "$x" and "$d" of ARM, ".L" and "L" locals. */
static bool is_mark(const GElf_Sym *sym, const char *name)
{
	return !*name || *name == '$' || (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE && name[0] == '.' && name[1] == 'L');
}

static void offer_sized(struct csink_batch *batch, struct choice *choices, uint32_t first, const GElf_Sym *sym,
			const char *name)
{
	struct choice *choice;
	uint32_t i;

	for (i = first; i < batch->nr && batch->wants[i].address - sym->st_value < sym->st_size; i++) {
		batch->nr_offers++;
		choice = &choices[i];
		if (!choice->name || choice->sym.st_value < sym->st_value ||
		    (choice->sym.st_value == sym->st_value && is_better(sym, name, &choice->sym, choice->name))) {
			choice->sym = *sym;
			choice->name = name;
		}
	}
}

static uint64_t section_end(Elf *elf, uint32_t index)
{
	Elf_Scn *scn = elf_getscn(elf, index);
	GElf_Shdr shdr;

	return scn && gelf_getshdr(scn, &shdr) ? shdr.sh_addr + shdr.sh_size : 0;
}

static void offer(struct csink_batch *batch, struct choice *choices, Elf *elf, uint32_t strndx, const GElf_Sym *sym)
{
	uint32_t first = csink_batch_lower(batch, sym->st_value);
	struct choice *choice = &choices[first];
	const char *name;

	if (first == batch->nr)
		return;
	if (sym->st_size && batch->wants[first].address - sym->st_value < sym->st_size) {
		name = elf_strptr(elf, strndx, sym->st_name);
		if (name && !is_mark(sym, name))
			offer_sized(batch, choices, first, sym, name);
	}
	if (choice->last_name || choice->last_is_sized) {
		if (sym->st_value < choice->last_start || (sym->st_value == choice->last_start && !sym->st_size))
			return;
	}
	name = sym->st_size ? NULL : elf_strptr(elf, strndx, sym->st_name);
	if (!sym->st_size && (!name || is_mark(sym, name)))
		return;
	choice->last_start = sym->st_value;
	choice->last_end = sym->st_size ? 0 : section_end(elf, sym->st_shndx);
	choice->last_is_sized = sym->st_size != 0;
	choice->last_name = name;
}

static void read_table(struct csink_batch *batch, struct choice *choices, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	uint64_t high = batch->wants[batch->nr - 1].address;
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t i, nr = data && shdr->sh_entsize ? data->d_size / shdr->sh_entsize : 0;
	GElf_Sym sym;

	nr = CSINK_MIN(nr, INT32_MAX);
	for (i = 0; i < nr && batch->nr_offers < MAX_OFFERS && gelf_getsym(data, i, &sym); i++) {
		if (is_code(&sym) && sym.st_value <= high)
			offer(batch, choices, elf, shdr->sh_link, &sym);
	}
}

/* Addresses after a symbol without size belong to it up to the next start of any kind. */
static void settle(struct csink_batch *batch, struct choice *choices)
{
	struct csink_profile_function function;
	struct choice *choice, *last = NULL;
	const char *name = NULL;
	uint32_t i, id = 0;

	for (i = 0; i < batch->nr; i++) {
		choice = &choices[i];
		if (choice->last_name || choice->last_is_sized)
			last = choice;
		if (!choice->name && last && !last->last_is_sized && batch->wants[i].address < last->last_end) {
			choice->name = last->last_name;
			choice->sym.st_value = last->last_start;
		}
		if (!choice->name)
			continue;
		if (choice->name != name) { /* addresses of one function are neighbours */
			memset(&function, 0, sizeof(function));
			csink_symbol_name(batch->p, choice->name, "", &function);
			id = csink_profile_function_add(batch->p, &function);
			name = choice->name;
		}
		batch->found[i].function = id;
	}
}

int csink_elf_symbols(struct csink_batch *batch, Elf *const *elfs, uint32_t nr_elfs)
{
	/* The dynamic table is a part of the whole one, where there is a whole one; versions make it no better. */
	static const uint32_t tables[] = {SHT_SYMTAB, SHT_DYNSYM};
	struct choice *choices = calloc(batch->nr, sizeof(*choices));
	GElf_Shdr shdr;
	Elf_Scn *scn;

	if (!choices)
		return -ENOMEM;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(tables) * nr_elfs; i++) {
		Elf *elf = elfs[i % nr_elfs];

		scn = elf ? csink_elf_section(elf, tables[i / nr_elfs], NULL, &shdr) : NULL;
		if (scn)
			read_table(batch, choices, elf, scn, &shdr);
	}
	if (batch->nr_offers >= MAX_OFFERS)
		batch->flags |= CSINK_LEFT_SYMBOLS;
	settle(batch, choices);
	free(choices);
	return 0;
}

/* ---- procedure linkage tables ---- */

/* An address in a stub that has no name yet, and the slot of the global offset table that the stub jumps through. */
struct stub {
	uint64_t slot;
	uint32_t want;
};

struct stubs {
	struct csink_batch *batch;
	Elf *elf;
	struct stub *all; /* by slot, once sorted; at most one for each address of the batch */
	uint32_t nr;
};

static int32_t load_s32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * The slot that a stub jumps through. x86-64: the first `jmp *disp(%rip)` (ff 25) of the stub, whether or not endbr64
 * or bnd come first. AArch64: adrp x16, page; ldr x17, [x16, offset]. 0: no stub that we know.
 */
static uint64_t stub_slot(uint32_t machine, const uint8_t *code, size_t len, uint64_t address)
{
	uint32_t i, adrp, ldr;
	int64_t page;

	if (machine == EM_X86_64) {
		for (i = 0; i + 6 <= len && i + 6 <= 16; i++) {
			if (code[i] == 0xff && code[i + 1] == 0x25)
				return address + i + 6 + load_s32(code + i + 2);
		}
	} else if (machine == EM_AARCH64) {
		for (i = 0; i + 8 <= len && i + 8 <= 16; i += 4) {
			adrp = load_s32(code + i);
			ldr = load_s32(code + i + 4);
			if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
				continue;
			page = (int64_t)((uint64_t)(adrp >> 5 & 0x7ffff) << 45 | (uint64_t)(adrp >> 29 & 3) << 43) >>
			       31;
			return ((address + i) & ~0xfffULL) + page + (ldr >> 10 & 0xfff) * 8;
		}
	}
	return 0;
}

static bool holds_unnamed(const struct csink_batch *batch, const GElf_Shdr *shdr)
{
	uint32_t i;

	for (i = csink_batch_lower(batch, shdr->sh_addr);
	     i < batch->nr && batch->wants[i].address - shdr->sh_addr < shdr->sh_size; i++) {
		if (!batch->found[i].function)
			return true;
	}
	return false;
}

/* Add the stubs of one section that hold addresses without a name. */
static void find_stubs(struct stubs *stubs, const struct csink_batch *batch, Elf *elf, Elf_Scn *scn,
		       const GElf_Shdr *shdr)
{
	uint64_t size = shdr->sh_entsize >= 8 && shdr->sh_entsize <= 64 ? shdr->sh_entsize : 16, offset, slot;
	Elf_Data *data = elf_getdata(scn, NULL);
	uint32_t i = csink_batch_lower(batch, shdr->sh_addr);
	GElf_Ehdr ehdr;

	if (!data || !gelf_getehdr(elf, &ehdr))
		return;
	for (; i < batch->nr && batch->wants[i].address - shdr->sh_addr < data->d_size; i++) {
		if (batch->found[i].function || stubs->nr == batch->nr)
			continue;
		offset = (batch->wants[i].address - shdr->sh_addr) / size * size;
		slot = stub_slot(ehdr.e_machine, (uint8_t *)data->d_buf + offset, data->d_size - offset,
				 shdr->sh_addr + offset);
		if (slot)
			stubs->all[stubs->nr++] = (struct stub){slot, i};
	}
}

/* Name the stubs that jump through a slot after the symbol that the loader puts there. */
static void name_stubs(void *arg, Elf_Scn *symbols, const GElf_Rela *rela)
{
	const struct stubs *stubs = arg;
	struct stub key = {.slot = rela->r_offset};
	const struct stub *stub, *end = stubs->all + stubs->nr;
	struct csink_profile_function function = {0};
	GElf_Shdr shdr;
	const char *name;
	GElf_Sym sym;

	/* A large library has tens of thousands, a batch few stubs. */
	if (key.slot < stubs->all[0].slot || key.slot > end[-1].slot || !GELF_R_SYM(rela->r_info))
		return;
	stub = bsearch(&key, stubs->all, stubs->nr, sizeof(key), csink_compare_u64);
	if (!stub || !symbols || !gelf_getshdr(symbols, &shdr) ||
	    !gelf_getsym(elf_getdata(symbols, NULL), (int)GELF_R_SYM(rela->r_info), &sym))
		return;
	name = elf_strptr(stubs->elf, shdr.sh_link, sym.st_name);
	if (!name || !*name)
		return;
	csink_symbol_name(stubs->batch->p, name, "@plt", &function);
	while (stub > stubs->all && stub[-1].slot == key.slot)
		stub--;
	for (; stub < end && stub->slot == key.slot; stub++)
		stubs->batch->found[stub->want].function = csink_profile_function_add(stubs->batch->p, &function);
}

void csink_elf_each_relocation(Elf *elf, void (*take)(void *arg, Elf_Scn *symbols, const GElf_Rela *rela), void *arg)
{
	uint64_t left = MAX_RELOCATIONS, nr, bytes;
	uint32_t nr_sections = 0;
	Elf_Scn *scn = NULL, *symbols;
	Elf_Data *data;
	GElf_Shdr shdr;
	GElf_Rela rela;
	GElf_Rel rel;

	while (nr_sections < MAX_RELOCATION_SECTIONS && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || (shdr.sh_type != SHT_RELA && shdr.sh_type != SHT_REL) ||
		    !(shdr.sh_flags & SHF_ALLOC))
			continue;
		bytes = gelf_fsize(elf, shdr.sh_type == SHT_RELA ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
		if (!bytes || shdr.sh_size / bytes > left)
			continue;
		data = elf_getdata(scn, NULL);
		nr = data ? data->d_size / bytes : 0;
		left -= nr;
		nr_sections++;
		symbols = elf_getscn(elf, shdr.sh_link);
		for (uint64_t i = 0; i < nr; i++) {
			if (shdr.sh_type == SHT_RELA ? !gelf_getrela(data, (int)i, &rela)
						     : !gelf_getrel(data, (int)i, &rel))
				break;
			if (shdr.sh_type == SHT_REL)
				rela = (GElf_Rela){.r_offset = rel.r_offset, .r_info = rel.r_info};
			take(arg, symbols, &rela);
		}
	}
}

int csink_elf_plt(struct csink_batch *batch, Elf *elf)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	struct stubs stubs = {.batch = batch, .elf = elf};
	GElf_Shdr shdr;
	Elf_Scn *scn;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(sections); i++) {
		scn = csink_elf_section(elf, SHT_PROGBITS, sections[i], &shdr);
		if (!scn || !holds_unnamed(batch, &shdr))
			continue;
		if (!stubs.all)
			stubs.all = calloc(batch->nr, sizeof(*stubs.all));
		if (!stubs.all)
			return -ENOMEM;
		find_stubs(&stubs, batch, elf, scn, &shdr);
	}
	if (stubs.nr) {
		qsort(stubs.all, stubs.nr, sizeof(*stubs.all), csink_compare_u64);
		csink_elf_each_relocation(elf, name_stubs, &stubs);
	}
	free(stubs.all);
	return 0;
}

void csink_elf_init_and_fini(struct csink_batch *batch, Elf *elf)
{
	static const char *const sections[][2] = {{".init", "_init"}, {".fini", "_fini"}};
	struct csink_profile_function function = {0};
	GElf_Shdr shdr;

	for (uint32_t s = 0; s < CSINK_ARRAY_SIZE(sections); s++) {
		Elf_Scn *scn = csink_elf_section(elf, SHT_PROGBITS, sections[s][0], &shdr);
		const Elf_Data *data = scn && shdr.sh_flags & SHF_EXECINSTR ? elf_getdata(scn, NULL) : NULL;

		if (!data)
			continue;
		csink_symbol_name(batch->p, sections[s][1], "", &function);
		for (uint32_t i = csink_batch_lower(batch, shdr.sh_addr);
		     i < batch->nr && batch->wants[i].address - shdr.sh_addr < data->d_size; i++)
			if (!batch->found[i].function)
				batch->found[i].function = csink_profile_function_add(batch->p, &function);
	}
}
