/*
 * What DWARF adds to names: inlined calls, files and lines. Units are found by their ranges, of which one table is
 * made; only units that hold a wanted address are opened (symbols_scan.c reads their entries, libdw their lines).
 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/grow.h"
#include "launcher/profile/symbols_impl.h"

struct unit_range {
	uint64_t low, high;
	uint32_t unit; /* index + 1 */
};

/* A function that was made from an entry (and, for an outermost one, from the name that the symbol table gave it). */
struct known {
	const void *entry;
	uint32_t symbol, function;
};

struct resolver {
	struct csink_batch *batch;
	Dwarf *dwarf;
	struct csink_unit *units;
	uint32_t nr_units, cap_units;
	struct csink_links links;
	struct csink_line_sections sections;
	const struct csink_unit *unit; /* at work */
	struct csink_lines *lines;     /* its; NULL: libdw reads them */
	struct csink_scan *scan;       /* of it */
	struct known *known;           /* open addressing; half full at most */
	uint32_t known_mask, nr_known;
	int err;
};

/* ---- units ---- */

static const Elf_Data *section_data(Dwarf *dwarf, const void *inside)
{
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;

	/* libdw has unpacked what was compressed: the section that holds the entry is the one it reads. */
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS || shdr.sh_flags & SHF_ALLOC)
			continue;
		data = elf_rawdata(scn, NULL);
		if (data && data->d_buf && (uintptr_t)inside - (uintptr_t)data->d_buf < data->d_size)
			return data;
		data = elf_getdata(scn, NULL);
		if (data && data->d_buf && (uintptr_t)inside - (uintptr_t)data->d_buf < data->d_size)
			return data;
	}
	return NULL;
}

/* Where a unit's entries lie in memory. False if that cannot be told: then the unit is left to the symbol table. */
static bool place_unit(struct csink_unit *unit, const Elf_Data **last)
{
	const uint8_t *at = unit->die.addr;
	Dwarf_Half version;
	Dwarf_Die die;
	uint32_t length;
	uint64_t bytes;

	if (!*last || (uintptr_t)at - (uintptr_t)(*last)->d_buf >= (*last)->d_size)
		*last = section_data(dwarf_cu_getdwarf(unit->die.cu), at);
	if (!*last ||
	    !dwarf_cu_die(unit->die.cu, &die, &version, NULL, &unit->address_size, &unit->offset_size, NULL, NULL))
		return false;
	unit->version = version;
	unit->section = at - dwarf_dieoffset(&unit->die);
	unit->head = at - dwarf_cuoffset(&unit->die);
	unit->at = at;
	if (unit->section != (*last)->d_buf || unit->head < unit->section || unit->head + 11 > at)
		return false;
	memcpy(&length, unit->head, sizeof(length));
	bytes = length;
	if (unit->offset_size == 8)
		memcpy(&bytes, unit->head + 4, sizeof(bytes));
	bytes += unit->offset_size == 8 ? 12 : 4;
	unit->end = unit->section + (*last)->d_size;
	if (bytes < (uint64_t)(unit->end - unit->head))
		unit->end = unit->head + bytes;
	return unit->end > at;
}

static int add_unit(struct resolver *r, const Dwarf_Die *die)
{
	if (CSINK_GROW(r->units, r->nr_units, r->cap_units))
		return -ENOMEM;
	r->units[r->nr_units++] = (struct csink_unit){.die = *die};
	return 0;
}

/* Whether any wanted address is in the range: most ranges of a large file hold none. */
static bool is_wanted(const struct csink_batch *batch, uint64_t low, uint64_t high)
{
	uint32_t i = csink_batch_lower(batch, low);

	return i < batch->nr && batch->wants[i].address < high;
}

/* Collect the units that hold wanted addresses, and the ranges that do. */
static int find_units(struct resolver *r, struct unit_range **ranges, uint32_t *nr_ranges)
{
	Dwarf_Die die, split;
	Dwarf_Addr base, low, high;
	uint32_t cap = 0, unit;
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	ptrdiff_t more;

	while (!dwarf_get_units(r->dwarf, cu, &cu, &version, &type, &die, &split)) {
		if (!die.addr || (type != DW_UT_compile && type != DW_UT_skeleton))
			continue;
		unit = 0;
		for (more = 0; (more = dwarf_ranges(&die, more, &base, &low, &high)) > 0;) {
			if (!is_wanted(r->batch, low, high))
				continue;
			if (!unit && add_unit(r, type == DW_UT_skeleton && split.addr ? &split : &die))
				return -ENOMEM;
			unit = r->nr_units;
			if (CSINK_GROW(*ranges, *nr_ranges, cap))
				return -ENOMEM;
			(*ranges)[(*nr_ranges)++] = (struct unit_range){low, high, unit};
		}
	}
	return 0;
}

