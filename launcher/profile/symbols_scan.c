/*
 * One pass over a unit of .debug_info that finds the functions around given addresses, inlined ones included.
 *
 * libdw answers the same question by walking trees of entries, which it parses again for each address; a unit of C++
 * has a hundred thousand of them, nearly all types. Here each entry is skipped in a few nanoseconds, once for all
 * addresses, and libdw is asked only about those that have code (ranges, names, references). What is read is checked
 * against the end of the unit: a damaged one ends the pass.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/symbols_impl.h"

#define MAX_ABBREVS 65536
#define MAX_NESTING 128

/* How to step over one form. */
enum step { STEP_FIXED, STEP_LEB, STEP_STRING, STEP_BLOCK1, STEP_BLOCK2, STEP_BLOCK4, STEP_BLOCK, STEP_INDIRECT };

struct attribute {
	uint8_t step; /* enum step */
	uint8_t bytes;
	uint8_t is_sibling;
};

struct abbrev {
	uint16_t tag; /* 0: no such abbreviation */
	uint8_t has_children, has_code;
	uint32_t first, nr; /* in attributes */
	uint32_t fixed;     /* bytes of all attributes together, where all are fixed and none is a sibling */
	bool is_fixed;
};

struct scan {
	struct csink_batch *batch;
	const struct csink_unit *unit;
	uint32_t id, first, last; /* the wants: those of this id among first to last - 1 */
	struct csink_links *links;
	struct abbrev *abbrevs; /* by code */
	uint32_t nr_abbrevs;
	struct attribute *attributes;
	uint32_t nr_attributes, cap_attributes;
	Dwarf *dwarf;
	bool thorough; /* look for functions in functions too */
	uint32_t nesting;
	int err;
};

/* ---- abbreviations ---- */

static struct attribute step_of(const struct csink_unit *unit, uint32_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return (struct attribute){STEP_FIXED, 0, 0};
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return (struct attribute){STEP_FIXED, 1, 0};
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return (struct attribute){STEP_FIXED, 2, 0};
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return (struct attribute){STEP_FIXED, 3, 0};
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return (struct attribute){STEP_FIXED, 4, 0};
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return (struct attribute){STEP_FIXED, 8, 0};
	case DW_FORM_data16:
		return (struct attribute){STEP_FIXED, 16, 0};
	case DW_FORM_addr:
		return (struct attribute){STEP_FIXED, unit->address_size, 0};
	case DW_FORM_ref_addr:
		return (struct attribute){STEP_FIXED, unit->version == 2 ? unit->address_size : unit->offset_size, 0};
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return (struct attribute){STEP_FIXED, unit->offset_size, 0};
	case DW_FORM_string:
		return (struct attribute){STEP_STRING, 0, 0};
	case DW_FORM_block1:
		return (struct attribute){STEP_BLOCK1, 0, 0};
	case DW_FORM_block2:
		return (struct attribute){STEP_BLOCK2, 0, 0};
	case DW_FORM_block4:
		return (struct attribute){STEP_BLOCK4, 0, 0};
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return (struct attribute){STEP_BLOCK, 0, 0};
	case DW_FORM_indirect:
		return (struct attribute){STEP_INDIRECT, 0, 0};
	}
	return (struct attribute){STEP_LEB, 0,
				  0}; /* sdata, udata, ref_udata, strx, addrx, loclistx, rnglistx, GNU_*_index */
}

static int add_attribute(struct scan *s, struct abbrev *abbrev, uint32_t name, uint32_t form)
{
	struct attribute *grown, attribute = step_of(s->unit, form);
	uint32_t cap = CSINK_MAX(s->cap_attributes * 2, 1024);

	if (s->nr_attributes == s->cap_attributes) {
		grown = reallocarray(s->attributes, cap, sizeof(*grown));
		if (!grown)
			return s->err = -ENOMEM;
		s->attributes = grown;
		s->cap_attributes = cap;
	}
	attribute.is_sibling = name == DW_AT_sibling && attribute.step == STEP_FIXED && form != DW_FORM_ref_addr;
	abbrev->is_fixed &= attribute.step == STEP_FIXED && !attribute.is_sibling;
	abbrev->fixed += attribute.bytes;
	abbrev->has_code |= name == DW_AT_low_pc || name == DW_AT_ranges;
	abbrev->nr++;
	s->attributes[s->nr_attributes++] = attribute;
	return 0;
}

