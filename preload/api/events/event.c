/*
 * Parsing a list of events: cuts it into groups, events, names and modifiers, and asks the sources of names in order of
 * cost. The common names are answered from tables; files are read for PMU/.../ and subsystem:name, and libpfm4 is
 * loaded for what is left. See include/internal/event.h for the language.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "preload/api/events/event_parse.h"
#include "preload/api/events/pfm.h"

int csink_event_fail(struct csink_event_parser *parser, int err, struct csink_text where, const char *fmt, ...)
{
	va_list ap;

	parser->err->err = err;
	parser->err->offset = (uint32_t)(where.at - parser->list);
	parser->err->length = (uint32_t)where.length;
	va_start(ap, fmt);
	vsnprintf(parser->err->line, sizeof(parser->err->line), fmt, ap);
	va_end(ap);
	return err;
}

/* ---- one event --------------------------------------------------------------------------------------------------- */

/* Is it r alone, or r and a number with something wrong in it? No event's name begins with r and a digit. */
static bool is_like_raw(struct csink_text name)
{
	return name.length && *name.at == 'r' && (name.length == 1 || (name.at[1] >= '0' && name.at[1] <= '9'));
}

static int fail_unknown(struct csink_event_parser *parser, struct csink_text name)
{
	char hint[3 * (CSINK_NEAREST_NAME + 8) + 32], cpu[192];
	struct csink_nearest near;

	if (is_like_raw(name))
		return csink_event_fail(parser, -ENOENT, name,
					"unknown event '%.*s'; a raw code is r and up to 16 hex digits, as in r1a8",
					(int)name.length, name.at);
	csink_nearest_init(&near, name.at, name.length);
	csink_event_offer_generic(&near);
	csink_event_offer_pmus(parser->roots, &near);
	csink_pfm_offer(&near, cpu, sizeof(cpu));
	csink_nearest_print(&near, hint, sizeof(hint));
	return csink_event_fail(parser, -ENOENT, name, "unknown event '%.*s'%s%s", (int)name.length, name.at, cpu,
				hint);
}

/* Tracepoints are in lower case throughout, and their names are no modifiers. */
static bool is_meant_as_tracepoint(struct csink_text subsystem, struct csink_text name)
{
	for (const char *c = subsystem.at; c < name.at + name.length; c++)
		if (*c >= 'A' && *c <= 'Z')
			return false;
	return subsystem.length && name.length && !csink_event_is_modifier(name);
}

/* A name with neither slashes nor a cheap meaning: subsystem:name, or else libpfm4's business. */
static int from_colon_or_pfm(struct csink_event_parser *parser, struct csink_text text, struct csink_event_spec *spec,
			     struct csink_event_modifiers *mods)
{
	const char *end = text.at + text.length, *colon = memchr(text.at, ':', text.length), *second;
	struct csink_text subsystem, name, first = {text.at, colon ? (size_t)(colon - text.at) : text.length};
	int found = 0, ret;

	if (colon && colon + 1 < end && colon[1] != ':') {
		second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
		subsystem = first;
		name = csink_text(colon + 1, second ? second : end);
		found = csink_event_from_tracepoint(parser, subsystem, name, spec);
		if (found > 0)
			return second ? csink_event_modifiers_parse(parser, csink_text(second + 1, end), mods) : 0;
	}
	ret = csink_pfm_encode(parser, text, spec, mods);
	if (ret)
		return ret < 0 ? ret : 0;
	/* A lower-case name before a colon was meant as a tracepoint; say why it is none. */
	if (colon && colon + 1 < end && colon[1] != ':' && is_meant_as_tracepoint(subsystem, name))
		return csink_event_fail_tracepoint(parser, text, subsystem, name, found);
	return fail_unknown(parser, first);
}

const char *csink_event_find(const char *at, const char *end, char c)
{
	bool quoted = false;

	for (; at < end && (*at != c || quoted); at++)
		quoted ^= *at == '\'';
	return at;
}

static int from_slashes(struct csink_event_parser *parser, struct csink_text text, const char *slash,
			struct csink_event_spec *spec, struct csink_event_modifiers *mods)
{
	const char *end = text.at + text.length, *close = csink_event_find(slash + 1, end, '/');
	int ret;

	if (close == end)
		return csink_event_fail(parser, -EINVAL, text, "'%.*s' has no closing '/'", (int)text.length, text.at);
	ret = csink_event_from_pmu(parser, csink_text(text.at, slash), csink_text(slash + 1, close), spec, mods);
	if (ret || close + 1 == end)
		return ret;
	/* perf writes pmu/terms/u; we take pmu/terms/:u as well. */
	close += 1 + (close[1] == ':');
	return csink_event_modifiers_parse(parser, csink_text(close, end), mods);
}

static int parse_event(struct csink_event_parser *parser, struct csink_text text, struct csink_event_spec *spec,
		       struct csink_event_modifiers *mods)
{
	const char *end = text.at + text.length;
	const char *colon = memchr(text.at, ':', text.length), *slash = memchr(text.at, '/', text.length);
	struct csink_text name = csink_text(text.at, colon ? colon : end);

