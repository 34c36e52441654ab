/* Line tables of CPython: as its own compilers wrote them for one function, and damaged ones. */
#include "launcher/collect/code_lines.h"

#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "tests/unit/tap.h"

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

static struct csink_rec_code *make(uint16_t kind, const uint8_t *table, uint32_t nr)
{
	struct csink_rec_code *code = calloc(1, sizeof(*code) + 4 + nr);

	code->head.aux = kind;
	code->first_line = 1;
	code->nr_names = 4;
	code->nr_table = nr;
	memcpy(code->text, "f\0p", 4);
	memcpy(code->text + 4, table, nr);
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
	free(code);
}

/* Any bytes: what matters is that nothing is read beyond them (as the sanitizers see), and that it ends. */
static void check_damaged(void)
{
	int64_t sum = 0;

	for (unsigned int seed = 0; seed < 2000; seed++) {
		uint8_t table[32];
		struct csink_rec_code *code;

		srand(seed);
		for (size_t i = 0; i < sizeof(table); i++)
			table[i] = (uint8_t)(rand() >> 4);
		code = make((uint16_t)(seed % CSINK_NR_CODE_KINDS), table, seed % sizeof(table));
		for (uint32_t at = 0; at < 600; at += 2)
			sum += csink_code_line(code, at) < 0;
		free(code);
	}
	is_num(sum, 0, "damaged tables give no line below 0");
}

int main(void)
{
	struct csink_rec_code *none = make(CSINK_CODE_PYTHON_LOCATIONS, table_13, 0);

	check("lines by pairs, to 3.9", CSINK_CODE_PYTHON_LNOTAB, table_9, sizeof(table_9), lines_9, sizeof(lines_9));
	check("lines by ranges, 3.10", CSINK_CODE_PYTHON_LINES, table_10, sizeof(table_10), lines_10, sizeof(lines_10));
	check("lines by locations, 3.11 on", CSINK_CODE_PYTHON_LOCATIONS, table_13, sizeof(table_13), lines_13,
	      sizeof(lines_13));
	is_num(csink_code_line(none, 10), 1, "without a table it is the first line");
	free(none);
	check_damaged();
	return done();
}
