/*
 * Reads pprof files (pprof.h), ours and others': Go's runtime, gperftools' converter and the like.
 *
 * The bytes (pprof_unpack.c) are gone over once for each kind of part, in the order in which parts refer
 * to each other: strings; types, mappings and functions; locations; samples. Writers put them in any order.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/memory.h"
#include "launcher/base/message.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/base/pprof_wire.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"

#define MAX_LOCATIONS 65536 /* of one sample */
#define MAX_LABELS 256
#define MAX_LINES 1024
#define MAX_TYPES 256
#define MAX_COMMENTS 65536

struct reader {
	struct csink_profile *p;
	const unsigned char *bytes;
	size_t len;
	csink_str_t *strings; /* by their index */
	uint32_t nr_strings, cap_strings;
	struct csink_ids mappings, functions, locations;
	uint64_t default_type; /* their string */
	uint32_t *stack;       /* room for MAX_LOCATIONS */
	char *why;
	size_t why_len;
};

/*
 * ---- parts: one message each; everything in them is checked ----
 *
 * What a part refers to has been added before it: strings come first, and the ids of mappings, functions and locations
 * are sorted before they are found.
 */

/* Says what is wrong with the file. Returns err. */
#define fail(r, err, ...) csink_why(err, (r)->why, (r)->why_len, __VA_ARGS__)

static bool take_string(const struct reader *r, uint64_t index, csink_str_t *to)
{
	if (index >= r->nr_strings)
		return false;
	*to = r->strings[index];
	return true;
}

static int add_string(struct reader *r, const struct csink_field *f)
{
	if (CSINK_GROW(r->strings, r->nr_strings, r->cap_strings))
		return -ENOMEM;
	/* Texts end at a NUL here. */
	r->strings[r->nr_strings++] =
		csink_profile_strn(r->p, (const char *)f->bytes, strnlen((const char *)f->bytes, f->len));
	return 0;
}

/* The numbers of a message go to the places of their fields; other fields are passed over. Returns 0 or -EBADMSG. */
static int read_numbers(const struct csink_field *message, uint64_t *numbers, uint32_t nr)
{
	struct csink_field f;
	int err;

	EACH_FIELD(f, message, err)
	{
		if (f.number < nr)
			numbers[f.number] = f.value;
	}
	return err;
}

static int read_type(struct reader *r, const struct csink_field *message, struct csink_profile_type *type)
{
	uint64_t got[VALUE_TYPE_UNIT + 1] = {0};
	int err = read_numbers(message, got, CSINK_ARRAY_SIZE(got));

	return !err && take_string(r, got[VALUE_TYPE_NAME], &type->name) &&
			       take_string(r, got[VALUE_TYPE_UNIT], &type->unit)
		       ? 0
		       : -EBADMSG;
}

static int add_type(struct reader *r, const struct csink_field *message)
{
	struct csink_profile_type type;
	int err = read_type(r, message, &type);

	if (err)
		return fail(r, err, "a damaged sample type");
	if (r->p->nr_types == MAX_TYPES)
		return fail(r, -EBADMSG, "more than %d sample types", MAX_TYPES);
	err = csink_profile_type_add(r->p, csink_profile_text(r->p, type.name), csink_profile_text(r->p, type.unit));
	return err < 0 ? err : 0;
}

static int add_mapping(struct reader *r, const struct csink_field *message)
{
	uint64_t got[MAPPING_HAS_INLINES + 1] = {0};
	int err = read_numbers(message, got, CSINK_ARRAY_SIZE(got));
	struct csink_profile_mapping m = {
		.start = got[MAPPING_START],
		.limit = got[MAPPING_LIMIT],
		.offset = got[MAPPING_OFFSET],
		.has_functions = got[MAPPING_HAS_FUNCTIONS] != 0,
		.has_filenames = got[MAPPING_HAS_FILENAMES] != 0,
		.has_lines = got[MAPPING_HAS_LINES] != 0,
		.has_inlines = got[MAPPING_HAS_INLINES] != 0,
	};

	if (err || !got[MAPPING_ID] || !take_string(r, got[MAPPING_FILE], &m.file) ||
	    !take_string(r, got[MAPPING_BUILD_ID], &m.build_id))
		return fail(r, -EBADMSG, "a damaged mapping");
	return csink_ids_add(&r->mappings, got[MAPPING_ID], csink_profile_mapping_add(r->p, &m));
}

static int add_function(struct reader *r, const struct csink_field *message)
{
	uint64_t got[FUNCTION_LANGUAGE + 1] = {0};
	int err = read_numbers(message, got, CSINK_ARRAY_SIZE(got));
	struct csink_profile_function function = {.start_line = (int64_t)got[FUNCTION_START_LINE]};

	if (err || !got[FUNCTION_ID] || !take_string(r, got[FUNCTION_NAME], &function.name) ||
	    !take_string(r, got[FUNCTION_SYSTEM_NAME], &function.system_name) ||
	    !take_string(r, got[FUNCTION_FILE], &function.file))
		return fail(r, -EBADMSG, "a damaged function");
	/* pprof has no such field: another writer's may be something else. */
	if (!take_string(r, got[FUNCTION_LANGUAGE], &function.language))
		function.language = 0;
	return csink_ids_add(&r->functions, got[FUNCTION_ID], csink_profile_function_add(r->p, &function));
}