/* Give every want its unit. Where ranges overlap (folded functions), the first in the file has it. */
static void assign_units(struct csink_batch *batch, const struct unit_range *ranges, uint32_t nr_ranges)
{
	uint32_t i, want;

	for (i = 0; i < nr_ranges; i++) {
		for (want = csink_batch_lower(batch, ranges[i].low);
		     want < batch->nr && batch->wants[want].address < ranges[i].high; want++) {
			if (!batch->found[want].unit)
				batch->found[want].unit = ranges[i].unit;
		}
	}
}

/* ---- functions ---- */

static struct known *find_known(struct resolver *r, const void *entry, uint32_t symbol)
{
	uint64_t hash = ((uintptr_t)entry ^ (uint64_t)symbol << 40) * 0x9e3779b97f4a7c15ULL;
	uint32_t at = hash >> 32 & r->known_mask;

	while (r->known[at].entry && (r->known[at].entry != entry || r->known[at].symbol != symbol))
		at = (at + 1) & r->known_mask;
	return &r->known[at];
}

static int grow_known(struct resolver *r)
{
	uint32_t i, size = r->known ? (r->known_mask + 1) * 2 : 1024;
	struct known *old = r->known;

	if (r->known && r->nr_known < r->known_mask / 2)
		return 0;
	r->known = calloc(size, sizeof(*r->known));
	if (!r->known) {
		r->known = old;
		return r->err = -ENOMEM;
	}
	r->known_mask = size - 1;
	for (i = 0; old && i < size / 2; i++) {
		if (old[i].entry)
			*find_known(r, old[i].entry, old[i].symbol) = old[i];
	}
	free(old);
	return 0;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return NULL;
}

/* The entry that names an inlined call: all calls of one function lead to it. */
static void *origin_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) || !dwarf_formref_die(&attr, &origin))
		return die->addr;
	return origin.addr;
}

/* A file as the tables have it: relative ones are counted from the folder that the unit was compiled in. */
static csink_str_t whole_path(struct csink_batch *batch, Dwarf_Die *unit, const char *file)
{
	Dwarf_Attribute attr;
	const char *folder;
	char path[4096];
	int len;

	if (!file || *file == '/' || *file == '<') /* <built-in>, <artificial> */
		return csink_profile_str(batch->p, file);
	folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));
	len = folder ? snprintf(path, sizeof(path), "%s/%s", folder, file) : -1;
	return csink_profile_str(batch->p, len > 0 && (size_t)len < sizeof(path) ? path : file);
}

/*
 * The file that an attribute names by its number in the unit's table. Not dwarf_decl_file: it asserts where there is no
 * table, and takes number 0 for none, which is a file since DWARF 5.
 */
static csink_str_t file_of(struct resolver *r, Dwarf_Die *die, uint32_t name)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Die unit;
	Dwarf_Word index;
	size_t nr;

	if (!dwarf_attr_integrate(die, name, &attr) || dwarf_formudata(&attr, &index))
		return 0;
	if (r->lines && attr.cu == r->unit->die.cu)
		return csink_lines_file(r->lines, r->batch->p, index);
	if (!dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit, &files, &nr) || index >= nr)
		return 0;
	return whole_path(r->batch, &unit, dwarf_filesrc(files, index, NULL, NULL));
}

