/* Writes a profile as pprof (pprof.h). */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/outfile.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/base/protobuf.h"
#include "launcher/base/text.h"
#include "launcher/base/write_all.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"

/* Level 1 packs profiles to within a sixth of what level 6 does, in a fifth of the time. */
#define GZIP_LEVEL 1

/* ---- the profile's parts ---- */

/* A string of protobuf's is UTF-8, or strict readers refuse the whole profile: bytes that are none become "\\xNN". */
static void put_string(struct csink_protobuf *b, const char *text, size_t len)
{
	CSINK_AUTO_FREE char *escaped = NULL;
	size_t nr = csink_text_utf8(NULL, text, len);

	if (nr == len) {
		csink_protobuf_bytes(b, PROFILE_STRING, text, len);
		return;
	}
	escaped = malloc(nr);
	if (!escaped) {
		b->err = -ENOMEM;
		return;
	}
	csink_text_utf8(escaped, text, len);
	csink_protobuf_bytes(b, PROFILE_STRING, escaped, nr);
}

static void put_type(struct csink_protobuf *b, uint32_t field, const struct csink_profile_type *type)
{
	CSINK_PROTOBUF_NUMBERS(b, field, [VALUE_TYPE_NAME] = type->name, [VALUE_TYPE_UNIT] = type->unit);
}

static void put_labels(struct csink_protobuf *b, const struct csink_profile *p, uint32_t set)
{
	const struct csink_profile_range *range = &p->label_sets[set];
	const struct csink_profile_label *label = p->labels + range->first, *last = label + range->nr;

	for (; label < last; label++)
		CSINK_PROTOBUF_NUMBERS(b, SAMPLE_LABEL, [LABEL_KEY] = label->key, [LABEL_STR] = label->str,
				       [LABEL_NUM] = label->num, [LABEL_NUM_UNIT] = label->num_unit);
}

static void put_sample(struct csink_protobuf *b, const struct csink_profile *p, uint32_t i)
{
	const struct csink_profile_range *stack = &p->stacks[p->samples[i].stack];
	const uint32_t *id = p->stack_ids + stack->first;
	const int64_t *values = csink_profile_values(p, i);
	size_t start = csink_protobuf_begin(b, PROFILE_SAMPLE), list;
	uint32_t k;

	if (stack->nr) {
		list = csink_protobuf_begin(b, SAMPLE_LOCATION);
		if (!csink_protobuf_room(b, (size_t)stack->nr * CSINK_VARINT_MAX))
			return;
		for (k = 0; k < stack->nr; k++)
			b->used += csink_varint_store(b->bytes + b->used, id[k]);
		csink_protobuf_end(b, list);
	}
	list = csink_protobuf_begin(b, SAMPLE_VALUE);
	for (k = 0; k < p->nr_types; k++)
		csink_protobuf_varint(b, values[k]);
	csink_protobuf_end(b, list);
	put_labels(b, p, p->samples[i].labels);
	csink_protobuf_end(b, start);
}

static void put_mapping(struct csink_protobuf *b, const struct csink_profile *p, uint32_t id)
{
	const struct csink_profile_mapping *m = &p->mappings[id];

	CSINK_PROTOBUF_NUMBERS(
		b, PROFILE_MAPPING, [MAPPING_ID] = id, [MAPPING_START] = m->start, [MAPPING_LIMIT] = m->limit,
		[MAPPING_OFFSET] = m->offset, [MAPPING_FILE] = m->file, [MAPPING_BUILD_ID] = m->build_id,
		[MAPPING_HAS_FUNCTIONS] = m->has_functions, [MAPPING_HAS_FILENAMES] = m->has_filenames,
		[MAPPING_HAS_LINES] = m->has_lines, [MAPPING_HAS_INLINES] = m->has_inlines);
}

static void put_location(struct csink_protobuf *b, const struct csink_profile *p, uint32_t id)
{
	const struct csink_profile_location *location = &p->locations[id];
	const struct csink_profile_line *line = p->lines + location->first_line, *last = line + location->nr_lines;
	size_t start = csink_protobuf_begin(b, PROFILE_LOCATION);

	csink_protobuf_number(b, LOCATION_ID, id);
	csink_protobuf_number(b, LOCATION_MAPPING, location->mapping);
	csink_protobuf_number(b, LOCATION_ADDRESS, location->address);
	for (; line < last; line++)
		CSINK_PROTOBUF_NUMBERS(b, LOCATION_LINE, [LINE_FUNCTION] = line->function, [LINE_LINE] = line->line);
	csink_protobuf_number(b, LOCATION_FOLDED, location->is_folded);
	csink_protobuf_end(b, start);
}

