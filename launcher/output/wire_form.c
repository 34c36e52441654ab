/*
 * See wire_form.h. The profile is added to an empty one part by part, each by its content, and what no sample needs is
 * never asked for. Runs in the caller's thread.
 */
#include "launcher/output/wire_form.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/output/export.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "preload/core/names_match.h"

/* Labels of which a server would make a series for each process, thread or sample, or that a frame shows already. */
static const char *const dropped[] = {CSINK_LABEL_PID,    CSINK_LABEL_TID,    CSINK_LABEL_PROCESS,
				      CSINK_LABEL_THREAD, CSINK_LABEL_TIME,   CSINK_LABEL_RUN,
				      CSINK_LABEL_RANK,   CSINK_LABEL_PSEUDO, CSINK_LABEL_RELEASER};
static const char *const cpu_clocks[] = {"task-clock", "cpu-clock"};

/* From the ids of the profile to those of the form. */
struct forming {
	const struct csink_profile *p;
	struct csink_profile *to;
	struct csink_profile *mapping_keys, *location_keys; /* contents that are there, as strings with their ids */
	const char *labels;
	csink_str_t *strings;
	uint32_t *mappings, *functions, *locations, *stacks, *sets;
	unsigned char *key;              /* room for the largest location's content */
	uint32_t *ids;                   /* room for the longest stack */
	struct csink_profile_label *set; /* room for the largest set of labels */
};

static void release(struct forming *f)
{
	csink_profile_free(f->mapping_keys);
	csink_profile_free(f->location_keys);
	free(f->strings);
	free(f->mappings);
	free(f->functions);
	free(f->locations);
	free(f->stacks);
	free(f->sets);
	free(f->key);
	free(f->ids);
	free(f->set);
}

static csink_str_t string_of(struct forming *f, csink_str_t id)
{
	const struct csink_profile_string *from = &f->p->strings[id];
	CSINK_AUTO_FREE char *valid = NULL;
	size_t len;

	if (!id || f->strings[id])
		return f->strings[id];
	len = csink_text_utf8(NULL, from->text, from->len);
	if (len == from->len)
		return f->strings[id] = csink_profile_strn(f->to, from->text, len);
	valid = malloc(len);
	if (!valid) {
		f->to->error = -ENOMEM;
		return 0;
	}
	csink_text_utf8(valid, from->text, from->len);
	return f->strings[id] = csink_profile_strn(f->to, valid, len);
}

/* ---- names ---- */

/* A text of [A-Za-z0-9_] alone, which does not begin with a digit. */
static char *plain_name(const char *name, const char *otherwise)
{
	size_t len = strlen(name);
	char *plain = malloc(len + 2), *at = plain;

	if (!plain || !len) {
		free(plain);
		return len ? NULL : strdup(otherwise);
	}
	if (isdigit((unsigned char)*name))
		*at++ = '_';
	for (; *name; name++)
		*at++ = isascii((unsigned char)*name) && isalnum((unsigned char)*name) ? *name : '_';
	*at = 0;
	return plain;
}

static bool is_cpu_clock(const struct csink_profile *p, const struct csink_profile_type *type)
{
	const char *name = csink_profile_text(p, type->name);
	size_t len = strcspn(name, ":"); /* "task-clock:u" */

	if (strcmp(csink_profile_text(p, type->unit), "nanoseconds"))
		return false;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(cpu_clocks); i++) {
		if (strlen(cpu_clocks[i]) == len && !strncmp(name, cpu_clocks[i], len))
			return true;
	}
	return false;
}

/* The type that becomes "cpu": one alone, the default if it is one of them; nr_types: none. */
static uint32_t cpu_type(const struct csink_profile *p)
{
	uint32_t type = 0;

	if (p->default_type < p->nr_types && is_cpu_clock(p, &p->types[p->default_type]))
		return p->default_type;
	while (type < p->nr_types && !is_cpu_clock(p, &p->types[type]))
		type++;
	return type;
}

/* Two names may have become one, which no server could tell apart. */
static int add_distinct(struct csink_profile *to, const char *name, const char *unit)
{
	CSINK_AUTO_FREE char *numbered = malloc(strlen(name) + 16);
	uint32_t nr = 1;

	if (!numbered)
		return -ENOMEM;
	strcpy(numbered, name);
	while (csink_profile_type_find(to, numbered) >= 0)
		sprintf(numbered, "%s_%u", name, ++nr);
	return csink_profile_type_add(to, numbered, unit);
}

