/*
 * Adds samples up by function (report_table.h). Every location is turned into row numbers once, so that a sample costs
 * an addition for each of its frames; a row's stamp says whether a sample was counted there already, which is what
 * keeps recursion from counting twice.
 */
#include "launcher/output/report_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/symbols.h"

/* A function in a module, while it is added up. Overloads share a name and are told apart by their symbols. */
struct key {
	csink_str_t name;   /* 0: the module's code that has no name */
	csink_str_t symbol; /* plain mangled symbol of a function whose name others have, too; else 0 */
	csink_str_t module;
	uint32_t row; /* + 1; 0: empty */
};

struct build {
	struct csink_report_table *table;
	const struct csink_profile *p;
	uint32_t type;               /* that is added up and sorted by */
	struct csink_profile *names; /* strings made here: signatures; its ids are the keys' */
	struct key *keys;            /* open addressing; half full at most */
	uint32_t key_mask;
	struct row_info {
		csink_str_t name, module; /* in names */
		bool seen_inlined, seen_plain, is_pseudo;
	} * infos;
	uint32_t cap_rows;
	struct span {
		uint32_t first, nr;
	} * spans; /* of each location: its rows, innermost first, in row_ids */
	uint32_t *row_ids;
	uint32_t nr_row_ids;
	struct sum {
		int64_t total;
		uint32_t stamp; /* the last sample that was counted, + 1 */
	} * sums;
	int64_t *selfs; /* nr_types a row */
};

/* ---- rows ---- */

static struct key *find_key(const struct build *b, csink_str_t name, csink_str_t symbol, csink_str_t module)
{
	uint64_t hash = ((uint64_t)name << 32 ^ (uint64_t)symbol << 16 ^ module) * 0x9e3779b97f4a7c15ULL;
	uint32_t at = hash >> 32 & b->key_mask;

	while (b->keys[at].row &&
	       (b->keys[at].name != name || b->keys[at].symbol != symbol || b->keys[at].module != module))
		at = (at + 1) & b->key_mask;
	return &b->keys[at];
}

static int grow(struct build *b)
{
	uint32_t i, nr = b->keys ? (b->key_mask + 1) * 2 : 2048;
	struct key *old = b->keys;
	struct row_info *infos;

	if (old && b->table->nr_rows < b->key_mask / 2)
		return 0;
	b->keys = calloc(nr, sizeof(*b->keys));
	infos = reallocarray(b->infos, nr, sizeof(*infos));
	b->infos = infos ? infos : b->infos;
	if (!b->keys || !infos) {
		free(b->keys);
		b->keys = old;
		return -ENOMEM;
	}
	b->key_mask = nr - 1;
	for (i = 0; old && i < nr / 2; i++) {
		if (old[i].row)
			*find_key(b, old[i].name, old[i].symbol, old[i].module) = old[i];
	}
	free(old);
	return 0;
}

/* Returns the row + 1, or 0 without memory. */
static uint32_t find_row(struct build *b, csink_str_t name, csink_str_t symbol, csink_str_t module)
{
	struct key *key;

	if (grow(b))
		return 0;
	key = find_key(b, name, symbol, module);
	if (!key->row) {
		b->infos[b->table->nr_rows] = (struct row_info){.name = name, .module = module};
		*key = (struct key){name, symbol, module, ++b->table->nr_rows};
	}
	return key->row;
}

/* ---- from functions to rows ---- */

/* Of the functions with one name, which differ only as overloads do? Signatures are made for those alone. */
struct named {
	csink_str_t name;
	uint32_t function;
};

static int compare_named(const void *a, const void *b)
{
	const struct named *left = a, *right = b;

	if (left->name != right->name)
		return left->name < right->name ? -1 : 1;
	return left->function < right->function ? -1 : left->function > right->function;
}

static void sign(struct build *b, const struct named *group, uint32_t nr, csink_str_t *signatures)
{
	const struct csink_profile_function *function;
	bool differ = false;
	char *signature;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		function = &b->p->functions[group[i].function];
		signature = csink_symbol_signature(csink_profile_text(b->p, function->system_name));
		signatures[group[i].function] = signature ? csink_profile_str(b->names, signature) : 0;
		free(signature);
		differ |= signatures[group[i].function] != signatures[group[0].function];
	}
	for (i = 0; i < nr && !differ; i++)
		signatures[group[i].function] = 0;
}

