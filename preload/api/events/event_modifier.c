/* Modifiers: where to count, how exactly, how often. One table names the long ones; the letters are perf's. */
#include <errno.h>
#include <string.h>

#include "preload/api/events/event_parse.h"

#define LETTERS "ukhGHIpDe"

enum long_modifier { LONG_PINNED, LONG_EXCL, LONG_PERIOD, LONG_FREQ, LONG_PRECISE };
static const struct {
	const char *word;
	bool has_value;
} longs[] = {
	[LONG_PINNED] = {"pinned", false}, [LONG_EXCL] = {"excl", false},      [LONG_PERIOD] = {"period", true},
	[LONG_FREQ] = {"freq", true},      [LONG_PRECISE] = {"precise", true},
};

static int fail_unknown(struct csink_event_parser *parser, struct csink_text text, char letter)
{
	char hint[3 * (CSINK_NEAREST_NAME + 8) + 32];
	struct csink_nearest near;

	csink_nearest_init(&near, text.at, text.length);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(longs); i++)
		csink_nearest_offer(&near, longs[i].word);
	csink_nearest_print(&near, hint, sizeof(hint));
	if (near.nr || text.length > 4)
		return csink_event_fail(
			parser, -EINVAL, text, "unknown modifier '%.*s'%s", (int)text.length, text.at,
			near.nr ? hint : "; known are u k h G H I p D e pinned excl period=N freq=N precise=N");
	return csink_event_fail(
		parser, -EINVAL, text,
		"unknown modifier '%c' in ':%.*s'; known are u k h (user, kernel, hypervisor only), G H "
		"(guest, host), I (not idle), p pp ppp (less skid), D (pinned), e (exclusive)",
		letter, (int)text.length, text.at);
}

static int parse_letters(struct csink_event_parser *parser, struct csink_text text, struct csink_event_modifiers *mods)
{
	for (size_t i = 0; i < text.length; i++)
		if (!strchr(LETTERS, text.at[i]))
			return fail_unknown(parser, text, text.at[i]);
	for (size_t i = 0; i < text.length; i++)
		csink_event_modifiers_letter(mods, text.at[i]);
	if (mods->precise > 3)
		return csink_event_fail(parser, -EINVAL, text, "':%.*s': at most three p", (int)text.length, text.at);
	return 0;
}

int csink_event_modifiers_rate(struct csink_event_parser *parser, struct csink_text where, bool is_freq,
			       struct csink_text value, struct csink_event_modifiers *mods)
{
	uint64_t number;

	/* The kernel takes 63 bits for a period; the top bit is its own. */
	if (!csink_text_number(value, &number) || !number || number >> 63)
		return csink_event_fail(parser, -EINVAL, where, "'%.*s': %s", (int)where.length, where.at,
					is_freq ? "a frequency is a number of samples a second, from 1"
						: "a period is a number of events between samples, from 1");
	if (is_freq ? mods->period : mods->freq)
		return csink_event_fail(parser, -EINVAL, where, "'%.*s': give a period or a frequency, not both",
					(int)where.length, where.at);
	if (is_freq)
		mods->freq = number;
	else
		mods->period = number;
	return 0;
}

static int parse_long(struct csink_event_parser *parser, enum long_modifier which, struct csink_text text,
		      struct csink_text value, struct csink_event_modifiers *mods)
{
	uint64_t precise;

	switch (which) {
	case LONG_PINNED:
		mods->pinned = true;
		break;
	case LONG_EXCL:
		mods->exclusive = true;
		break;
	case LONG_PERIOD:
	case LONG_FREQ:
		return csink_event_modifiers_rate(parser, text, which == LONG_FREQ, value, mods);
	case LONG_PRECISE:
		if (!csink_text_number(value, &precise) || precise > 3)
			return csink_event_fail(parser, -EINVAL, text, "'%.*s': precise is 0 to 3", (int)text.length,
						text.at);
		mods->precise = (uint32_t)precise;
	}
	return 0;
}

/* One segment between colons. */
static int parse_segment(struct csink_event_parser *parser, struct csink_text text, struct csink_event_modifiers *mods)
{
	const char *end = text.at + text.length, *equals = memchr(text.at, '=', text.length);
	struct csink_text word = csink_text(text.at, equals ? equals : end);

	if (!text.length)
		return csink_event_fail(parser, -EINVAL, text, "a modifier is missing after ':'");
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(longs); i++) {
		if (!csink_text_is(word, longs[i].word))
			continue;
		if (longs[i].has_value != !!equals)
			return csink_event_fail(parser, -EINVAL, text, "modifier '%s' takes %s", longs[i].word,
						longs[i].has_value ? "a value: =N" : "no value");
		return parse_long(parser, (enum long_modifier)i, text, csink_text(equals ? equals + 1 : end, end),
				  mods);
	}
	return equals ? fail_unknown(parser, word, word.length ? *word.at : '=') : parse_letters(parser, text, mods);
}

int csink_event_modifiers_parse(struct csink_event_parser *parser, struct csink_text text,
				struct csink_event_modifiers *mods)
{
	const char *at = text.at, *end = text.at + text.length, *colon;
	int ret;

	for (;; at = colon + 1) {
		colon = at < end ? memchr(at, ':', (size_t)(end - at)) : NULL;
		ret = parse_segment(parser, csink_text(at, colon ? colon : end), mods);
		if (ret || !colon)
			return ret;
	}
}

bool csink_event_is_modifier(struct csink_text text)
{
	const char *equals = memchr(text.at, '=', text.length);
	size_t nr = 0;

	while (nr < text.length && strchr(LETTERS, text.at[nr]))
		nr++;
	if (equals || nr == text.length)
		return true;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(longs); i++)
		if (csink_text_is(text, longs[i].word))
			return true;
	return false;
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

static int check_rate(struct csink_event_parser *parser, struct csink_text where, const struct csink_event_spec *spec)
{
	if (!(spec->rec.flags & CSINK_EVENT_CPU_NS) || spec->attr.freq || !spec->attr.sample_period ||
	    spec->attr.sample_period >= CSINK_CLOCK_PERIOD_MIN_NS)
		return 0;
	return csink_event_fail(parser, -EINVAL, where,
				"'%.*s': the kernel samples a clock at most every %d ns; give period=%d or more",
				(int)where.length, where.at, CSINK_CLOCK_PERIOD_MIN_NS, CSINK_CLOCK_PERIOD_MIN_NS);
}

/* Only events that a PMU counts as instructions retire can have less skid; the kernel says EOPNOTSUPP for the others.
 */
static int check_precise(struct csink_event_parser *parser, struct csink_text where,
			 const struct csink_event_spec *spec)
{
	const char *kind = spec->attr.type == PERF_TYPE_SOFTWARE     ? "a software event"
			   : spec->attr.type == PERF_TYPE_TRACEPOINT ? "a tracepoint"
								     : NULL;

	if (!spec->attr.precise_ip || !kind)
		return 0;
	return csink_event_fail(parser, -EOPNOTSUPP, where,
				"'%.*s': %s is recorded where it happens, without skid; leave out p / precise",
				(int)where.length, where.at, kind);
}

int csink_event_modifiers_apply(struct csink_event_parser *parser, struct csink_text where,
				const struct csink_event_modifiers *mods, struct csink_event_spec *spec)
{
	int ret;

	csink_event_modifiers_set(mods, spec);
	ret = check_rate(parser, where, spec);
	return ret ? ret : check_precise(parser, where, spec);
}
