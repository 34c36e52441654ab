/*
 * OTLP's profiles, v1development of opentelemetry-proto 1.10.0 to 1.11.0 (its state is Alpha: numbers of fields may
 * move again, and no version is in the message). All Profiles of a request share a dictionary, whose tables begin with
 * an element that is zero: an index of 0 is none. The wire form has nothing twice and nothing that is not needed, so
 * that its ids are the indexes. Runs in the caller's thread.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/base/protobuf.h"
#include "launcher/base/text.h"
#include "launcher/output/export.h"
#include "launcher/output/wire_form.h"
#include "launcher/profile/profile.h"

enum request_field { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum resource_profiles_field { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE = 2 };
enum resource_field { RESOURCE_ATTRIBUTE = 1 };
enum scope_profiles_field { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILE = 2 };
enum scope_field { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum any_value_field { ANY_STRING = 1, ANY_INT = 3 };
enum dictionary_field {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
};
enum otlp_profile_field {
	OTLP_SAMPLE_TYPE = 1,
	OTLP_SAMPLE = 2,
	OTLP_TIME = 3,
	OTLP_DURATION = 4,
	OTLP_PERIOD_TYPE = 5,
	OTLP_PERIOD = 6,
	OTLP_PROFILE_ID = 7,
};
enum otlp_mapping_field { OTLP_MAP_START = 1, OTLP_MAP_LIMIT, OTLP_MAP_OFFSET, OTLP_MAP_FILE, OTLP_MAP_ATTRIBUTES };
enum otlp_location_field { OTLP_LOCATION_MAPPING = 1, OTLP_LOCATION_ADDRESS = 2, OTLP_LOCATION_LINE = 3 };
enum otlp_line_field { OTLP_LINE_FUNCTION = 1, OTLP_LINE_LINE = 2 };
enum otlp_function_field { OTLP_FUNCTION_NAME = 1, OTLP_FUNCTION_SYSTEM_NAME, OTLP_FUNCTION_FILE, OTLP_FUNCTION_LINE };
enum stack_field { STACK_LOCATIONS = 1 };
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };

/* The fields of a sample, which have other numbers in older versions. */
static const struct {
	uint32_t stack, attributes, values;
} sample_fields[CSINK_NR_WIRE_OTLPS] = {
	[CSINK_WIRE_OTLP_NOW] = {.stack = 1, .attributes = 2, .values = 4},
	[CSINK_WIRE_OTLP_1_9] = {.stack = 1, .values = 2, .attributes = 3},
};

#define BUILD_ID_KEY "process.executable.build_id.gnu"
#define ID_BYTES 16

struct otlp {
	const struct csink_profile *p; /* the wire form */
	const struct csink_wire_options *options;
	char *program;                        /* malloc'ed */
	struct csink_profile *texts;          /* its strings are the table */
	struct csink_profile *attribute_keys; /* contents of attributes; the ids of these strings are their indexes */
	struct csink_protobuf attributes;     /* of the dictionary */
	struct csink_protobuf tables, out;
};

static void release(struct otlp *o)
{
	csink_profile_free(o->texts);
	csink_profile_free(o->attribute_keys);
	free(o->program);
	free(o->attributes.bytes);
	free(o->tables.bytes);
	free(o->out.bytes);
}

/* A string's index. */
static uint32_t text_of(struct otlp *o, csink_str_t id)
{
	return csink_profile_strn(o->texts, o->p->strings[id].text, o->p->strings[id].len);
}

/* ---- attributes ---- */

/* The text that is given, else the number; of several kinds of value the one that is meant is written, also if it is 0.
 */
static void put_any(struct csink_protobuf *b, uint32_t field, const char *text, size_t len, int64_t number)
{
	size_t start = csink_protobuf_begin(b, field);

	if (text) {
		csink_protobuf_bytes(b, ANY_STRING, text, len);
	} else {
		csink_protobuf_varint(b, ANY_INT << 3 | WIRE_VARINT);
		csink_protobuf_varint(b, (uint64_t)number);
	}
	csink_protobuf_end(b, start);
}

/* An attribute's index in the dictionary. A text that is a value is in it as it is, and in no table. */
static uint32_t attribute_of(struct otlp *o, const char *key, csink_str_t str, int64_t num, csink_str_t unit)
{
	struct {
		csink_str_t key, str, unit;
		uint32_t reserved;
		int64_t num;
	} content = {.key = csink_profile_str(o->texts, key), .str = str, .unit = text_of(o, unit), .num = num};
	const struct csink_profile_string *text = &o->p->strings[str];
	uint32_t next = o->attribute_keys->nr_strings;
	uint32_t index = csink_profile_strn(o->attribute_keys, (const char *)&content, sizeof(content));
	size_t start;

	if (index != next)
		return index;
	start = csink_protobuf_begin(&o->attributes, DICTIONARY_ATTRIBUTE);
	csink_protobuf_number(&o->attributes, ATTRIBUTE_KEY, content.key);
	put_any(&o->attributes, ATTRIBUTE_VALUE, str ? text->text : NULL, text->len, num);
	csink_protobuf_number(&o->attributes, ATTRIBUTE_UNIT, content.unit);
	csink_protobuf_end(&o->attributes, start);
	return index;
}

