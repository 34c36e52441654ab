/* What the symbols*.c files share; nobody else includes this. */
#ifndef CSINK_LAUNCHER_SYMBOLS_IMPL_H
#define CSINK_LAUNCHER_SYMBOLS_IMPL_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/symbols.h"
#include "launcher/search.h"

/* What is known of one wanted address, beside it in the batch. */
struct csink_found {
	uint32_t function;              /* of the symbol table; 0: none */
	uint32_t unit;                  /* of the debug information, index + 1; 0: none */
	uint32_t first_link, last_link; /* the DWARF functions around it, outermost first; index + 1 */
	uint32_t line;                  /* 0: not known */
	csink_str_t file;               /* of the line */
	uint8_t is_done;                /* its location has its lines */
};

/* What debug information of this object has cost so far (symbols_limits.c). */
struct csink_spending {
	uint64_t end_ns, max_bytes; /* processor time of the thread, and memory in use, at which it is enough */
	uint32_t steps, checks;
	bool is_over;
};

struct csink_batch {
	struct csink_profile *p;
	const char *path;         /* of the object */
	struct csink_want *wants; /* sorted */
	struct csink_found *found;
	uint32_t nr;
	int flags; /* enum csink_symbols_found */
	struct csink_spending spending;
	uint64_t nr_offers; /* of addresses to symbols: symbols_elf.c */
};

/** The first want at or after an address; batch->nr if none. */
static inline uint32_t csink_batch_lower(const struct csink_batch *batch, uint64_t address)
{
	return CSINK_LOWER(batch->nr, i, batch->wants[i].address < address);
}

/** Allow 5 s and 192 MiB, and more for larger files: 1 s for 16 MiB, 4 bytes for each. */
void csink_spending_begin(struct csink_spending *spending, uint64_t file_bytes);

/** Look, each 16th time, whether that is spent. Returns and keeps is_over. */
bool csink_spending_check(struct csink_spending *spending);

/** For loops whose steps take little: looks now and then. Returns whether to stop. */
static inline bool csink_spending_step(struct csink_spending *spending)
{
	return ++spending->steps % 4096 ? spending->is_over : csink_spending_check(spending);
}

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

/* The units that hold wanted addresses. */
struct csink_units {
	struct csink_unit *all;
	uint32_t nr, cap;
};

/**
 * Find them, and give every want its unit (batch->found[].unit). Where ranges overlap (folded functions), the first in
 * the file has it. Returns 0 (csink_units_release it) or -ENOMEM.
 */
int csink_units_find(struct csink_batch *batch, Dwarf *dwarf, struct csink_units *units);
void csink_units_release(struct csink_units *units);

/**
 * Find where a unit's entries lie in memory. @last is the section that the last one was in, or NULL. False if it cannot
 * be told: then the unit is left to the symbol table.
 */
bool csink_unit_place(struct csink_unit *unit, const Elf_Data **last);

/** A file as libdw has it: a relative one is counted from the folder that the unit was compiled in. */
csink_str_t csink_unit_path(struct csink_batch *batch, Dwarf_Die *unit, const char *file);

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
struct csink_lines;

/* A section's; at is NULL where there is none. */
struct csink_bytes {
	const uint8_t *at;
	size_t nr;
};

/* What line tables are read from. line_str and str are as long as their last zero: every text in them has an end. */
struct csink_line_sections {
	struct csink_bytes line, line_str, str;
};

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

/**
 * Open the line table at an offset of sections->line.
 * @own_folder  that its unit was compiled in, or NULL. It and the sections stay until the table is closed.
 * Returns 0 and *out (csink_lines_close it), -ENOTSUP (libdw may know better) or -ENOMEM.
 */
int csink_lines_open(const struct csink_line_sections *sections, uint64_t offset, const char *own_folder,
		     struct csink_lines **out);
void csink_lines_close(struct csink_lines *l);

/** The whole path of a file by its number in the table; 0: none. */
csink_str_t csink_lines_file(struct csink_lines *l, struct csink_profile *p, uint64_t file);

/** Give the wants from first to last - 1 whose unit is `id` their lines. */
void csink_lines_find(struct csink_lines *l, struct csink_batch *batch, uint32_t id, uint32_t first, uint32_t last);

/* Functions made so far, and what makes more of a unit's entries. */
struct csink_functions {
	struct csink_batch *batch;
	const struct csink_unit *unit; /* at work */
	struct csink_lines *lines;     /* its; NULL: libdw reads them */
	struct csink_scan *scan;       /* of it; NULL: C++ names that cannot be linked to stay without their scope */
	struct csink_known *known;     /* open addressing; half full at most */
	uint32_t known_mask, nr_known;
	int err; /* -ENOMEM from the first failure on */
};

/**
 * The function of an entry, which is made where it is new. 0 with f->err set.
 * @symbol  what the symbol table has at the address (outermost functions only), or 0.
 */
uint32_t csink_functions_get(struct csink_functions *f, Dwarf_Die *die, uint32_t symbol);

/** The file that an attribute of an entry names by its number in the table of the entry's unit; 0: none. */
csink_str_t csink_functions_file(struct csink_functions *f, Dwarf_Die *die, uint32_t attribute);

void csink_functions_release(struct csink_functions *f);

/* ---- bytes of DWARF, never read from behind their end; *at moves on ---- */

static inline const uint8_t *csink_advance(const uint8_t *at, const uint8_t *end, uint64_t bytes)
{
	return (uint64_t)(end - at) < bytes ? end : at + bytes;
}

/** A number of so many bytes; what is above eight is left out, and it is 0 where there are fewer. */
static inline uint64_t csink_read_fixed(const uint8_t *at, const uint8_t *end, uint32_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(end - at) < bytes)
		return 0;
	memcpy(&value, at, CSINK_MIN(bytes, 8)); /* files of the other byte order are not read */
	return value;
}

static inline uint64_t csink_read_leb(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;
	uint32_t shift = 0;

	while (*at < end) {
		if (shift < 64)
			value |= (uint64_t)(**at & 0x7f) << shift;
		shift += 7;
		if (!(*(*at)++ & 0x80))
			break;
	}
	return value;
}

static inline int64_t csink_read_sleb(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *start = *at;
	uint64_t value = csink_read_leb(at, end);
	uint32_t bits = 7 * (uint32_t)CSINK_MIN(*at - start, 10);

	if (*at > start && bits < 64 && (*at)[-1] & 0x40)
		value |= ~0ULL << bits;
	return (int64_t)value;
}

#endif
