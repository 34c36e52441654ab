/*
 * PMU/terms/: what sysfs says of a PMU, turned into attr.type and the bits of attr.config*. A PMU is a directory with
 *	type			the number for attr.type
 *	format/FIELD		where a field's bits go, "config:0-7,32-35"
 *	events/NAME		terms that NAME stands for, with NAME.unit and NAME.scale beside it
 *	cpumask			present: counts whole CPUs or packages, to be opened on these CPUs
 *	cpus			present: a core PMU of these CPUs alone (hybrid machines, ARM)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/api/events/event_parse.h"
#include "preload/core/sysfs.h"

struct pmu {
	struct csink_event_parser *parser;
	struct csink_event_spec *spec;
	struct csink_event_modifiers *mods;
	char name[64];
	bool by_number;         /* #TYPE: no directory */
	bool is_core;           /* a CPU's own, whether of all CPUs or of some */
	bool in_alias;          /* reading the text of events/NAME: not the user's words */
	struct csink_text term; /* the user's term being worked on, for messages */
};

static int read_pmu_file(const struct pmu *pmu, const char *directory, struct csink_text name, const char *suffix,
			 char *buf, size_t size)
{
	if (name.length > CSINK_SYSFS_NAME || memchr(name.at, '/', name.length) || csink_text_is(name, "..") ||
	    csink_text_is(name, "."))
		return -ENOENT;
	return csink_sysfs_read(buf, size, "%s/%s/%s%.*s%s", csink_event_devices(pmu->parser->roots), pmu->name,
				directory, (int)name.length, name.at, suffix);
}

static const struct csink_text no_name = {"", 0};

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Take "low-high" or "bit" from *at. False at the end or on nonsense. */
static bool next_range(const char **at, unsigned *low, unsigned *high)
{
	char *end;

	if (**at == ',' || **at == ':')
		++*at;
	if (**at < '0' || **at > '9')
		return false;
	*low = *high = (unsigned)strtoul(*at, &end, 10);
	if (*end == '-')
		*high = (unsigned)strtoul(end + 1, &end, 10);
	*at = end;
	return *low <= *high && *high < 64;
}

/* Spread value's bits over the ranges of a format, lowest first. False: it does not fit; *most is the largest. */
static bool place_bits(const char *ranges, uint64_t value, uint64_t *word, uint64_t *most)
{
	unsigned low, high, width = 0;
	const char *at = ranges;

	while (next_range(&at, &low, &high))
		width += high - low + 1;
	*most = width >= 64 ? UINT64_MAX : (1ULL << width) - 1;
	if (value > *most)
		return false;
	for (at = ranges; next_range(&at, &low, &high);) {
		unsigned bits = high - low + 1;
		uint64_t mask = bits >= 64 ? UINT64_MAX : (1ULL << bits) - 1;

		*word = (*word & ~(mask << low)) | (value & mask) << low;
		value = bits >= 64 ? 0 : value >> bits;
	}
	return true;
}

static int set_field(struct pmu *pmu, const char *format, struct csink_text key, uint64_t value)
{
	const char *colon = strchr(format, ':');
	uint64_t *word, most;

	word = colon ? csink_event_config_word(&pmu->spec->attr, csink_text(format, colon)) : NULL;
	if (!word)
		return csink_event_fail(
			pmu->parser, -EINVAL, pmu->term,
			"%s/%.*s/: the kernel places this field in '%s', which this build does not know", pmu->name,
			(int)key.length, key.at, format);
	if (!place_bits(colon, value, word, &most))
		return csink_event_fail(pmu->parser, -EINVAL, pmu->term,
					"%s/%.*s=0x%llx/: too large; the field holds 0 to 0x%llx", pmu->name,
					(int)key.length, key.at, (unsigned long long)value, (unsigned long long)most);
	return 0;
}

/* ---- terms ------------------------------------------------------------------------------------------------------- */

static int read_terms(struct pmu *pmu, struct csink_text terms);

/* Offer the names in PMU/directory that are events or fields. */
static void offer_directory(const struct pmu *pmu, const char *directory, struct csink_nearest *near)
{
	const char *name;

	CSINK_SYSFS_EACH(name, "%s/%s/%s", csink_event_devices(pmu->parser->roots), pmu->name, directory) {
		if (!strchr(name, '.'))
			csink_nearest_offer(near, name);
	}
}

static int fail_term(struct pmu *pmu, struct csink_text key)
{
	char hint[3 * (CSINK_NEAREST_NAME + 8) + 32];
	struct csink_nearest near;

	csink_nearest_init(&near, key.at, key.length);
	if (pmu->by_number)
		return csink_event_fail(
			pmu->parser, -EINVAL, pmu->term,
			"%s/%.*s/: a PMU given by number takes config=, config1=, config2= and name= only", pmu->name,
			(int)key.length, key.at);
	offer_directory(pmu, "format", &near);
	offer_directory(pmu, "events", &near);
	csink_nearest_print(&near, hint, sizeof(hint));
	return csink_event_fail(pmu->parser, -ENOENT, pmu->term, "PMU '%s' has no field or event '%.*s'%s", pmu->name,
				(int)key.length, key.at, hint);
}

