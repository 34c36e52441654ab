/*
 * Names of locks, and of who holds them. A lock that is a variable has its symbol, another one its address. The
 * launcher's one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/format.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/base/search.h"
#include "launcher/base/table.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/profile/append_functions.h"
#include "launcher/profile/demangle.h"
#include "launcher/symbols/elf_build.h"
#include "launcher/symbols/symbols_limits.h"

/* ---- variables of objects ---- */

enum { MAX_NAMES = 64 << 20 }; /* bytes of all variables */

struct variable {
	uint64_t start, end;
	char *name;
};

struct object {
	csink_str_t path;
	uint8_t build_id[sizeof(((struct csink_rec_module *)0)->build_id)], build_id_len;
	uint64_t low, high; /* of the file's addresses; low above high: it cannot be read */
	struct variable *all;
	uint32_t nr, cap;
};

struct csink_lock_names {
	struct object *all;
	uint32_t nr, cap;
	struct csink_table known;
	size_t bytes;                            /* of variables */
	const struct csink_rec_module **modules; /* of the recording that is read, by where they start */
	uint32_t nr_modules;
};

static void learn_bounds(struct object *object, Elf *elf)
{
	size_t nr = 0;
	GElf_Phdr phdr;

	elf_getphdrnum(elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		object->low = CSINK_MIN(object->low, phdr.p_vaddr);
		object->high = CSINK_MAX(object->high, phdr.p_vaddr + phdr.p_memsz);
	}
}

CSINK_COMPARE_BY(compare_variables, struct variable, start, end)

static void learn_variables(struct collector *c, struct object *object, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Sym sym;
	char *copy;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(elf, shdr.sh_link, sym.st_name);

			if (GELF_ST_TYPE(sym.st_info) != STT_OBJECT || !sym.st_size || !name || !*name ||
			    sym.st_value > UINT64_MAX - sym.st_size)
				continue;
			copy = c->lock_names->bytes < MAX_NAMES ? strndup(name, CSINK_MAX_SYMBOL_NAME) : NULL;
			if (!copy || CSINK_GROW(object->all, object->nr, object->cap)) {
				free(copy);
				break;
			}
			c->lock_names->bytes += strlen(copy) + 1 + sizeof(*object->all);
			object->all[object->nr++] = (struct variable){sym.st_value, sym.st_value + sym.st_size, copy};
		}
	}
	if (object->nr)
		qsort(object->all, object->nr, sizeof(*object->all), compare_variables);
}

static void learn(struct collector *c, struct object *object, const char *path)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	/* Another build has other variables. */
	if (elf && elf_kind(elf) == ELF_K_ELF && !csink_elf_hides_names(elf) &&
	    (!object->build_id_len || csink_elf_is_build(elf, object->build_id, object->build_id_len))) {
		learn_bounds(object, elf);
		learn_variables(c, object, elf);
	}
	elf_end(elf);
}

/* Returns its number, from 1; 0: no memory. */
static uint32_t add_object(struct collector *c, const struct csink_rec_module *module, csink_str_t path)
{
	struct csink_lock_names *names = c->lock_names;
	struct object *object;

	if (CSINK_GROW(names->all, names->nr, names->cap))
		return 0;
	object = &names->all[names->nr++];
	*object = (struct object){.path = path, .low = UINT64_MAX, .build_id_len = module->build_id_len};
	memcpy(object->build_id, module->build_id, module->build_id_len);
	learn(c, object, module->path);
	return names->nr;
}

/* NULL without memory. */
static const struct object *object_of(struct collector *c, const struct csink_rec_module *module)
{
	struct csink_lock_names *names = c->lock_names;
	csink_str_t path = csink_profile_str(c->p, module->path);
	uint64_t build = csink_hash_bytes(module->build_id, module->build_id_len);
	uint32_t found = CSINK_TABLE_INTERN(
		names->known, (uint32_t)csink_hash_pair(path, build),
		names->all[id - 1].path == path && names->all[id - 1].build_id_len == module->build_id_len &&
			!memcmp(names->all[id - 1].build_id, module->build_id, module->build_id_len),
		add_object(c, module, path));

	return found ? &names->all[found - 1] : NULL;
}

void csink_lock_names_free(struct csink_lock_names *names)
{
	for (uint32_t i = 0; names && i < names->nr; i++) {
		for (uint32_t k = 0; k < names->all[i].nr; k++)
			free(names->all[i].all[k].name);
		free(names->all[i].all);
	}
	if (names) {
		free(names->all);
		csink_table_free(&names->known);
		free(names->modules);
	}
	free(names);
}

/* The variable that holds an address of the file; NULL: none. */
static const struct variable *variable_at(const struct object *object, uint64_t address)
{
	uint32_t low = CSINK_LOWER(object->nr, at, object->all[at].start <= address);

	for (uint32_t i = low; i-- > 0 && low - i < 16;) /* some lie within others */
		if (address < object->all[i].end)
			return &object->all[i];
	return NULL;
}

/* Of several at one place, one after the other, in the order of the recording. */
static int compare_modules(const void *a, const void *b)
{
	const struct csink_rec_module *left = *(const struct csink_rec_module *const *)a;
	const struct csink_rec_module *right = *(const struct csink_rec_module *const *)b;

	return CSINK_COMPARE(left->start, right->start) ?: CSINK_COMPARE(left, right);
}