static int read_line(struct reader *r, const struct csink_field *message, struct csink_profile_line *line)
{
	uint64_t got[LINE_LINE + 1] = {0};
	int err = read_numbers(message, got, CSINK_ARRAY_SIZE(got));

	*line = (struct csink_profile_line){.function = csink_ids_find(&r->functions, got[LINE_FUNCTION]),
					    .line = (int64_t)got[LINE_LINE]};
	return err || !line->function ? -EBADMSG : 0;
}

static int add_location(struct reader *r, const struct csink_field *message)
{
	struct csink_profile_line lines[MAX_LINES];
	uint64_t got[LOCATION_FOLDED + 1] = {0};
	uint32_t nr_lines = 0, mapping, ours;
	struct csink_field f;
	int err = read_numbers(message, got, CSINK_ARRAY_SIZE(got));

	if (err || !got[LOCATION_ID])
		return fail(r, -EBADMSG, "a damaged location");
	EACH_FIELD(f, message, err)
	{
		if (f.number == LOCATION_LINE && (nr_lines == MAX_LINES || read_line(r, &f, &lines[nr_lines++])))
			return fail(r, -EBADMSG, "a location with damaged lines");
	}
	mapping = csink_ids_find(&r->mappings, got[LOCATION_MAPPING]);
	if (got[LOCATION_MAPPING] && !mapping)
		return fail(r, -EBADMSG, "a damaged location");
	ours = csink_profile_location_add(r->p, mapping, got[LOCATION_ADDRESS], lines, nr_lines);
	if (ours)
		r->p->locations[ours].is_folded = got[LOCATION_FOLDED] != 0;
	return csink_ids_add(&r->locations, got[LOCATION_ID], ours);
}

static int read_label(struct reader *r, const struct csink_field *message, struct csink_profile_label *label)
{
	uint64_t got[LABEL_NUM_UNIT + 1] = {0};
	int err = read_numbers(message, got, CSINK_ARRAY_SIZE(got));

	*label = (struct csink_profile_label){.num = (int64_t)got[LABEL_NUM]};
	return !err && take_string(r, got[LABEL_KEY], &label->key) && take_string(r, got[LABEL_STR], &label->str) &&
			       take_string(r, got[LABEL_NUM_UNIT], &label->num_unit)
		       ? 0
		       : -EBADMSG;
}

/* Add the location ids of one field to the stack. Returns the new depth, or an error. */
static int64_t add_frames(struct reader *r, const struct csink_field *f, uint32_t depth)
{
	uint64_t id;
	int err;

	EACH_NUMBER(id, f, err)
	{
		if (depth == MAX_LOCATIONS)
			return -E2BIG;
		r->stack[depth] = csink_ids_find(&r->locations, id);
		if (!r->stack[depth++])
			return -EBADMSG;
	}
	return err ? err : (int64_t)depth;
}

static int add_sample(struct reader *r, const struct csink_field *message)
{
	struct csink_profile_label labels[MAX_LABELS];
	int64_t values[MAX_TYPES];
	uint64_t value;
	uint32_t depth = 0, nr_labels = 0, nr_values = 0;
	struct csink_field f;
	int64_t got;
	int err;

	EACH_FIELD(f, message, err)
	{
		got = 0;
		if (f.number == SAMPLE_LOCATION) {
			got = add_frames(r, &f, depth);
			if (got == -E2BIG)
				return fail(r, -EBADMSG, "a sample of more than %d frames", MAX_LOCATIONS);
			depth = CSINK_MAX(got, 0);
		} else if (f.number == SAMPLE_VALUE) {
			EACH_NUMBER(value, &f, got)
			{
				if (nr_values == r->p->nr_types)
					return fail(r, -EBADMSG, "a damaged sample");
				values[nr_values++] = (int64_t)value;
			}
		} else if (f.number == SAMPLE_LABEL) {
			got = nr_labels == MAX_LABELS ? -E2BIG : read_label(r, &f, &labels[nr_labels]);
			nr_labels += !got;
		}
		if (got < 0)
			return fail(r, -EBADMSG, "a damaged sample");
	}
	if (err || nr_values != r->p->nr_types)
		return fail(r, -EBADMSG, "a damaged sample");
	csink_profile_sample_add(r->p, csink_profile_stack_add(r->p, r->stack, depth),
				 csink_profile_labels_add(r->p, labels, nr_labels), values);
	return 0;
}

static int add_comments(struct reader *r, const struct csink_field *f)
{
	csink_str_t text;
	uint64_t index;
	int err;

	EACH_NUMBER(index, f, err)
	{
		if (!take_string(r, index, &text))
			return fail(r, -EBADMSG, "a damaged comment");
		if (r->p->nr_comments == MAX_COMMENTS)
			return fail(r, -EBADMSG, "more than %d comments", MAX_COMMENTS);
		csink_profile_comment_add(r->p, text);
	}
	return err ? fail(r, err, "a damaged comment") : 0;
}

