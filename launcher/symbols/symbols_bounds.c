/*
 * Where answers change: between two neighbouring bounds all addresses have the same functions around them and the same
 * line. What is found of the first of them therefore holds for all, and can be kept (symbols_cache.h).
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "include/internal/grow.h"
#include "launcher/symbols/symbols_entries.h"
#include "launcher/symbols/symbols_impl.h"

int csink_bounds_add(struct csink_bounds *bounds, uint64_t address)
{
	if (bounds->nr > bounds->max)
		return 0;
	return CSINK_APPEND(bounds->all, bounds->nr, bounds->cap, address) ? 0 : -ENOMEM;
}

static int add_span(struct csink_bounds *bounds, uint64_t low, uint64_t high)
{
	if (!CSINK_APPEND(bounds->spans, bounds->nr_spans, bounds->cap_spans, (struct csink_span){low, high}))
		return -ENOMEM;
	return csink_bounds_add(bounds, low) ? -ENOMEM : csink_bounds_add(bounds, high);
}

/* ---- a unit ---- */

static int add_ranges(struct csink_bounds *bounds, Dwarf_Die die, bool is_unit)
{
	Dwarf_Addr base, low, high;
	int err = 0;

	for (ptrdiff_t more = 0; !err && (more = dwarf_ranges(&die, more, &base, &low, &high)) > 0;) {
		if (is_unit)
			err = add_span(bounds, low, high);
		else
			err = csink_bounds_add(bounds, low) ? -ENOMEM : csink_bounds_add(bounds, high);
	}
	return err;
}

/* Every function and inlined call that has code, wherever it stands: more bounds than needed do no harm. */
static int add_functions(struct csink_bounds *bounds, const struct csink_unit *unit)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(unit->die.cu);
	const uint8_t *at = unit->at;
	struct csink_dwarf_entry entry;
	struct csink_entries entries;
	int err = csink_entries_open(&entries, unit);
	Dwarf_Die die;

	if (err)
		return err;
	while (!err && bounds->nr <= bounds->max && csink_entries_next(&entries, &at, &entry)) {
		if (entry.abbrev && entry.abbrev->has_code &&
		    (entry.abbrev->tag == DW_TAG_subprogram || entry.abbrev->tag == DW_TAG_inlined_subroutine) &&
		    dwarf_offdie(dwarf, entry.start - unit->section, &die))
			err = add_ranges(bounds, die, false);
	}
	csink_entries_close(&entries);
	return err;
}

int csink_bounds_add_unit(struct csink_bounds *bounds, struct csink_unit *unit, const struct csink_lines *lines)
{
	uint32_t nr = bounds->nr, nr_spans = bounds->nr_spans;
	int err;

	if (unit->is_split || unit->is_foreign) {
		bounds->is_partial = true;
		return 0;
	}
	err = add_ranges(bounds, unit->die, true);
	err = err ? err : add_functions(bounds, unit);
	if (!err && lines)
		err = csink_lines_bounds(lines, bounds);
	unit->has_bounds = !err && bounds->nr <= bounds->max;
	if (!unit->has_bounds) {
		bounds->nr = nr;
		bounds->nr_spans = nr_spans;
		bounds->is_partial = true;
	}
	return err;
}

/* ---- spans ---- */

static void sort_spans(struct csink_bounds *bounds)
{
	uint32_t nr = 0;

	if (bounds->nr_spans)
		qsort(bounds->spans, bounds->nr_spans, sizeof(*bounds->spans), csink_compare_u64);
	for (uint32_t i = 0; i < bounds->nr_spans; i++) {
		struct csink_span span = bounds->spans[i];

		if (nr && span.low < bounds->spans[nr - 1].high)
			bounds->spans[nr - 1].high = CSINK_MAX(bounds->spans[nr - 1].high, span.high);
		else if (span.low < span.high)
			bounds->spans[nr++] = span;
	}
	bounds->nr_spans = nr;
}

/* The span that holds an address, or else the next one: nr_spans if there is none. */
static uint32_t span_at(const struct csink_bounds *bounds, uint64_t address)
{
	return CSINK_LOWER(bounds->nr_spans, i, bounds->spans[i].high <= address);
}

/* Where ranges of units overlap (folded functions), which of them answers depends on what is not in the bounds. */
static void drop_spans(struct csink_bounds *bounds, uint64_t low, uint64_t high)
{
	for (uint32_t i = span_at(bounds, low); i < bounds->nr_spans && bounds->spans[i].low < high; i++) {
		bounds->spans[i].low = bounds->spans[i].high; /* holds nothing, in its place */
		bounds->is_partial = true;
	}
}

static bool is_among(const struct csink_units *units, const Dwarf_Die *die)
{
	for (uint32_t i = 0; i < units->nr; i++) {
		if (units->all[i].has_bounds && units->all[i].die.cu == die->cu)
			return true;
	}
	return false;
}

void csink_bounds_check_spans(struct csink_bounds *bounds, Dwarf *dwarf, const struct csink_units *units)
{
	Dwarf_Die die, of_ranges;
	Dwarf_CU *cu = NULL;
	Dwarf_Addr base, low, high;
	Dwarf_Half version;
	uint8_t type;

	sort_spans(bounds);
	while (bounds->nr_spans && !dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL)) {
		if (!die.addr || (type != DW_UT_compile && type != DW_UT_skeleton) || is_among(units, &die))
			continue;
		of_ranges = die;
		for (ptrdiff_t more = 0; (more = dwarf_ranges(&of_ranges, more, &base, &low, &high)) > 0;)
			drop_spans(bounds, low, high);
	}
}

