/* See rows.h. Every location is turned into row numbers once. */
#include "launcher/profile/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/base/table.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/function_name.h"
#include "launcher/profile/short_paths.h"

#define MAX_NAME 8192

const char *const csink_by_words[CSINK_NR_BYS] = {"function", "module", "line", "thread", "process",
						  "phase",    "rank",   "lock", "holder"};

/* A row while the table is made. Overloads share a name and are distinguished by their signatures. */
struct key {
	csink_str_t name;      /* 0: the module's code that has no name */
	csink_str_t signature; /* of a function whose name others have, too; else 0 */
	csink_str_t module;
};

struct build {
	struct csink_rows *rows;
	const struct csink_profile *p;
	const struct csink_interpreted *found;
	uint32_t side;               /* of the profile in found */
	bool is_alone;               /* no other profile's rows are to have the same names */
	struct csink_profile *names; /* strings made here; its ids are the keys' */
	struct key *keys;            /* by row */
	uint32_t cap_keys;
	struct csink_table row_table; /* row + 1 by key */
	csink_str_t *signatures;      /* by function */
	csink_str_t *functions;       /* their names; 0: not looked up yet */
	csink_str_t *modules;         /* by mapping */
	const char **files;           /* by function: its source file as it is shown in the name of a line */
};

/* ---- rows ---- */

/* Returns the row + 1, or 0 without memory. */
static uint32_t find_row(struct build *b, csink_str_t name, csink_str_t signature, csink_str_t module)
{
	uint32_t hash = (uint32_t)csink_hash_pair((uint64_t)name << 32 | module, signature), nr = b->rows->nr_keys;
	const struct key key = {name, signature, module};
	struct csink_slot *slot;

	if (csink_table_room(&b->row_table) || CSINK_GROW(b->keys, nr, b->cap_keys) ||
	    CSINK_GROW(b->rows->keys, nr, b->rows->cap_keys))
		return 0;
	CSINK_TABLE_PROBE(b->row_table, hash, slot, !memcmp(&b->keys[id - 1], &key, sizeof(key)));
	if (!slot->id) {
		b->rows->keys[nr] =
			(struct csink_row_key){.name_id = signature ? signature : name, .module_id = module};
		b->keys[nr] = key;
		csink_table_set(&b->row_table, slot, hash, ++b->rows->nr_keys);
	}
	return slot->id;
}

/* ---- overloads ---- */

struct named {
	csink_str_t name, symbol, signature; /* in the rows' names */
	uint32_t function, side;
};

static int compare_named(const void *a, const void *b)
{
	const struct named *left = a, *right = b;

	return CSINK_COMPARE(left->name, right->name);
}

/* Of the functions with one name, which differ only as overloads do? Signatures are made for those alone. */
static void sign(struct build *b, struct named *group, uint32_t nr)
{
	bool differ = false;

	for (uint32_t i = 0; i < nr; i++) {
		CSINK_AUTO_FREE char *signature = csink_symbol_signature(csink_profile_text(b->names, group[i].symbol));

		group[i].signature = csink_profile_str(b->names, signature);
		differ |= group[i].signature != group[0].signature;
	}
	for (uint32_t i = 0; i < nr && differ; i++) {
		if (group[i].side == b->side)
			b->signatures[group[i].function] = group[i].signature;
	}
}

/* signatures[function]: what distinguishes it from others of its name, also in the other profile; 0 if nothing need. */
static int sign_overloads(struct build *b)
{
	uint32_t nr = 0, i, k;
	CSINK_AUTO_FREE struct named *named = NULL;

	for (uint32_t s = 0; s < b->found->nr_profiles; s++)
		nr += b->found->profiles[s]->nr_functions;
	named = calloc(nr + 1UL, sizeof(*named));
	if (!named)
		return -ENOMEM;
	nr = 0;
	for (uint32_t s = 0; s < b->found->nr_profiles; s++) {
		const struct csink_profile *p = b->found->profiles[s];

		for (uint32_t f = 1; f < p->nr_functions; f++)
			named[nr++] = (struct named){
				.name = csink_profile_str(b->names, csink_profile_text(p, p->functions[f].name)),
				.symbol =
					csink_profile_str(b->names, csink_profile_text(p, p->functions[f].system_name)),
				.function = f,
				.side = s};
	}
	qsort(named, nr, sizeof(*named), compare_named);
	for (i = 0; i < nr; i = k) {
		bool mangled = false;

		for (k = i; k < nr && named[k].name == named[i].name; k++)
			mangled |= named[k].symbol != named[i].symbol;
		if (mangled && named[i].name)
			sign(b, named + i, k - i);
	}
	return csink_profile_error(b->names);
}

