/* Places in JavaScript functions: V8's tables of both tiers, and tables that are damaged. */
#include "launcher/collect/v8_positions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/tap.h"

enum { PAGE = 4096, VERSION = 11 << 16 | 3, START = 5, LENGTH = 1000 };

/*
 * From offset -1: place 20; from 3: place 300; from 9: place 7. Increments of the offset have their sign as a flag, and
 * places are doubled, one more, and then doubled for the sign.
 */
static const uint8_t positions[] = {0, 84, 9, 0xe0, 8, 12, 0x93, 9};
/* The same since 14, where increments have no sign, and two flags below them. */
static const uint8_t positions_14[] = {2, 84, 19, 0xe0, 8, 25, 0x93, 9};
static uint32_t version = VERSION;
/* LdaZero; LdaSmi with an operand of 1, 2 and 4 bytes; LdaZero: offsets 0, 1, 3, 7, 13 */
static const uint8_t bytecodes[] = {12, 13, 1, 0, 13, 1, 2, 1, 13, 1, 2, 3, 4, 12};
/* The entry takes 200 bytes, then 4, 5, 0, 7, 1. */
static const uint8_t offsets[] = {0xc8, 1, 4, 5, 0, 7, 1};

/* The table's last byte is the last one of a page, and the next page cannot be read. Valid until the next call. */
static struct csink_rec_code *make(const struct csink_rec_v8_lines *lines, uint32_t nr_offsets, uint32_t nr)
{
	static char *pages;
	char table[512];
	uint32_t all = sizeof(*lines);
	struct csink_rec_code *code;

	if (!pages) {
		pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
			exit(1);
	}
	memcpy(table, lines, sizeof(*lines));
	memcpy(table + all, version < 14 << 16 ? positions : positions_14, sizeof(positions));
	all += sizeof(positions);
	if (lines->nr_bytecodes) {
		memcpy(table + all, bytecodes, sizeof(bytecodes));
		all += sizeof(bytecodes);
		memcpy(table + all, offsets, nr_offsets);
		all += nr_offsets;
	}
	nr = nr < all ? nr : all;
	code = (struct csink_rec_code *)(pages + PAGE - ((sizeof(*code) + 4 + nr + 7) & ~7UL));
	code->head.aux = CSINK_CODE_V8;
	code->nr_names = (uint16_t)(pages + PAGE - nr - code->text);
	code->nr_table = nr;
	memset(code->text, 0, code->nr_names);
	memcpy(code->text + code->nr_names, table, nr);
	return code;
}

static struct csink_rec_v8_lines head(uint32_t nr_bytecodes)
{
	return (struct csink_rec_v8_lines){START, LENGTH, version, sizeof(positions), nr_bytecodes};
}

/* The place of a position; -1: not known. */
static int64_t place(uint32_t nr_bytecodes, uint32_t position)
{
	struct csink_rec_v8_lines lines = head(nr_bytecodes);
	struct csink_v8_source source = csink_v8_source(make(&lines, sizeof(offsets), UINT32_MAX), position);

	return source.start != START || source.length != LENGTH ? -2 : source.is_known ? (int64_t)source.place : -1;
}

static void interpreted(void)
{
	static const int64_t places[] = {20, 20, 20, 300, 300, 300, 300, 300, 300, 7, 7};

	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		ok(place(0, i) == places[i], "V8 %u, interpreted: the place of offset %u", version >> 16, i);
	ok(place(0, UINT32_MAX) == 7, "V8 %u, interpreted: an offset behind the end has the last place", version >> 16);
}

static void compiled(void)
{
	static const struct {
		uint32_t position;
		int64_t place;
		const char *where;
	} points[] = {{0, 20, "at the begin"},
		      {200, 20, "at the end of the entry"},
		      {204, 20, "in the first bytecode"},
		      {209, 20, "in the second one"},
		      {210, 300, "behind a bytecode that became no code"},
		      {216, 300, "at the end of a bytecode with a prefix"},
		      {217, 7, "in the last one"},
		      {218, -1, "behind the code"}};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		ok(place(sizeof(bytecodes), points[i].position) == points[i].place, "V8 %u, compiled: the place %s",
		   version >> 16, points[i].where);
}

static void damaged(void)
{
	struct csink_rec_v8_lines lines = head(0);
	uint32_t nr_known = 0;

	ok(!csink_v8_source(make(&lines, 0, 8), 3).is_known && csink_v8_source(make(&lines, 0, 8), 3).start == START,
	   "without tables, the function's begin is known");
	ok(!csink_v8_source(make(&lines, 0, 3), 3).is_known, "a table that is too short has no place");
	lines = head(sizeof(bytecodes));
	lines.version++;
	ok(!csink_v8_source(make(&lines, sizeof(offsets), UINT32_MAX), 210).is_known,
	   "compiled: an unknown version has no places");
	lines = head(sizeof(bytecodes));
	ok(!csink_v8_source(make(&lines, sizeof(offsets) - 1, UINT32_MAX), 204).is_known,
	   "compiled: tables that do not end together have no places");
	for (uint32_t nr = 0; nr < 64; nr++)
		for (uint32_t position = 0; position < 230; position += 7)
			nr_known += csink_v8_source(make(&lines, sizeof(offsets), nr), position).is_known;
	ok(nr_known > 0, "tables are not read beyond their end");
	lines.nr_positions = UINT32_MAX;
	ok(!csink_v8_source(make(&lines, sizeof(offsets), UINT32_MAX), 3).is_known, "lengths are checked: places");
	lines = head(UINT32_MAX - 8);
	ok(!csink_v8_source(make(&lines, sizeof(offsets), UINT32_MAX), 3).is_known, "lengths are checked: bytecodes");
}

int main(void)
{
	interpreted();
	compiled();
	version = 13 << 16 | 6;
	interpreted();
	version = 14 << 16 | 6;
	interpreted();
	compiled();
	version = VERSION;
	damaged();
	return done();
}