static void put_labels(struct otlp *o, struct csink_protobuf *b, uint32_t set)
{
	const struct csink_profile_range *range = &o->p->label_sets[set];
	const struct csink_profile_label *label = o->p->labels + range->first, *last = label + range->nr;
	size_t list;

	if (!range->nr)
		return;
	list = csink_protobuf_begin(b, sample_fields[o->options->otlp].attributes);
	for (; label < last; label++)
		csink_protobuf_varint(b, attribute_of(o, csink_profile_text(o->p, label->key), label->str, label->num,
						      label->num_unit));
	csink_protobuf_end(b, list);
}

/* ---- the dictionary ---- */

static void put_mapping(struct otlp *o, struct csink_protobuf *b, const struct csink_profile_mapping *m)
{
	size_t start = csink_protobuf_begin(b, DICTIONARY_MAPPING), list;

	csink_protobuf_number(b, OTLP_MAP_START, m->start);
	csink_protobuf_number(b, OTLP_MAP_LIMIT, m->limit);
	csink_protobuf_number(b, OTLP_MAP_OFFSET, m->offset);
	csink_protobuf_number(b, OTLP_MAP_FILE, text_of(o, m->file));
	if (m->build_id) {
		list = csink_protobuf_begin(b, OTLP_MAP_ATTRIBUTES);
		csink_protobuf_varint(b, attribute_of(o, BUILD_ID_KEY, m->build_id, 0, 0));
		csink_protobuf_end(b, list);
	}
	csink_protobuf_end(b, start);
}

static void put_location(struct otlp *o, struct csink_protobuf *b, const struct csink_profile_location *location)
{
	const struct csink_profile_line *line = o->p->lines + location->first_line, *last = line + location->nr_lines;
	size_t start = csink_protobuf_begin(b, DICTIONARY_LOCATION);

	csink_protobuf_number(b, OTLP_LOCATION_MAPPING, location->mapping);
	csink_protobuf_number(b, OTLP_LOCATION_ADDRESS, location->address);
	for (; line < last; line++)
		CSINK_PROTOBUF_NUMBERS(b, OTLP_LOCATION_LINE, [OTLP_LINE_FUNCTION] = line->function,
				       [OTLP_LINE_LINE] = (uint64_t)line->line);
	csink_protobuf_end(b, start);
}

static void put_stack(struct csink_protobuf *b, const struct csink_profile *p, const struct csink_profile_range *stack)
{
	size_t start = csink_protobuf_begin(b, DICTIONARY_STACK), list;

	if (stack->nr) {
		list = csink_protobuf_begin(b, STACK_LOCATIONS);
		for (uint32_t i = 0; i < stack->nr; i++)
			csink_protobuf_varint(b, p->stack_ids[stack->first + i]);
		csink_protobuf_end(b, list);
	}
	csink_protobuf_end(b, start);
}

/* Element 0 of each kind of the profile's is empty, as it is in a table. */
static void put_tables(struct otlp *o)
{
	const struct csink_profile *p = o->p;
	struct csink_protobuf *b = &o->tables;
	const struct csink_profile_function *f;

	for (uint32_t i = 0; i < p->nr_mappings; i++)
		put_mapping(o, b, &p->mappings[i]);
	for (uint32_t i = 0; i < p->nr_locations; i++)
		put_location(o, b, &p->locations[i]);
	for (f = p->functions; f < p->functions + p->nr_functions; f++)
		CSINK_PROTOBUF_NUMBERS(
			b, DICTIONARY_FUNCTION, [OTLP_FUNCTION_NAME] = text_of(o, f->name),
			[OTLP_FUNCTION_SYSTEM_NAME] = text_of(o, f->system_name),
			[OTLP_FUNCTION_FILE] = text_of(o, f->file), [OTLP_FUNCTION_LINE] = (uint64_t)f->start_line);
	for (uint32_t i = 0; i < p->nr_stacks; i++)
		put_stack(b, p, &p->stacks[i]);
	csink_protobuf_bytes(b, DICTIONARY_LINK, NULL, 0);
}

