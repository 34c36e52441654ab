/* Steps over the entries of a unit of .debug_info (symbols_entries.h). Everything is checked against the unit's end. */
#include "launcher/symbols/symbols_entries.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"

#define MAX_ABBREVS 65536

/* How to step over one form. */
enum step { STEP_LEB, STEP_FIXED, STEP_STRING, STEP_BLOCK1, STEP_BLOCK2, STEP_BLOCK4, STEP_BLOCK, STEP_INDIRECT };

struct attribute {
	uint8_t step; /* enum step */
	uint8_t bytes;
	uint8_t is_sibling;
};

/* ---- abbreviations ---- */

/* Bytes of a form that depend on the unit: of an address, of an offset. */
#define ADDRESS 0xfe
#define OFFSET 0xff

/* Others are LEB128 numbers: sdata, udata, ref_udata, strx, addrx, loclistx, rnglistx and GNU_*_index. */
static const struct attribute forms[] = {[DW_FORM_flag_present] = {STEP_FIXED, 0, 0},
					 [DW_FORM_implicit_const] = {STEP_FIXED, 0, 0},
					 [DW_FORM_data1] = {STEP_FIXED, 1, 0},
					 [DW_FORM_ref1] = {STEP_FIXED, 1, 0},
					 [DW_FORM_flag] = {STEP_FIXED, 1, 0},
					 [DW_FORM_strx1] = {STEP_FIXED, 1, 0},
					 [DW_FORM_addrx1] = {STEP_FIXED, 1, 0},
					 [DW_FORM_data2] = {STEP_FIXED, 2, 0},
					 [DW_FORM_ref2] = {STEP_FIXED, 2, 0},
					 [DW_FORM_strx2] = {STEP_FIXED, 2, 0},
					 [DW_FORM_addrx2] = {STEP_FIXED, 2, 0},
					 [DW_FORM_strx3] = {STEP_FIXED, 3, 0},
					 [DW_FORM_addrx3] = {STEP_FIXED, 3, 0},
					 [DW_FORM_data4] = {STEP_FIXED, 4, 0},
					 [DW_FORM_ref4] = {STEP_FIXED, 4, 0},
					 [DW_FORM_strx4] = {STEP_FIXED, 4, 0},
					 [DW_FORM_addrx4] = {STEP_FIXED, 4, 0},
					 [DW_FORM_ref_sup4] = {STEP_FIXED, 4, 0},
					 [DW_FORM_data8] = {STEP_FIXED, 8, 0},
					 [DW_FORM_ref8] = {STEP_FIXED, 8, 0},
					 [DW_FORM_ref_sig8] = {STEP_FIXED, 8, 0},
					 [DW_FORM_ref_sup8] = {STEP_FIXED, 8, 0},
					 [DW_FORM_data16] = {STEP_FIXED, 16, 0},
					 [DW_FORM_addr] = {STEP_FIXED, ADDRESS, 0},
					 [DW_FORM_ref_addr] = {STEP_FIXED, OFFSET, 0},
					 [DW_FORM_strp] = {STEP_FIXED, OFFSET, 0},
					 [DW_FORM_sec_offset] = {STEP_FIXED, OFFSET, 0},
					 [DW_FORM_line_strp] = {STEP_FIXED, OFFSET, 0},
					 [DW_FORM_strp_sup] = {STEP_FIXED, OFFSET, 0},
					 [DW_FORM_string] = {STEP_STRING, 0, 0},
					 [DW_FORM_block1] = {STEP_BLOCK1, 0, 0},
					 [DW_FORM_block2] = {STEP_BLOCK2, 0, 0},
					 [DW_FORM_block4] = {STEP_BLOCK4, 0, 0},
					 [DW_FORM_block] = {STEP_BLOCK, 0, 0},
					 [DW_FORM_exprloc] = {STEP_BLOCK, 0, 0},
					 [DW_FORM_indirect] = {STEP_INDIRECT, 0, 0}};

static struct attribute step_of(const struct csink_unit *unit, uint32_t form)
{
	struct attribute found = {0};

	if (form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt)
		form = DW_FORM_sec_offset;
	if (form < CSINK_ARRAY_SIZE(forms))
		found = forms[form];
	if (found.bytes == ADDRESS || (form == DW_FORM_ref_addr && unit->version == 2))
		found.bytes = unit->address_size;
	else if (found.bytes == OFFSET)
		found.bytes = unit->offset_size;
	return found;
}

static int add_attribute(struct csink_entries *s, struct csink_abbrev *abbrev, uint32_t name, uint32_t form)
{
	struct attribute attribute = step_of(s->unit, form);

	if (CSINK_GROW(s->attributes, s->nr_attributes, s->cap_attributes))
		return -ENOMEM;
	attribute.is_sibling = name == DW_AT_sibling && attribute.step == STEP_FIXED && form != DW_FORM_ref_addr;
	abbrev->is_fixed &= attribute.step == STEP_FIXED && !attribute.is_sibling;
	abbrev->fixed += attribute.bytes;
	abbrev->has_code |= name == DW_AT_low_pc || name == DW_AT_ranges;
	abbrev->nr++;
	s->attributes[s->nr_attributes++] = attribute;
	return 0;
}

