/*
 * Writing events so that they can be read back without a file: by their generic name where they have one, else as
 * #TYPE/config=.../. The launcher hands resolved events to the library in this form.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "preload/api/events/event_parse.h"

struct out {
	char *buf;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *fmt, ...)
{
	size_t left = out->size > out->used ? out->size - out->used : 0;
	va_list ap;

	va_start(ap, fmt);
	out->used += (size_t)vsnprintf(left ? out->buf + out->used : NULL, left, fmt, ap);
	va_end(ap);
}

/* The letters for what the attr leaves out, and for skid; room for 16. Where nothing is left out, none. */
static void print_letters(const struct perf_event_attr *attr, char *at)
{
	bool where = attr->exclude_user || attr->exclude_kernel || attr->exclude_hv;

	if (where && !attr->exclude_user)
		*at++ = 'u';
	if (where && !attr->exclude_kernel)
		*at++ = 'k';
	if (where && !attr->exclude_hv)
		*at++ = 'h';
	if (attr->exclude_host)
		*at++ = 'G';
	if (attr->exclude_guest)
		*at++ = 'H';
	if (attr->exclude_idle)
		*at++ = 'I';
	for (unsigned i = 0; i < attr->precise_ip; i++)
		*at++ = 'p';
	*at = '\0';
}

/* A generic name stands for the event only if reading it back gives the same name; a user's name= must live on. */
static const struct csink_event_generic *find_generic(const struct csink_event_spec *spec)
{
	const struct csink_event_generic *row;
	const char *suffix;
	char letters[16];
	uint32_t nr;

	if (spec->attr.config1 || spec->attr.config2 || spec->pmu[0])
		return NULL;
	print_letters(&spec->attr, letters);
	for (row = csink_events_generic(&nr); nr; row++, nr--) {
		if (row->type != spec->attr.type || row->config != spec->attr.config ||
		    strncmp(spec->rec.name, row->name, strlen(row->name)))
			continue;
		suffix = spec->rec.name + strlen(row->name);
		if (letters[0] ? *suffix == ':' && !strcmp(suffix + 1, letters) : !*suffix)
			return row;
	}
	return NULL;
}

static void put_config(struct out *out, const struct csink_event_spec *spec)
{
	put(out, "#%u/config=0x%llx", spec->attr.type, (unsigned long long)spec->attr.config);
	if (spec->attr.config1)
		put(out, ",config1=0x%llx", (unsigned long long)spec->attr.config1);
	if (spec->attr.config2)
		put(out, ",config2=0x%llx", (unsigned long long)spec->attr.config2);
#ifdef PERF_ATTR_SIZE_VER8
	if (spec->attr.config3)
		put(out, ",config3=0x%llx", (unsigned long long)spec->attr.config3);
#endif
	put(out, ",name='%s'", spec->rec.name);
	if (strcmp(spec->rec.unit, "count"))
		put(out, ",unit='%s'", spec->rec.unit);
	if (spec->scale != 1)
		put(out, ",scale=%.17g", spec->scale);
	if (spec->pmu[0])
		put(out, ",pmu='%s'", spec->pmu);
	if (spec->cpus[0])
		put(out, ",cpus='%s'", spec->cpus);
	put(out, "%s/", spec->cpu_wide ? ",wide" : "");
}

static void put_modifiers(struct out *out, const struct csink_event_spec *spec)
{
	const struct perf_event_attr *attr = &spec->attr;
	char letters[20];

	print_letters(attr, letters);
	if (attr->pinned)
		strcat(letters, "D");
	if (attr->exclusive)
		strcat(letters, "e");
	if (letters[0])
		put(out, ":%s", letters);
	if (attr->freq)
		put(out, ":freq=%llu", (unsigned long long)attr->sample_freq);
	else if (attr->sample_period)
		put(out, ":period=%llu", (unsigned long long)attr->sample_period);
}

int csink_events_print(const struct csink_event_spec *specs, uint32_t nr, char *buf, size_t size)
{
	struct out out = {buf, size, 0};

	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_event_generic *generic = find_generic(&specs[i]);
		bool first = !i || specs[i - 1].group != specs[i].group;
		bool last = i + 1 == nr || specs[i + 1].group != specs[i].group;

		put(&out, "%s%s", i ? "," : "", first && (!last || specs[i].braced) ? "{" : "");
		if (generic)
			put(&out, "%s", generic->name);
		else
			put_config(&out, &specs[i]);
		put_modifiers(&out, &specs[i]);
		put(&out, "%s", last && (!first || specs[i].braced) ? "}" : "");
	}
	return out.used < size ? (int)out.used : -ENOSPC;
}