/* ---- the file ---- */

static int read_scalar(struct reader *r, const struct csink_field *f)
{
	switch (f->number) {
	case PROFILE_PERIOD_TYPE:
		return read_type(r, f, &r->p->period_type) ? fail(r, -EBADMSG, "a damaged period type") : 0;
	case PROFILE_DROP_FRAMES:
		return take_string(r, f->value, &r->p->drop_frames) ? 0 : fail(r, -EBADMSG, "damaged drop_frames");
	case PROFILE_KEEP_FRAMES:
		return take_string(r, f->value, &r->p->keep_frames) ? 0 : fail(r, -EBADMSG, "damaged keep_frames");
	case PROFILE_TIME:
		r->p->time_ns = (int64_t)f->value;
		return 0;
	case PROFILE_DURATION:
		r->p->duration_ns = (int64_t)f->value;
		return 0;
	case PROFILE_PERIOD:
		r->p->period = (int64_t)f->value;
		return 0;
	case PROFILE_DEFAULT_TYPE:
		r->default_type = f->value;
		return 0;
	}
	return 0;
}

/* What reads each field, and in which pass. */
static const struct {
	int (*read)(struct reader *r, const struct csink_field *f);
	int pass;
} fields[] = {
	[PROFILE_STRING] = {add_string, 0},       [PROFILE_SAMPLE_TYPE] = {add_type, 1},
	[PROFILE_MAPPING] = {add_mapping, 1},     [PROFILE_FUNCTION] = {add_function, 1},
	[PROFILE_COMMENT] = {add_comments, 1},    [PROFILE_PERIOD_TYPE] = {read_scalar, 1},
	[PROFILE_DROP_FRAMES] = {read_scalar, 1}, [PROFILE_KEEP_FRAMES] = {read_scalar, 1},
	[PROFILE_TIME] = {read_scalar, 1},        [PROFILE_DURATION] = {read_scalar, 1},
	[PROFILE_PERIOD] = {read_scalar, 1},      [PROFILE_DEFAULT_TYPE] = {read_scalar, 1},
	[PROFILE_LOCATION] = {add_location, 2},   [PROFILE_SAMPLE] = {add_sample, 3},
};

static bool is_message(uint32_t number)
{
	return (number >= PROFILE_SAMPLE_TYPE && number <= PROFILE_STRING) || number == PROFILE_PERIOD_TYPE;
}

static int pass(struct reader *r, int number)
{
	const unsigned char *at = r->bytes, *end = at + r->len;
	struct csink_field f;
	int err, more;

	while ((more = csink_wire_next(&at, end, &f)) > 0) {
		if (is_message(f.number) && f.wire != WIRE_BYTES)
			return fail(r, -EBADMSG, "not a pprof profile");
		if (f.number >= CSINK_ARRAY_SIZE(fields) || !fields[f.number].read || fields[f.number].pass != number)
			continue;
		err = fields[f.number].read(r, &f);
		if (!err)
			err = csink_profile_error(r->p);
		if (err)
			return err == -ENOMEM ? fail(r, err, "no memory") : err;
	}
	return more ? fail(r, -EBADMSG, "not a pprof profile, or one that was cut or damaged") : 0;
}

static void set_default_type(struct reader *r)
{
	csink_str_t name = r->default_type < r->nr_strings ? r->strings[r->default_type] : 0;
	uint32_t i;

	r->p->default_type = r->p->nr_types - 1; /* pprof's rule: the last one, if none is named */
	for (i = 0; name && i < r->p->nr_types; i++) {
		if (r->p->types[i].name == name)
			r->p->default_type = i;
	}
}

static int parse(struct reader *r)
{
	int err = pass(r, 0) ?: pass(r, 1);

	if (!err && (!r->p->nr_types || !r->nr_strings))
		err = fail(r, -EBADMSG, "not a pprof profile");
	if (!err && (!csink_ids_sort(&r->mappings) || !csink_ids_sort(&r->functions)))
		err = fail(r, -EBADMSG, "an id that is used twice");
	err = err ?: pass(r, 2);
	if (!err && !csink_ids_sort(&r->locations))
		err = fail(r, -EBADMSG, "an id that is used twice");
	err = err ?: pass(r, 3);
	if (!err)
		set_default_type(r);
	return err;
}

int csink_pprof_parse_plain(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len)
{
	struct reader r = {.p = csink_profile_create(), .bytes = buf, .len = len, .why = why, .why_len = why_len};
	int err = -ENOMEM;

	r.stack = malloc(MAX_LOCATIONS * sizeof(*r.stack));
	if (r.p && r.stack) {
		csink_profile_limit(r.p, csink_memory_bytes() / 2);
		err = parse(&r);
	} else {
		csink_why(err, why, why_len, "no memory");
	}
	if (r.p && csink_profile_is_over(r.p))
		err = csink_why(-EBADMSG, why, why_len, "it would take more than half of the memory there is");
	free(r.stack);
	free(r.strings);
	free(r.mappings.all);
	free(r.functions.all);
	free(r.locations.all);
	if (err)
		csink_profile_free(r.p);
	else
		*out = r.p;
	return err;
}
