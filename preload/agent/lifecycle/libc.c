/*
 * Finding libc and its functions without the loader: see libc.h. Initialised by the constructor; then read-only, on any
 * thread, async-signal-safe.
 */
#include "preload/agent/lifecycle/libc.h"

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

static const struct link_map *ours; /* with libc behind it in the list of what was loaded first; NULL: not known */

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

const struct link_map *csink_own_map(void)
{
	const struct link_map *at = _r_debug.r_map;

	while (at && at->l_ld != _DYNAMIC)
		at = at->l_next;
	return at;
}

bool csink_libc_has(const void *function)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	if (csink_find_object)
		return !csink_find_object((void *)function, &found) &&
		       (found.dlfo_link_map == csink_libc_map || found.dlfo_link_map->l_addr == _r_debug.r_ldbase);
#endif
	(void)function;
	return true;
}

const char *csink_libc_loader_path(void)
{
	const struct link_map *at = _r_debug.r_map;

	while (at && at->l_addr != _r_debug.r_ldbase)
		at = at->l_next;
	return at && at->l_name[0] == '/' ? at->l_name : NULL;
}

void *csink_libc_find(const char *name)
{
	return csink_libc_map ? csink_elf_function(csink_libc_map, name) : NULL;
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
	/* What was loaded at the start, and so stays: up to libc, which is the last to have what we interpose. Before
	 * glibc 2.34 libpthread and libdl may come later. */
	for (const struct link_map *at = ours; !*function && (at != csink_libc_map || !csink_find_object);) {
		at = at->l_next;
		if (!at)
			break;
		if (!is_vdso(at))
			*function = csink_elf_function(at, name);
	}
	return true;
}

bool csink_libc_ours_is_first(const char *name)
{
	const struct link_map *own = csink_own_map(), *at = _r_debug.r_map;

	while (own && at != own && (is_vdso(at) || !csink_elf_function(at, name)))
		at = at->l_next;
	return own && at == own;
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

	if (!own || !csink_libc_map)
		return;
	/* Loaded later, by dlopen, we would come behind libc; and an object without the newer table of names has to be
	 * asked by the loader. */
	for (const struct link_map *at = own; at && !ours && (is_vdso(at) || has_names(at)); at = at->l_next)
		ours = at == csink_libc_map ? own : NULL;
	csink_got_route_all(own, route);
}

int csink_libc_clone(int (*fn)(void *arg), void *stack, int flags, void *arg)
{
	return REAL(clone)(fn, stack, flags, arg);
}