int csink_collect_lock_modules(struct collector *c, const struct csink_recorded *rec)
{
	struct csink_lock_names *names = c->lock_names ?: calloc(1, sizeof(*names));

	c->lock_names = names;
	if (!names)
		return -ENOMEM;
	free(names->modules);
	names->nr_modules = 0;
	names->modules = calloc((size_t)rec->nr_modules + 1, sizeof(*names->modules));
	if (!names->modules)
		return -ENOMEM;
	for (uint32_t i = 0; i < rec->nr_modules; i++)
		if (!rec->modules[i]->is_vdso)
			names->modules[names->nr_modules++] = rec->modules[i];
	qsort(names->modules, names->nr_modules, sizeof(*names->modules), compare_modules);
	return 0;
}

/* Data follows code: of the objects whose code is below an address, the nearest; of several at one place, the last.
 * NULL: none. */
static const struct csink_rec_module *module_below(const struct csink_lock_names *names, uint64_t address)
{
	uint32_t above = CSINK_LOWER(names->nr_modules, at, names->modules[at]->start <= address);

	return above ? names->modules[above - 1] : NULL;
}

csink_str_t csink_collect_lock_name(struct collector *c, uint64_t address)
{
	const struct csink_rec_module *module;
	const struct variable *variable;
	const struct object *object;
	char text[512];
	uint64_t at;

	if (address == CSINK_WAIT_OTHER_LOCKS)
		return csink_profile_str(c->p, "[other locks]");
	module = module_below(c->lock_names, address);
	object = module ? object_of(c, module) : NULL;
	at = module ? address - module->bias : 0;
	if (!object || at < object->low || at >= object->high)
		return 0;
	variable = variable_at(object, at);
	if (variable) {
		CSINK_AUTO_FREE char *plain = csink_demangle(variable->name, DMGL_PARAMS | DMGL_ANSI, NULL);

		snprintf(text, sizeof(text) - 24, "%.400s", plain ? plain : variable->name);
		if (at != variable->start)
			csink_append(text, sizeof(text), "+%" PRIu64, at - variable->start);
	} else {
		snprintf(text, sizeof(text), "[%.400s+0x%" PRIx64 "]", csink_base_name(module->path), at);
	}
	return csink_profile_str(c->p, text);
}

/* ---- who holds them ---- */

static void holder_text(const struct csink_profile *p, const struct holder *holder, char *text, size_t size)
{
	csink_innermost_functions(p, holder->locations, holder->nr, 3, text, size);
}

static bool is_interpreted(const struct csink_profile *p, uint32_t location)
{
	const struct csink_profile_location *at = &p->locations[location];

	return at->nr_lines && p->functions[p->lines[at->first_line].function].language;
}

/* The innermost one that an interpreter runs; else the innermost one. */
static uint32_t first_of(const struct csink_profile *p, const struct made_lock *made)
{
	for (uint32_t i = 0; i < made->nr; i++)
		if (is_interpreted(p, made->locations[i]))
			return i;
	return 0;
}

/*
 * "[made in pool_create, pool.c:12 < server_start < main]": the function that calls libc may do so for all locks of the
 * program. What an interpreter does for the program's own functions is left out.
 */
static void made_text(const struct csink_profile *p, const struct made_lock *made, char *text, size_t size)
{
	uint32_t first = first_of(p, made), left = 3;
	const struct csink_profile_location *at = &p->locations[made->locations[first]];
	const struct csink_profile_line *line = at->nr_lines ? &p->lines[at->first_line] : NULL;
	const char *file = line ? csink_profile_text(p, p->functions[line->function].file) : "";
	char functions[900] = "";
	const char *callers;

	for (uint32_t i = first; i < made->nr && left; i++)
		if (is_interpreted(p, made->locations[i]) == is_interpreted(p, made->locations[first]))
			left = csink_append_functions(p, made->locations[i], left, functions, sizeof(functions));
	callers = strstr(functions, " < ") ?: functions + strlen(functions);
	snprintf(text, size, "[%s%smade in %.*s", made->kind, *made->kind ? " " : "", (int)(callers - functions),
		 functions);
	if (*file && line->line)
		csink_append(text, size, ", %.60s:%" PRId64, csink_base_name(file), line->line);
	csink_append(text, size, "%s]", callers);
}

void csink_collect_holders(struct collector *c)
{
	csink_str_t holder_key = csink_profile_str_find(c->p, CSINK_LABEL_HOLDER);
	csink_str_t lock_key = csink_profile_str_find(c->p, CSINK_LABEL_LOCK);
	char text[1024];

	for (uint32_t i = 0; holder_key && i < c->p->nr_labels; i++) {
		struct csink_profile_label *label = &c->p->labels[i];
		bool is_holder = label->key == holder_key;

		if ((!is_holder && label->key != lock_key) || label->str || label->num < 1 ||
		    label->num > (is_holder ? c->nr_holders : c->nr_made_locks))
			continue;
		if (is_holder)
			holder_text(c->p, &c->holders[label->num - 1], text, sizeof(text));
		else
			made_text(c->p, &c->made_locks[label->num - 1], text, sizeof(text));
		label->str = csink_profile_str(c->p, text);
		label->num = 0;
	}
}
