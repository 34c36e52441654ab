/* The reader of line tables, on small ones that are put together here. What compilers write: see test_symbols.c. */
#include <dwarf.h>
#include <errno.h>
#include <stdint.h>

#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols_impl.h"
#include "tests/unit/tap.h"

#define NR_WANTS 8
#define FIRST 0x1000 /* addresses that are wanted: from here, 16 apart */

struct table {
	uint8_t bytes[512];
	size_t nr;
};

static void put(struct table *t, uint64_t value, uint32_t bytes)
{
	memcpy(t->bytes + t->nr, &value, bytes);
	t->nr += bytes;
}

static void put_text(struct table *t, const char *text)
{
	memcpy(t->bytes + t->nr, text, strlen(text) + 1);
	t->nr += strlen(text) + 1;
}

/* A list of one name, of a directory or file: a text, or the place of one in .debug_line_str. */
static void put_list(struct table *t, const char *text, uint32_t place)
{
	put(t, 1, 1);
	put(t, DW_LNCT_path, 1);
	put(t, text ? DW_FORM_string : DW_FORM_line_strp, 1);
	put(t, 1, 1);
	if (text)
		put_text(t, text);
	else
		put(t, place, 4);
}

/* Version 5, up to the lists of directories and files. Opcodes from 10 on are special. */
static struct table begin_header(void)
{
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1};
	struct table t = {.nr = 4};

	put(&t, 5, 2);
	put(&t, 8, 2); /* sizes of an address and of a segment */
	t.nr += 4;     /* the header's length: see end() */
	put(&t, 1, 1);
	put(&t, 1, 1);
	put(&t, 1, 1);
	put(&t, (uint8_t)-3, 1);
	put(&t, 12, 1);
	put(&t, 10, 1);
	memcpy(t.bytes + t.nr, lengths, sizeof(lengths));
	t.nr += sizeof(lengths);
	return t;
}

static void end_header(struct table *t)
{
	memcpy(t->bytes + 8, &(uint32_t){(uint32_t)t->nr - 12}, 4);
}

/* The directory and the file with number 0. */
static struct table begin(const char *directory, const char *file, uint32_t place)
{
	struct table t = begin_header();

	put_list(&t, directory, 0);
	put_list(&t, file, place);
	end_header(&t);
	return t;
}

static void put_row(struct table *t, uint32_t bytes)
{
	put(t, DW_LNS_copy, 1);
	put(t, DW_LNS_fixed_advance_pc, 1);
	put(t, bytes, 2);
}

/* Two rows of one line, of which the first has 4 bytes. */
static void put_sequence(struct table *t, uint64_t address, uint8_t line, uint32_t bytes)
{
	put(t, 0, 1);
	put(t, 9, 1);
	put(t, DW_LNE_set_address, 1);
	put(t, address, 8);
	put(t, DW_LNS_set_file, 1);
	put(t, 0, 1);
	put(t, DW_LNS_advance_line, 1);
	put(t, (uint8_t)(line - 1) & 0x7f, 1);
	put_row(t, 4);
	put_row(t, bytes - 4);
	put(t, 0, 1);
	put(t, 1, 1);
	put(t, DW_LNE_end_sequence, 1);
}

static void end(struct table *t)
{
	memcpy(t->bytes, &(uint32_t){(uint32_t)t->nr - 4}, 4);
}

/* ---- asking ---- */

struct answer {
	struct csink_profile *p;
	struct csink_found found[NR_WANTS];
	int err;
};

static struct answer ask(const struct table *t, struct csink_bytes texts)
{
	const struct csink_line_sections sections = {.line = {t->bytes, t->nr}, .line_str = texts};
	struct answer a = {.p = csink_profile_create()};
	struct csink_want wants[NR_WANTS];
	struct csink_batch batch = {.p = a.p, .wants = wants, .found = a.found, .nr = NR_WANTS};
	struct csink_lines *lines;

	for (uint32_t i = 0; i < NR_WANTS; i++) {
		wants[i] = (struct csink_want){FIRST + 16 * i, 0};
		a.found[i].unit = 1;
	}
	a.err = csink_lines_open(&sections, 0, "/home/me", &lines);
	if (a.err)
		return a;
	csink_lines_find(lines, &batch, 1, 0, NR_WANTS);
	csink_lines_close(lines);
	return a;
}

static void is_place(const struct answer *a, uint32_t want, uint32_t line, const char *file, const char *what)
{
	is_num(a->found[want].line, line, what);
	is_str(csink_profile_text(a->p, a->found[want].file), file, what);
}

/* ---- tests ---- */

