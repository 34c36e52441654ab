/*
 * Names of locks, and of who holds them. A lock that is a variable has its symbol, another one its address. The
 * launcher's one thread.
 */
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libiberty/demangle.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/format.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/profile/demangle.h"

/* ---- variables of objects ---- */

struct object {
	csink_str_t path;
	int fd;
	Elf *elf; /* NULL: it cannot be read */
	uint64_t low, high;
};

struct csink_lock_names {
	struct object *all;
	uint32_t nr, cap;
};

static void learn_bounds(struct object *object)
{
	size_t nr = 0;
	GElf_Phdr phdr;

	object->low = UINT64_MAX;
	elf_getphdrnum(object->elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(object->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		object->low = CSINK_MIN(object->low, phdr.p_vaddr);
		object->high = CSINK_MAX(object->high, phdr.p_vaddr + phdr.p_memsz);
	}
}

/* NULL without memory. */
static const struct object *object_of(struct collector *c, const char *path)
{
	struct csink_lock_names *names = c->lock_names;
	csink_str_t id = csink_profile_str(c->p, path);
	struct object *object;

	if (!names)
		names = c->lock_names = calloc(1, sizeof(*names));
	for (uint32_t i = 0; names && i < names->nr; i++)
		if (names->all[i].path == id)
			return &names->all[i];
	if (!names || CSINK_GROW(names->all, names->nr, names->cap))
		return NULL;
	object = &names->all[names->nr++];
	*object = (struct object){.path = id, .fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY)};
	elf_version(EV_CURRENT);
	if (object->fd >= 0)
		object->elf = elf_begin(object->fd, ELF_C_READ, NULL);
	if (object->elf)
		learn_bounds(object);
	return object;
}

void csink_lock_names_free(struct csink_lock_names *names)
{
	for (uint32_t i = 0; names && i < names->nr; i++) {
		elf_end(names->all[i].elf);
		if (names->all[i].fd >= 0)
			close(names->all[i].fd);
	}
	if (names)
		free(names->all);
	free(names);
}

/* The variable that holds an address of the file. */
static const char *variable_at(const struct object *object, uint64_t address, uint64_t *offset)
{
	const char *name = NULL;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Sym sym;

	while (!name && (scn = elf_nextscn(object->elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym) && !name; i++) {
			if (GELF_ST_TYPE(sym.st_info) != STT_OBJECT || address - sym.st_value >= sym.st_size)
				continue;
			*offset = address - sym.st_value;
			name = elf_strptr(object->elf, shdr.sh_link, sym.st_name);
		}
	}
	return name;
}

csink_str_t csink_collect_lock_name(struct collector *c, const struct csink_recorded *rec, int32_t pid,
				    uint64_t address)
{
	char text[512];

	for (uint32_t i = 0; i < rec->nr_modules; i++) {
		const struct csink_rec_module *module = rec->modules[i];
		const struct object *object = module->is_vdso ? NULL : object_of(c, module->path);
		uint64_t at = address - module->bias, offset = 0;
		const char *name;

		if (!object || !object->elf || at < object->low || at >= object->high)
			continue;
		name = variable_at(object, at, &offset);
		if (name) {
			CSINK_AUTO_FREE char *plain = csink_demangle(name, DMGL_PARAMS | DMGL_ANSI, NULL);

			snprintf(text, sizeof(text) - 24, "%.400s", plain ? plain : name);
			if (offset)
				csink_append(text, sizeof(text), "+%" PRIu64, offset);
		} else {
			snprintf(text, sizeof(text), "[%s+0x%" PRIx64 "]", csink_base_name(module->path), at);
		}
		return csink_profile_str(c->p, text);
	}
	snprintf(text, sizeof(text), "[0x%" PRIx64 " of process %d]", address, (int)pid);
	return csink_profile_str(c->p, text);
}

/* ---- who holds them ---- */

/* With those that are inlined there, at most nr. Returns how many more there may be. */
static uint32_t add_names(const struct csink_profile *p, uint32_t location, uint32_t nr, char *text, size_t size)
{
	const struct csink_profile_location *at = &p->locations[location];

	for (uint32_t i = 0; i < at->nr_lines && nr; i++, nr--)
		csink_append(text, size, "%s%s", *text ? " < " : "",
			     csink_profile_text(p, p->functions[p->lines[at->first_line + i].function].name));
	if (!at->nr_lines && nr--)
		csink_append(text, size, "%s[unknown]", *text ? " < " : "");
	return nr;
}

void csink_collect_holders(struct collector *c)
{
	csink_str_t key = csink_profile_str_find(c->p, CSINK_LABEL_HOLDER);
	char text[1024];
	uint32_t left;

	for (uint32_t i = 0; key && i < c->p->nr_labels; i++) {
		struct csink_profile_label *label = &c->p->labels[i];
		const struct holder *holder;

		if (label->key != key || label->str || label->num < 1 || label->num > c->nr_holders)
			continue;
		holder = &c->holders[label->num - 1];
		*text = '\0';
		left = CSINK_ARRAY_SIZE(holder->locations);
		for (uint32_t k = 0; k < holder->nr && left; k++)
			left = add_names(c->p, holder->locations[k], left, text, sizeof(text));
		label->str = csink_profile_str(c->p, text);
		label->num = 0;
	}
}
