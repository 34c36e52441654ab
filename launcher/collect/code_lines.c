/*
 * The line tables of CPython and HotSpot: see code_lines.h. Runs in the launcher, on the thread that collects. Sources:
 * CPython's Objects/lnotab_notes.txt of 3.9 and 3.10, and Objects/locations.md of 3.11. Tables come from a profiled
 * process: they may have any content.
 */
#include "launcher/collect/code_lines.h"

#include <stdbool.h>

#include "include/internal/base.h"

struct reader {
	const uint8_t *at, *end;
};

static bool next_pair(struct reader *r, uint8_t *bytes, int8_t *lines)
{
	if (r->end - r->at < 2)
		return false;
	*bytes = r->at[0];
	*lines = (int8_t)r->at[1];
	r->at += 2;
	return true;
}

/* To 3.9: a line is valid from the sum of the increments up to the next pair's sum. */
static int64_t line_by_lnotab(struct reader r, int64_t line, uint32_t position)
{
	uint64_t start = 0;
	uint8_t bytes;
	int8_t lines;

	while (next_pair(&r, &bytes, &lines)) {
		start += bytes;
		if (start > position)
			break;
		line += lines;
	}
	return line;
}

/* 3.10: each pair is a range of positions with its line. */
static int64_t line_by_ranges(struct reader r, int64_t line, uint32_t position)
{
	uint64_t end = 0;
	uint8_t bytes;
	int8_t lines;

	while (next_pair(&r, &bytes, &lines)) {
		end += bytes;
		line += lines == -128 ? 0 : lines;
		if (position < end)
			return lines == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits a byte, the lowest first; bit 6 set: another byte follows. */
static uint64_t varint(struct reader *r)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte = 1 << 6;

	while (byte & 1 << 6 && r->at < r->end && shift < 60) {
		byte = *r->at++;
		value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
	}
	return value;
}

static int64_t signed_varint(struct reader *r)
{
	uint64_t value = varint(r);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/*
 * From 3.11: bit 7 is set in the first byte of an entry only; bits 3 to 6 of that byte are its form, bits 0 to 2 the
 * number of code units (two bytes each) less one.
 */
static int64_t line_by_locations(struct reader r, int64_t line, uint32_t position)
{
	enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };
	uint64_t end = 0;

	while (r.at < r.end) {
		uint8_t head = *r.at++, form = head >> 3 & 15;

		end += 2 * ((head & 7) + 1u);
		if (form == LONG || form == NO_COLUMNS)
			line = csink_add(line, signed_varint(&r));
		else if (form >= ONE_LINE_0 && form <= ONE_LINE_2)
			line += form - ONE_LINE_0;
		if (position < end)
			return form == NO_LINE ? 0 : line;
		while (r.at < r.end && !(*r.at & 1 << 7)) /* the columns */
			r.at++;
	}
	return 0;
}

/* Up to five bytes of six bits each, the lowest first: a byte that is less than 192 is the last one. */
static int64_t hotspot_number(struct reader *r, uint32_t excluded)
{
	uint32_t value = 0;

	for (unsigned int i = 0; i < 5 && r->at < r->end; i++) {
		uint8_t byte = *r->at++;

		value += (byte - excluded) << 6 * i;
		if (byte < 192)
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) - 1 : (int64_t)(value >> 1);
}

/*
 * HotSpot: entries in order of compilation, not of positions. The line is that of the entry with the highest position
 * that is not behind ours; of the first entry, if the position is not known.
 */
static int64_t line_by_hotspot(struct reader r, uint32_t excluded, uint32_t position)
{
	int64_t at = 0, line = 0, best = -1, found = 0;

	while (r.at < r.end && *r.at) {
		uint8_t byte = *r.at++;

		at = csink_add(at, byte == 255 ? hotspot_number(&r, excluded) : byte >> 3);
		line = csink_add(line, byte == 255 ? hotspot_number(&r, excluded) : byte & 7);
		if (!found || (position != CSINK_CODE_NOT_BEGUN && at <= position && at >= best)) {
			best = at;
			found = line;
		}
	}
	return found;
}

static int64_t line_by_hotspot_11(struct reader r, int64_t first, uint32_t position)
{
	(void)first;
	return line_by_hotspot(r, 0, position);
}

/* No byte of a number is 0. */
static int64_t line_by_hotspot_20(struct reader r, int64_t first, uint32_t position)
{
	(void)first;
	return line_by_hotspot(r, 1, position);
}

/* The position is the line. */
static int64_t line_itself(struct reader r, int64_t first, uint32_t position)
{
	(void)r;
	(void)first;
	return position;
}

/* What is known of each kind of function. */
static const struct kind {
	const char *language;
	/* NULL: the line is found elsewhere, by v8_positions.c. */
	int64_t (*line)(struct reader table, int64_t first, uint32_t position);
	bool has_table;     /* without one, and before a function begins, the line is its first one */
	bool has_all_lines; /* the table has all there is: the recording has no first line */
} kinds[] = {
	[CSINK_CODE_PYTHON_LNOTAB] = {"Python", line_by_lnotab, .has_table = true},
	[CSINK_CODE_PYTHON_LINES] = {"Python", line_by_ranges, .has_table = true},
	[CSINK_CODE_PYTHON_LOCATIONS] = {"Python", line_by_locations, .has_table = true},
	[CSINK_CODE_PHP] = {"PHP", line_itself},
	[CSINK_CODE_PERL] = {"Perl", line_itself},
	[CSINK_CODE_RUBY] = {"Ruby", line_itself},
	[CSINK_CODE_V8] = {"JavaScript"},
	[CSINK_CODE_HOTSPOT] = {"Java", line_by_hotspot_11, .has_all_lines = true},
	[CSINK_CODE_HOTSPOT_20] = {"Java", line_by_hotspot_20, .has_all_lines = true},
};
_Static_assert(CSINK_ARRAY_SIZE(kinds) == CSINK_NR_CODE_KINDS, "each kind of function has its row");

/* Of a recording that may have been damaged, or made by a later version. */
static const struct kind *kind_of(const struct csink_rec_code *code)
{
	static const struct kind unknown;

	return code->head.aux < CSINK_NR_CODE_KINDS ? &kinds[code->head.aux] : &unknown;
}

const char *csink_code_language(const struct csink_rec_code *code)
{
	return kind_of(code)->language;
}

bool csink_code_has_no_first_line(const struct csink_rec_code *code)
{
	return kind_of(code)->has_all_lines;
}

int64_t csink_code_line(const struct csink_rec_code *code, uint32_t position)
{
	const struct kind *kind = kind_of(code);
	const uint8_t *table = (const uint8_t *)code->text + code->nr_names;
	const struct reader reader = {table, table + code->nr_table};
	int64_t line = (int32_t)code->first_line;
	bool is_first = kind->has_table && (position == CSINK_CODE_NOT_BEGUN || !code->nr_table);

	if (!kind->line || (is_first && position != CSINK_CODE_NOT_BEGUN && code->lacks_table))
		line = 0;
	else if (!is_first)
		line = kind->line(reader, line, position);
	/* Evaluated code can have any first line, and negative lines: these are not known. */
	return line > 0 && line <= INT32_MAX ? line : 0;
}