static void test_plain(void)
{
	struct table t = begin("src", "a.c", 0);
	struct answer a;

	put_sequence(&t, FIRST + 32, 7, 16);
	put_sequence(&t, FIRST, 5, 32);
	end(&t);
	a = ask(&t, (struct csink_bytes){0});
	is_num(a.err, 0, "a table is read");
	is_place(&a, 0, 5, "/home/me/src/a.c", "the first address of a sequence");
	is_place(&a, 1, 5, "/home/me/src/a.c", "an address inside a sequence");
	is_place(&a, 2, 7, "/home/me/src/a.c", "an address of a sequence that comes first in the table");
	is_place(&a, 3, 0, "", "an address behind all sequences");
	csink_profile_free(a.p);
}

/* Linkers leave the lines of functions that they threw away where no code is: at 0, or at one of the last addresses. */
static void test_thrown_away(uint64_t address)
{
	struct table t = begin("/src", "a.c", 0);
	struct answer a;

	put_sequence(&t, address, 9, 0xf000);
	put_sequence(&t, FIRST + 16, 5, 16);
	end(&t);
	a = ask(&t, (struct csink_bytes){0});
	is_place(&a, 0, 0, "", "no line of a function that was thrown away");
	is_place(&a, 1, 5, "/src/a.c", "the function's own line wins over the discarded function's");
	csink_profile_free(a.p);
}

static void test_texts(void)
{
	static const uint8_t texts[] = "x\0lib.c";
	struct table t = begin("/src", NULL, 2), behind = begin("/src", NULL, sizeof(texts));
	struct answer a;

	put_sequence(&t, FIRST, 5, 16);
	end(&t);
	end(&behind);
	a = ask(&t, (struct csink_bytes){texts, sizeof(texts)});
	is_place(&a, 0, 5, "/src/lib.c", "a name of the section of texts");
	csink_profile_free(a.p);
	a = ask(&behind, (struct csink_bytes){texts, sizeof(texts)});
	is_num(a.err, -ENOTSUP, "a name behind that section is left to libdw");
	csink_profile_free(a.p);
	a = ask(&t, (struct csink_bytes){0});
	is_num(a.err, -ENOTSUP, "a name without its section is left to libdw");
	csink_profile_free(a.p);
}

/* A list whose names have a block of so many bytes in front. */
static void put_blocks(struct table *t, const char *text, uint8_t bytes, uint64_t nr)
{
	put(t, 2, 1);
	put(t, 0x20, 1); /* of a meaning that we do not know */
	put(t, DW_FORM_block, 1);
	put(t, DW_LNCT_path, 1);
	put(t, DW_FORM_string, 1);
	for (; nr >= 0x80; nr >>= 7)
		put(t, (nr & 0x7f) | 0x80, 1);
	put(t, nr, 1);
	put(t, bytes, 1);
	put(t, 0, bytes);
	put_text(t, text);
}

static void test_blocks(void)
{
	struct table t = begin_header();
	struct answer a;

	put_blocks(&t, "/src", 3, 1);
	put_blocks(&t, "a.c", 0, 1);
	end_header(&t);
	put_sequence(&t, FIRST, 5, 16);
	end(&t);
	a = ask(&t, (struct csink_bytes){0});
	is_place(&a, 0, 5, "/src/a.c", "unknown opcodes are skipped");
	csink_profile_free(a.p);
}

/* Nothing but blocks, which are empty, and more than there are bytes for. */
static void test_endless(void)
{
	struct table t = begin_header();
	struct answer a;

	put(&t, 1, 1);
	put(&t, DW_LNCT_path, 1);
	put(&t, DW_FORM_block, 1);
	put(&t, 0xffffffff, 4);
	put(&t, 0x7f, 1);
	put(&t, 0, 8);
	end_header(&t);
	end(&t);
	a = ask(&t, (struct csink_bytes){0});
	is_num(a.err, -ENOTSUP, "more names than the table has room for are left to libdw");
	csink_profile_free(a.p);
}

/* Cut anywhere: either it cannot be read, or what it says is what the whole one says. */
static void test_cut(void)
{
	struct table t = begin("/src", "a.c", 0), cut;
	uint32_t nr_wrong = 0, nr_read = 0;
	struct answer a;

	put_sequence(&t, FIRST, 5, 16);
	end(&t);
	for (size_t nr = 0; nr < t.nr; nr++) {
		cut = t;
		cut.nr = nr;
		if (nr >= 4)
			end(&cut);
		a = ask(&cut, (struct csink_bytes){0});
		nr_read += !a.err;
		nr_wrong += (a.err && a.err != -ENOTSUP) || (a.found[0].line && a.found[0].line != 5);
		csink_profile_free(a.p);
	}
	ok(!nr_wrong && nr_read > 10, "a table that is cut anywhere gives no other line (%u of %zu were read)", nr_read,
	   t.nr);
}

int main(void)
{
	test_plain();
	test_thrown_away(0);
	test_thrown_away(UINT64_MAX);
	test_thrown_away(UINT64_MAX - 1);
	test_texts();
	test_blocks();
	test_endless();
	test_cut();
	return done();
}
