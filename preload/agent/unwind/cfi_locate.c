/*
 * From an address of this process to the tables of its object: loader, program headers. Apart from cfi_find.c, which
 * also reads the tables of other processes' objects (launcher/attach). Any thread; async-signal-safe.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/calls_off.h"
#include "preload/core/cfi/cfi.h"
#include "preload/core/cfi/cfi_read.h"
#include "preload/core/safe_load.h"

#define MAX_PHDR 64

/* A segment that holds all of [start, start + bytes), and may be read. */
static const ElfW(Phdr) * readable_segment(const ElfW(Phdr) * phdr, uint32_t nr, uintptr_t vaddr, size_t bytes)
{
	for (uint32_t i = 0; i < nr; i++)
		if (phdr[i].p_type == PT_LOAD && (phdr[i].p_flags & PF_R) && vaddr >= phdr[i].p_vaddr &&
		    vaddr - phdr[i].p_vaddr < phdr[i].p_filesz && phdr[i].p_filesz - (vaddr - phdr[i].p_vaddr) >= bytes)
			return &phdr[i];
	return NULL;
}

/* Where .eh_frame begins, as its header says. */
static uintptr_t frames_of(const uint8_t *hdr, const uint8_t *hdr_end)
{
	struct csink_reader r = {hdr + 4, hdr_end, hdr_end - hdr < 4};

	return r.failed ? 0 : csink_read_encoded(&r, hdr[1], (uintptr_t)hdr);
}

bool csink_cfi_table_of(uintptr_t bias, const ElfW(Phdr) * phdr, uint32_t nr, struct csink_cfi_table *table)
{
	for (uint32_t i = 0; i < nr && i < MAX_PHDR; i++) {
		const ElfW(Phdr) * segment;

		if (phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		segment = readable_segment(phdr, nr, phdr[i].p_vaddr, 4);
		if (!segment)
			return false;
		table->hdr = (const uint8_t *)(bias + phdr[i].p_vaddr);
		table->hdr_end = (const uint8_t *)(bias + segment->p_vaddr + segment->p_filesz);
		segment = readable_segment(phdr, nr, frames_of(table->hdr, table->hdr_end) - bias, 4);
		if (!segment)
			return false;
		table->low = (const uint8_t *)(bias + segment->p_vaddr);
		table->high = table->low + segment->p_filesz;
		table->shift = 0;
		return true;
	}
	return false;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* By what was seen when objects were listed: the headers, which a program may have protected since, are not read. */
static bool locate_listed(uintptr_t pc, uintptr_t eh_frame, struct csink_cfi_table *table)
{
	struct csink_module module;

	if (!csink_modules_find(pc, &module) || module.eh_frame != eh_frame || module.tables_behind < 4)
		return false;
	table->hdr = (const uint8_t *)eh_frame;
	table->low = table->hdr - module.tables_before;
	table->high = table->hdr_end = table->hdr + module.tables_behind;
	table->shift = 0;
	return frames_of(table->hdr, table->high) - (uintptr_t)table->low < (uintptr_t)(table->high - 4 - table->low);
}

/* 1: found; 0: no object there; -1: unknown to the loader. */
static int locate_by_loader(uintptr_t pc, struct csink_cfi_table *table)
{
	struct dl_find_object object;
	const ElfW(Ehdr) * ehdr;

	if (!csink_find_object)
		return -1;
	if (csink_find_object((void *)pc, &object) || !object.dlfo_eh_frame)
		return 0;
	if (locate_listed(pc, (uintptr_t)object.dlfo_eh_frame, table))
		return 1;
	ehdr = object.dlfo_map_start;
	/* The program may have protected them. */
	if (!csink_calls_are_off(CSINK_CALLS_PROBE) &&
	    !csink_readable((uintptr_t)ehdr, sizeof(*ehdr) + MAX_PHDR * sizeof(ElfW(Phdr))))
		return -1;
	if (*(const uint32_t *)ehdr->e_ident != *(const uint32_t *)ELFMAG || ehdr->e_phoff != sizeof(*ehdr) ||
	    ehdr->e_phentsize != sizeof(ElfW(Phdr)) || ehdr->e_phnum > MAX_PHDR)
		return -1;
	return csink_cfi_table_of(object.dlfo_link_map->l_addr, (const ElfW(Phdr) *)(ehdr + 1), ehdr->e_phnum, table);
}
#else
static int locate_by_loader(uintptr_t pc, struct csink_cfi_table *table)
{
	(void)pc;
	(void)table;
	return -1;
}
#endif

bool csink_cfi_locate(uintptr_t pc, struct csink_cfi_table *table)
{
	int found = locate_by_loader(pc, table);
	struct csink_module module;

	if (found > 0)
		return true;
	if (CSINK_UNLIKELY(csink_jit_is_on()) && csink_jit_locate(pc, table))
		return true;
	return found < 0 && csink_modules_find(pc, &module) &&
	       csink_readable((uintptr_t)module.phdr, module.nr_phdr * sizeof(ElfW(Phdr))) &&
	       csink_cfi_table_of(module.bias, module.phdr, module.nr_phdr, table);
}
