/* See disassemble.h. */
#include "launcher/symbols/disassemble.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/regular.h"
#include "launcher/base/search.h"

/* ---- adding up ---- */

/* A location of a picked function: its line there, and where its code is. */
struct place {
	uint32_t line, address; /* index + 1 in the annotation; 0: the function is not there */
};

/* Returns the line's index + 1, or 0 without memory. */
static uint32_t find_line(struct csink_annotation *a, struct csink_table *table, csink_str_t file, int64_t line)
{
	return CSINK_TABLE_INTERN(*table, (uint32_t)csink_hash_pair(file, (uint64_t)line),
				  a->lines[id - 1].file == file && a->lines[id - 1].line == line,
				  CSINK_APPEND(a->lines, a->nr_lines, a->cap_lines,
					       (struct csink_annotated_line){.file = file, .line = line}));
}

static int add_place(struct csink_annotation *a, struct csink_table *table, const struct csink_profile *p, uint32_t id,
		     uint32_t k, struct place *place)
{
	const struct csink_profile_location *location = &p->locations[id];
	const struct csink_profile_line *line = location->nr_lines ? &p->lines[location->first_line + k] : NULL;
	const struct csink_profile_mapping *m = &p->mappings[location->mapping];

	place->line = find_line(a, table, line ? p->functions[line->function].file : 0, line ? line->line : 0);
	if (!place->line)
		return -ENOMEM;
	if (!location->mapping || (line && csink_is_interpreted(p, location->mapping, line->function)))
		return 0;
	place->address =
		CSINK_APPEND(a->addresses, a->nr_addresses, a->cap_addresses,
			     (struct csink_annotated_address){.mapping = location->mapping,
							      .offset = location->address - m->start + m->offset});
	return place->address ? 0 : -ENOMEM;
}

/* Where the picked functions are: of a location that holds several, the innermost. */
static struct place *find_places(struct csink_annotation *a, const struct csink_profile *p,
				 const struct csink_rows *rows, const bool *picked)
{
	struct place *places = calloc(p->nr_locations, sizeof(*places));
	struct csink_table table = {0};
	uint32_t id, k;

	for (id = 1; places && id < p->nr_locations; id++) {
		const struct csink_profile_range *span = &rows->spans[id];

		for (k = 0; k < span->nr && !picked[rows->ids[span->first + k]]; k++)
			;
		if (k < span->nr && add_place(a, &table, p, id, k, &places[id])) {
			free(places);
			places = NULL;
		}
	}
	csink_table_free(&table);
	return places;
}

static void add_sample(struct csink_annotation *a, const struct csink_profile *p, const struct csink_rows *rows,
		       const bool *picked, const struct place *places, uint32_t sample, int64_t value)
{
	const struct csink_profile_range *stack = &p->stacks[p->samples[sample].stack];
	const uint32_t *ids = p->stack_ids + stack->first;
	const struct place *place;
	uint32_t i;
	bool self;

	a->sum = csink_add(a->sum, value);
	for (i = 0; i < stack->nr && !places[ids[i]].line; i++)
		;
	if (i == stack->nr)
		return;
	place = &places[ids[i]];
	self = !i && picked[rows->ids[rows->spans[*ids].first]]; /* its innermost function is a picked one */
	a->total = csink_add(a->total, value);
	a->self = csink_add(a->self, self ? value : 0);
	a->lines[place->line - 1].total = csink_add(a->lines[place->line - 1].total, value);
	a->lines[place->line - 1].self = csink_add(a->lines[place->line - 1].self, self ? value : 0);
	if (!place->address)
		return;
	/* What was inlined into it is the code's own. */
	a->addresses[place->address - 1].total = csink_add(a->addresses[place->address - 1].total, value);
	a->addresses[place->address - 1].self = csink_add(a->addresses[place->address - 1].self, i ? 0 : value);
}

static int compare_lines(const void *a, const void *b, void *context)
{
	const struct csink_annotated_line *left = a, *right = b;
	const struct csink_profile *p = context;

	return strcmp(csink_profile_text(p, left->file), csink_profile_text(p, right->file))
		       ?: CSINK_COMPARE(left->line, right->line);
}

CSINK_COMPARE_BY(compare_addresses, struct csink_annotated_address, mapping, offset)

int csink_annotation_build(struct csink_annotation *a, const struct csink_profile *p, const struct csink_rows *rows,
			   uint32_t type, const bool *picked)
{
	struct place *places;
	uint32_t i;

	*a = (struct csink_annotation){0};
	places = find_places(a, p, rows, picked);
	if (!places) {
		csink_annotation_free(a);
		return -ENOMEM;
	}
	for (i = 0; i < p->nr_samples; i++)
		add_sample(a, p, rows, picked, places, i, csink_profile_values(p, i)[type]);
	if (a->nr_lines)
		qsort_r(a->lines, a->nr_lines, sizeof(*a->lines), compare_lines, (void *)p);
	if (a->nr_addresses)
		qsort(a->addresses, a->nr_addresses, sizeof(*a->addresses), compare_addresses);
	free(places);
	return 0;
}

void csink_annotation_free(struct csink_annotation *a)
{
	free(a->lines);
	free(a->addresses);
	*a = (struct csink_annotation){0};
}

/* ---- code ---- */

static bool is_build(Elf *elf, const char *want)
{
	const unsigned char *id;
	ssize_t len = dwelf_elf_gnu_build_id(elf, (const void **)&id);
	char text[2 * 64 + 1] = "";
	ssize_t i;

	for (i = 0; i < len && i < 64; i++)
		sprintf(text + 2 * i, "%02x", id[i]);
	return !*want || !strcmp(text, want);
}

bool csink_code_address(Elf *elf, uint64_t offset, uint64_t *address)
{
	size_t nr, i;
	GElf_Phdr phdr;

	for (i = 0; !elf_getphdrnum(elf, &nr) && i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    offset - phdr.p_offset >= phdr.p_filesz)
			continue;
		*address = offset - phdr.p_offset + phdr.p_vaddr;
		return true;
	}
	return false;
}

static bool range_of(Elf *elf, uint64_t address, struct csink_code_range *range)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Sym sym;
	bool found = false;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		size_t i, nr;

		if (!gelf_getshdr(scn, &shdr) || (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		nr = data && shdr.sh_entsize ? data->d_size / shdr.sh_entsize : 0;
		for (i = 0; i < nr && i < INT32_MAX && gelf_getsym(data, (int)i, &sym); i++) {
			if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
			    address - sym.st_value >= sym.st_size)
				continue;
			*range = (struct csink_code_range){sym.st_value, sym.st_value + sym.st_size};
			found = true;
		}
	}
	return found;
}

int csink_code_find(const char *path, const char *build_id, uint64_t offset, uint64_t *address,
		    struct csink_code_range *range)
{
	int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY), err = CSINK_MIN(fd, 0);
	Elf *elf;

	if (err)
		return err;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		err = -ENOEXEC;
	else if (!is_build(elf, build_id))
		err = -ESTALE;
	else if (!csink_code_address(elf, offset, address))
		err = -ENOEXEC;
	else if (!range_of(elf, *address, range))
		err = -ENOENT;
	elf_end(elf);
	close(fd);
	return err;
}
