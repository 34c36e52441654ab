/* Numbers and texts for people (format.h). */
#include "launcher/base/format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/text.h"

struct step {
	double divisor;
	const char *unit;
};

/* Largest first; the first that the value reaches is taken. */
static const struct step times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
static const struct step bytes[] = {{1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}, {1, "B"}};
static const struct step counts[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}};

static const struct family {
	const char *unit;
	double factor; /* to the family's smallest */
	const struct step *steps;
	uint32_t nr;
} families[] = {
	{"nanoseconds", 1, times, CSINK_ARRAY_SIZE(times)},    {"microseconds", 1e3, times, CSINK_ARRAY_SIZE(times)},
	{"milliseconds", 1e6, times, CSINK_ARRAY_SIZE(times)}, {"seconds", 1e9, times, CSINK_ARRAY_SIZE(times)},
	{"bytes", 1, bytes, CSINK_ARRAY_SIZE(bytes)},          {"count", 1, counts, CSINK_ARRAY_SIZE(counts)},
};

struct csink_scale csink_scale_for(int64_t largest, const char *unit)
{
	struct csink_scale scale = {1, 0, unit};
	const struct family *family = NULL;
	double value = largest < 0 ? -(double)largest : (double)largest;
	uint32_t i;

	for (i = 0; i < CSINK_ARRAY_SIZE(families); i++) {
		if (!strcmp(families[i].unit, unit))
			family = &families[i];
	}
	if (!family)
		return scale;
	for (i = 0; i < family->nr - 1 && value * family->factor < family->steps[i].divisor; i++)
		;
	scale.divisor = family->steps[i].divisor / family->factor;
	scale.unit = family->steps[i].unit;
	scale.decimals = family->steps[i].divisor > 1 ? 3 : 0;
	return scale;
}

int csink_format_value(char *buf, size_t size, int64_t value, const struct csink_scale *scale)
{
	return snprintf(buf, size, "%.*f%s%s", scale->decimals, (double)value / scale->divisor, *scale->unit ? " " : "",
			scale->unit);
}

struct csink_amount csink_amount_at(int64_t value, const struct csink_scale *scale)
{
	struct csink_amount amount;

	csink_format_value(amount.text, sizeof(amount.text), value, scale);
	return amount;
}

struct csink_amount csink_amount(int64_t value, const char *unit)
{
	struct csink_scale scale = csink_scale_for(value, unit);

	return csink_amount_at(value, &scale);
}

size_t csink_append(char *buf, size_t size, const char *fmt, ...)
{
	size_t used = strlen(buf);
	va_list ap;
	int more;

	va_start(ap, fmt);
	more = vsnprintf(buf + used, size - used, fmt, ap);
	va_end(ap);
	return CSINK_MIN(used + (size_t)CSINK_MAX(more, 0), size - 1);
}

void csink_append_word(char *buf, size_t size, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:=@%";
	bool is_plain = *word && !word[strspn(word, plain)];

	csink_append(buf, size, "%s", is_plain ? "" : "'");
	for (const char *quote; !is_plain && (quote = strchr(word, '\'')); word = quote + 1)
		csink_append(buf, size, "%.*s'\\''", (int)(quote - word), word);
	csink_append(buf, size, "%s%s", word, is_plain ? "" : "'");
}

int csink_format_count(char *buf, size_t size, uint64_t value)
{
	char digits[24], out[32];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, value), i, used = 0;

	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = 0;
	return snprintf(buf, size, "%s", out);
}

uint32_t csink_format_text(char *buf, size_t size, const char *text, uint32_t columns)
{
	uint32_t nr = 0, cut_nr = 0, len, wide;
	size_t used = 0, cut = 0;
	struct csink_text_char c;
	char piece[CSINK_TEXT_ESCAPED];
	const char *at;

	for (at = text; *at; at += c.bytes) {
		if (used + 4 <= size && (!columns || nr + 3 <= columns)) { /* "..." would still fit */
			cut = used;
			cut_nr = nr;
		}
		c = csink_text_next(text, at);
		len = csink_text_escape(piece, at, &c);
		wide = c.is_shown ? 1 : len;
		if (used + len >= size || (columns && nr + wide > columns))
			break;
		memcpy(buf + used, piece, len);
		used += len;
		nr += wide;
	}
	if (*at) {
		memcpy(buf + cut, "...", 3);
		used = cut + 3;
		nr = cut_nr + 3;
	}
	buf[used] = 0;
	return nr;
}

/* Length of an operator's name that has angle brackets ("operator<<", "operator->"), or 0. */
static size_t angle_operator(const char *at)
{
	static const char *const operators[] = {"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"};
	static const char word[] = "operator";
	const size_t len = sizeof(word) - 1;

	for (uint32_t i = 0; !strncmp(at, word, len) && i < CSINK_ARRAY_SIZE(operators); i++) {
		if (!strncmp(at + len, operators[i], strlen(operators[i])))
			return len + strlen(operators[i]);
	}
	return 0;
}

/*
 * Copy a name with "..." for what is between angle brackets after a name: arguments. Brackets that begin a path, as in
 * Rust's <Type as Trait>::method, stay.
 */
static void drop_arguments(char *buf, size_t size, const char *name)
{
	uint32_t depth = 0;
	size_t used = 0, len;
	bool is_path, is_argument, is_silent = false;

	for (; *name && used + 64 < size; name += len) {
		len = angle_operator(name);
		if (len) {
			if (!depth)
				used += snprintf(buf + used, 32, "%.*s", (int)len, name);
			continue;
		}
		len = 1;
		is_path = !depth && (!used || strchr(" (<&*,", buf[used - 1]));
		is_argument = *name == '<' && !is_path;
		if (is_argument && !depth && used > 2 && !strncmp(buf + used - 2, "::", 2))
			is_silent = true; /* Rust's fold::<...> says no more than fold */
		if (*name == '>' && depth && !--depth) {
			used -= is_silent ? 2 : 0;
			used += is_silent ? 0 : snprintf(buf + used, 32, "...>");
			is_silent = false;
		} else if (!depth && !is_silent) {
			buf[used++] = *name;
		}
		depth += is_argument;
	}
	buf[used] = 0;
}

/* Where a text that has `drop` characters too many at its front begins. */
static const char *skip_characters(const char *text, uint32_t drop)
{
	for (; drop && *text; drop--) {
		for (text++; ((unsigned char)*text & 0xc0) == 0x80;)
			text++;
	}
	return text;
}

uint32_t csink_format_function(char *buf, size_t size, const char *name, uint32_t columns)
{
	char shorter[4100], safe[4096];
	uint32_t nr;

	if (!columns || csink_format_text(buf, size, name, 0) <= columns)
		return csink_format_text(buf, size, name, columns);
	drop_arguments(shorter, sizeof(shorter), name);
	nr = csink_format_text(safe, sizeof(safe), shorter, 0);
	if (nr <= columns || columns < 8)
		return csink_format_text(buf, size, safe, columns);
	snprintf(shorter, sizeof(shorter), "...%s", skip_characters(safe, nr - columns + 3));
	return csink_format_text(buf, size, shorter, columns);
}