/* The entry that declares what this one is a copy or the definition of: where its name stands. */
static void find_declaration(Dwarf_Die *die)
{
	static const uint32_t links[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Attribute attr;
	uint32_t i, steps;

	for (steps = 0; steps < 8; steps++) {
		for (i = 0; i < CSINK_ARRAY_SIZE(links) && !dwarf_attr(die, links[i], &attr); i++)
			;
		if (i == CSINK_ARRAY_SIZE(links) || !dwarf_formref_die(&attr, die))
			return;
	}
}

/* A function that has no linkage name: of C, or one of C++ that nobody could link to. */
static void plain_name(struct resolver *r, const Dwarf_Die *die, struct csink_profile_function *function)
{
	Dwarf_Die declaration = *die;
	char name[4096];
	const char *own;

	find_declaration(&declaration);
	own = dwarf_diename(&declaration);
	snprintf(name, sizeof(name), "%s", own ? own : "[no name]");
	if (own && r->scan)
		csink_scan_qualify(r->scan, &declaration, name, sizeof(name));
	csink_symbol_name(r->batch->p, name, "", function);
}

static uint32_t make_function(struct resolver *r, Dwarf_Die *die, uint32_t symbol)
{
	struct csink_batch *batch = r->batch;
	struct csink_profile_function function = {0};
	const char *name = symbol ? NULL : linkage_name(die);
	int line = 0;

	if (symbol) {
		function.name = batch->p->functions[symbol].name;
		function.system_name = batch->p->functions[symbol].system_name;
	} else {
		if (name)
			csink_symbol_name(batch->p, name, "", &function);
		else
			plain_name(r, die, &function);
	}
	function.file = file_of(r, die, DW_AT_decl_file);
	if (!dwarf_decl_line(die, &line))
		function.start_line = line;
	return csink_profile_function_add(batch->p, &function);
}

/* The function of an entry. @symbol  what the symbol table has at the address (outermost only), or 0. */
static uint32_t function_of(struct resolver *r, Dwarf_Die *die, uint32_t symbol)
{
	const void *entry = symbol ? die->addr : origin_of(die);
	struct known *known;

	if (grow_known(r))
		return 0;
	known = find_known(r, entry, symbol);
	if (!known->entry) {
		*known = (struct known){entry, symbol, make_function(r, die, symbol)};
		r->nr_known++;
	}
	return known->function;
}

/* The same function, if the line is in the file that declares it; else one of that name in the other file, for a line
 * (of a macro, of an included fragment) means nothing without its file. */
static uint32_t function_in_file(struct csink_batch *batch, uint32_t id, csink_str_t file)
{
	struct csink_profile_function function = batch->p->functions[id];

	if (!file || file == function.file)
		return id;
	function.file = file;
	function.start_line = 0;
	return csink_profile_function_add(batch->p, &function);
}

static int64_t call_line(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word line;

	return dwarf_attr(die, DW_AT_call_line, &attr) && !dwarf_formudata(&attr, &line) ? (int64_t)line : 0;
}

/* Lines of one want, from its links: outermost first there, innermost first in the profile. */
static void give_lines(struct resolver *r, uint32_t want)
{
	struct csink_found *found = &r->batch->found[want];
	struct csink_profile_line lines[64] = {0}, *end = lines + CSINK_ARRAY_SIZE(lines), *line = end;
	uint32_t link;
	Dwarf_Die *die;

	for (link = found->first_link; link && line > lines; link = r->links.all[link - 1].next) {
		die = &r->links.all[link - 1].die;
		if (line < end) { /* the function before called this one */
			line->line = call_line(die);
			line->function = function_in_file(r->batch, line->function, file_of(r, die, DW_AT_call_file));
		}
		line--;
		line->function = function_of(r, die, line == end - 1 ? found->function : 0);
	}
	if (line == end)
		return;
	line->line = found->line;
	line->function = function_in_file(r->batch, line->function, found->file);
	csink_profile_location_set_lines(r->batch->p, r->batch->wants[want].location, line, end - line);
	found->is_done = 1;
	r->batch->flags |= CSINK_FOUND_NAMES | CSINK_FOUND_FILES | (end - line > 1 ? CSINK_FOUND_INLINES : 0);
}

/* ---- lines ---- */

/* As libdw has them: for tables that we do not read. */
static void find_lines(struct resolver *r, struct csink_unit *unit, uint32_t id, uint32_t first, uint32_t last)
{
	struct csink_batch *batch = r->batch;
	const char *file, *last_file = NULL;
	csink_str_t file_id = 0;
	Dwarf_Line *line;
	uint32_t i;
	int number;

	for (i = first; i < last; i++) {
		if (batch->found[i].unit != id)
			continue;
		line = dwarf_getsrc_die(&unit->die, batch->wants[i].address);
		if (!line || dwarf_lineno(line, &number))
			continue;
		file = dwarf_linesrc(line, NULL, NULL);
		if (file && file != last_file)
			file_id = whole_path(batch, &unit->die, file);
		last_file = file;
		batch->found[i].line = number;
		batch->found[i].file = file ? file_id : 0;
		batch->flags |= CSINK_FOUND_LINES;
	}
}

static int open_lines(struct resolver *r, struct csink_unit *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;

	if (dwarf_cu_getdwarf(unit->die.cu) != r->dwarf) /* split: its table is in another file */
		return -ENOTSUP;
	if (dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &attr), &offset))
		return -ENOTSUP;
	return csink_lines_open(&r->sections, offset, dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attr)),
				&r->lines);
}

