/*
 * Which compilation units hold wanted addresses, and where their entries lie. Units are found by their ranges; of a
 * large file most ranges hold none.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/grow.h"
#include "launcher/symbols/symbols_impl.h"
#include "launcher/symbols/symbols_limits.h"

struct unit_range {
	uint64_t low, high;
	uint32_t unit; /* index + 1 */
};

struct ranges {
	struct unit_range *all;
	uint32_t nr, cap;
};

/* ---- ownership ---- */

static int add_unit(struct csink_units *u, const Dwarf_Die *die, bool is_split)
{
	const struct csink_unit unit = {.die = *die, .is_split = is_split};

	return CSINK_APPEND(u->all, u->nr, u->cap, unit) ? 0 : -ENOMEM;
}

/* Whether any wanted address is in the range: most ranges of a large file hold none. */
static bool is_wanted(const struct csink_batch *batch, uint64_t low, uint64_t high)
{
	uint32_t i = csink_batch_lower(batch, low);

	return i < batch->nr && batch->wants[i].address < high;
}

/* Collect the unit with its ranges, if it holds wanted addresses. */
static int take_unit(struct csink_units *u, struct csink_batch *batch, const Dwarf_Die *die, const Dwarf_Die *own,
		     bool is_split, struct ranges *ranges)
{
	Dwarf_Die of_ranges = *die;
	Dwarf_Addr base, low, high;
	uint32_t unit = 0;

	for (ptrdiff_t more = 0; (more = dwarf_ranges(&of_ranges, more, &base, &low, &high)) > 0;) {
		if (csink_spending_step(&batch->spending))
			break;
		if (!is_wanted(batch, low, high))
			continue;
		if (!unit && add_unit(u, own, is_split))
			return -ENOMEM;
		unit = u->nr;
		if (!CSINK_APPEND(ranges->all, ranges->nr, ranges->cap, (struct unit_range){low, high, unit}))
			return -ENOMEM;
	}
	return 0;
}

/* The file that a unit's entries were split off to. libdw opens it by itself, beside the object
 * or in the directory in which the unit was compiled. */
static bool names_trap(const struct csink_batch *batch, Dwarf_Die *skeleton)
{
	Dwarf_Attribute attr;
	const char *dir = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attr)), *name;

	name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_dwo_name, &attr));
	if (!name)
		name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attr));
	return name && (csink_is_trap_beside(batch->path, name) || (dir && csink_is_trap(dir, name)));
}

static int take_units(struct csink_units *u, struct csink_batch *batch, Dwarf *dwarf, struct ranges *ranges)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	Dwarf_Half version;
	uint8_t type;
	int err = 0;

	while (!err && !csink_spending_check(&batch->spending) &&
	       !dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL)) {
		if (!die.addr || (type != DW_UT_compile && type != DW_UT_skeleton))
			continue;
		split.addr = NULL;
		if (type == DW_UT_skeleton && !names_trap(batch, &die))
			dwarf_cu_info(cu, NULL, NULL, NULL, &split, NULL, NULL, NULL);
		err = take_unit(u, batch, &die, split.addr ? &split : &die, type == DW_UT_skeleton, ranges);
	}
	return err;
}

/* Give every want its unit. Where ranges overlap (folded functions), the first in the file has it. */
static void assign_units(struct csink_batch *batch, const struct ranges *ranges)
{
	uint32_t i, want;

	for (i = 0; i < ranges->nr; i++) {
		for (want = csink_batch_lower(batch, ranges->all[i].low);
		     want < batch->nr && batch->wants[want].address < ranges->all[i].high &&
		     !csink_spending_step(&batch->spending);
		     want++) {
			if (!batch->found[want].unit)
				batch->found[want].unit = ranges->all[i].unit;
		}
	}
}

int csink_units_find(struct csink_batch *batch, Dwarf *dwarf, struct csink_units *units)
{
	struct ranges ranges = {0};
	int err;

	*units = (struct csink_units){0};
	err = take_units(units, batch, dwarf, &ranges);
	if (!err)
		assign_units(batch, &ranges);
	else
		csink_units_free(units);
	free(ranges.all);
	return err;
}

void csink_units_free(struct csink_units *units)
{
	free(units->all);
}

/* ---- in memory ---- */

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

bool csink_unit_place(struct csink_unit *unit, const Elf_Data **last)
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
