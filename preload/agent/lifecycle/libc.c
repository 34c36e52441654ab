/*
 * Finding libc and its functions without the loader: see libc.h. Initialised by the constructor; then read-only, on any
 * thread, async-signal-safe.
 */
#include "preload/agent/lifecycle/libc.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/got_patch.h"
#include "preload/core/elf_symbol.h"

void *__tls_get_addr(void *index);

struct object {
	uintptr_t start, end;
	const struct link_map *map;
};

static struct object libc, loader;
static const struct link_map *ours; /* with libc behind it in the list of what was loaded first; NULL: not known */

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

const struct link_map *csink_own_map(void)
{
	const struct link_map *at = _r_debug.r_map;

	while (at && at->l_ld != _DYNAMIC)
		at = at->l_next;
	return at;
}

static bool find_object(const void *address, struct object *object)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	if (csink_find_object && csink_find_object((void *)address, &found) == 0) {
		*object = (struct object){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
					  found.dlfo_link_map};
		return true;
	}
#endif
	(void)address;
	(void)object;
	return false;
}

static bool is_in(const struct object *object, const void *address)
{
	return (uintptr_t)address - object->start < object->end - object->start;
}

bool csink_libc_has(const void *function)
{
	return !libc.map || is_in(&libc, function) || is_in(&loader, function);
}

const char *csink_libc_loader_path(void)
{
	return libc.map && loader.map->l_name[0] == '/' ? loader.map->l_name : NULL;
}

void *csink_libc_find(const char *name)
{
	return libc.map ? csink_elf_function(libc.map, name) : NULL;
}

/* It is in the list, but no object is linked to it. */
static bool is_vdso(const struct link_map *map)
{
	return map->l_addr == getauxval(AT_SYSINFO_EHDR);
}

bool csink_libc_next(const char *name, void **function)
{
	*function = NULL;
	if (!ours)
		return false;
	/* What was loaded at the start, and so stays: up to libc, which is the last to have what we interpose. */
	for (const struct link_map *at = ours; at != libc.map && !*function;) {
		at = at->l_next;
		if (!is_vdso(at))
			*function = csink_elf_function(at, name);
	}
	return true;
}

/* What one of them allocates another one frees: all must be the same library's, be it libc or not. */
static bool is_allocators(const char *name)
{
	static const char names[][8] = {"malloc", "calloc", "realloc", "free"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void *route(const char *name, void *now)
{
	if (!now || csink_libc_has(now) || is_allocators(name))
		return NULL;
	return csink_libc_find(name);
}

static bool has_names(const struct link_map *map)
{
	struct csink_elf_view view;

	return csink_elf_open(&view, map->l_addr, map->l_ld, NULL);
}

void csink_libc_init(void)
{
	const struct link_map *own = csink_own_map();

	/* These symbols are never interposed. */
	if (!own || !find_object(gnu_get_libc_version, &libc) || !find_object(__tls_get_addr, &loader)) {
		libc.map = NULL;
		return;
	}
	/* Loaded later, by dlopen, we would come behind libc; and an object without the newer table of names has to be
	 * asked by the loader. */
	for (const struct link_map *at = own; at && !ours && (is_vdso(at) || has_names(at)); at = at->l_next)
		ours = at == libc.map ? own : NULL;
	csink_got_route_all(own, route);
}

int csink_libc_clone(int (*fn)(void *arg), void *stack, int flags, void *arg)
{
	return REAL(clone)(fn, stack, flags, arg);
}
