/* What the symbols*.c files share; no other file includes this. */
#ifndef CSINK_SYMBOLS_IMPL_H
#define CSINK_SYMBOLS_IMPL_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/base/table.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

/* What is known of one wanted address, beside it in the batch. */
struct csink_found {
	uint32_t function;              /* of the symbol table; 0: none */
	uint32_t unit;                  /* of the debug information, index + 1; 0: none */
	uint32_t first_link, last_link; /* the DWARF functions around it, outermost first; index + 1 */
	uint32_t line;                  /* 0: not known */
	csink_str_t file;               /* of the line */
	uint8_t is_done;                /* its location has its lines */
	uint8_t is_split;               /* its unit is; see there */
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

/** What was found of one want, once it has its lines: enum csink_symbols_found. */
int csink_batch_flags(const struct csink_batch *batch, uint32_t want);

/** Give the wants that DWARF gave no lines the function that the symbol tables gave them. */
void csink_batch_fill_rest(struct csink_batch *batch);

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

/**
 * Of the relocations that the loader applies, 4,194,304 at most, in 16 sections: a section that has more than are left
 * is not read.
 * @symbols  the symbol table that they refer to; NULL: none.
 */
void csink_elf_each_relocation(Elf *elf, void (*take)(void *arg, Elf_Scn *symbols, const GElf_Rela *rela), void *arg);

/** Name what is in procedure linkage tables and has no name yet: "foo@plt". Returns 0 or -ENOMEM. */
int csink_elf_plt(struct csink_batch *batch, Elf *elf);

/** Name what is in .init and .fini, which are a function each, and has no name yet. */
void csink_elf_init_and_fini(struct csink_batch *batch, Elf *elf);

/** Name V8's builtins that have no name yet as its symbol table would: "Builtins_ArrayMap". Returns 0 or -ENOMEM. */
int csink_elf_v8_builtins(struct csink_batch *batch, Elf *elf);

/** Name what has no name yet after the start of its function, as .eh_frame_hdr has it, or .eh_frame. */
void csink_elf_unwind_starts(struct csink_batch *batch, Elf *elf, const char *path);

/**
 * Name what is in functions of Go, by the table of the program itself, with lines and inlined calls.
 * @file_bytes  of the file; wants: those that are left come first afterwards.
 * @flags       gets bits of csink_symbols_found. Returns how many are left.
 */
uint32_t csink_go_take(struct csink_profile *p, Elf *elf, uint64_t file_bytes, struct csink_want *wants, uint32_t nr,
		       int *flags);

struct csink_bounds;

/** Add the starts of these functions, and the ends of V8's, as far as they are in a span. Returns 0 or -ENOMEM. */
int csink_elf_unwind_bounds(struct csink_bounds *bounds, Elf *elf);
int csink_elf_v8_bounds(struct csink_bounds *bounds, Elf *elf);

/**
 * Add what DWARF knows: lines, and the functions around each address, to whose location their lines are given.
 * @bounds  gets the addresses at which the answer may change, of the units that hold wants; NULL: not asked for.
 * Returns 0 or -ENOMEM.
 */
int csink_dwarf_resolve(struct csink_batch *batch, Dwarf *dwarf, struct csink_bounds *bounds);

/* One compilation unit and the part of .debug_info that is its own. */
struct csink_unit {
	Dwarf_Die die;
	const uint8_t *section, *head, *at, *end; /* at: behind the unit's header, its first entry */
	uint8_t address_size, offset_size;
	uint16_t version;
	bool is_split;   /* or would be, if its other file were there */
	bool is_foreign; /* libdw reads its entries or its lines */
	bool has_bounds; /* symbols_bounds.c has taken it */
};

/* The units that hold wanted addresses. */
struct csink_units {
	struct csink_unit *all;
	uint32_t nr, cap;
};

/**
 * Find them, and give every want its unit (batch->found[].unit). Where ranges overlap (folded functions), the first in
 * the file has it. Returns 0 (csink_units_free it) or -ENOMEM.
 */
int csink_units_find(struct csink_batch *batch, Dwarf *dwarf, struct csink_units *units);
void csink_units_free(struct csink_units *units);

/**
 * Find where a unit's entries lie in memory. @last is the section that the last one was in, or NULL. Returns false if
 * that is not known: then the symbol table names the unit's functions.
 */
bool csink_unit_place(struct csink_unit *unit, const Elf_Data **last);

/** A file as libdw has it: a relative one is counted from the directory that the unit was compiled in. */
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
 * @own_directory  that its unit was compiled in, or NULL. It and the sections stay until the table is closed.
 * Returns 0 and *out (csink_lines_close it), -ENOTSUP (libdw may know better) or -ENOMEM.
 */
int csink_lines_open(const struct csink_line_sections *sections, uint64_t offset, const char *own_directory,
		     struct csink_lines **out);
void csink_lines_close(struct csink_lines *l);

/** The whole path of a file by its number in the table; 0: none. */
csink_str_t csink_lines_file(struct csink_lines *l, struct csink_profile *p, uint64_t file);

/** Add the address of every row of the table. Returns 0 or -ENOMEM. */
int csink_lines_bounds(const struct csink_lines *l, struct csink_bounds *bounds);

/** Give the wants from first to last - 1 whose unit is `id` their lines. */
void csink_lines_find(struct csink_lines *l, struct csink_batch *batch, uint32_t id, uint32_t first, uint32_t last);

/* Functions made so far, and what makes more of a unit's entries. */
struct csink_functions {
	struct csink_batch *batch;
	const struct csink_unit *unit; /* at work */
	struct csink_lines *lines;     /* its; NULL: libdw reads them */
	struct csink_scan *scan;       /* of it; NULL: C++ names that cannot be linked to stay without their scope */
	struct csink_known *known;
	uint32_t nr_known, cap_known;
	struct csink_table known_table; /* index + 1 by entry and symbol */
	int err;                        /* -ENOMEM from the first failure on */
};

/**
 * The function of an entry, which is made where it is new. 0 with f->err set.
 * @symbol  what the symbol table has at the address (outermost functions only), or 0.
 */
uint32_t csink_functions_get(struct csink_functions *f, Dwarf_Die *die, uint32_t symbol);

/** The file that an attribute of an entry names by its number in the table of the entry's unit; 0: none. */
csink_str_t csink_functions_file(struct csink_functions *f, Dwarf_Die *die, uint32_t attribute);

void csink_functions_free(struct csink_functions *f);

/* ---- where answers change: symbols_bounds.c ---- */

struct csink_span {
	uint64_t low, high;
};

/* All zero but max: empty. */
struct csink_bounds {
	uint64_t *all; /* addresses */
	uint32_t nr, cap, max;
	bool is_partial;          /* a unit, or a part of its code, was left out */
	struct csink_span *spans; /* the code of the units that they are complete for */
	uint32_t nr_spans, cap_spans;
};

/** Add an address, up to one more than max. Returns 0 or -ENOMEM. */
int csink_bounds_add(struct csink_bounds *bounds, uint64_t address);

/**
 * First: add the bounds of each unit: its ranges, its functions and their inlined calls, the rows of its line table. A
 * unit that would make them more than max is left out.
 * @unit   one that is split or foreign is left out
 * @lines  its table; NULL: it has none
 * Returns 0 or -ENOMEM.
 */
int csink_bounds_add_unit(struct csink_bounds *bounds, struct csink_unit *unit, const struct csink_lines *lines);

/**
 * The same for all units of an object, whose path is given.
 * @spending  continues to count; once it is over its limit, the bounds are partial.
 * Returns 0 or -ENOMEM.
 */
int csink_bounds_add_all(struct csink_bounds *bounds, Dwarf *dwarf, const char *path, struct csink_spending *spending);

/** In place of both, of an object without debug information: its code is one span for each section that holds code, but
 * for procedure linkage tables, whose names depend on more. Returns 0 or -ENOMEM. */
int csink_bounds_add_sections(struct csink_bounds *bounds, Elf *elf);

/** Second: take out the spans in which a unit has code that was not added. */
void csink_bounds_check_spans(struct csink_bounds *bounds, Dwarf *dwarf, const struct csink_units *units);

/* The files of an object: NULL where there is none. */
struct csink_elfs {
	Elf *main, *debug;
	const char *path; /* of the object */
};

/**
 * Third: add the bounds of symbols and of what unwind tables name. Then bounds are sorted, each once, and in a span or
 * the end of one; if they were more than max, there are none. Returns 0 or -ENOMEM.
 */
int csink_bounds_add_symbols(struct csink_bounds *bounds, const struct csink_elfs *elfs);

/** Whether an address is in a span; from the second step on. */
bool csink_bounds_hold(const struct csink_bounds *bounds, uint64_t address);
void csink_bounds_free(struct csink_bounds *bounds);

/* ---- answers: symbols_answers.c ---- */

/* What was found of the addresses from low to high - 1: the lines of a location. */
struct csink_answer {
	uint64_t low, high;
	uint32_t location;
	int flags; /* enum csink_symbols_found */
};

/* All zero: empty. */
struct csink_answers {
	struct csink_profile *p; /* with the locations */
	struct csink_answer *all;
	uint32_t nr, cap;
};

/**
 * Find the answers to all addresses between bounds. p is made here: csink_answers_free and csink_profile_free
 * them. @dwarf  NULL: there is none.
 * Returns 0, bits of CSINK_LEFT (they are not complete) or -ENOMEM.
 */
int csink_answers_find(struct csink_answers *answers, const struct csink_bounds *bounds, const struct csink_elfs *elfs,
		       Dwarf *dwarf, struct csink_spending *spending);

/** Add what was found of the wants of a batch that other answers do not hold: of single addresses. p is the batch's.
 * Returns 0 or -ENOMEM. */
int csink_answers_add_wants(struct csink_answers *answers, const struct csink_batch *batch,
			    const struct csink_answers *others);
void csink_answers_free(struct csink_answers *answers);

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