static int add_type(struct forming *f, const struct csink_profile_type *type, bool is_cpu)
{
	CSINK_AUTO_FREE char *name = plain_name(is_cpu ? "cpu" : csink_profile_text(f->p, type->name), "value");
	CSINK_AUTO_FREE char *unit = plain_name(csink_profile_text(f->p, type->unit), "count");

	return name && unit ? add_distinct(f->to, name, unit) : -ENOMEM;
}

/* A server takes no profile whose period has no type: that of another program is given the default's. */
static int add_period_type(struct forming *f, uint32_t cpu)
{
	const struct csink_profile *p = f->p;
	CSINK_AUTO_FREE char *name = NULL, *unit = NULL;
	uint32_t type = 0;

	while (type < p->nr_types && (!p->period_type.name || p->types[type].name != p->period_type.name))
		type++;
	if (type == p->nr_types && is_cpu_clock(p, &p->period_type))
		type = cpu;
	if (type == p->nr_types && !p->period_type.name)
		type = p->default_type;
	if (type < p->nr_types) {
		f->to->period_type = f->to->types[type];
		return 0;
	}
	name = plain_name(csink_profile_text(p, p->period_type.name), "value");
	unit = plain_name(csink_profile_text(p, p->period_type.unit), "count");
	if (!name || !unit)
		return -ENOMEM;
	f->to->period_type =
		(struct csink_profile_type){csink_profile_str(f->to, name), csink_profile_str(f->to, unit)};
	return 0;
}

static int add_types(struct forming *f)
{
	const struct csink_profile *p = f->p;
	uint32_t cpu = cpu_type(p);

	for (uint32_t i = 0; i < p->nr_types; i++) {
		if (add_type(f, &p->types[i], i == cpu) < 0)
			return -ENOMEM;
	}
	f->to->default_type = p->default_type;
	return add_period_type(f, cpu);
}

/* ---- labels ---- */

static bool is_kept(const struct forming *f, const char *key)
{
	if (!strcmp(f->labels, "all") || csink_names_match(f->labels, key))
		return true;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(dropped); i++) {
		if (!strcmp(key, dropped[i]))
			return false;
	}
	return true;
}

/* A server refuses a sample that has two labels of one name: the first is kept. */
static uint32_t add_label(struct forming *f, uint32_t nr, const struct csink_profile_label *label)
{
	CSINK_AUTO_FREE char *key = plain_name(csink_profile_text(f->p, label->key), "label");
	struct csink_profile_label *to = &f->set[nr];

	if (!key) {
		f->to->error = -ENOMEM;
		return nr;
	}
	*to = (struct csink_profile_label){.key = csink_profile_str(f->to, key),
					   .str = string_of(f, label->str),
					   .num_unit = string_of(f, label->num_unit),
					   .num = label->num};
	for (uint32_t i = 0; i < nr; i++) {
		if (f->set[i].key == to->key)
			return nr;
	}
	return nr + 1;
}

static int compare_labels(const void *left, const void *right)
{
	const struct csink_profile_label *a = left, *b = right;

	return CSINK_COMPARE(a->key, b->key);
}

/* In one order, so that sets of the same labels are one. */
static uint32_t set_of(struct forming *f, uint32_t id)
{
	const struct csink_profile_range *range = &f->p->label_sets[id];
	const struct csink_profile_label *label = f->p->labels + range->first;
	uint32_t nr = 0;

	if (!id || f->sets[id])
		return f->sets[id] - !!f->sets[id];
	for (uint32_t i = 0; i < range->nr; i++, label++) {
		if (is_kept(f, csink_profile_text(f->p, label->key)))
			nr = add_label(f, nr, label);
	}
	qsort(f->set, nr, sizeof(*f->set), compare_labels);
	f->sets[id] = csink_profile_labels_add(f->to, f->set, nr) + 1;
	return f->sets[id] - 1;
}

/* ---- stacks ---- */

/* Empty ones are left out; those that differ in what is known of their symbols are one. */
static uint32_t mapping_of(struct forming *f, uint32_t id)
{
	struct csink_profile_mapping m = f->p->mappings[id], key;

	if (!id || f->mappings[id])
		return f->mappings[id];
	m.file = string_of(f, m.file);
	m.build_id = string_of(f, m.build_id);
	if (!m.start && !m.limit && !m.offset && !m.file && !m.build_id)
		return 0;
	key = m;
	key.has_functions = key.has_filenames = key.has_lines = key.has_inlines = 0;
	f->mappings[id] = csink_profile_strn(f->mapping_keys, (const char *)&key, sizeof(key));
	if (f->mappings[id] == f->to->nr_mappings) {
		csink_profile_mapping_add(f->to, &m);
		return f->mappings[id];
	}
	csink_profile_mapping_join(&f->to->mappings[f->mappings[id]], &m);
	return f->mappings[id];
}