static int add_abbrev(struct scan *s, Dwarf_Abbrev *from)
{
	uint32_t code = dwarf_getabbrevcode(from), cap;
	struct abbrev *grown, *abbrev;
	unsigned int name, form;
	size_t i;

	if (code >= MAX_ABBREVS)
		return 0;
	if (code >= s->nr_abbrevs) {
		cap = CSINK_MAX(code + 1, s->nr_abbrevs * 2);
		grown = reallocarray(s->abbrevs, cap, sizeof(*grown));
		if (!grown)
			return s->err = -ENOMEM;
		memset(grown + s->nr_abbrevs, 0, (cap - s->nr_abbrevs) * sizeof(*grown));
		s->abbrevs = grown;
		s->nr_abbrevs = cap;
	}
	abbrev = &s->abbrevs[code];
	*abbrev = (struct abbrev){.tag = dwarf_getabbrevtag(from),
				  .has_children = dwarf_abbrevhaschildren(from) == DW_CHILDREN_yes,
				  .first = s->nr_attributes,
				  .is_fixed = true};
	/* Up to the first that is not there: dwarf_getattrcnt miscounts where there are implicit constants. */
	for (i = 0; !dwarf_getabbrevattr_data(from, i, &name, &form, NULL, NULL); i++) {
		if (add_attribute(s, abbrev, name, form))
			return s->err;
	}
	return 0;
}

static int read_abbrevs(struct scan *s)
{
	Dwarf_Die die = s->unit->die;
	Dwarf_Abbrev *abbrev;
	Dwarf_Off at = 0;
	size_t length;

	while ((abbrev = dwarf_getabbrev(&die, at, &length)) && abbrev != DWARF_END_ABBREV) {
		if (add_abbrev(s, abbrev))
			return s->err;
		at += length;
	}
	return 0;
}

/* ---- entries ---- */

static uint64_t read_leb(const uint8_t **at, const uint8_t *end)
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

static uint64_t read_fixed(const uint8_t *at, const uint8_t *end, uint32_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(end - at) < bytes)
		return 0;
	memcpy(&value, at, CSINK_MIN(bytes, 8)); /* files of the other byte order are not scanned */
	return value;
}

static const uint8_t *advance(const uint8_t *at, const uint8_t *end, uint64_t bytes)
{
	return (uint64_t)(end - at) < bytes ? end : at + bytes;
}

static const uint8_t *step_over(const struct csink_unit *unit, struct attribute attribute, const uint8_t *at)
{
	const uint8_t *end = unit->end;
	uint32_t rounds = 0;
	uint64_t bytes;

	while (attribute.step == STEP_INDIRECT && rounds++ < 4)
		attribute = step_of(unit, read_leb(&at, end));
	switch ((enum step)attribute.step) {
	case STEP_FIXED:
		return advance(at, end, attribute.bytes);
	case STEP_LEB:
		read_leb(&at, end);
		return at;
	case STEP_STRING:
		at = memchr(at, 0, end - at);
		return at ? at + 1 : end;
	case STEP_BLOCK1:
		return advance(at, end, 1 + read_fixed(at, end, 1));
	case STEP_BLOCK2:
		return advance(at, end, 2 + read_fixed(at, end, 2));
	case STEP_BLOCK4:
		return advance(at, end, 4 + read_fixed(at, end, 4));
	case STEP_BLOCK:
		bytes = read_leb(&at, end);
		return advance(at, end, bytes);
	case STEP_INDIRECT:
		break;
	}
	return end;
}

struct entry {
	const uint8_t *start;
	const struct abbrev *abbrev; /* NULL: the end of a list of children */
	const uint8_t *sibling;      /* NULL: not said */
};

/* Read one entry and step behind its attributes; false at the end of the unit. */
static bool next_entry(const struct scan *s, const uint8_t **at, struct entry *entry)
{
	const uint8_t *end = s->unit->end;
	const struct attribute *attribute, *last;
	uint64_t code, sibling;

	if (*at >= end)
		return false;
	*entry = (struct entry){.start = *at};
	code = read_leb(at, end);
	if (!code)
		return true;
	if (code >= s->nr_abbrevs || !s->abbrevs[code].tag) {
		*at = end;
		return false;
	}
	entry->abbrev = &s->abbrevs[code];
	if (entry->abbrev->is_fixed) {
		*at = advance(*at, end, entry->abbrev->fixed);
		return true;
	}
	attribute = s->attributes + entry->abbrev->first;
	for (last = attribute + entry->abbrev->nr; attribute < last; attribute++) {
		if (attribute->is_sibling) { /* counted from the unit's head; believed only if it leads on */
			sibling = read_fixed(*at, end, attribute->bytes);
			if (sibling < (uint64_t)(end - s->unit->head) && s->unit->head + sibling > *at)
				entry->sibling = s->unit->head + sibling;
		}
		*at = step_over(s->unit, *attribute, *at);
	}
	return true;
}

/* Step over the children of an entry. */
static void skip_children(const struct scan *s, const struct entry *parent, const uint8_t **at)
{
	struct entry entry;
	uint64_t depth = 1;

	if (!parent->abbrev->has_children)
		return;
	if (parent->sibling) {
		*at = parent->sibling;
		return;
	}
	while (depth && next_entry(s, at, &entry)) {
		if (!entry.abbrev)
			depth--;
		else if (entry.abbrev->has_children && entry.sibling)
			*at = entry.sibling;
		else
			depth += entry.abbrev->has_children;
	}
}