static void read_alias_details(struct pmu *pmu, struct csink_text alias)
{
	char text[64];

	if (read_pmu_file(pmu, "events/", alias, ".unit", text, sizeof(text)) > 0)
		snprintf(pmu->spec->rec.unit, sizeof(pmu->spec->rec.unit), "%.15s", text);
	if (read_pmu_file(pmu, "events/", alias, ".scale", text, sizeof(text)) > 0)
		pmu->spec->scale = strtod(text, NULL);
}

static int read_alias(struct pmu *pmu, struct csink_text alias, const char *text)
{
	int ret;

	if (pmu->in_alias)
		return fail_term(pmu, alias);
	if (strchr(text, '?'))
		return csink_event_fail(pmu->parser, -EINVAL, pmu->term,
					"%s/%.*s/ is a template; write out its fields: %s/%s/", pmu->name,
					(int)alias.length, alias.at, pmu->name, text);
	pmu->in_alias = true;
	ret = read_terms(pmu, csink_text(text, text + strlen(text)));
	pmu->in_alias = false;
	if (!ret)
		read_alias_details(pmu, alias);
	return ret;
}

/* A generic name inside a core PMU's slashes: the PMU's type goes above the generic config. */
static bool read_generic(struct pmu *pmu, struct csink_text key)
{
	struct csink_event_spec named;
	uint32_t pmu_type = pmu->spec->attr.type;

	memset(&named, 0, sizeof(named));
	if (!pmu->is_core)
		return false;
	if (!csink_event_from_generic(key, &named) && !csink_event_from_cache(key, &named))
		return false;
	if (named.attr.type == PERF_TYPE_SOFTWARE)
		return false;
	pmu->spec->attr.type = named.attr.type;
	pmu->spec->attr.config = named.attr.config | (uint64_t)pmu_type << 32;
	return true;
}

/* Terms that every PMU takes. 1: done; 0: not one of these; or -errno. */
static int read_known_term(struct pmu *pmu, struct csink_text key, struct csink_text value)
{
	struct csink_event_spec *spec = pmu->spec;
	uint64_t *word = csink_event_config_word(&spec->attr, key);
	int ret;

	if (word) {
		if (!csink_text_number(value, word))
			return csink_event_fail(pmu->parser, -EINVAL, pmu->term, "'%.*s': a number is needed",
						(int)pmu->term.length, pmu->term.at);
		return 1;
	}
	if (csink_text_is(key, "period") || csink_text_is(key, "freq")) {
		ret = pmu->in_alias
			      ? 0
			      : csink_event_modifiers_rate(pmu->parser, pmu->term, key.at[0] == 'f', value, pmu->mods);
		return ret ? ret : 1;
	}
	if (csink_text_is(key, "name") && !pmu->in_alias && value.length) {
		csink_text_copy(value, spec->rec.name, sizeof(spec->rec.name));
		pmu->mods->exact_name = true;
		return 1;
	}
	return 0;
}

static int read_term(struct pmu *pmu, struct csink_text key, struct csink_text value, bool has_value)
{
	uint64_t number = 1;
	char text[512];
	int ret = read_known_term(pmu, key, value);

	if (ret)
		return ret < 0 ? ret : 0;
	if (pmu->by_number)
		return csink_event_printed_term(pmu->spec, key, value) ? 0 : fail_term(pmu, key);
	if (read_pmu_file(pmu, "format/", key, "", text, sizeof(text)) > 0) {
		if (has_value && !csink_text_number(value, &number))
			return csink_event_fail(pmu->parser, -EINVAL, pmu->term, "'%.*s': a number is needed",
						(int)pmu->term.length, pmu->term.at);
		return set_field(pmu, text, key, number);
	}
	if (!has_value && read_pmu_file(pmu, "events/", key, "", text, sizeof(text)) > 0)
		return read_alias(pmu, key, text);
	if (!has_value && !pmu->in_alias && read_generic(pmu, key))
		return 0;
	return fail_term(pmu, key);
}