int csink_bounds_add_sections(struct csink_bounds *bounds, Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr shdr;
	size_t strndx;
	int err = 0;

	if (elf_getshdrstrndx(elf, &strndx))
		return 0;
	while (!err && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_PROGBITS || !(shdr.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(elf, strndx, shdr.sh_name);
		if (name && strncmp(name, ".plt", 4) && shdr.sh_size <= UINT64_MAX - shdr.sh_addr)
			err = add_span(bounds, shdr.sh_addr, shdr.sh_addr + shdr.sh_size);
	}
	sort_spans(bounds);
	return err;
}

/* ---- all units ---- */

/* One address in each unit; a unit of which none is known has no code. */
static int find_seeds(struct csink_bounds *seeds, Dwarf *dwarf)
{
	Dwarf_Addr base, low, high;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	Dwarf_Half version;
	uint8_t type;
	int err = 0;

	while (!err && !dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL)) {
		if (die.addr && (type == DW_UT_compile || type == DW_UT_skeleton) &&
		    dwarf_ranges(&die, 0, &base, &low, &high) > 0 && low < high)
			err = csink_bounds_add(seeds, low);
	}
	return err;
}

int csink_bounds_add_all(struct csink_bounds *bounds, Dwarf *dwarf, const char *path, struct csink_spending *spending)
{
	struct csink_bounds seeds = {.max = INT32_MAX};
	struct csink_batch batch = {.p = csink_profile_create(), .path = path, .spending = *spending};
	int err = batch.p ? find_seeds(&seeds, dwarf) : -ENOMEM;

	if (!err && seeds.nr) {
		batch.wants = calloc(seeds.nr, sizeof(*batch.wants));
		batch.found = calloc(seeds.nr, sizeof(*batch.found));
		err = batch.wants && batch.found ? 0 : -ENOMEM;
		qsort(seeds.all, seeds.nr, sizeof(*seeds.all), csink_compare_u64);
	}
	for (; !err && batch.nr < seeds.nr; batch.nr++)
		batch.wants[batch.nr] = (struct csink_want){
			seeds.all[batch.nr], csink_profile_location_add(batch.p, 0, seeds.all[batch.nr], NULL, 0)};
	if (!err && batch.nr)
		err = csink_dwarf_resolve(&batch, dwarf, bounds);
	*spending = batch.spending;
	bounds->is_partial |= spending->is_over;
	free(batch.wants);
	free(batch.found);
	csink_profile_free(batch.p);
	csink_bounds_free(&seeds);
	return err;
}

/* ---- all together ---- */

bool csink_bounds_hold(const struct csink_bounds *bounds, uint64_t address)
{
	uint32_t at = span_at(bounds, address);

	return at < bounds->nr_spans && bounds->spans[at].low <= address;
}

static int add_symbol(struct csink_bounds *bounds, Elf *elf, const GElf_Sym *sym)
{
	uint64_t ends[] = {sym->st_value, sym->st_value + sym->st_size, 0};
	GElf_Shdr shdr;
	Elf_Scn *scn = sym->st_size ? NULL : elf_getscn(elf, sym->st_shndx);
	int err = 0;

	/* A symbol without size reaches to the end of its section. */
	if (scn && gelf_getshdr(scn, &shdr))
		ends[2] = shdr.sh_addr + shdr.sh_size;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(ends) && !err; i++) {
		if (csink_bounds_hold(bounds, ends[i]))
			err = csink_bounds_add(bounds, ends[i]);
	}
	return err;
}

static int add_table(struct csink_bounds *bounds, Elf *elf, uint32_t type)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = csink_elf_section(elf, type, NULL, &shdr);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t nr = data && shdr.sh_entsize ? CSINK_MIN(data->d_size / shdr.sh_entsize, INT32_MAX) : 0;
	GElf_Sym sym;
	int err = 0;

	for (size_t i = 0; i < nr && !err && gelf_getsym(data, (int)i, &sym); i++)
		err = add_symbol(bounds, elf, &sym);
	return err;
}

/* Sorted, each once, and only what is in a span or ends one. */
static void sort_bounds(struct csink_bounds *bounds)
{
	uint32_t nr = 0, span = 0;

	if (bounds->nr)
		qsort(bounds->all, bounds->nr, sizeof(*bounds->all), csink_compare_u64);
	for (uint32_t i = 0; i < bounds->nr; i++) {
		uint64_t address = bounds->all[i];

		while (span < bounds->nr_spans && bounds->spans[span].high < address)
			span++;
		if (span < bounds->nr_spans && bounds->spans[span].low <= address &&
		    (!nr || bounds->all[nr - 1] != address))
			bounds->all[nr++] = address;
	}
	bounds->nr = nr;
}

int csink_bounds_add_symbols(struct csink_bounds *bounds, const struct csink_elfs *elfs)
{
	Elf *const files[] = {elfs->main, elfs->debug};
	int err = 0;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(files) && !err && bounds->nr_spans; i++) {
		if (!files[i])
			continue;
		err = add_table(bounds, files[i], SHT_SYMTAB);
		err = err ? err : add_table(bounds, files[i], SHT_DYNSYM);
	}
	if (!err && elfs->main)
		err = csink_elf_unwind_bounds(bounds, elfs->main);
	if (!err && elfs->main)
		err = csink_elf_v8_bounds(bounds, elfs->main);
	if (bounds->nr > bounds->max) {
		bounds->nr = bounds->nr_spans = 0;
		bounds->is_partial = true;
	}
	sort_bounds(bounds);
	return err;
}

void csink_bounds_free(struct csink_bounds *bounds)
{
	free(bounds->all);
	free(bounds->spans);
	*bounds = (struct csink_bounds){0};
}