/* Its language is in a field that profile.proto does not have: it is left out. */
static uint32_t function_of(struct forming *f, uint32_t id)
{
	struct csink_profile_function function = f->p->functions[id];

	if (!id || f->functions[id])
		return f->functions[id];
	function.name = string_of(f, function.name);
	function.system_name = string_of(f, function.system_name);
	function.file = string_of(f, function.file);
	function.language = 0;
	if (!function.name && !function.system_name && !function.file && !function.start_line)
		function.name = csink_profile_str(f->to, "[unknown]");
	return f->functions[id] = csink_profile_function_add(f->to, &function);
}

/* A location without mapping, address and line is a frame still: it gets a function of its own. */
static uint32_t add_lines(struct forming *f, uint32_t id, uint32_t mapping, struct csink_profile_line *lines)
{
	const struct csink_profile_location *from = &f->p->locations[id];
	const struct csink_profile_line *line = f->p->lines + from->first_line;
	struct csink_profile_function unknown = {0};
	uint32_t nr = 0;

	for (uint32_t i = 0; i < from->nr_lines; i++, line++) {
		if (line->function)
			lines[nr++] = (struct csink_profile_line){.function = function_of(f, line->function),
								  .line = line->line};
	}
	if (!nr && !mapping && !from->address) {
		unknown.name = csink_profile_str(f->to, "[unknown]");
		lines[nr++] = (struct csink_profile_line){.function = csink_profile_function_add(f->to, &unknown)};
	}
	return nr;
}

static uint32_t location_of(struct forming *f, uint32_t id)
{
	const struct csink_profile_location *from = &f->p->locations[id];
	struct {
		uint64_t address, mapping;
	} head = {.address = from->address};
	struct csink_profile_line *lines = (struct csink_profile_line *)(f->key + sizeof(head));
	uint32_t nr, added;

	if (f->locations[id])
		return f->locations[id];
	head.mapping = mapping_of(f, from->mapping);
	memcpy(f->key, &head, sizeof(head));
	nr = add_lines(f, id, head.mapping, lines);
	f->locations[id] =
		csink_profile_strn(f->location_keys, (const char *)f->key, sizeof(head) + nr * sizeof(*lines));
	if (f->locations[id] == f->to->nr_locations) {
		added = csink_profile_location_add(f->to, head.mapping, head.address, lines, nr);
		if (added)
			f->to->locations[added].is_folded = from->is_folded;
	}
	return f->locations[id];
}

static uint32_t stack_of(struct forming *f, uint32_t id)
{
	const struct csink_profile_range *range = &f->p->stacks[id];

	if (!id || f->stacks[id])
		return f->stacks[id];
	for (uint32_t i = 0; i < range->nr; i++)
		f->ids[i] = location_of(f, f->p->stack_ids[range->first + i]);
	return f->stacks[id] = csink_profile_stack_add(f->to, f->ids, range->nr);
}

/* The program's own mapping comes first, as readers of pprof expect it, if a sample is in it. */
static bool is_program_used(const struct csink_profile *p)
{
	for (uint32_t i = 0; p->nr_mappings > 1 && i < p->nr_samples; i++) {
		const struct csink_profile_range *range = &p->stacks[p->samples[i].stack];

		for (uint32_t k = 0; k < range->nr && csink_profile_sample_counts(p, i); k++) {
			if (p->locations[p->stack_ids[range->first + k]].mapping == 1)
				return true;
		}
	}
	return false;
}

/* ---- all together ---- */