/* ---- by location ---- */

static csink_str_t module_of(struct build *b, uint32_t mapping)
{
	if (mapping >= b->p->nr_mappings)
		return 0;
	if (!b->modules[mapping])
		b->modules[mapping] =
			csink_profile_str(b->names, csink_profile_text(b->p, b->p->mappings[mapping].file));
	return b->modules[mapping];
}

static void set_place(struct build *b, uint32_t row, const char *file, int64_t line)
{
	if (!row)
		return;
	b->rows->keys[row - 1].file = csink_profile_text(b->names, csink_profile_str(b->names, file));
	b->rows->keys[row - 1].line = line;
}

/* The files of functions as they are shown. Of two versions, directories distinguish nothing. */
static void shorten_files(struct build *b)
{
	for (uint32_t i = 0; i < b->p->nr_functions; i++)
		b->files[i] = csink_profile_text(b->p, b->p->functions[i].file);
	if (b->is_alone)
		csink_short_paths(b->files, b->p->nr_functions);
	for (uint32_t i = 0; !b->is_alone && i < b->p->nr_functions; i++)
		b->files[i] = csink_base_name(b->files[i]);
}

/* "parse.c:123 parse"; without a line, the function alone. */
static csink_str_t line_name(struct build *b, const struct csink_profile_line *line)
{
	const struct csink_profile_function *function = &b->p->functions[line->function];
	const char *file = b->files[line->function], *name = csink_profile_text(b->p, function->name);
	char text[MAX_NAME];

	if (!*file || !line->line)
		return csink_profile_str(b->names, name);
	snprintf(text, sizeof(text), "%s:%" PRId64 " %s", file, line->line, name);
	return csink_profile_str(b->names, text);
}

/* The row + 1 of a line. */
static uint32_t placed_row(struct build *b, const struct csink_profile_line *line, csink_str_t module)
{
	uint32_t row = find_row(b, line_name(b, line), 0, module);

	if (line->line)
		set_place(b, row, csink_profile_text(b->p, b->p->functions[line->function].file), line->line);
	return row;
}

/* The row + 1 of an interpreted function. */
static uint32_t interpreted_row(struct build *b, uint32_t index)
{
	const struct csink_interpreted *found = b->found;
	const struct csink_interpreted_function *function = &found->all[index];
	uint32_t row = find_row(b, csink_profile_str(b->names, csink_profile_text(found->names, function->name)), 0,
				csink_profile_str(b->names, csink_profile_text(found->names, function->path)));

	if (row)
		b->rows->keys[row - 1].is_interpreted = true;
	set_place(b, row, csink_profile_text(found->names, function->path), function->line);
	return row;
}

/* The row + 1 of the k-th line of a location, or of one that has none. */
static uint32_t line_row(struct build *b, const struct csink_profile_location *location, uint32_t k)
{
	const struct csink_profile_line *line = location->nr_lines ? &b->p->lines[location->first_line + k] : NULL;
	csink_str_t module = module_of(b, location->mapping), name = 0;

	if (b->rows->by == CSINK_BY_MODULE)
		return find_row(b, module, 0, module);
	if (line && b->rows->by == CSINK_BY_LINE)
		return placed_row(b, line, module);
	if (line && b->found->of[b->side][line->function] &&
	    csink_is_interpreted(b->p, location->mapping, line->function))
		return interpreted_row(b, b->found->of[b->side][line->function] - 1);
	if (line) {
		if (!b->functions[line->function])
			b->functions[line->function] = csink_profile_str(
				b->names, csink_profile_text(b->p, b->p->functions[line->function].name));
		name = b->functions[line->function];
	}
	return find_row(b, name, line ? b->signatures[line->function] : 0, module);
}

