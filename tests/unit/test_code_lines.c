/* Line tables of CPython: as its own compilers wrote them for one function, and random bytes. */
#include "launcher/collect/code_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "include/internal/base.h"
#include "tests/unit/tap.h"

enum { PAGE = 65536 }; /* a multiple of every page size */

/*
 * The table of
 *     def f(a):
 *         x = a + 1
 *
 *         if x:
 *             y = [i for i in range(x)]
 *         else:
 *             y = (a,
 *                  x,
 *                  a + x)
 *         try:
 *             return y[
 *                 0]
 *         except IndexError:
 *             pass
 *         return None
 * and the lines that the interpreter gives for each of its two-byte instructions: dis.findlinestarts() of 3.9,
 * co_lines() of 3.10 and 3.13. 0: none.
 */
static const uint8_t table_9[] = {0, 1, 8, 2, 4, 1, 20, 2,   2, 1, 2,  1, 6, 254,
				  4, 3, 2, 1, 2, 1, 2,  255, 6, 2, 12, 1, 6, 1};
static const uint8_t lines_9[] = {2, 2, 2, 2,  4,  4,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  7,  8,  9,  9,
				  9, 7, 7, 10, 11, 12, 11, 11, 11, 13, 13, 13, 13, 13, 13, 14, 14, 14, 15, 15};
static const uint8_t table_10[] = {8, 1, 4, 2, 20, 1, 2,   2,  2, 1, 6, 1, 4, 254, 2,
				   3, 2, 1, 2, 1,  6, 255, 12, 2, 2, 1, 4, 1, 2,   254};
static const uint8_t lines_10[] = {2, 2, 2, 2,  4,  4,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  7,  8,  9, 9,
				   9, 7, 7, 10, 11, 12, 11, 11, 11, 13, 13, 13, 13, 13, 13, 14, 15, 15, 13};
static const uint8_t table_13[] = {
	128, 0,   216, 8,  9,   136, 65,  137, 5,   128, 65,  230, 7,   8,   220, 24,  29, 152, 97,  156, 8,   211,
	12,  33,  153, 8,  144, 49,  138, 81,  153, 8,   136, 1,   208, 12,  33,  136, 1,  224, 13,  14,  216, 13,
	14,  216, 13,  14, 137, 85,  240, 5,   2,   13,  20,  136, 1,   240, 6,   4,   5,  13,  216, 15,  16,  216,
	12,  13,  241, 3,  1,   16,  15,  240, 0,   1,   9,   15,  249, 242, 13,  0,   13, 34,  248, 244, 16,  0,
	12,  22,  243, 0,  1,   5,   13,  216, 8,   12,  216, 11,  15,  240, 5,   1,   5,  13,  250};
static const uint8_t lines_13[] = {1, 2,  2,  2,  2,  2,  4,  4,  4,  4,  4,  4,  4,  5,  5, 5, 5, 5, 5,
				   5, 5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5, 5, 5, 5, 5,
				   5, 7,  8,  9,  9,  9,  7,  7,  10, 11, 12, 11, 11, 11, 0, 0, 5, 5, 5,
				   0, 13, 13, 13, 13, 13, 13, 13, 13, 13, 14, 15, 13, 0,  0, 0};

/* The table's last byte is the last one of a page, and the next page cannot be read. Valid until the next call. */
static struct csink_rec_code *make(uint16_t kind, const uint8_t *table, uint32_t nr)
{
	static char *pages;
	uint32_t nr_names = 4 + (8 - nr % 8) % 8;
	struct csink_rec_code *code;

	if (!pages) {
		pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
			exit(1);
	}
	memset(pages, 0, PAGE);
	code = (struct csink_rec_code *)(pages + PAGE - sizeof(*code) - nr_names - nr);
	code->head.aux = kind;
	code->first_line = 1;
	code->nr_names = (uint16_t)nr_names;
	code->nr_table = nr;
	memcpy(code->text, "f\0p", 4);
	memcpy(code->text + nr_names, table, nr);
	return code;
}

static void check(const char *name, uint16_t kind, const uint8_t *table, uint32_t nr, const uint8_t *lines,
		  uint32_t nr_lines)
{
	struct csink_rec_code *code = make(kind, table, nr);
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < nr_lines; i++)
		wrong += csink_code_line(code, 2 * i) != lines[i];
	is_num(wrong, 0, name);
	is_num(csink_code_line(code, CSINK_CODE_NOT_BEGUN), 1, "a function that has not begun is at its first line");
}

/* Random bytes: a read beyond them is a fault that ends this test, and an endless loop its time limit. */
static void check_damaged(void)
{
	int64_t nr_negative = 0;

	for (unsigned int seed = 0; seed < 2000; seed++) {
		uint8_t table[32];
		struct csink_rec_code *code;

		srand(seed);
		for (size_t i = 0; i < sizeof(table); i++)
			table[i] = (uint8_t)(rand() >> 4);
		code = make((uint16_t)(seed % CSINK_NR_CODE_KINDS), table, seed % sizeof(table));
		for (uint32_t at = 0; at < 600; at += 2)
			nr_negative += csink_code_line(code, at) < 0;
	}
	is_num(nr_negative, 0, "2,000 random line tables: no read beyond their end, no negative line");
}