	if (slash && (!colon || slash < colon))
		return from_slashes(parser, text, slash, spec, mods);
	if (!csink_event_from_generic(name, spec) && !csink_event_from_cache(name, spec) &&
	    !csink_event_from_raw(name, spec))
		return from_colon_or_pfm(parser, text, spec, mods);
	return colon ? csink_event_modifiers_parse(parser, csink_text(colon + 1, end), mods) : 0;
}

/* group_mods: the modifiers after a group's '}', or an empty text. */
static int add_event(struct csink_event_parser *parser, struct csink_text text, struct csink_text group_mods,
		     bool leader)
{
	struct csink_event_modifiers mods = {0};
	struct csink_event_spec *spec;
	int ret;

	if (!text.length)
		return csink_event_fail(parser, -EINVAL, text, "an event's name is missing%s",
					*text.at == ',' || *text.at == '}' ? "" : " at the end of the list");
	if (parser->nr == parser->max)
		return csink_event_fail(parser, -E2BIG, text, "too many events: '%.*s' would be number %u, and %u fit",
					(int)text.length, text.at, parser->max + 1, parser->max);
	spec = &parser->specs[parser->nr];
	csink_event_init(spec);
	spec->group = parser->nr_groups;
	spec->offset = (uint32_t)(text.at - parser->list);
	spec->length = (uint32_t)text.length;
	ret = parse_event(parser, text, spec, &mods);
	if (!ret && group_mods.length)
		ret = csink_event_modifiers_parse(parser, group_mods, &mods);
	if (ret)
		return ret;
	if (!leader && (mods.pinned || mods.exclusive)) {
		if (!group_mods.length)
			return csink_event_fail(parser, -EINVAL, text,
						"'%.*s': only a group's first event can be pinned or exclusive",
						(int)text.length, text.at);
		mods.pinned = mods.exclusive = false; /* of the whole group: its leader has it */
	}
	ret = csink_event_modifiers_apply(parser, text, &mods, spec);
	if (!ret)
		parser->nr++;
	spec->braced = parser->in_braces;
	return ret;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* The end of the event that begins at *at: a ',' or '}' outside slashes and quotes, or the list's end. */
static const char *event_end(const char *at)
{
	bool slashed = false, quoted = false;

	for (; *at; at++) {
		if (*at == '\'' && slashed)
			quoted = !quoted;
		else if (*at == '/' && !quoted)
			slashed = !slashed;
		else if (!slashed && (*at == ',' || *at == '}' || *at == '{'))
			break;
	}
	return at;
}

static struct csink_text trim(struct csink_text text)
{
	while (text.length && (*text.at == ' ' || *text.at == '\t')) {
		text.at++;
		text.length--;
	}
	while (text.length && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* The modifiers that follow a group's '}', which is at close. */
static struct csink_text group_modifiers(const char *close, const char **next)
{
	*next = event_end(close + 1);
	if (close[1] != ':')
		return csink_text(close + 1, *next);
	return csink_text(close + 2, *next);
}

static const char *find_group_end(const char *at)
{
	while (*at && *at != '}') {
		const char *end = event_end(at);

		if (*end == '{')
			return NULL;
		at = end + (*end == ',');
	}
	return *at ? at : NULL;
}

static int add_group(struct csink_event_parser *parser, const char *open, const char **next)
{
	const char *close = find_group_end(open + 1), *at = open + 1, *end;
	struct csink_text mods;
	bool leader = true;
	int ret;

	if (!close)
		return csink_event_fail(parser, -EINVAL, csink_text(open, open + strlen(open)),
					"'%s': the group that begins here has no closing '}' of its own", open);
	mods = trim(group_modifiers(close, next));
	if (mods.length && close[1] != ':')
		return csink_event_fail(parser, -EINVAL, mods, "'%.*s' after '}': a ',' or a ':' is missing",
					(int)mods.length, mods.at);
	parser->in_braces = true;
	for (;; at = end + 1) {
		end = event_end(at);
		ret = add_event(parser, trim(csink_text(at, end)), mods, leader);
		if (ret || *end == '}')
			break;
		leader = false;
	}
	parser->in_braces = false;
	parser->nr_groups++;
	return ret;
}

static int parse_list(struct csink_event_parser *parser)
{
	const char *at = parser->list, *next = at;
	int ret;

	for (;; at = next + 1) {
		while (*at == ' ' || *at == '\t')
			at++;
		if (*at == '{') {
			ret = add_group(parser, at, &next);
		} else {
			next = event_end(at);
			ret = add_event(parser, trim(csink_text(at, next)), (struct csink_text){at, 0}, true);
			parser->nr_groups++;
		}
		if (ret)
			return ret;
		if (!*next)
			return (int)parser->nr;
		if (*next != ',')
			return csink_event_fail(parser, -EINVAL, csink_text(next, next + 1),
						"'%c' is not expected in '%s'", *next, parser->list);
	}
}

int csink_events_parse_at(const struct csink_event_roots *roots, const char *list, struct csink_event_spec *out,
			  uint32_t max, struct csink_event_error *err)
{
	struct csink_event_parser parser = {roots, list, out, max, 0, 0, false, err};

	err->err = 0;
	err->line[0] = '\0';
	return parse_list(&parser);
}

int csink_events_parse(const char *list, struct csink_event_spec *out, uint32_t max, struct csink_event_error *err)
{
	static const struct csink_event_roots machine;

	return csink_events_parse_at(&machine, list, out, max, err);
}