static int map_location(struct build *b, uint32_t id)
{
	const struct csink_profile_location *location = &b->p->locations[id];
	uint32_t k, row, nr = b->rows->by == CSINK_BY_MODULE ? 1 : CSINK_MAX(location->nr_lines, 1);

	b->rows->spans[id] = (struct csink_profile_range){b->rows->nr_ids, nr};
	for (k = 0; k < nr; k++) {
		row = line_row(b, location, k);
		if (!row)
			return -ENOMEM;
		b->rows->ids[b->rows->nr_ids++] = row - 1;
		b->rows->keys[row - 1].seen_inlined |= k + 1 < nr;
		b->rows->keys[row - 1].seen_plain |= k + 1 == nr;
	}
	return 0;
}

static int map_locations(struct build *b)
{
	uint32_t id;
	int err;

	b->signatures = calloc(b->p->nr_functions + 1, sizeof(*b->signatures));
	b->functions = calloc(b->p->nr_functions + 1, sizeof(*b->functions));
	b->modules = calloc(b->p->nr_mappings + 1, sizeof(*b->modules));
	b->files = calloc(b->p->nr_functions + 1, sizeof(*b->files));
	b->rows->spans = calloc(b->p->nr_locations + 1, sizeof(*b->rows->spans));
	b->rows->ids = calloc((size_t)b->p->nr_lines + b->p->nr_locations + 1, sizeof(*b->rows->ids));
	if (!b->signatures || !b->functions || !b->modules || !b->files || !b->rows->spans || !b->rows->ids)
		return -ENOMEM;
	if (b->rows->by == CSINK_BY_LINE)
		shorten_files(b);
	err = b->rows->by == CSINK_BY_FUNCTION ? sign_overloads(b) : 0;
	for (id = 1; id < b->p->nr_locations && !err; id++)
		err = map_location(b, id);
	return err;
}

/* ---- by labels ---- */

static csink_str_t label_name(struct build *b, uint32_t labels, const char *name_key, const char *number_key)
{
	csink_str_t name_id = csink_profile_str_find(b->p, name_key);
	csink_str_t number_id = csink_profile_str_find(b->p, number_key);
	const struct csink_profile_label *name = csink_profile_label_find(b->p, labels, name_id);
	const struct csink_profile_label *number = csink_profile_label_find(b->p, labels, number_id);
	char text[MAX_NAME];

	if (number && number->str) /* another program's, of that name */
		number = NULL;
	if (!name && !number)
		return 0;
	if (!number)
		return csink_profile_str(b->names, csink_profile_text(b->p, name->str));
	snprintf(text, sizeof(text), "%s%s%" PRId64, name ? csink_profile_text(b->p, name->str) : number_key, " ",
		 number->num);
	return csink_profile_str(b->names, text);
}

static int map_labels(struct build *b)
{
	csink_str_t name = 0, process;
	uint32_t id, row;

	b->rows->of_labels = calloc(b->p->nr_label_sets + 1, sizeof(*b->rows->of_labels));
	if (!b->rows->of_labels)
		return -ENOMEM;
	for (id = 0; id < b->p->nr_samples; id++)
		b->rows->of_labels[b->p->samples[id].labels] = 1;
	for (id = 0; id < b->p->nr_label_sets; id++) {
		if (!b->rows->of_labels[id]) /* no sample has it */
			continue;
		process = label_name(b, id, CSINK_LABEL_PROCESS, CSINK_LABEL_PID);
		if (b->rows->by == CSINK_BY_THREAD)
			name = label_name(b, id, CSINK_LABEL_THREAD, CSINK_LABEL_TID);
		else if (b->rows->by == CSINK_BY_PROCESS)
			name = process;
		else if (b->rows->by == CSINK_BY_RANK)
			name = label_name(b, id, "", CSINK_LABEL_RANK);
		else if (b->rows->by == CSINK_BY_LOCK)
			name = label_name(b, id, CSINK_LABEL_LOCK, "");
		else if (b->rows->by == CSINK_BY_HOLDER)
			name = label_name(b, id, CSINK_LABEL_HOLDER, "");
		else
			name = label_name(b, id, CSINK_LABEL_PHASE, "");
		row = find_row(b, name, 0, b->rows->by == CSINK_BY_THREAD ? process : 0);
		if (!row)
			return -ENOMEM;
		b->rows->keys[row - 1].seen_plain = true;
		b->rows->of_labels[id] = row - 1;
	}
	return 0;
}

/* ---- all together ---- */