/* ---- all together ---- */

static int resolve_unit(struct resolver *r, uint32_t id, uint32_t first, uint32_t last, const Elf_Data **section)
{
	struct csink_unit *unit = &r->units[id - 1];
	uint32_t i;
	int err = 0;

	r->links.nr = 0;
	r->scan = NULL;
	r->lines = NULL;
	r->unit = unit;
	if (place_unit(unit, section))
		err = csink_scan_open(r->batch, unit, id, first, last, &r->links, &r->scan);
	if (!err)
		err = open_lines(r, unit);
	if (!err)
		csink_lines_find(r->lines, r->batch, id, first, last);
	else if (err == -ENOTSUP)
		find_lines(r, unit, id, first, last);
	r->err = err == -ENOTSUP ? 0 : err;
	for (i = first; i < last && !r->err; i++) {
		if (r->batch->found[i].unit == id)
			give_lines(r, i);
	}
	csink_lines_close(r->lines);
	csink_scan_close(r->scan);
	return r->err;
}

struct span {
	uint32_t first, last;
};

/* Each unit's wants lie between the first and the last of them. */
static int resolve_units(struct resolver *r)
{
	struct span *spans = calloc(r->nr_units + 1, sizeof(*spans));
	const Elf_Data *section = NULL;
	uint32_t i, unit;
	int err = 0;

	if (!spans)
		return -ENOMEM;
	for (i = 0; i < r->batch->nr; i++) {
		unit = r->batch->found[i].unit;
		if (!unit)
			continue;
		if (!spans[unit].last)
			spans[unit].first = i;
		spans[unit].last = i + 1;
	}
	for (unit = 1; unit <= r->nr_units && !err; unit++) {
		if (spans[unit].last)
			err = resolve_unit(r, unit, spans[unit].first, spans[unit].last, &section);
	}
	free(spans);
	return err;
}

static struct csink_bytes bytes_of(Elf *elf, const char *name)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = csink_elf_section(elf, 0, name, &shdr);
	Elf_Data *data = scn && !(shdr.sh_flags & SHF_COMPRESSED) ? elf_rawdata(scn, NULL) : NULL;

	return data && data->d_buf ? (struct csink_bytes){data->d_buf, data->d_size} : (struct csink_bytes){0};
}

static struct csink_bytes texts_of(Elf *elf, const char *name)
{
	struct csink_bytes bytes = bytes_of(elf, name);
	const uint8_t *last = bytes.nr ? memrchr(bytes.at, 0, bytes.nr) : NULL;

	bytes.nr = last ? (size_t)(last - bytes.at) + 1 : 0;
	return bytes;
}

/* Of linked files alone: the tables of others are to be relocated first. */
static void find_sections(struct resolver *r)
{
	Elf *elf = dwarf_getelf(r->dwarf);
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(elf, &ehdr) || ehdr.e_type == ET_REL)
		return;
	r->sections = (struct csink_line_sections){bytes_of(elf, ".debug_line"), texts_of(elf, ".debug_line_str"),
						   texts_of(elf, ".debug_str")};
}

static bool is_native(Dwarf *dwarf)
{
	const char *ident = elf_getident(dwarf_getelf(dwarf), NULL);

	return ident && ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
}

int csink_dwarf_resolve(struct csink_batch *batch, Dwarf *dwarf)
{
	struct resolver r = {.batch = batch, .dwarf = dwarf};
	struct unit_range *ranges = NULL;
	uint32_t nr_ranges = 0;
	int err = 0;

	if (is_native(dwarf))
		err = find_units(&r, &ranges, &nr_ranges);
	if (!err && nr_ranges) {
		assign_units(batch, ranges, nr_ranges);
		find_sections(&r);
		err = resolve_units(&r);
	}
	free(ranges);
	free(r.units);
	free(r.links.all);
	free(r.known);
	return err;
}
