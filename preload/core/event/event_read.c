/*
 * Reading a list of events in the form in which the launcher hands it to the programs of its run: what
 * csink_events_print (preload/api/events/event_print.c) writes. See event_spec.h for the context.
 */
#include <errno.h>
#include <string.h>

#include "preload/core/event/event_spec.h"

/* Take the text up to one of the characters in @stops, or to the list's end. */
static struct csink_text take_until(const char **at, const char *stops)
{
	struct csink_text text = {*at, strcspn(*at, stops)};

	*at += text.length;
	return text;
}

static bool skip(const char **at, char c)
{
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* KEY, KEY=VALUE or KEY='VALUE', up to the ',' or '/' behind it. */
static bool read_term(const char **at, struct csink_event_spec *spec, struct csink_event_modifiers *mods)
{
	struct csink_text key = take_until(at, "=,/"), value = {*at, 0};
	uint64_t *word;

	if (skip(at, '=')) {
		bool quoted = skip(at, '\'');

		value = take_until(at, quoted ? "'" : ",/'");
		if (quoted && !skip(at, '\''))
			return false;
	}
	word = csink_event_config_word(&spec->attr, key);
	if (word)
		return csink_text_number(value, word);
	if (!csink_text_is(key, "name") || !value.length)
		return csink_event_printed_term(spec, key, value);
	csink_text_copy(value, spec->rec.name, sizeof(spec->rec.name));
	return mods->exact_name = true;
}

/* #TYPE/TERMS/; it must have a name. */
static bool read_by_number(const char **at, struct csink_event_spec *spec, struct csink_event_modifiers *mods)
{
	uint64_t type;

	if (!csink_text_number(take_until(at, "/"), &type) || type > UINT32_MAX || !skip(at, '/'))
		return false;
	spec->attr.type = (uint32_t)type;
	do
		if (!read_term(at, spec, mods))
			return false;
	while (skip(at, ','));
	return mods->exact_name && skip(at, '/');
}

/* What follows a ':': letters, period=N or freq=N. */
static bool read_modifier(const char **at, struct csink_event_modifiers *mods)
{
	struct csink_text text = take_until(at, "=:,{}");

	if (skip(at, '=')) {
		struct csink_text number = take_until(at, ":,{}");

		return (csink_text_is(text, "period") && csink_text_number(number, &mods->period)) ||
		       (csink_text_is(text, "freq") && csink_text_number(number, &mods->freq));
	}
	for (size_t i = 0; i < text.length; i++)
		if (!csink_event_modifiers_letter(mods, text.at[i]))
			return false;
	return text.length > 0 && mods->precise <= 3;
}

static bool read_event(const char **at, struct csink_event_spec *spec)
{
	struct csink_event_modifiers mods = {0};

	csink_event_init(spec);
	if (!(skip(at, '#') ? read_by_number(at, spec, &mods) : csink_event_from_generic(take_until(at, ":,{}"), spec)))
		return false;
	while (skip(at, ':'))
		if (!read_modifier(at, &mods))
			return false;
	csink_event_modifiers_set(&mods, spec);
	return true;
}

int csink_events_read(const char *list, struct csink_event_spec *out, uint32_t max)
{
	const char *at = list;
	uint32_t nr = 0, group = 0;
	bool braced = false;

	do {
		struct csink_event_spec *spec = &out[nr];
		const char *begin;

		if (nr++ == max)
			return -EINVAL;
		if (!braced)
			braced = skip(&at, '{');
		begin = at;
		if (!read_event(&at, spec))
			return -EINVAL;
		spec->offset = (uint32_t)(begin - list);
		spec->length = (uint32_t)(at - begin);
		spec->group = group;
		spec->braced = braced;
		braced = braced && !skip(&at, '}');
		group += !braced;
	} while (skip(&at, ','));
	return *at || braced ? -EINVAL : (int)nr;
}