/* ---- matches ---- */

static int add_link(struct scan *s, struct csink_found *found, const Dwarf_Die *die)
{
	struct csink_links *links = s->links;
	uint32_t cap = CSINK_MAX(links->cap * 2, 256);
	struct csink_link *grown;

	if (links->nr == links->cap) {
		grown = reallocarray(links->all, cap, sizeof(*grown));
		if (!grown)
			return s->err = -ENOMEM;
		links->all = grown;
		links->cap = cap;
	}
	links->all[links->nr++] = (struct csink_link){0, *die};
	if (found->last_link)
		links->all[found->last_link - 1].next = links->nr;
	else
		found->first_link = links->nr;
	found->last_link = links->nr;
	return 0;
}

/*
 * Link an entry with code to the wants that are in it. A function takes those that are in none yet; an inlined call
 * those whose outermost function is `function`. Returns the number of wants.
 */
static uint32_t match(struct scan *s, const struct entry *entry, const void *function)
{
	struct csink_batch *batch = s->batch;
	Dwarf_Addr base, low, high;
	ptrdiff_t more = 0;
	uint32_t i, nr = 0;
	struct csink_found *found;
	Dwarf_Die die;

	if (!dwarf_offdie(s->dwarf, entry->start - s->unit->section, &die))
		return 0;
	while (!s->err && (more = dwarf_ranges(&die, more, &base, &low, &high)) > 0) {
		i = CSINK_MAX(csink_batch_lower(batch, low), s->first);
		for (; i < s->last && batch->wants[i].address < high; i++) {
			found = &batch->found[i];
			if (found->unit != s->id)
				continue;
			if (function ? !found->first_link || s->links->all[found->first_link - 1].die.addr != function
				     : found->first_link != 0)
				continue;
			if (add_link(s, found, &die))
				return 0;
			nr++;
		}
	}
	return nr;
}

static void scan_function(struct scan *s, const struct entry *function, const uint8_t **at);

static void take_function(struct scan *s, const struct entry *entry, const uint8_t **at)
{
	if (s->nesting < MAX_NESTING && match(s, entry, NULL) && entry->abbrev->has_children)
		scan_function(s, entry, at);
	else if (!s->thorough)
		skip_children(s, entry, at);
}

/* The entries inside a function that has wants: blocks are entered, inlined calls too if they have wants. */
static void scan_function(struct scan *s, const struct entry *function, const uint8_t **at)
{
	struct entry entry;
	uint64_t depth = 1;

	s->nesting++;
	while (depth && !s->err && next_entry(s, at, &entry)) {
		if (!entry.abbrev) {
			depth--;
			continue;
		}
		if (entry.abbrev->tag == DW_TAG_inlined_subroutine && entry.abbrev->has_code &&
		    match(s, &entry, function->start)) {
			depth += entry.abbrev->has_children;
		} else if (entry.abbrev->tag == DW_TAG_lexical_block || entry.abbrev->tag == DW_TAG_try_block ||
			   entry.abbrev->tag == DW_TAG_catch_block) {
			depth += entry.abbrev->has_children;
		} else {
			skip_children(s, &entry, at);
		}
	}
	s->nesting--;
}

static bool may_hold_functions(uint32_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		return true;
	}
	return false;
}

static void scan_entries(struct scan *s)
{
	const uint8_t *at = s->unit->at;
	struct entry entry;

	/* Depth need not be counted: entries that end a list of children are stepped over like any other. */
	while (!s->err && next_entry(s, &at, &entry)) {
		if (!entry.abbrev)
			continue;
		if (entry.abbrev->tag == DW_TAG_subprogram && entry.abbrev->has_code)
			take_function(s, &entry, &at);
		else if (!s->thorough && !may_hold_functions(entry.abbrev->tag))
			skip_children(s, &entry, &at);
	}
}

static bool all_found(const struct scan *s)
{
	uint32_t i;

	for (i = s->first; i < s->last; i++) {
		if (s->batch->found[i].unit == s->id && !s->batch->found[i].first_link)
			return false;
	}
	return true;
}

int csink_dwarf_scan(struct csink_batch *batch, const struct csink_unit *unit, uint32_t id, uint32_t first,
		     uint32_t last, struct csink_links *links)
{
	struct scan s = {.batch = batch,
			 .unit = unit,
			 .id = id,
			 .first = first,
			 .last = last,
			 .links = links,
			 .dwarf = dwarf_cu_getdwarf(unit->die.cu)};

	if (!read_abbrevs(&s)) {
		scan_entries(&s);
		/* Functions in functions (GNU C, Ada, local classes) are rare: looked for only where something is
		 * missing. */
		s.thorough = true;
		if (!s.err && !all_found(&s))
			scan_entries(&s);
	}
	free(s.abbrevs);
	free(s.attributes);
	return s.err;
}
