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

static int64_t line_by_table(const struct csink_rec_code *code, int64_t first, uint32_t position)
{
	const uint8_t *table = (const uint8_t *)code->text + code->nr_names;
	struct reader r = {table, table + code->nr_table};

	if (code->head.aux == CSINK_CODE_HOTSPOT || code->head.aux == CSINK_CODE_HOTSPOT_20)
		return line_by_hotspot(r, code->head.aux == CSINK_CODE_HOTSPOT_20, position);
	if (code->head.aux == CSINK_CODE_PYTHON_LNOTAB)
		return line_by_lnotab(r, first, position);
	return code->head.aux == CSINK_CODE_PYTHON_LINES ? line_by_ranges(r, first, position)
							 : line_by_locations(r, first, position);
}

int64_t csink_code_line(const struct csink_rec_code *code, uint32_t position)
{
	int64_t line = (int32_t)code->first_line;

	if (code->head.aux == CSINK_CODE_HOTSPOT || code->head.aux == CSINK_CODE_HOTSPOT_20)
		line = code->nr_table ? line_by_table(code, 0, position) : 0;
	else if (code->head.aux >= CSINK_CODE_PHP)
		line = position;
	else if (position != CSINK_CODE_NOT_BEGUN && code->nr_table)
		line = line_by_table(code, line, position);
	else if (position != CSINK_CODE_NOT_BEGUN && code->lacks_table)
		line = 0;
	/* Evaluated code can have any first line, and negative lines: these are not known. */
	return line > 0 && line <= INT32_MAX ? line : 0;
}