static int add_abbrev(struct csink_entries *s, Dwarf_Abbrev *from)
{
	uint32_t code = dwarf_getabbrevcode(from);
	struct csink_abbrev *abbrev;
	unsigned int name, form;
	size_t i;

	if (code >= MAX_ABBREVS)
		return 0;
	if (CSINK_GROW_INDEX(s->abbrevs, s->nr_abbrevs, code))
		return -ENOMEM;
	abbrev = &s->abbrevs[code];
	*abbrev = (struct csink_abbrev){.tag = dwarf_getabbrevtag(from),
					.has_children = dwarf_abbrevhaschildren(from) == DW_CHILDREN_yes,
					.first = s->nr_attributes,
					.is_fixed = true};
	/* Up to the first that is not there: dwarf_getattrcnt miscounts where there are implicit constants. */
	for (i = 0; !dwarf_getabbrevattr_data(from, i, &name, &form, NULL, NULL); i++) {
		if (add_attribute(s, abbrev, name, form))
			return -ENOMEM;
	}
	return 0;
}

static int read_abbrevs(struct csink_entries *s)
{
	Dwarf_Die die = s->unit->die;
	Dwarf_Abbrev *abbrev;
	Dwarf_Off at = 0;
	size_t length;

	while ((abbrev = dwarf_getabbrev(&die, at, &length)) && abbrev != DWARF_END_ABBREV) {
		if (add_abbrev(s, abbrev))
			return -ENOMEM;
		at += length;
	}
	return 0;
}

/* ---- entries ---- */

static const uint8_t *step_over(const struct csink_unit *unit, struct attribute attribute, const uint8_t *at)
{
	const uint8_t *end = unit->end;
	uint32_t rounds = 0;
	uint64_t bytes;

	while (attribute.step == STEP_INDIRECT && rounds++ < 4)
		attribute = step_of(unit, csink_read_leb(&at, end));
	switch ((enum step)attribute.step) {
	case STEP_FIXED:
		return csink_advance(at, end, attribute.bytes);
	case STEP_LEB:
		csink_read_leb(&at, end);
		return at;
	case STEP_STRING:
		at = memchr(at, 0, end - at);
		return at ? at + 1 : end;
	case STEP_BLOCK1:
		return csink_advance(at, end, 1 + csink_read_fixed(at, end, 1));
	case STEP_BLOCK2:
		return csink_advance(at, end, 2 + csink_read_fixed(at, end, 2));
	case STEP_BLOCK4:
		return csink_advance(at, end, 4 + csink_read_fixed(at, end, 4));
	case STEP_BLOCK:
		bytes = csink_read_leb(&at, end);
		return csink_advance(at, end, bytes);
	case STEP_INDIRECT:
		break;
	}
	return end;
}

bool csink_entries_next(const struct csink_entries *s, const uint8_t **at, struct csink_dwarf_entry *entry)
{
	const uint8_t *end = s->unit->end;
	const struct attribute *attribute, *last;
	uint64_t code, sibling;

	if (*at >= end)
		return false;
	*entry = (struct csink_dwarf_entry){.start = *at};
	code = csink_read_leb(at, end);
	if (!code)
		return true;
	if (code >= s->nr_abbrevs || !s->abbrevs[code].tag) {
		*at = end;
		return false;
	}
	entry->abbrev = &s->abbrevs[code];
	if (entry->abbrev->is_fixed) {
		*at = csink_advance(*at, end, entry->abbrev->fixed);
		return true;
	}
	attribute = s->attributes + entry->abbrev->first;
	for (last = attribute + entry->abbrev->nr; attribute < last; attribute++) {
		if (attribute->is_sibling) { /* an offset in the unit; used only if it leads forwards */
			sibling = csink_read_fixed(*at, end, attribute->bytes);
			if (sibling < (uint64_t)(end - s->unit->head) && s->unit->head + sibling > *at)
				entry->sibling = s->unit->head + sibling;
		}
		*at = step_over(s->unit, *attribute, *at);
	}
	return true;
}

void csink_entries_skip_children(const struct csink_entries *s, const struct csink_dwarf_entry *parent,
				 const uint8_t **at)
{
	struct csink_dwarf_entry entry;
	uint64_t depth = 1;

	if (!parent->abbrev->has_children)
		return;
	if (parent->sibling) {
		*at = parent->sibling;
		return;
	}
	while (depth && csink_entries_next(s, at, &entry)) {
		if (!entry.abbrev)
			depth--;
		else if (entry.abbrev->has_children && entry.sibling)
			*at = entry.sibling;
		else
			depth += entry.abbrev->has_children;
	}
}

int csink_entries_open(struct csink_entries *s, const struct csink_unit *unit)
{
	*s = (struct csink_entries){.unit = unit};
	if (!read_abbrevs(s))
		return 0;
	csink_entries_close(s);
	return -ENOMEM;
}

void csink_entries_close(struct csink_entries *s)
{
	free(s->abbrevs);
	free(s->attributes);
	*s = (struct csink_entries){0};
}