/* What code or samples are called that have no name. */
static const char *unnamed(const struct csink_rows *rows, const struct csink_row_key *key)
{
	static const char *const labels[CSINK_NR_BYS] = {
		[CSINK_BY_THREAD] = "[no thread]", [CSINK_BY_PROCESS] = "[no process]",
		[CSINK_BY_PHASE] = "[no phase]",   [CSINK_BY_RANK] = "[no rank]",
		[CSINK_BY_LOCK] = "[no lock]",     [CSINK_BY_HOLDER] = "[no holder]"};

	if (labels[rows->by])
		return labels[rows->by];
	return key->module_id ? "[no symbol]" : "[unknown]";
}

/* Of threads, the module is a process's name. */
static void shorten_modules(struct csink_rows *rows)
{
	CSINK_AUTO_FREE const char **paths = calloc((size_t)rows->nr_keys + 1, sizeof(*paths));

	for (uint32_t i = 0; i < rows->nr_keys; i++) {
		rows->keys[i].short_module = csink_base_name(rows->keys[i].module);
		if (paths)
			paths[i] = rows->keys[i].module;
	}
	if (!paths || rows->by >= CSINK_BY_THREAD)
		return;
	csink_short_paths(paths, rows->nr_keys);
	for (uint32_t i = 0; i < rows->nr_keys; i++)
		rows->keys[i].short_module = paths[i];
}

static void name_rows(struct csink_rows *rows)
{
	uint32_t i;

	for (i = 0; i < rows->nr_keys; i++) {
		struct csink_row_key *key = &rows->keys[i];

		key->module = csink_profile_text(rows->names, key->module_id);
		key->name = key->name_id ? csink_profile_text(rows->names, key->name_id) : unnamed(rows, key);
		if (rows->by == CSINK_BY_MODULE) {
			key->name = key->name_id ? key->name : "[unknown]";
			key->module = "";
		}
		key->file = key->file ? key->file : "";
	}
	shorten_modules(rows);
}

static int build(struct csink_rows *rows, const struct csink_profile *p, enum csink_by by,
		 const struct csink_interpreted *found, uint32_t side, bool is_alone)
{
	struct build b = {.rows = rows, .p = p, .found = found, .side = side, .is_alone = is_alone};
	int err;

	*rows = (struct csink_rows){.by = by, .names = csink_profile_create()};
	b.names = rows->names;
	err = !b.names ? -ENOMEM : by >= CSINK_BY_THREAD ? map_labels(&b) : map_locations(&b);
	if (!err)
		err = csink_profile_error(b.names);
	if (!err)
		name_rows(rows);
	free(b.keys);
	csink_table_free(&b.row_table);
	free(b.signatures);
	free(b.functions);
	free(b.modules);
	free(b.files);
	if (err)
		csink_rows_free(rows);
	return err;
}

int csink_rows_build_found(struct csink_rows *rows, const struct csink_profile *p, enum csink_by by,
			   const struct csink_interpreted *found, uint32_t side)
{
	return build(rows, p, by, found, side, false);
}

int csink_rows_build(struct csink_rows *rows, const struct csink_profile *p, enum csink_by by)
{
	CSINK_AUTO(csink_interpreted_free) struct csink_interpreted found = {0};
	int err = by == CSINK_BY_FUNCTION ? csink_interpreted_build(&found, &p, 1) : 0;

	*rows = (struct csink_rows){0};
	return err ?: build(rows, p, by, &found, 0, true);
}

void csink_rows_free(struct csink_rows *rows)
{
	free(rows->keys);
	free(rows->spans);
	free(rows->ids);
	free(rows->of_labels);
	csink_profile_free(rows->names);
	*rows = (struct csink_rows){0};
}

int64_t csink_rows_match(const struct csink_rows *rows, const char *pattern, bool **matches, char *why, size_t why_len)
{
	regex_t regex;
	int err = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
	int64_t nr = 0;

	if (err) {
		regerror(err, &regex, why, why_len);
		return -EINVAL;
	}
	*matches = calloc(rows->nr_keys + 1UL, sizeof(**matches));
	for (uint32_t i = 0; *matches && i < rows->nr_keys; i++)
		nr += (*matches)[i] = !regexec(&regex, rows->keys[i].name, 0, NULL, 0);
	regfree(&regex);
	return *matches ? nr : -ENOMEM;
}
