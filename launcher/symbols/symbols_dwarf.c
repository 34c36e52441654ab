/*
 * What DWARF adds to names: inlined calls, files and lines. Only units that hold a wanted address are opened
 * (symbols_units.c finds them, symbols_scan.c reads their entries, symbols_lines.c or libdw their lines), and only
 * functions around one are made (symbols_functions.c).
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/symbols/symbols_impl.h"

struct resolver {
	struct csink_batch *batch;
	Dwarf *dwarf;
	struct csink_units units;
	struct csink_links links;
	struct csink_line_sections sections;
	struct csink_functions functions; /* with the unit at work, its lines and its entries */
	struct csink_bounds *bounds;      /* NULL: not asked for */
};

/* ---- locations ---- */

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
static int give_lines(struct resolver *r, uint32_t want)
{
	struct csink_found *found = &r->batch->found[want];
	struct csink_profile_line lines[64] = {0}, *end = lines + CSINK_ARRAY_SIZE(lines), *line = end;
	uint32_t link;
	Dwarf_Die *die;

	for (link = found->first_link; link && line > lines; link = r->links.all[link - 1].next) {
		die = &r->links.all[link - 1].die;
		if (line < end) { /* the function before called this one */
			line->line = call_line(die);
			line->function = function_in_file(r->batch, line->function,
							  csink_functions_file(&r->functions, die, DW_AT_call_file));
		}
		line--;
		line->function = csink_functions_get(&r->functions, die, line == end - 1 ? found->function : 0);
	}
	if (r->functions.err)
		return r->functions.err;
	if (line == end)
		return 0;
	line->line = found->line;
	line->function = function_in_file(r->batch, line->function, found->file);
	csink_profile_location_set_lines(r->batch->p, r->batch->wants[want].location, line, end - line);
	found->is_done = 1;
	r->batch->flags |= CSINK_FOUND_NAMES | CSINK_FOUND_FILES | (end - line > 1 ? CSINK_FOUND_INLINES : 0);
	return 0;
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
			file_id = csink_unit_path(batch, &unit->die, file);
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
	if (!dwarf_hasattr(&unit->die, DW_AT_stmt_list))
		return -ENODATA;
	if (dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &attr), &offset))
		return -ENOTSUP;
	return csink_lines_open(&r->sections, offset, dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attr)),
				&r->functions.lines);
}

/* ---- all together ---- */

static int find_unit_lines(struct resolver *r, struct csink_unit *unit, uint32_t id, uint32_t first, uint32_t last)
{
	int err = open_lines(r, unit);

	if (!err)
		csink_lines_find(r->functions.lines, r->batch, id, first, last);
	else if (err == -ENOTSUP)
		find_lines(r, unit, id, first, last);
	unit->is_foreign |= err == -ENOTSUP;
	return err == -ENOTSUP || err == -ENODATA ? 0 : err;
}

static int resolve_unit(struct resolver *r, uint32_t id, uint32_t first, uint32_t last, const Elf_Data **section)
{
	struct csink_unit *unit = &r->units.all[id - 1];
	struct csink_functions *f = &r->functions;
	int err = 0;

	r->links.nr = 0;
	f->scan = NULL;
	f->lines = NULL;
	f->unit = unit;
	unit->is_foreign = !csink_unit_place(unit, section);
	if (!unit->is_foreign)
		err = csink_scan_open(r->batch, unit, id, first, last, &r->links, &f->scan);
	if (!err)
		err = find_unit_lines(r, unit, id, first, last);
	for (uint32_t i = first; i < last && !err; i++) {
		if (r->batch->found[i].unit != id)
			continue;
		r->batch->found[i].is_split = unit->is_split;
		err = give_lines(r, i);
	}
	if (!err && r->bounds)
		err = csink_bounds_add_unit(r->bounds, unit, f->lines);
	csink_lines_close(f->lines);
	csink_scan_close(f->scan);
	return err;
}

struct span {
	uint32_t first, last;
};

/* Each unit's wants lie between the first and the last of them. */
static int resolve_units(struct resolver *r)
{
	struct span *spans = calloc(r->units.nr + 1, sizeof(*spans));
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
	for (unit = 1; unit <= r->units.nr && !err && !csink_spending_check(&r->batch->spending); unit++) {
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

int csink_dwarf_resolve(struct csink_batch *batch, Dwarf *dwarf, struct csink_bounds *bounds)
{
	struct resolver r = {.batch = batch, .dwarf = dwarf, .functions = {.batch = batch}, .bounds = bounds};
	int err;

	if (!is_native(dwarf))
		return 0;
	err = csink_units_find(batch, dwarf, &r.units);
	if (err)
		return err;
	if (r.units.nr) {
		find_sections(&r);
		err = resolve_units(&r);
	}
	if (!err && bounds)
		csink_bounds_check_spans(bounds, dwarf, &r.units);
	csink_units_free(&r.units);
	csink_functions_free(&r.functions);
	free(r.links.all);
	return err;
}
