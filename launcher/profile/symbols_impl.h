/* What the symbols*.c files share; nobody else includes this. */
#ifndef CSINK_LAUNCHER_SYMBOLS_IMPL_H
#define CSINK_LAUNCHER_SYMBOLS_IMPL_H

#include <elfutils/libdw.h>
#include <gelf.h>

#include "launcher/profile/profile.h"
#include "launcher/profile/symbols.h"

/* What is known of one wanted address, beside it in the batch. */
struct csink_found {
	uint32_t function;              /* of the symbol table; 0: none */
	uint32_t unit;                  /* of the debug information, index + 1; 0: none */
	uint32_t first_link, last_link; /* the DWARF functions around it, outermost first; index + 1 */
	uint32_t line;                  /* 0: not known */
	csink_str_t file;               /* of the line */
	uint8_t is_done;                /* its location has its lines */
};

struct csink_batch {
	struct csink_profile *p;
	struct csink_want *wants; /* sorted */
	struct csink_found *found;
	uint32_t nr;
	int flags; /* enum csink_symbols_found */
};

/** The first want at or after an address; batch->nr if none. */
uint32_t csink_batch_lower(const struct csink_batch *batch, uint64_t address);

/** A section that is in the file, by type (0: any) and name (NULL: any); NULL if there is none. */
Elf_Scn *csink_elf_section(Elf *elf, uint32_t type, const char *name, GElf_Shdr *shdr);

/**
 * Name from the symbol tables of an object's files, which are NULL where there is none.
 * Returns 0 or -ENOMEM.
 */
int csink_elf_symbols(struct csink_batch *batch, Elf *const *elfs, uint32_t nr_elfs);

/** Name what is in procedure linkage tables and has no name yet: "foo@plt". Returns 0 or -ENOMEM. */
int csink_elf_plt(struct csink_batch *batch, Elf *elf);

/** Name what has no name yet after the start of its function, as .eh_frame_hdr has it. */
void csink_elf_unwind_starts(struct csink_batch *batch, Elf *elf, const char *path);

/**
 * Add what DWARF knows: lines, and the functions around each address, to whose location their lines are given.
 * Returns 0 or -ENOMEM.
 */
int csink_dwarf_resolve(struct csink_batch *batch, Dwarf *dwarf);

/* One compilation unit and the part of .debug_info that is its own. */
struct csink_unit {
	Dwarf_Die die;
	const uint8_t *section, *head, *at, *end; /* at: behind the unit's header, its first entry */
	uint8_t address_size, offset_size;
	uint16_t version;
};

/* A function around an address: one more in the list of the want. */
struct csink_link {
	uint32_t next; /* index + 1 */
	Dwarf_Die die; /* a subprogram first, then inlined subroutines */
};

struct csink_links {
	struct csink_link *all;
	uint32_t nr, cap;
};

struct csink_scan;

/**
 * Find the functions around the wants from first to last - 1 whose unit is `id` (batch->found[].unit): one pass over
 * the unit's entries. Damaged information ends the pass. Returns 0 and *out (csink_scan_close it), or -ENOMEM.
 */
int csink_scan_open(struct csink_batch *batch, const struct csink_unit *unit, uint32_t id, uint32_t first,
		    uint32_t last, struct csink_links *links, struct csink_scan **out);
void csink_scan_close(struct csink_scan *s);

/** Put the namespaces, classes and functions that an entry of the unit stands in before its name in buf, "std::sort".
 */
void csink_scan_qualify(struct csink_scan *s, const Dwarf_Die *die, char *buf, size_t size);

#endif
