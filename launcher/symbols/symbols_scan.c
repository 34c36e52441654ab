/*
 * One pass over a unit of .debug_info that finds the functions around given addresses, inlined ones included.
 *
 * libdw answers the same question by walking trees of entries again for each address; a unit of C++ has a hundred
 * thousand of them, nearly all types. Here each is stepped over once for all addresses (symbols_entries.h), and libdw
 * is asked only about those that have code: ranges, names, references.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/symbols/symbols_entries.h"
#include "launcher/symbols/symbols_impl.h"

#define MAX_NESTING 128

/* What has a name that others are inside of, by the order of the file. */
struct scope {
	const uint8_t *start, *end;
	uint32_t outer; /* index + 1 */
};

struct csink_scan {
	struct csink_entries entries;
	struct csink_batch *batch;
	uint32_t id, first, last; /* the wants: those of this id among first to last - 1 */
	struct csink_links *links;
	Dwarf *dwarf;
	struct scope *scopes;
	uint32_t nr_scopes, cap_scopes, inner_scope; /* inner_scope: index + 1 of the one that was entered last */
	bool wants_scopes;
	bool thorough; /* look for functions in functions too */
	int err;
};

/* ---- matches ---- */

static int add_link(struct csink_scan *s, struct csink_found *found, const Dwarf_Die *die)
{
	struct csink_links *links = s->links;

	if (CSINK_GROW(links->all, links->nr, links->cap))
		return s->err = -ENOMEM;
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
static uint32_t match(struct csink_scan *s, const struct csink_dwarf_entry *entry, const void *function)
{
	struct csink_batch *batch = s->batch;
	Dwarf_Addr base, low, high;
	ptrdiff_t more = 0;
	uint32_t i, nr = 0;
	struct csink_found *found;
	Dwarf_Die die;

	if (!dwarf_offdie(s->dwarf, entry->start - s->entries.unit->section, &die))
		return 0;
	while (!s->err && !csink_spending_step(&batch->spending) &&
	       (more = dwarf_ranges(&die, more, &base, &low, &high)) > 0) {
		i = CSINK_MAX(csink_batch_lower(batch, low), s->first);
		for (; i < s->last && batch->wants[i].address < high && !csink_spending_step(&batch->spending); i++) {
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

/* The entries inside a function that has wants: blocks are entered, inlined calls too if they have wants. */
static void scan_function(struct csink_scan *s, const struct csink_dwarf_entry *function, const uint8_t **at)
{
	struct csink_dwarf_entry entry;
	uint64_t depth = 1;

	while (depth && !s->err && !csink_spending_step(&s->batch->spending) &&
	       csink_entries_next(&s->entries, at, &entry)) {
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
			csink_entries_skip_children(&s->entries, &entry, at);
		}
	}
}

static void take_function(struct csink_scan *s, const struct csink_dwarf_entry *entry, const uint8_t **at)
{
	if (match(s, entry, NULL) && entry->abbrev->has_children)
		scan_function(s, entry, at);
	else if (!s->thorough)
		csink_entries_skip_children(&s->entries, entry, at);
}

/* ---- scopes ---- */

static bool is_scope(uint32_t tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_subprogram;
}

static void add_scope(struct csink_scan *s, const struct csink_dwarf_entry *entry)
{
	const uint8_t *end = entry->sibling;

	while (s->inner_scope && s->scopes[s->inner_scope - 1].end <= entry->start)
		s->inner_scope = s->scopes[s->inner_scope - 1].outer;
	if (!end) /* GCC leaves it out of the last child */
		end = s->inner_scope ? s->scopes[s->inner_scope - 1].end : s->entries.unit->end;
	if (CSINK_GROW(s->scopes, s->nr_scopes, s->cap_scopes)) {
		s->err = -ENOMEM;
		return;
	}
	s->scopes[s->nr_scopes++] = (struct scope){entry->start, end, s->inner_scope};
	s->inner_scope = s->nr_scopes;
}

/* The innermost scope around an entry, index + 1; 0: none. */
static uint32_t scope_around(const struct csink_scan *s, const uint8_t *start)
{
	uint32_t scope = CSINK_LOWER(s->nr_scopes, i, s->scopes[i].start < start);

	while (scope && s->scopes[scope - 1].end <= start)
		scope = s->scopes[scope - 1].outer;
	return scope;
}

/* Put a scope's name, and "::", in front of what is in buf. */
static void prepend(const struct csink_scan *s, const uint8_t *start, char *buf, size_t size)
{
	size_t len = strlen(buf), name_len;
	const char *name;
	Dwarf_Die die;

	if (!dwarf_offdie(s->dwarf, start - s->entries.unit->section, &die))
		return;
	name = dwarf_diename(&die);
	if (!name && dwarf_tag(&die) == DW_TAG_namespace)
		name = "(anonymous namespace)";
	else if (!name && dwarf_tag(&die) != DW_TAG_subprogram)
		name = strncmp(buf, "operator()", 10) ? "{unnamed}" : "{lambda}";
	name_len = name ? strlen(name) : 0;
	if (!name_len || name_len + 2 + len + 1 > size)
		return;
	memmove(buf + name_len + 2, buf, len + 1);
	memcpy(buf, name, name_len);
	memcpy(buf + name_len, "::", 2);
}

/* Of the entries inside a scope, those that `start` is in: found by walking down to it. Innermost last. */
static uint32_t walk_down(const struct csink_scan *s, const struct scope *scope, const uint8_t *start,
			  const uint8_t **path, uint32_t max)
{
	const uint8_t *at = scope->start;
	struct csink_dwarf_entry entry;
	uint32_t nr = 0, depth = 0, depths[MAX_NESTING];

	while (!csink_spending_step(&s->batch->spending) && csink_entries_next(&s->entries, &at, &entry) &&
	       entry.start < start) {
		if (!entry.abbrev) {
			depth -= depth > 0;
			while (nr && depths[nr - 1] > depth)
				nr--;
		} else if (entry.abbrev->has_children && entry.sibling && entry.sibling <= start) {
			at = entry.sibling;
		} else if (entry.abbrev->has_children) {
			depth++;
			if (is_scope(entry.abbrev->tag) && nr < max && entry.start != scope->start) {
				depths[nr] = depth;
				path[nr++] = entry.start;
			}
		}
	}
	return nr;
}

void csink_scan_qualify(struct csink_scan *s, const Dwarf_Die *die, char *buf, size_t size)
{
	const uint8_t *start = die->addr, *path[MAX_NESTING];
	uint32_t scope, nr;

	if (!s->wants_scopes || start < s->entries.unit->at || start >= s->entries.unit->end)
		return;
	scope = scope_around(s, start);
	if (!scope)
		return;
	for (nr = walk_down(s, &s->scopes[scope - 1], start, path, CSINK_ARRAY_SIZE(path)); nr; nr--)
		prepend(s, path[nr - 1], buf, size);
	for (; scope; scope = s->scopes[scope - 1].outer)
		prepend(s, s->scopes[scope - 1].start, buf, size);
}

/* Names of C++ that have no linkage name (of lambdas, of templates over local types) are qualified by where they stand.
 * Only GCC leaves linkage names out, and it says where siblings are. */
static bool wants_scopes(const struct csink_unit *unit)
{
	Dwarf_Die die = unit->die;
	Dwarf_Attribute attr;
	const char *producer = dwarf_formstring(dwarf_attr(&die, DW_AT_producer, &attr));

	return producer && !strncmp(producer, "GNU C++", 7);
}

/* ---- the pass ---- */

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

static void scan_entries(struct csink_scan *s)
{
	const uint8_t *at = s->entries.unit->at;
	struct csink_dwarf_entry entry;

	/* Depth need not be counted: entries that end a list of children are stepped over like any other. */
	while (!s->err && !csink_spending_step(&s->batch->spending) && csink_entries_next(&s->entries, &at, &entry)) {
		if (!entry.abbrev)
			continue;
		if (s->wants_scopes && !s->thorough && entry.abbrev->has_children && is_scope(entry.abbrev->tag))
			add_scope(s, &entry);
		if (entry.abbrev->tag == DW_TAG_subprogram && entry.abbrev->has_code)
			take_function(s, &entry, &at);
		else if (!s->thorough && !may_hold_functions(entry.abbrev->tag))
			csink_entries_skip_children(&s->entries, &entry, &at);
	}
}

static bool all_found(const struct csink_scan *s)
{
	uint32_t i;

	for (i = s->first; i < s->last; i++) {
		if (s->batch->found[i].unit == s->id && !s->batch->found[i].first_link)
			return false;
	}
	return true;
}

int csink_scan_open(struct csink_batch *batch, const struct csink_unit *unit, uint32_t id, uint32_t first,
		    uint32_t last, struct csink_links *links, struct csink_scan **out)
{
	struct csink_scan *s = calloc(1, sizeof(*s));

	if (!s || csink_entries_open(&s->entries, unit)) {
		free(s);
		return -ENOMEM;
	}
	s->batch = batch;
	s->id = id;
	s->first = first;
	s->last = last;
	s->links = links;
	s->dwarf = dwarf_cu_getdwarf(unit->die.cu);
	s->wants_scopes = wants_scopes(unit);
	scan_entries(s);
	/* Functions in functions (GNU C, Ada, local classes) are rare: looked for only where something is missing. */
	s->thorough = true;
	if (!s->err && !all_found(s))
		scan_entries(s);
	if (s->err) {
		csink_scan_close(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void csink_scan_close(struct csink_scan *s)
{
	if (!s)
		return;
	csink_entries_close(&s->entries);
	free(s->scopes);
	free(s);
}