/* signatures[function]: what tells it from others of its name; 0 if nothing need. */
static int sign_overloads(struct build *b, csink_str_t *signatures)
{
	uint32_t nr = b->p->nr_functions, i, k;
	struct named *named = calloc(nr + 1, sizeof(*named));

	if (!named)
		return -ENOMEM;
	for (i = 1; i < nr; i++)
		named[i] = (struct named){b->p->functions[i].name, i};
	qsort(named, nr, sizeof(*named), compare_named);
	for (i = 0; i < nr; i = k) {
		bool mangled = false;

		for (k = i; k < nr && named[k].name == named[i].name; k++) {
			const struct csink_profile_function *function = &b->p->functions[named[k].function];

			mangled |= function->system_name != b->p->functions[named[i].function].system_name;
		}
		if (mangled && named[i].name)
			sign(b, named + i, k - i, signatures);
	}
	free(named);
	return csink_profile_error(b->names);
}

static csink_str_t module_of(struct build *b, const struct csink_profile_location *location)
{
	csink_str_t file = location->mapping < b->p->nr_mappings ? b->p->mappings[location->mapping].file : 0;

	return csink_profile_str(b->names, csink_profile_text(b->p, file));
}

static int map_location(struct build *b, uint32_t id, csink_str_t module, const csink_str_t *signatures)
{
	const struct csink_profile_location *location = &b->p->locations[id];
	uint32_t k, row, function;
	struct row_info *info;
	csink_str_t name;

	b->spans[id].first = b->nr_row_ids;
	b->spans[id].nr = CSINK_MAX(location->nr_lines, 1);
	if (!location->nr_lines) {
		row = find_row(b, 0, 0, module);
		b->row_ids[b->nr_row_ids++] = row - 1;
		return row ? 0 : -ENOMEM;
	}
	for (k = 0; k < location->nr_lines; k++) {
		function = b->p->lines[location->first_line + k].function;
		name = csink_profile_str(b->names, csink_profile_text(b->p, b->p->functions[function].name));
		row = find_row(b, name, signatures[function], module);
		if (!row)
			return -ENOMEM;
		b->row_ids[b->nr_row_ids++] = row - 1;
		info = &b->infos[row - 1];
		if (signatures[function])
			info->name = signatures[function];
		info->seen_inlined |= k + 1 < location->nr_lines;
		info->seen_plain |= k + 1 == location->nr_lines;
	}
	return 0;
}

static int map_locations(struct build *b)
{
	csink_str_t *signatures = calloc(b->p->nr_functions + 1, sizeof(*signatures));
	csink_str_t *modules = calloc(b->p->nr_mappings + 1, sizeof(*modules));
	int err = signatures && modules ? sign_overloads(b, signatures) : -ENOMEM;
	uint32_t id, mapping;

	for (id = 1; id < b->p->nr_locations && !err; id++) {
		mapping = b->p->locations[id].mapping;
		if (mapping && !modules[mapping])
			modules[mapping] = module_of(b, &b->p->locations[id]);
		err = map_location(b, id, modules[mapping], signatures);
	}
	free(signatures);
	free(modules);
	return err ? err : csink_profile_error(b->names);
}

/* ---- adding up ---- */

static bool is_pseudo_sample(const struct csink_profile *p, uint32_t labels, csink_str_t key)
{
	const struct csink_profile_range *set = &p->label_sets[labels];
	uint32_t i;

	for (i = 0; key && i < set->nr; i++) {
		if (p->labels[set->first + i].key == key)
			return true;
	}
	return false;
}

static void add_sample(struct build *b, uint32_t sample, bool is_pseudo)
{
	const struct csink_profile *p = b->p;
	const struct csink_profile_range *stack = &p->stacks[p->samples[sample].stack];
	const uint32_t *id = p->stack_ids + stack->first, *end = id + stack->nr, *row, *last;
	const int64_t *values = csink_profile_values(p, sample);
	int64_t value = values[b->type];
	uint32_t i, self;

	for (i = 0; i < p->nr_types; i++) {
		b->table->sums[i] = csink_add(b->table->sums[i], values[i]);
		if (is_pseudo)
			b->table->pseudo_sums[i] = csink_add(b->table->pseudo_sums[i], values[i]);
	}
	if (!stack->nr)
		return;
	self = b->row_ids[b->spans[*id].first];
	for (; id < end; id++) {
		row = b->row_ids + b->spans[*id].first;
		for (last = row + b->spans[*id].nr; row < last; row++) {
			if (b->sums[*row].stamp == sample + 1)
				continue;
			b->sums[*row].stamp = sample + 1;
			b->sums[*row].total = csink_add(b->sums[*row].total, value);
		}
	}
	b->infos[self].is_pseudo |= is_pseudo;
	for (i = 0; i < p->nr_types; i++)
		b->selfs[(size_t)self * p->nr_types + i] =
			csink_add(b->selfs[(size_t)self * p->nr_types + i], values[i]);
}

