/* The parts of a pprof file become parts of a profile: one message each. Everything in them is checked. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/grow.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/output/pprof_parts.h"
#include "launcher/profile/profile.h"

#define MAX_LABELS 256
#define MAX_LINES 1024
#define MAX_TYPES 256
#define MAX_COMMENTS 65536

int csink_pprof_fail(struct csink_pprof_reader *r, int err, const char *fmt, ...)
{
	va_list ap;

	if (r->why_len) {
		va_start(ap, fmt);
		vsnprintf(r->why, r->why_len, fmt, ap);
		va_end(ap);
	}
	return err;
}

bool csink_pprof_take_string(const struct csink_pprof_reader *r, uint64_t index, csink_str_t *to)
{
	if (index >= r->nr_strings)
		return false;
	*to = r->strings[index];
	return true;
}

int csink_pprof_add_string(struct csink_pprof_reader *r, const struct csink_field *f)
{
	if (CSINK_GROW(r->strings, r->nr_strings, r->cap_strings))
		return -ENOMEM;
	/* Texts end at a NUL here. */
	r->strings[r->nr_strings++] =
		csink_profile_strn(r->p, (const char *)f->bytes, strnlen((const char *)f->bytes, f->len));
	return 0;
}

int csink_pprof_read_type(struct csink_pprof_reader *r, const struct csink_field *message,
			  struct csink_profile_type *type)
{
	struct csink_field f;
	int err;

	*type = (struct csink_profile_type){0};
	EACH_FIELD(f, message, err)
	{
		if ((f.number == VALUE_TYPE_NAME && !csink_pprof_take_string(r, f.value, &type->name)) ||
		    (f.number == VALUE_TYPE_UNIT && !csink_pprof_take_string(r, f.value, &type->unit)))
			return -EBADMSG;
	}
	return err;
}

int csink_pprof_add_type(struct csink_pprof_reader *r, const struct csink_field *message)
{
	struct csink_profile_type type;
	int err = csink_pprof_read_type(r, message, &type);

	if (err)
		return csink_pprof_fail(r, err, "a damaged sample type");
	if (r->p->nr_types == MAX_TYPES)
		return csink_pprof_fail(r, -EBADMSG, "more than %d sample types", MAX_TYPES);
	err = csink_profile_type_add(r->p, csink_profile_text(r->p, type.name), csink_profile_text(r->p, type.unit));
	return err < 0 ? err : 0;
}

int csink_pprof_add_mapping(struct csink_pprof_reader *r, const struct csink_field *message)
{
	struct csink_profile_mapping m = {0};
	uint64_t id = 0, file = 0, build_id = 0;
	struct csink_field f;
	int err;

	EACH_FIELD(f, message, err)
	{
		switch (f.number) {
		case MAPPING_ID:
			id = f.value;
			break;
		case MAPPING_START:
			m.start = f.value;
			break;
		case MAPPING_LIMIT:
			m.limit = f.value;
			break;
		case MAPPING_OFFSET:
			m.offset = f.value;
			break;
		case MAPPING_FILE:
			file = f.value;
			break;
		case MAPPING_BUILD_ID:
			build_id = f.value;
			break;
		case MAPPING_HAS_FUNCTIONS:
			m.has_functions = f.value != 0;
			break;
		case MAPPING_HAS_FILENAMES:
			m.has_filenames = f.value != 0;
			break;
		case MAPPING_HAS_LINES:
			m.has_lines = f.value != 0;
			break;
		case MAPPING_HAS_INLINES:
			m.has_inlines = f.value != 0;
			break;
		}
	}
	if (err || !id || !csink_pprof_take_string(r, file, &m.file) ||
	    !csink_pprof_take_string(r, build_id, &m.build_id))
		return csink_pprof_fail(r, -EBADMSG, "a damaged mapping");
	return csink_ids_add(&r->mappings, id, csink_profile_mapping_add(r->p, &m));
}

int csink_pprof_add_function(struct csink_pprof_reader *r, const struct csink_field *message)
{
	uint64_t id = 0, name = 0, system_name = 0, file = 0;
	struct csink_profile_function function = {0};
	struct csink_field f;
	int err;

	EACH_FIELD(f, message, err)
	{
		switch (f.number) {
		case FUNCTION_ID:
			id = f.value;
			break;
		case FUNCTION_NAME:
			name = f.value;
			break;
		case FUNCTION_SYSTEM_NAME:
			system_name = f.value;
			break;
		case FUNCTION_FILE:
			file = f.value;
			break;
		case FUNCTION_START_LINE:
			function.start_line = (int64_t)f.value;
			break;
		}
	}
	if (err || !id || !csink_pprof_take_string(r, name, &function.name) ||
	    !csink_pprof_take_string(r, system_name, &function.system_name) ||
	    !csink_pprof_take_string(r, file, &function.file))
		return csink_pprof_fail(r, -EBADMSG, "a damaged function");
	return csink_ids_add(&r->functions, id, csink_profile_function_add(r->p, &function));
}

static int read_line(struct csink_pprof_reader *r, const struct csink_field *message, struct csink_profile_line *line)
{
	uint64_t function = 0;
	struct csink_field f;
	int err;

	*line = (struct csink_profile_line){0};
	EACH_FIELD(f, message, err)
	{
		if (f.number == LINE_FUNCTION)
			function = f.value;
		else if (f.number == LINE_LINE)
			line->line = (int64_t)f.value;
	}
	line->function = csink_ids_find(&r->functions, function);
	return err || !line->function ? -EBADMSG : 0;
}