static int prepare(struct forming *f)
{
	const struct csink_profile *p = f->p;
	uint32_t most_labels = 0;

	for (uint32_t i = 0; i < p->nr_label_sets; i++)
		most_labels = CSINK_MAX(most_labels, p->label_sets[i].nr);
	f->to = csink_profile_create();
	f->mapping_keys = csink_profile_create();
	f->location_keys = csink_profile_create();
	f->strings = calloc(p->nr_strings, sizeof(*f->strings));
	f->mappings = calloc(p->nr_mappings, sizeof(*f->mappings));
	f->functions = calloc(p->nr_functions, sizeof(*f->functions));
	f->locations = calloc(p->nr_locations, sizeof(*f->locations));
	f->stacks = calloc(p->nr_stacks, sizeof(*f->stacks));
	f->sets = calloc(p->nr_label_sets, sizeof(*f->sets));
	f->key = calloc(1, 16 + ((size_t)csink_profile_most_lines(p) + 1) * sizeof(struct csink_profile_line));
	f->ids = calloc((size_t)csink_profile_longest_stack(p) + 1, sizeof(*f->ids));
	f->set = calloc((size_t)most_labels + 1, sizeof(*f->set));
	return f->to && f->mapping_keys && f->location_keys && f->strings && f->mappings && f->functions &&
			       f->locations && f->stacks && f->sets && f->key && f->ids && f->set
		       ? 0
		       : -ENOMEM;
}

static int form(struct forming *f)
{
	const struct csink_profile *p = f->p;
	int err = prepare(f) ?: add_types(f);

	if (err)
		return err;
	f->to->time_ns = p->time_ns;
	f->to->duration_ns = CSINK_MAX(p->duration_ns, 1); /* 0 would make it no profile of a time */
	f->to->period = p->period;
	f->to->drop_frames = string_of(f, p->drop_frames);
	f->to->keep_frames = string_of(f, p->keep_frames);
	if (is_program_used(p))
		mapping_of(f, 1);
	csink_profile_expect(f->to, p->nr_samples);
	for (uint32_t i = 0; i < p->nr_samples && !csink_profile_error(f->to); i++) {
		if (csink_profile_sample_counts(p, i))
			csink_profile_sample_add(f->to, stack_of(f, p->samples[i].stack),
						 set_of(f, p->samples[i].labels), csink_profile_values(p, i));
	}
	return csink_profile_error(f->to) ?: csink_profile_error(f->mapping_keys) ?: csink_profile_error(f->location_keys);
}

int csink_wire_form(const struct csink_profile *p, const struct csink_wire_options *options, struct csink_profile **out)
{
	CSINK_AUTO(release) struct forming f = {.p = p, .labels = options->labels ?: ""};
	int err = form(&f);

	if (err)
		csink_profile_free(f.to);
	else
		*out = f.to;
	return err;
}

/* Whether a path of len bytes is that of a file, or its end: "./my prog" is of "/home/me/my prog". */
static bool is_path_of(const char *path, size_t len, const char *file)
{
	size_t file_len = strlen(file);

	while (len > 2 && !strncmp(path, "./", 2))
		path += 2, len -= 2;
	return len && len <= file_len && !memcmp(file + file_len - len, path, len) &&
	       (len == file_len || *path == '/' || file[file_len - len - 1] == '/');
}

/*
 * How long the command's first word is. Words are separated by blanks, and may have some: then the program's file shows
 * where it ends.
 */
static size_t first_word(const char *command, const char *file)
{
	const char *base = csink_base_name(file);
	size_t len = strlen(base), end;

	for (const char *at = command; len && (at = strstr(at, base)); at++) {
		end = (size_t)(at - command) + len;
		if ((!command[end] || command[end] == ' ') && is_path_of(command, end, file))
			return end;
	}
	return strcspn(command, " ");
}

char *csink_wire_program(const struct csink_profile *p)
{
	const char *command = csink_profile_fact(p, CSINK_FACT_COMMAND, 0) ?: "";
	const char *file = p->nr_mappings > 1 ? csink_profile_text(p, p->mappings[1].file) : "", *name;
	CSINK_AUTO_FREE char *word = strndup(command, first_word(command, file));

	if (!word)
		return NULL;
	name = csink_base_name(*word ? word : file);
	if (csink_text_utf8(NULL, name, strlen(name)) != strlen(name) || !*name || *name == '[')
		name = "countersink";
	return strdup(name);
}

int csink_wire_write(FILE *out, const struct csink_profile *p, const struct csink_wire_options *options)
{
	CSINK_AUTO(csink_profile_done) struct csink_profile *formed = NULL;
	int err = csink_wire_form(p, options, &formed);

	return err ?: fflush(out) ? -errno : csink_pprof_write_fd(formed, fileno(out));
}

int csink_export_wire(FILE *out, const struct csink_profile *p, uint32_t type)
{
	(void)type; /* it has them all */
	return csink_wire_write(out, p, &(struct csink_wire_options){0});
}
