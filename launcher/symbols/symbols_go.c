/*
 * Names, lines and inlined calls of programs by Go, from the table that is loaded with them: stripped programs have it,
 * too, and where there is debug information it says the same. C functions of such a program have other sources.
 */
#include <stdlib.h>

#include "include/internal/base.h"
#include "launcher/symbols/symbols_impl.h"
#include "preload/core/go_table.h"

#define MAX_SEGMENTS 64
#define MAX_CALLS 64
#define MAX_LOOKED (256U << 20) /* bytes in which the table is looked for */
#define MAX_HEADERS 16          /* that look like the table's: for each, the data may be looked through */

struct program {
	struct csink_go_program go;
	struct csink_go_bytes parts[MAX_SEGMENTS];
};

/* The loaded segments, where libelf has the file in memory. */
static bool take_segments(struct program *program, Elf *elf)
{
	GElf_Phdr phdr;
	size_t bytes, nr;
	const uint8_t *file = (const uint8_t *)elf_rawfile(elf, &bytes);

	if (!file || elf_getphdrnum(elf, &nr))
		return false;
	program->go.parts = program->parts;
	for (size_t i = 0; i < nr && program->go.nr_parts < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD || phdr.p_offset >= bytes)
			continue;
		program->parts[program->go.nr_parts++] = (struct csink_go_bytes){
			phdr.p_vaddr, file + phdr.p_offset, CSINK_MIN(phdr.p_filesz, bytes - phdr.p_offset)};
	}
	return program->go.nr_parts > 0;
}

/* What there is to look through yet. */
struct looking {
	uint64_t left;
	uint32_t headers;
};

/* The bytes of a part from one address to another. Tables begin at multiples of 16. */
static bool look_through(struct csink_go_table *table, const struct program *program, uint64_t from, uint64_t to,
			 struct looking *looking)
{
	struct csink_go_bytes bytes;

	for (uint64_t at = from + (-from & 15); at < to && looking->left && looking->headers;
	     at += 16, looking->left--) {
		if (!csink_go_part(&program->go, at, &bytes))
			return false;
		if (!csink_go_is_header(bytes.at, bytes.nr))
			continue;
		if (csink_go_open(table, &program->go, at))
			return true;
		looking->headers--;
	}
	return false;
}

/*
 * By the section's header. The linkers of C put it into another section where the program can be loaded anywhere.
 * Without sections, by looking through the segments.
 */
static bool open_table(struct csink_go_table *table, const struct program *program, Elf *elf)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct looking looking = {MAX_LOOKED / 16, MAX_HEADERS};
	GElf_Shdr shdr;
	size_t nr;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (csink_elf_section(elf, 0, names[i], &shdr))
			return csink_go_open(table, &program->go, shdr.sh_addr);
	if (csink_elf_section(elf, 0, ".go.buildinfo", &shdr) && csink_elf_section(elf, 0, ".data.rel.ro", &shdr))
		return look_through(table, program, shdr.sh_addr, shdr.sh_addr + shdr.sh_size, &looking);
	if (elf_getshdrnum(elf, &nr) || nr)
		return false;
	for (uint32_t i = 0; i < program->go.nr_parts; i++) {
		const struct csink_go_bytes *part = &program->parts[i];

		if (look_through(table, program, part->vaddr, part->vaddr + part->nr, &looking))
			return true;
	}
	return false;
}

static uint32_t make_function(struct csink_profile *p, const struct csink_go_frame *frame)
{
	struct csink_profile_function function = {.start_line = frame->start_line};

	function.name = function.system_name = csink_profile_str(p, frame->name ? frame->name : "[no name]");
	function.file = csink_profile_str(p, frame->file);
	function.language = csink_profile_str(p, "Go");
	return csink_profile_function_add(p, &function);
}

/*
 * Returns bits of csink_symbols_found, 0 where there is no such function.
 * @others  whether there is a symbol table, which goes with debug information: C functions have no lines in Go's table.
 */
static int give_lines(struct csink_profile *p, const struct csink_go_table *table, const struct csink_want *want,
		      bool others)
{
	struct csink_profile_line lines[MAX_CALLS] = {0};
	struct csink_go_frame frames[MAX_CALLS];
	struct csink_go_function function;
	int flags = CSINK_FOUND_NAMES;
	uint32_t nr;

	if (!csink_go_find(table, want->address, &function) || !csink_go_name(table, function.name) ||
	    (others && !function.line))
		return 0;
	nr = csink_go_frames(table, &function, want->address, frames, MAX_CALLS);
	for (uint32_t i = 0; i < nr; i++) {
		lines[i].function = make_function(p, &frames[i]);
		lines[i].line = frames[i].line;
		flags |= frames[i].file ? CSINK_FOUND_FILES : 0;
		flags |= frames[i].line ? CSINK_FOUND_LINES : 0;
	}
	csink_profile_location_set_lines(p, want->location, lines, nr);
	return flags | (nr > 1 ? CSINK_FOUND_INLINES : 0);
}

uint32_t csink_go_take(struct csink_profile *p, Elf *elf, uint64_t file_bytes, struct csink_want *wants, uint32_t nr,
		       int *flags)
{
	struct csink_spending spending = {0};
	struct program program = {.go = {0}};
	struct csink_go_table table;
	GElf_Shdr shdr;
	uint32_t left = 0;
	bool others = csink_elf_section(elf, SHT_SYMTAB, NULL, &shdr) != NULL;

	if (!take_segments(&program, elf) || !open_table(&table, &program, elf))
		return nr;
	csink_go_find_inlines(&table, &program.go);
	csink_spending_begin(&spending, file_bytes);
	for (uint32_t i = 0; i < nr; i++) {
		int found = csink_spending_check(&spending) ? 0 : give_lines(p, &table, &wants[i], others);

		*flags |= found;
		if (!found) {
			const struct csink_want want = wants[i];

			wants[i] = wants[left];
			wants[left++] = want;
		}
	}
	if (spending.is_over)
		*flags |= CSINK_LEFT_DWARF;
	return left;
}