int csink_pprof_add_location(struct csink_pprof_reader *r, const struct csink_field *message)
{
	struct csink_profile_line lines[MAX_LINES];
	uint64_t id = 0, mapping = 0, address = 0, folded = 0;
	uint32_t nr_lines = 0, ours;
	struct csink_field f;
	int err;

	EACH_FIELD(f, message, err)
	{
		switch (f.number) {
		case LOCATION_ID:
			id = f.value;
			break;
		case LOCATION_MAPPING:
			mapping = f.value;
			break;
		case LOCATION_ADDRESS:
			address = f.value;
			break;
		case LOCATION_FOLDED:
			folded = f.value;
			break;
		case LOCATION_LINE:
			if (nr_lines == MAX_LINES || read_line(r, &f, &lines[nr_lines]))
				return csink_pprof_fail(r, -EBADMSG, "a location with damaged lines");
			nr_lines++;
		}
	}
	if (err || !id || (mapping && !csink_ids_find(&r->mappings, mapping)))
		return csink_pprof_fail(r, -EBADMSG, "a damaged location");
	ours = csink_profile_location_add(r->p, csink_ids_find(&r->mappings, mapping), address, lines, nr_lines);
	if (ours)
		r->p->locations[ours].is_folded = folded != 0;
	return csink_ids_add(&r->locations, id, ours);
}

static int read_label(struct csink_pprof_reader *r, const struct csink_field *message,
		      struct csink_profile_label *label)
{
	struct csink_field f;
	int err;

	*label = (struct csink_profile_label){0};
	EACH_FIELD(f, message, err)
	{
		if ((f.number == LABEL_KEY && !csink_pprof_take_string(r, f.value, &label->key)) ||
		    (f.number == LABEL_STR && !csink_pprof_take_string(r, f.value, &label->str)) ||
		    (f.number == LABEL_NUM_UNIT && !csink_pprof_take_string(r, f.value, &label->num_unit)))
			return -EBADMSG;
		if (f.number == LABEL_NUM)
			label->num = (int64_t)f.value;
	}
	return err;
}

/* Add the location ids of one field to the stack. Returns the new depth, or an error. */
static int64_t add_frames(struct csink_pprof_reader *r, const struct csink_field *f, uint32_t depth)
{
	const unsigned char *at = f->bytes, *end = at + f->len;
	uint64_t id = f->value;

	if (f->wire != WIRE_VARINT && f->wire != WIRE_BYTES)
		return -EBADMSG;
	while (f->wire == WIRE_VARINT || at < end) {
		if (f->wire == WIRE_BYTES && !csink_wire_varint(&at, end, &id))
			return -EBADMSG;
		if (depth == CSINK_PPROF_MAX_LOCATIONS)
			return -E2BIG;
		r->stack[depth] = csink_ids_find(&r->locations, id);
		if (!r->stack[depth++])
			return -EBADMSG;
		if (f->wire == WIRE_VARINT)
			break;
	}
	return depth;
}

int csink_pprof_add_sample(struct csink_pprof_reader *r, const struct csink_field *message)
{
	struct csink_profile_label labels[MAX_LABELS];
	uint64_t values[MAX_TYPES];
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
				return csink_pprof_fail(r, -EBADMSG, "a sample of more than %d frames",
							CSINK_PPROF_MAX_LOCATIONS);
			depth = CSINK_MAX(got, 0);
		} else if (f.number == SAMPLE_VALUE) {
			got = csink_wire_numbers(&f, values + nr_values, r->p->nr_types - nr_values);
			nr_values += CSINK_MAX(got, 0);
		} else if (f.number == SAMPLE_LABEL) {
			got = nr_labels == MAX_LABELS ? -E2BIG : read_label(r, &f, &labels[nr_labels]);
			nr_labels += !got;
		}
		if (got < 0)
			return csink_pprof_fail(r, -EBADMSG, "a damaged sample");
	}
	if (err || nr_values != r->p->nr_types)
		return csink_pprof_fail(r, -EBADMSG, "a damaged sample");
	csink_profile_sample_add(r->p, csink_profile_stack_add(r->p, r->stack, depth),
				 csink_profile_labels_add(r->p, labels, nr_labels), (const int64_t *)values);
	return 0;
}

int csink_pprof_add_comments(struct csink_pprof_reader *r, const struct csink_field *f)
{
	const unsigned char *at = f->bytes, *end = at + f->len;
	uint64_t index = f->value;
	csink_str_t text;

	while (f->wire == WIRE_VARINT || at < end) {
		if ((f->wire != WIRE_VARINT && !csink_wire_varint(&at, end, &index)) ||
		    !csink_pprof_take_string(r, index, &text))
			return csink_pprof_fail(r, -EBADMSG, "a damaged comment");
		if (r->p->nr_comments == MAX_COMMENTS)
			return csink_pprof_fail(r, -EBADMSG, "more than %d comments", MAX_COMMENTS);
		csink_profile_comment_add(r->p, text);
		if (f->wire == WIRE_VARINT)
			break;
	}
	return 0;
}