static void put_function(struct csink_protobuf *b, const struct csink_profile *p, uint32_t id)
{
	const struct csink_profile_function *function = &p->functions[id];

	CSINK_PROTOBUF_NUMBERS(b, PROFILE_FUNCTION, [FUNCTION_ID] = id, [FUNCTION_NAME] = function->name,
			       [FUNCTION_SYSTEM_NAME] = function->system_name, [FUNCTION_FILE] = function->file,
			       [FUNCTION_START_LINE] = function->start_line, [FUNCTION_LANGUAGE] = function->language);
}

static void put_profile(struct csink_protobuf *b, const struct csink_profile *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_types; i++)
		put_type(b, PROFILE_SAMPLE_TYPE, &p->types[i]);
	for (i = 0; i < p->nr_samples; i++)
		put_sample(b, p, i);
	for (i = 1; i < p->nr_mappings; i++)
		put_mapping(b, p, i);
	for (i = 1; i < p->nr_locations; i++)
		put_location(b, p, i);
	for (i = 1; i < p->nr_functions; i++)
		put_function(b, p, i);
	for (i = 0; i < p->nr_strings; i++)
		put_string(b, p->strings[i].text, p->strings[i].len);
	csink_protobuf_number(b, PROFILE_DROP_FRAMES, p->drop_frames);
	csink_protobuf_number(b, PROFILE_KEEP_FRAMES, p->keep_frames);
	csink_protobuf_number(b, PROFILE_TIME, p->time_ns);
	csink_protobuf_number(b, PROFILE_DURATION, p->duration_ns);
	if (p->period_type.name)
		put_type(b, PROFILE_PERIOD_TYPE, &p->period_type);
	csink_protobuf_number(b, PROFILE_PERIOD, p->period);
	for (i = 0; i < p->nr_comments; i++) {
		csink_protobuf_varint(b, PROFILE_COMMENT << 3 | WIRE_VARINT);
		csink_protobuf_varint(b, p->comments[i]);
	}
	if (p->default_type < p->nr_types)
		csink_protobuf_number(b, PROFILE_DEFAULT_TYPE, p->types[p->default_type].name);
}

int csink_pprof_encode(const struct csink_profile *p, void **buf, size_t *len)
{
	struct csink_protobuf b = {0};

	if (csink_profile_error(p))
		return csink_profile_error(p);
	put_profile(&b, p);
	if (b.err) {
		free(b.bytes);
		return b.err;
	}
	*buf = b.bytes;
	*len = b.used;
	return 0;
}

/* ---- the file ---- */

static int write_gzip(int fd, unsigned char *bytes, size_t len)
{
	z_stream z = {0};
	unsigned char out[16384];
	size_t given = 0;
	int err = 0, state = Z_OK;

	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	while (!err && state != Z_STREAM_END) {
		if (!z.avail_in) {
			z.next_in = bytes + given;
			z.avail_in = CSINK_MIN(len - given, 1U << 30);
			given += z.avail_in;
		}
		z.next_out = out;
		z.avail_out = sizeof(out);
		state = deflate(&z, given == len ? Z_FINISH : Z_NO_FLUSH);
		err = csink_write_all(fd, out, sizeof(out) - z.avail_out);
	}
	deflateEnd(&z);
	return err;
}

int csink_pprof_write_as(const struct csink_profile *p, const char *path, unsigned int how)
{
	CSINK_AUTO_FREE void *bytes = NULL;
	struct csink_outfile file;
	size_t len = 0;
	int err = csink_pprof_encode(p, &bytes, &len) ?: csink_outfile_open(&file, path, how | CSINK_OUTFILE_KEEP_OLD);

	return err ?: csink_outfile_close(&file, write_gzip(file.fd, bytes, len));
}

int csink_pprof_write(const struct csink_profile *p, const char *path)
{
	return csink_pprof_write_as(p, path, 0);
}

int csink_pprof_write_fd(const struct csink_profile *p, int fd)
{
	CSINK_AUTO_FREE void *bytes = NULL;
	size_t len = 0;

	return csink_pprof_encode(p, &bytes, &len) ?: write_gzip(fd, bytes, len);
}
