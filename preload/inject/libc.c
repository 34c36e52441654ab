#include "preload/inject/libc.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/inject/real.h"
#include "preload/sample/got_patch.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object /* glibc >= 2.35 */
#endif

struct object {
	uintptr_t start, end;
	const struct link_map *map;
};

static struct object libc, loader;

static bool find_object(const void *address, struct object *object)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	if (_dl_find_object && _dl_find_object((void *)address, &found) == 0) {
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

/* Most programs need none of this, and should not pay for it. */
void *csink_libc_find(const char *name)
{
	static void *handle;

	if (!handle && libc.map)
		handle = REAL(dlopen)(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	return handle ? dlsym(handle, name) : NULL;
}

/* What one of them allocates another one frees: all must be the same library's, be it libc or not. */
static bool is_allocators(const char *name)
{
	static const char *const names[] = {"malloc", "calloc", "realloc", "free"};

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

void csink_libc_init(void)
{
	struct object ours;

	/* Nobody stands before these. */
	if (!find_object(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) ||
	    !find_object(dlsym(RTLD_DEFAULT, "__tls_get_addr"), &loader) || !find_object(&libc, &ours)) {
		libc.map = NULL;
		return;
	}
	csink_got_route_all(ours.map, route);
}

int csink_libc_clone(int (*fn)(void *arg), void *stack, int flags, void *arg)
{
	return REAL(clone)(fn, stack, flags, arg);
}