static int read_terms(struct pmu *pmu, struct csink_text terms)
{
	const char *at = terms.at, *end = terms.at + terms.length, *stop, *equals;
	int ret;

	for (; at < end; at = stop + 1) {
		struct csink_text value;

		stop = csink_event_find(at, end, ',');
		equals = memchr(at, '=', (size_t)(stop - at));
		value = csink_text(equals ? equals + 1 : stop, stop);
		if (!pmu->in_alias)
			pmu->term = csink_text(at, stop);
		if (value.length > 1 && value.at[0] == '\'' && value.at[value.length - 1] == '\'')
			value = csink_text(value.at + 1, value.at + value.length - 1);
		/* One that is left would end the name early where it is printed between quotes. */
		if (memchr(value.at, '\'', value.length))
			return csink_event_fail(pmu->parser, -EINVAL, pmu->term,
						"'%.*s': quotes belong around a value, not in it",
						(int)pmu->term.length, pmu->term.at);
		ret = read_term(pmu, csink_text(at, equals ? equals : stop), value, equals);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- the PMU itself ---------------------------------------------------------------------------------------------- */

static int fail_pmu(struct csink_event_parser *parser, struct csink_text name)
{
	char hint[3 * (CSINK_NEAREST_NAME + 8) + 32], slashed[CSINK_NEAREST_NAME];
	struct csink_nearest near;

	snprintf(slashed, sizeof(slashed), "%.*s//", (int)name.length, name.at);
	csink_nearest_init(&near, slashed, strlen(slashed));
	csink_event_offer_pmus(parser->roots, &near);
	csink_nearest_print(&near, hint, sizeof(hint));
	return csink_event_fail(parser, -ENOENT, name, "this machine has no PMU '%.*s' (none so called in %s)%s",
				(int)name.length, name.at, csink_event_devices(parser->roots), hint);
}

static int open_by_number(struct pmu *pmu, struct csink_text number)
{
	uint64_t type;

	if (!csink_text_number(number, &type) || type > UINT32_MAX)
		return csink_event_fail(pmu->parser, -EINVAL, number,
					"'#%.*s/': a PMU's type number is needed after '#'", (int)number.length,
					number.at);
	pmu->by_number = true;
	pmu->spec->attr.type = (uint32_t)type;
	return 0;
}

/* ARM's PMUs list their CPUs where there is but one kind as well. */
static bool is_every_cpu(const char *cpus)
{
	char all[64];

	return csink_sysfs_read(all, sizeof(all), "/sys/devices/system/cpu/possible") > 0 && !strcmp(cpus, all);
}

static int open_by_name(struct pmu *pmu, struct csink_text name)
{
	struct csink_event_spec *spec = pmu->spec;
	uint64_t type;
	char text[32];
	int length;

	length = read_pmu_file(pmu, "", no_name, "type", text, sizeof(text));
	if (length <= 0 || !csink_text_number(csink_text(text, text + length), &type))
		return fail_pmu(pmu->parser, name);
	spec->attr.type = (uint32_t)type;
	csink_text_copy(name, spec->pmu, sizeof(spec->pmu));
	if (read_pmu_file(pmu, "", no_name, "cpumask", spec->cpus, sizeof(spec->cpus)) > 0)
		spec->cpu_wide = 1;
	else
		pmu->is_core = read_pmu_file(pmu, "", no_name, "cpus", spec->cpus, sizeof(spec->cpus)) > 0 ||
			       !strcmp(pmu->name, "cpu");
	if (pmu->is_core && is_every_cpu(spec->cpus))
		spec->cpus[0] = '\0';
	return 0;
}

/* As it was written, without quotes. */
static void default_name(struct csink_text text, char *name, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < text.length && used + 1 < size; i++)
		if (text.at[i] != '\'')
			name[used++] = text.at[i];
	name[used] = '\0';
}

int csink_event_from_pmu(struct csink_event_parser *parser, struct csink_text name, struct csink_text terms,
			 struct csink_event_spec *spec, struct csink_event_modifiers *mods)
{
	struct pmu pmu = {.parser = parser, .spec = spec, .mods = mods, .term = terms};
	int ret;

	csink_text_copy(name, pmu.name, sizeof(pmu.name));
	if (!name.length)
		return csink_event_fail(parser, -EINVAL, name, "a PMU's name is missing before '/'");
	if (strchr(pmu.name, '.'))
		return fail_pmu(parser, name);
	if (*name.at == '#')
		ret = open_by_number(&pmu, csink_text(name.at + 1, name.at + name.length));
	else
		ret = open_by_name(&pmu, name);
	if (!ret)
		ret = read_terms(&pmu, terms);
	if (!ret && !mods->exact_name)
		default_name(csink_text(name.at, terms.at + terms.length + 1), spec->rec.name, sizeof(spec->rec.name));
	return ret;
}

void csink_event_offer_pmus(const struct csink_event_roots *roots, struct csink_nearest *near)
{
	char slashed[CSINK_NEAREST_NAME];
	const char *name;

	CSINK_SYSFS_EACH(name, "%s", csink_event_devices(roots)) {
		snprintf(slashed, sizeof(slashed), "%.60s//", name);
		csink_nearest_offer(near, slashed);
	}
}
