/*
 * Reads pprof files (pprof.h), ours and others': Go's runtime, gperftools' converter and the like.
 *
 * The bytes (pprof_unpack.c) are gone over once for each kind of part, in the order in which parts refer
 * to each other: strings; types, mappings and functions; locations; samples. Writers put them in any order.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "launcher/base/memory.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/output/pprof.h"
#include "launcher/output/pprof_parts.h"
#include "launcher/profile/profile.h"

static int read_string(struct csink_pprof_reader *r, const struct csink_field *f)
{
	return f->number == PROFILE_STRING ? csink_pprof_add_string(r, f) : 0;
}

static int read_simple(struct csink_pprof_reader *r, const struct csink_field *f)
{
	switch (f->number) {
	case PROFILE_SAMPLE_TYPE:
		return csink_pprof_add_type(r, f);
	case PROFILE_MAPPING:
		return csink_pprof_add_mapping(r, f);
	case PROFILE_FUNCTION:
		return csink_pprof_add_function(r, f);
	case PROFILE_COMMENT:
		return csink_pprof_add_comments(r, f);
	case PROFILE_PERIOD_TYPE:
		return csink_pprof_read_type(r, f, &r->p->period_type)
			       ? csink_pprof_fail(r, -EBADMSG, "a damaged period type")
			       : 0;
	case PROFILE_DROP_FRAMES:
		return csink_pprof_take_string(r, f->value, &r->p->drop_frames)
			       ? 0
			       : csink_pprof_fail(r, -EBADMSG, "damaged drop_frames");
	case PROFILE_KEEP_FRAMES:
		return csink_pprof_take_string(r, f->value, &r->p->keep_frames)
			       ? 0
			       : csink_pprof_fail(r, -EBADMSG, "damaged keep_frames");
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

static int read_location(struct csink_pprof_reader *r, const struct csink_field *f)
{
	return f->number == PROFILE_LOCATION ? csink_pprof_add_location(r, f) : 0;
}

static int read_sample(struct csink_pprof_reader *r, const struct csink_field *f)
{
	return f->number == PROFILE_SAMPLE ? csink_pprof_add_sample(r, f) : 0;
}

static bool is_message(uint32_t number)
{
	return (number >= PROFILE_SAMPLE_TYPE && number <= PROFILE_STRING) || number == PROFILE_PERIOD_TYPE;
}

static int pass(struct csink_pprof_reader *r, int (*read)(struct csink_pprof_reader *r, const struct csink_field *f))
{
	const unsigned char *at = r->bytes, *end = at + r->len;
	struct csink_field f;
	int err, more;

	while ((more = csink_wire_next(&at, end, &f)) > 0) {
		if (is_message(f.number) && f.wire != WIRE_BYTES)
			return csink_pprof_fail(r, -EBADMSG, "not a pprof profile");
		err = read(r, &f);
		if (!err)
			err = csink_profile_error(r->p);
		if (err)
			return err == -ENOMEM ? csink_pprof_fail(r, err, "no memory") : err;
	}
	return more ? csink_pprof_fail(r, -EBADMSG, "not a pprof profile, or one that was cut or damaged") : 0;
}

static void set_default_type(struct csink_pprof_reader *r)
{
	csink_str_t name = r->default_type < r->nr_strings ? r->strings[r->default_type] : 0;
	uint32_t i;

	r->p->default_type = r->p->nr_types - 1; /* pprof's rule: the last one, if none is named */
	for (i = 0; name && i < r->p->nr_types; i++) {
		if (r->p->types[i].name == name)
			r->p->default_type = i;
	}
}

static int parse(struct csink_pprof_reader *r)
{
	int err = pass(r, read_string);

	if (!err)
		err = pass(r, read_simple);
	if (!err && (!r->p->nr_types || !r->nr_strings))
		err = csink_pprof_fail(r, -EBADMSG, "not a pprof profile");
	if (!err && (!csink_ids_sort(&r->mappings) || !csink_ids_sort(&r->functions)))
		err = csink_pprof_fail(r, -EBADMSG, "an id that is used twice");
	if (!err)
		err = pass(r, read_location);
	if (!err && !csink_ids_sort(&r->locations))
		err = csink_pprof_fail(r, -EBADMSG, "an id that is used twice");
	if (!err)
		err = pass(r, read_sample);
	if (!err)
		set_default_type(r);
	return err;
}

int csink_pprof_parse_plain(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len)
{
	struct csink_pprof_reader r = {
		.p = csink_profile_create(), .bytes = buf, .len = len, .why = why, .why_len = why_len};
	int err = -ENOMEM;

	r.stack = malloc(CSINK_PPROF_MAX_LOCATIONS * sizeof(*r.stack));
	if (r.p && r.stack) {
		csink_profile_limit(r.p, csink_memory_bytes() / 2);
		err = parse(&r);
	} else {
		csink_pprof_fail(&r, err, "no memory");
	}
	if (r.p && csink_profile_is_over(r.p))
		err = csink_pprof_fail(&r, -EBADMSG, "it would take more than half of the memory there is");
	free(r.stack);
	free(r.strings);
	free(r.mappings.all);
	free(r.functions.all);
	free(r.locations.all);
	if (err)
		csink_profile_destroy(r.p);
	else
		*out = r.p;
	return err;
}
