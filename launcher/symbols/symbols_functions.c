/* Functions of the profile made from entries of DWARF, once each: their names, the files that declare them. */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/profile/function_name.h"
#include "launcher/symbols/symbols_impl.h"

/* A function that was made from an entry (and, for an outermost one, from the name that the symbol table gave it). */
struct csink_known {
	const void *entry;
	uint32_t symbol, function;
};

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

csink_str_t csink_unit_path(struct csink_batch *batch, Dwarf_Die *unit, const char *file)
{
	Dwarf_Attribute attr;
	const char *directory;
	char path[4096];
	int len;

	if (!file || *file == '/' || *file == '<') /* <built-in>, <artificial> */
		return csink_profile_str(batch->p, file);
	directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));
	len = directory ? snprintf(path, sizeof(path), "%s/%s", directory, file) : -1;
	return csink_profile_str(batch->p, len > 0 && (size_t)len < sizeof(path) ? path : file);
}

/* Not dwarf_decl_file: it asserts where there is no table, and takes number 0 for none, which is a file since DWARF 5.
 */
csink_str_t csink_functions_file(struct csink_functions *f, Dwarf_Die *die, uint32_t name)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Die unit;
	Dwarf_Word index;
	size_t nr;

	if (!dwarf_attr_integrate(die, name, &attr) || dwarf_formudata(&attr, &index))
		return 0;
	if (f->lines && attr.cu == f->unit->die.cu)
		return csink_lines_file(f->lines, f->batch->p, index);
	if (!dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit, &files, &nr) || index >= nr)
		return 0;
	return csink_unit_path(f->batch, &unit, dwarf_filesrc(files, index, NULL, NULL));
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

/* A function without a linkage name: of C, or one of C++ with internal linkage. */
static void plain_name(struct csink_functions *f, const Dwarf_Die *die, struct csink_profile_function *function)
{
	Dwarf_Die declaration = *die;
	char name[4096];
	const char *own;

	find_declaration(&declaration);
	own = dwarf_diename(&declaration);
	snprintf(name, sizeof(name), "%s", own ? own : "[no name]");
	if (own && f->scan)
		csink_scan_qualify(f->scan, &declaration, name, sizeof(name));
	csink_symbol_name(f->batch->p, name, "", function);
}

static uint32_t make_function(struct csink_functions *f, Dwarf_Die *die, uint32_t symbol)
{
	struct csink_batch *batch = f->batch;
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
			plain_name(f, die, &function);
	}
	function.file = csink_functions_file(f, die, DW_AT_decl_file);
	if (!dwarf_decl_line(die, &line))
		function.start_line = line;
	return csink_profile_function_add(batch->p, &function);
}

uint32_t csink_functions_get(struct csink_functions *f, Dwarf_Die *die, uint32_t symbol)
{
	const void *entry = symbol ? die->addr : origin_of(die);
	uint32_t known =
		CSINK_TABLE_INTERN(f->known_table, (uint32_t)csink_hash_pair((uintptr_t)entry, symbol),
				   f->known[id - 1].entry == entry && f->known[id - 1].symbol == symbol,
				   CSINK_APPEND(f->known, f->nr_known, f->cap_known,
						(struct csink_known){entry, symbol, make_function(f, die, symbol)}));

	if (!known)
		f->err = -ENOMEM;
	return known ? f->known[known - 1].function : 0;
}

void csink_functions_free(struct csink_functions *f)
{
	free(f->known);
	csink_table_free(&f->known_table);
}