/* Made by a compiler from a tree whose lines were moved: Python's first line may be negative, too. */
static void check_negative(void)
{
	struct csink_rec_code *code = make(CSINK_CODE_PYTHON_LNOTAB, table_9, sizeof(table_9));

	code->first_line = (uint32_t)-97;
	is_num(csink_code_line(code, CSINK_CODE_NOT_BEGUN), 0, "a negative first line of Python is not known");
	is_num(csink_code_line(code, 10), 0, "a line that follows from a negative first line is not known");
	code->nr_table = 0;
	is_num(csink_code_line(code, 10), 0, "a negative first line without a line table is not known");
	code->nr_table = sizeof(table_9);
	code->first_line = (uint32_t)-2;
	is_num(csink_code_line(code, 8), 1, "lines after it that are positive are known");
}

/* A table may be empty up to 3.9: all code is of the first line. One that was not recorded is another thing. */
static void check_lacking(void)
{
	struct csink_rec_code *code = make(CSINK_CODE_PYTHON_LNOTAB, table_9, 0);

	code->first_line = 7;
	is_num(csink_code_line(code, 10), 7, "without a line table all code is of the first line");
	code->lacks_table = 1;
	is_num(csink_code_line(code, 10), 0, "no line is known if the table was not recorded");
	is_num(csink_code_line(code, CSINK_CODE_NOT_BEGUN), 7,
	       "code that has not begun is of the first line, without a recorded table");
}

/*
 * Of HotSpot: position 0 is line 10, position 5 line 12, position 300 line 11, position 3 (behind that in the table)
 * line 9, as CompressedLineNumberWriteStream of JDK 17 and of JDK 20 writes them.
 */
static void check_hotspot(void)
{
	static const uint8_t table_17[] = {0xff, 0, 20, 5 << 3 | 2, 0xff, 0xce, 6, 1, 0xff, 0xd1, 6, 3, 0};
	static const uint8_t table_20[] = {0xff, 1, 21, 5 << 3 | 2, 0xff, 0xcf, 7, 2, 0xff, 0xd2, 7, 4, 0};
	static const struct {
		uint32_t position;
		int64_t line;
	} want[] = {{0, 10},   {2, 10},     {3, 9},
		    {4, 9},    {5, 12},     {299, 12},
		    {300, 11}, {65535, 11}, {CSINK_CODE_NOT_BEGUN, 10}};
	int nr = 0, nr_20 = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(want); i++) {
		nr += csink_code_line(make(CSINK_CODE_HOTSPOT, table_17, sizeof(table_17)), want[i].position) ==
		      want[i].line;
		nr_20 += csink_code_line(make(CSINK_CODE_HOTSPOT_20, table_20, sizeof(table_20)), want[i].position) ==
			 want[i].line;
	}
	is_num(nr, CSINK_ARRAY_SIZE(want), "the line table of JDK 17 gives the line of every position");
	is_num(nr_20, CSINK_ARRAY_SIZE(want), "the line table of JDK 20 gives the line of every position");
	is_num(csink_code_line(make(CSINK_CODE_HOTSPOT, table_17, 0), 77), 0, "a method without a table has no line");
}

/* Each entry adds 2^59 - 1 lines. */
static void check_large(void)
{
	uint8_t table[40 * 11];

	for (size_t i = 0; i < sizeof(table); i++)
		table[i] = i % 11 == 0 ? 0xf0 : i % 11 == 1 ? 0x7e : i % 11 == 10 ? 0x3f : 0x7f;
	is_num(csink_code_line(make(CSINK_CODE_PYTHON_LOCATIONS, table, sizeof(table)), 78), 0,
	       "a line that no file has is not known, and the sum of such lines does not overflow");
}

int main(void)
{
	check("the line table of CPython 3.9 gives the line of every instruction", CSINK_CODE_PYTHON_LNOTAB, table_9,
	      sizeof(table_9), lines_9, sizeof(lines_9));
	check("the line table of CPython 3.10 gives the line of every instruction", CSINK_CODE_PYTHON_LINES, table_10,
	      sizeof(table_10), lines_10, sizeof(lines_10));
	check("the line table of CPython 3.13 gives the line of every instruction", CSINK_CODE_PYTHON_LOCATIONS,
	      table_13, sizeof(table_13), lines_13, sizeof(lines_13));
	is_num(csink_code_line(make(CSINK_CODE_PYTHON_LOCATIONS, table_13, 0), 10), 1,
	       "a function without a line table has its first line");
	is_num(csink_code_line(make(CSINK_CODE_PHP, table_13, sizeof(table_13)), 77), 77,
	       "the position in a function of PHP is its line");
	is_num(csink_code_line(make(CSINK_CODE_PERL, table_13, 0), 78), 78,
	       "the position in a sub of Perl is its line");
	is_num(csink_code_line(make(CSINK_CODE_PERL, table_13, 0), 0), 0,
	       "a position of Perl's without a line has none, not the first one");
	is_num(csink_code_line(make(CSINK_CODE_RUBY, table_13, 0), 79), 79,
	       "the position in a function of Ruby is its line");
	is_num(csink_code_line(make(CSINK_CODE_RUBY, table_13, 0), (uint32_t)-50), 0, "a negative line is not known");
	check_hotspot();
	check_negative();
	check_lacking();
	check_large();
	check_damaged();
	return done();
}