static void put_dictionary(struct otlp *o)
{
	struct csink_protobuf *b = &o->out;
	size_t start = csink_protobuf_begin(b, REQUEST_DICTIONARY);

	csink_protobuf_append(b, o->tables.bytes, o->tables.used);
	csink_protobuf_bytes(b, DICTIONARY_ATTRIBUTE, NULL, 0);
	csink_protobuf_append(b, o->attributes.bytes, o->attributes.used);
	for (uint32_t i = 0; i < o->texts->nr_strings; i++)
		csink_protobuf_bytes(b, DICTIONARY_STRING, o->texts->strings[i].text, o->texts->strings[i].len);
	csink_protobuf_end(b, start);
}

/* ---- a profile ---- */

/*
 * A profile that is sent twice has the same id, by which a server may know it: the 128-bit FNV-1a of its content. (The
 * launcher's tables have a hash whose key changes with each process.)
 */
static unsigned __int128 fnv(unsigned __int128 hash, const void *bytes, size_t len)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * prime;
	return hash;
}

static void put_id(struct otlp *o, size_t start)
{
	unsigned __int128 hash = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
	unsigned char id[ID_BYTES];

	if (o->out.err || o->tables.err || o->attributes.err)
		return;
	hash = fnv(hash, o->tables.bytes, o->tables.used);
	for (uint32_t i = 0; i < o->texts->nr_strings; i++)
		hash = fnv(hash, o->texts->strings[i].text, o->texts->strings[i].len + 1);
	hash = fnv(hash, o->attributes.bytes, o->attributes.used);
	hash = fnv(hash, o->out.bytes + start, o->out.used - start);
	for (uint32_t i = 0; i < ID_BYTES; i++, hash >>= 8)
		id[ID_BYTES - 1 - i] = (unsigned char)hash;
	csink_protobuf_bytes(&o->out, OTLP_PROFILE_ID, id, sizeof(id));
}

static void put_type(struct otlp *o, uint32_t field, const struct csink_profile_type *type)
{
	CSINK_PROTOBUF_NUMBERS(
		&o->out, field, [VALUE_TYPE_NAME] = text_of(o, type->name), [VALUE_TYPE_UNIT] = text_of(o, type->unit));
}

static void put_sample(struct otlp *o, const struct csink_profile_sample *sample, int64_t value)
{
	struct csink_protobuf *b = &o->out;
	size_t start = csink_protobuf_begin(b, OTLP_SAMPLE), list;

	csink_protobuf_number(b, sample_fields[o->options->otlp].stack, sample->stack);
	put_labels(o, b, sample->labels);
	list = csink_protobuf_begin(b, sample_fields[o->options->otlp].values);
	csink_protobuf_varint(b, (uint64_t)value);
	csink_protobuf_end(b, list);
	csink_protobuf_end(b, start);
}

static void put_profile(struct otlp *o, uint32_t type)
{
	const struct csink_profile *p = o->p;
	size_t start = csink_protobuf_begin(&o->out, SCOPE_PROFILES_PROFILE);

	put_type(o, OTLP_SAMPLE_TYPE, &p->types[type]);
	for (uint32_t i = 0; i < p->nr_samples; i++) {
		if (csink_profile_values(p, i)[type])
			put_sample(o, &p->samples[i], csink_profile_values(p, i)[type]);
	}
	csink_protobuf_fixed64(&o->out, OTLP_TIME, (uint64_t)p->time_ns);
	csink_protobuf_number(&o->out, OTLP_DURATION, (uint64_t)p->duration_ns);
	put_type(o, OTLP_PERIOD_TYPE, &p->period_type);
	csink_protobuf_number(&o->out, OTLP_PERIOD, (uint64_t)p->period);
	put_id(o, start);
	csink_protobuf_end(&o->out, start);
}

/* ---- the resource ---- */

struct resource {
	struct resource_attribute {
		char *key, *text; /* malloc'ed, valid UTF-8 */
	} * all;
	uint32_t nr, cap;
};

static void release_resource(struct resource *r)
{
	for (uint32_t i = 0; i < r->nr; i++) {
		free(r->all[i].key);
		free(r->all[i].text);
	}
	free(r->all);
}

/* A part of the list, without blanks around it: "%NN" is a byte ("%00" ends it), one that is no UTF-8 becomes "\xNN".
 */
static char *decoded(const char *text, size_t len)
{
	CSINK_AUTO_FREE char *plain = NULL;
	char *valid;
	size_t nr;

	while (len && isspace((unsigned char)*text))
		text++, len--;
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	plain = strndup(text, len);
	if (!plain)
		return NULL;
	csink_text_undo_percent(plain);
	len = strlen(plain);
	nr = csink_text_utf8(NULL, plain, len);
	valid = malloc(nr + 1);
	if (!valid)
		return NULL;
	csink_text_utf8(valid, plain, len);
	valid[nr] = 0;
	return valid;
}

