/*
 * The entries of one unit of .debug_info, one after the other, at a few nanoseconds each. libdw parses an entry again
 * for each question; here they are only stepped over, and libdw is asked about the few that matter. Used by symbols_*.c
 * alone.
 */
#ifndef CSINK_SYMBOLS_ENTRIES_H
#define CSINK_SYMBOLS_ENTRIES_H

#include <stdbool.h>

#include "launcher/symbols/symbols_impl.h"

struct csink_abbrev {
	uint16_t tag; /* 0: no such abbreviation */
	uint8_t has_children;
	uint8_t has_code;   /* a low_pc or ranges */
	uint32_t first, nr; /* in attributes */
	uint32_t fixed;     /* bytes of all attributes together, where all are fixed and none is a sibling */
	bool is_fixed;
};

struct csink_entries {
	const struct csink_unit *unit;
	struct csink_abbrev *abbrevs; /* by code */
	uint32_t nr_abbrevs;
	struct attribute *attributes; /* how to step over each */
	uint32_t nr_attributes, cap_attributes;
};

struct csink_dwarf_entry {
	const uint8_t *start;
	const struct csink_abbrev *abbrev; /* NULL: the end of a list of children */
	const uint8_t *sibling;            /* NULL: unknown */
};

/** Read a unit's abbreviations. Returns 0 (csink_entries_close it) or -ENOMEM. */
int csink_entries_open(struct csink_entries *s, const struct csink_unit *unit);
void csink_entries_close(struct csink_entries *s);

/** Read the entry at *at and step behind its attributes. Returns false at the end of the unit, or where it is damaged.
 */
bool csink_entries_next(const struct csink_entries *s, const uint8_t **at, struct csink_dwarf_entry *entry);

/** Step over the children of the entry that was just read. */
void csink_entries_skip_children(const struct csink_entries *s, const struct csink_dwarf_entry *parent,
				 const uint8_t **at);

#endif
