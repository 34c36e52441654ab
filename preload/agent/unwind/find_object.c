/* See find_object.h. Source: _dl_find_object(3), <link.h> on the list of objects. Set as the process
 * begins; the function that is found is async-signal-safe. */
#include "preload/agent/unwind/find_object.h"

#include <gnu/lib-names.h>
#include <stdbool.h>
#include <string.h>

#include "preload/core/elf_symbol.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
int (*csink_find_object)(void *address, struct dl_find_object *found);
#endif
const struct link_map *csink_libc_map;
const char *csink_single_threaded;

static bool is_libc(const struct link_map *map)
{
	size_t length = strlen(map->l_name), name = sizeof("/" LIBC_SO) - 1;

	return length >= name && !strcmp(map->l_name + length - name, "/" LIBC_SO);
}

static const char *find_flag(const struct link_map *map)
{
	struct csink_elf_view view;

	return csink_elf_open(&view, map->l_addr, map->l_ld, NULL)
		       ? (const char *)csink_elf_look(&view, "__libc_single_threaded", STT_OBJECT, NULL)
		       : NULL;
}

void csink_find_object_init(void)
{
	const struct link_map *program = _r_debug.r_map, *at = program;

	while (at && !is_libc(at))
		at = at->l_next;
	if (!at)
		return;
	csink_libc_map = at;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	csink_find_object = (int (*)(void *, struct dl_find_object *))csink_elf_function(at, "_dl_find_object");
#endif
	/* libc sets that of a program which has a copy of it (R_*_COPY). */
	csink_single_threaded = find_flag(program);
	if (!csink_single_threaded)
		csink_single_threaded = find_flag(at);
}