/* Of a key that comes again, the last value counts. Takes both texts over, also where it fails. */
static int set_attribute(struct resource *r, char *key, char *text)
{
	struct resource_attribute new = {key, text};
	uint32_t i = 0;

	while (key && i < r->nr && strcmp(r->all[i].key, key))
		i++;
	if (key && text && *key && i < r->nr) {
		free(r->all[i].text);
		r->all[i].text = text;
		free(key);
		return 0;
	}
	if (key && text && *key && CSINK_APPEND(r->all, r->nr, r->cap, new))
		return 0;
	i = key && text && !*key;
	free(key);
	free(text);
	return i ? 0 : -ENOMEM;
}

/* OTEL_RESOURCE_ATTRIBUTES: "KEY=VALUE,...". What is no pair is left out. */
static int read_resource(struct resource *r, const char *list)
{
	const char *equals;
	size_t len;
	int err = 0;

	for (const char *at = list; *at && !err; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		equals = memchr(at, '=', len);
		if (equals)
			err = set_attribute(r, decoded(at, (size_t)(equals - at)),
					    decoded(equals + 1, (size_t)(at + len - equals - 1)));
	}
	return err;
}

static void put_resource_attribute(struct csink_protobuf *b, const char *key, const char *text)
{
	size_t start = csink_protobuf_begin(b, RESOURCE_ATTRIBUTE);

	csink_protobuf_bytes(b, KEY_VALUE_KEY, key, strlen(key));
	put_any(b, KEY_VALUE_VALUE, text, strlen(text), 0);
	csink_protobuf_end(b, start);
}

/* The service's name is asked for in its own place, so that one of the list gives way to it; so does an empty one. */
static int put_resource(struct otlp *o)
{
	static const char service_key[] = "service.name";
	const char *service = o->options->service ?: "";
	CSINK_AUTO(release_resource) struct resource r = {0};
	int err = read_resource(&r, o->options->resource ?: "");
	size_t start = csink_protobuf_begin(&o->out, RESOURCE_PROFILES_RESOURCE);
	bool is_named = false;

	for (uint32_t i = 0; i < r.nr; i++) {
		if (strcmp(r.all[i].key, service_key)) {
			put_resource_attribute(&o->out, r.all[i].key, r.all[i].text);
		} else if (!*service && *r.all[i].text) {
			put_resource_attribute(&o->out, service_key, r.all[i].text);
			is_named = true;
		}
	}
	if (!is_named)
		put_resource_attribute(&o->out, service_key, *service ? service : o->program);
	csink_protobuf_end(&o->out, start);
	return err;
}

/* ---- all together ---- */

static int put_request(struct otlp *o)
{
	const struct csink_profile *p = o->p;
	size_t resource, scope, start;
	int err;

	put_tables(o);
	resource = csink_protobuf_begin(&o->out, REQUEST_RESOURCE_PROFILES);
	err = put_resource(o);
	scope = csink_protobuf_begin(&o->out, RESOURCE_PROFILES_SCOPE);
	start = csink_protobuf_begin(&o->out, SCOPE_PROFILES_SCOPE);
	csink_protobuf_bytes(&o->out, SCOPE_NAME, "countersink", strlen("countersink"));
	csink_protobuf_bytes(&o->out, SCOPE_VERSION, CSINK_VERSION, strlen(CSINK_VERSION));
	csink_protobuf_end(&o->out, start);
	/* A viewer shows the first one at first. */
	if (p->default_type < p->nr_types)
		put_profile(o, p->default_type);
	for (uint32_t i = 0; i < p->nr_types; i++) {
		if (i != p->default_type)
			put_profile(o, i);
	}
	csink_protobuf_end(&o->out, scope);
	csink_protobuf_end(&o->out, resource);
	put_dictionary(o);
	return err ?: o->tables.err ?: o->attributes.err ?: o->out.err ?: csink_profile_error(o->texts) ?: csink_profile_error(o->attribute_keys);
}

int csink_otlp_write(FILE *out, const struct csink_profile *p, const struct csink_wire_options *options)
{
	CSINK_AUTO(csink_profile_done) struct csink_profile *formed = NULL;
	CSINK_AUTO(release)
	struct otlp o = {.options = options, .texts = csink_profile_create(), .attribute_keys = csink_profile_create()};
	int err = !o.texts || !o.attribute_keys ? -ENOMEM : csink_wire_form(p, options, &formed);

	if (err)
		return err;
	o.p = formed;
	o.program = csink_wire_program(p);
	err = o.program ? put_request(&o) : -ENOMEM;
	if (!err && fwrite(o.out.bytes, 1, o.out.used, out) != o.out.used)
		err = errno ? -errno : -EIO;
	return err;
}

int csink_export_otlp(FILE *out, const struct csink_profile *p, uint32_t type)
{
	(void)type; /* it has them all */
	return csink_otlp_write(out, p, &(struct csink_wire_options){0});
}