static void add_samples(struct build *b)
{
	csink_str_t pseudo = 0;
	uint32_t i;

	for (i = 1; i < b->p->nr_strings && !pseudo; i++) {
		if (!strcmp(b->p->strings[i].text, CSINK_LABEL_PSEUDO))
			pseudo = i;
	}
	for (i = 0; i < b->p->nr_samples; i++)
		add_sample(b, i, is_pseudo_sample(b->p, b->p->samples[i].labels, pseudo));
}

/* ---- the table ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Names are copied: what they point into goes. */
static int make_rows(struct build *b)
{
	struct csink_report_table *table = b->table;
	struct csink_row *row;
	const char *module;
	uint32_t i;

	table->rows = calloc(table->nr_rows + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (i = 0; i < table->nr_rows; i++) {
		row = &table->rows[i];
		module = base_name(csink_profile_text(b->names, b->infos[i].module));
		row->module = strdup(module);
		row->name = b->infos[i].name ? strdup(csink_profile_text(b->names, b->infos[i].name))
			    : *module        ? strdup("[no symbol]")
					     : strdup("[unknown]");
		if (!row->module || !row->name)
			return -ENOMEM;
		row->is_pseudo = b->infos[i].is_pseudo;
		row->is_inlined = b->infos[i].seen_inlined && !b->infos[i].seen_plain;
		row->extra = b->selfs + (size_t)i * b->p->nr_types;
		row->self = row->extra[b->type];
		row->total = b->sums[i].total;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct csink_row *left = a, *right = b;
	int names;

	if (left->self != right->self)
		return left->self > right->self ? -1 : 1;
	if (left->total != right->total)
		return left->total > right->total ? -1 : 1;
	names = strcmp(left->name, right->name);
	return names ? names : strcmp(left->module, right->module);
}

static int build(struct build *b)
{
	const struct csink_profile *p = b->p;
	size_t nr;

	b->names = csink_profile_create();
	b->spans = calloc(p->nr_locations + 1, sizeof(*b->spans));
	b->row_ids = calloc((size_t)p->nr_lines + p->nr_locations + 1, sizeof(*b->row_ids));
	b->table->sums = calloc(p->nr_types + 1, sizeof(*b->table->sums));
	b->table->pseudo_sums = calloc(p->nr_types + 1, sizeof(*b->table->pseudo_sums));
	if (!b->names || !b->spans || !b->row_ids || !b->table->sums || !b->table->pseudo_sums || map_locations(b))
		return -ENOMEM;
	nr = b->table->nr_rows + 1;
	b->sums = calloc(nr, sizeof(*b->sums));
	b->selfs = calloc(nr, CSINK_MAX(p->nr_types, 1) * sizeof(*b->selfs));
	b->table->extras = b->selfs;
	if (!b->sums || !b->selfs)
		return -ENOMEM;
	add_samples(b);
	if (make_rows(b))
		return -ENOMEM;
	qsort(b->table->rows, b->table->nr_rows, sizeof(*b->table->rows), compare_rows);
	return 0;
}

int csink_report_table_build(struct csink_report_table *table, const struct csink_profile *p, uint32_t type)
{
	struct build b = {.table = table, .p = p, .type = type};
	int err;

	memset(table, 0, sizeof(*table));
	err = build(&b);
	csink_profile_destroy(b.names);
	free(b.keys);
	free(b.infos);
	free(b.spans);
	free(b.row_ids);
	free(b.sums);
	if (err)
		csink_report_table_release(table);
	return err;
}

void csink_report_table_release(struct csink_report_table *table)
{
	uint32_t i;

	for (i = 0; table->rows && i < table->nr_rows; i++) {
		free(table->rows[i].name);
		free(table->rows[i].module);
	}
	free(table->rows);
	free(table->sums);
	free(table->pseudo_sums);
	free(table->extras);
	memset(table, 0, sizeof(*table));
}
